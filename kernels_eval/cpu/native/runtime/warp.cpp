// Warp meetings: shuffles, votes, matches, reductions and __syncwarp.
#include "../device_ops.h"
#include "order.h"

namespace ke {

namespace {

// What a lane reads from a lane that is not in the operation. CUDA leaves it
// undefined; a NaN shows itself.
constexpr uint64_t kNobody = ~0ull;

uint32_t waiting[kMaxWarps];  // lanes that are in an operation

// Whether all of them are in the same one.
bool all_agree(const Thread* warp, unsigned members, const Thread& me) {
  for (unsigned i = 0; i < kWarp; i++)
    if ((members >> i & 1) &&
        (warp[i].mask != me.mask || warp[i].warp_op != me.warp_op))
      return false;
  return true;
}

uint64_t shuffle(const Thread* warp, unsigned members, unsigned lane) {
  const Thread& me = warp[lane];
  // Sub-warps of `width` lanes: low is the first lane of mine.
  int width = me.width, low = (int)lane & ~(width - 1), source = (int)lane;
  switch (me.warp_op) {
    case KE_SHFL_IDX:
      source = low + (me.argument & (width - 1));
      break;
    // The device takes the low five bits of a distance.
    case KE_SHFL_UP:
      source = (int)lane - (me.argument & 31);
      if (source < low) source = (int)lane;
      break;
    case KE_SHFL_DOWN:
      source = (int)lane + (me.argument & 31);
      if (source >= low + width) source = (int)lane;
      break;
    default:  // KE_SHFL_XOR
      source = (int)lane ^ (me.argument & 31);
      if (source >= low + width) source = (int)lane;
  }
  return members >> source & 1 ? warp[source].value : kNobody;
}

uint32_t reduce(const Thread* warp, unsigned members, int op) {
  bool first = true;
  uint32_t result = 0;
  for (unsigned lane = 0; lane < kWarp; lane++) {
    if (!(members >> lane & 1)) continue;
    uint32_t v = (uint32_t)warp[lane].value, r = result;
    if (first)
      r = v;
    else if (op == KE_REDUCE_ADD)
      r += v;
    else if (op == KE_REDUCE_MIN)
      r = (int32_t)v < (int32_t)r ? v : r;
    else if (op == KE_REDUCE_MIN_UNSIGNED)
      r = v < r ? v : r;
    else if (op == KE_REDUCE_MAX)
      r = (int32_t)v > (int32_t)r ? v : r;
    else if (op == KE_REDUCE_MAX_UNSIGNED)
      r = v > r ? v : r;
    else if (op == KE_REDUCE_AND)
      r &= v;
    else if (op == KE_REDUCE_OR)
      r |= v;
    else
      r ^= v;
    result = r;
    first = false;
  }
  return result;
}

// Writes every member's result. Most operations have one for all.
void finish(Thread* warp, unsigned members, int op) {
  uint64_t shared_result = 0;
  if (op == KE_BALLOT) {
    for (unsigned i = 0; i < kWarp; i++)
      if (members >> i & 1)
        shared_result |= (uint64_t)(warp[i].value != 0) << i;
  } else if (op >= KE_REDUCE_ADD) {
    shared_result = reduce(warp, members, op);
  }
  for (unsigned lane = 0; lane < kWarp; lane++) {
    if (!(members >> lane & 1)) continue;
    uint64_t& result = warp[lane].result;
    if (op >= KE_SHFL_IDX && op <= KE_SHFL_XOR) {
      result = shuffle(warp, members, lane);
    } else if (op == KE_MATCH_ANY || op == KE_MATCH_ALL) {
      unsigned equal = 0;
      for (unsigned i = 0; i < kWarp; i++)
        if (members >> i & 1)
          equal |= (unsigned)(warp[i].value == warp[lane].value) << i;
      result = op == KE_MATCH_ANY ? equal : equal == members ? members : 0;
    } else {
      result = shared_result;
    }
  }
}

}  // namespace

extern "C" uint64_t ke_warp(int op, unsigned mask, uint64_t value, int argument,
                            int width) {
  Thread* me = current;
  unsigned lane = me->id % kWarp, first = me->id - lane;
  Thread* warp = &threads[first];
  me->warp_op = op;
  me->mask = mask;
  me->value = value;
  me->argument = argument;
  me->width = width;
  me->pc = __builtin_return_address(0);
  if (!(mask >> lane & 1))
    fault(kDivergentWarp, me->pc, -1,
          "lane %u calls a warp operation whose mask 0x%08x does not name it",
          lane, mask);
  if (width < 1 || width > 32 || (width & (width - 1)))
    fault(kDivergentWarp, me->pc, -1,
          "shuffle width %d is not a power of two up to 32", width);
  // Lanes past the end of the block do not exist and are not waited for.
  unsigned existing = num_threads - first >= kWarp
                          ? 0xffffffffu
                          : (1u << (num_threads - first)) - 1;
  unsigned members = mask & existing;
  uint32_t& here = waiting[first / kWarp];
  here |= 1u << lane;
  if ((members & ~here) || !all_agree(warp, members, *me)) {
    park(kAtWarp);
    return me->result;
  }
  here &= ~members;
  // The last lane to come works out everybody's result.
  settle_suspicion();
  if (op == KE_SYNC) {  // the others give no order of memory accesses
    if (warp_syncs[first / kWarp] < kMaxSyncs)
      warp_syncs[first / kWarp]++;
    else
      next_interval();
    refresh_now();
  }
  finish(warp, members, op);
  for (unsigned i = 0; i < kWarp; i++)
    if ((members >> i & 1) && i != lane) make_ready(&warp[i]);
  return me->result;
}

// __activemask(): which lanes run this instruction together? Lanes run one
// after another here, so the question waits until every thread of the block
// waits for something. The lanes of a warp that then ask it at one place are
// its answer, as on a device whose lanes come together wherever they can.
extern "C" unsigned ke_active_mask() {
  current->pc = __builtin_return_address(0);
  park(kAtActiveMask);
  return (unsigned)current->result;
}

void warps_begin_block() { memset(waiting, 0, sizeof waiting); }

bool answer_active_masks() {
  bool any = false;
  for (unsigned first = 0; first < num_threads; first += kWarp) {
    unsigned end = first + kWarp < num_threads ? first + kWarp : num_threads;
    const void* place = nullptr;
    uint64_t mask = 0;
    for (unsigned i = first; i < end; i++) {
      if (threads[i].wait != kAtActiveMask) continue;
      if (!place) place = threads[i].pc;
      if (threads[i].pc == place) mask |= 1ull << (i - first);
    }
    for (unsigned i = first; i < end; i++) {
      if (!(mask >> (i - first) & 1)) continue;
      threads[i].result = mask;
      make_ready(&threads[i]);
      any = true;
    }
  }
  return any;
}

extern "C" int ke_lane() { return current->id % kWarp; }

}  // namespace ke
