// Warp meetings: shuffles, votes, matches, reductions and __syncwarp.
#include "../device_ops.h"
#include "runtime.h"

namespace ke {

namespace {

// What a lane reads from a lane that is not in the operation. CUDA leaves it
// undefined; a NaN shows itself.
constexpr uint64_t kNobody = ~0ull;

bool arrived(const Thread& lane, const Thread& me) {
  return lane.wait == kAtWarp && lane.mask == me.mask &&
         lane.warp_op == me.warp_op;
}

uint64_t shuffle(const Thread* warp, unsigned members, unsigned lane) {
  const Thread& me = warp[lane];
  // Sub-warps of `width` lanes: low is the first lane of mine.
  int width = me.width, low = (int)lane & ~(width - 1), source = (int)lane;
  switch (me.warp_op) {
    case KE_SHFL_IDX:
      source = low + (me.argument & (width - 1));
      break;
    case KE_SHFL_UP:
      source = (int)lane - me.argument;
      if (source < low) source = (int)lane;
      break;
    case KE_SHFL_DOWN:
      source = (int)lane + me.argument;
      if (source >= low + width) source = (int)lane;
      break;
    default:  // KE_SHFL_XOR
      source = (int)lane ^ me.argument;
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

uint64_t result_of(const Thread* warp, unsigned members, unsigned lane) {
  const Thread& me = warp[lane];
  unsigned equal = 0, yes = 0;
  for (unsigned i = 0; i < kWarp; i++) {
    if (!(members >> i & 1)) continue;
    equal |= (unsigned)(warp[i].value == me.value) << i;
    yes |= (unsigned)(warp[i].value != 0) << i;
  }
  switch (me.warp_op) {
    case KE_SYNC:
      return 0;
    case KE_BALLOT:
      return yes;
    case KE_MATCH_ANY:
      return equal;
    case KE_MATCH_ALL:
      return equal == members ? members : 0;
    case KE_SHFL_IDX:
    case KE_SHFL_UP:
    case KE_SHFL_DOWN:
    case KE_SHFL_XOR:
      return shuffle(warp, members, lane);
    default:
      return reduce(warp, members, me.warp_op);
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
  me->wait = kAtWarp;
  for (unsigned i = 0; i < kWarp; i++) {
    if (!(members >> i & 1)) continue;
    if (!arrived(warp[i], *me)) {
      park(kAtWarp);
      return me->result;
    }
  }
  // The last lane to come works out everybody's result.
  settle_pending();
  warp_syncs[first / kWarp]++;
  for (unsigned i = 0; i < kWarp; i++)
    if (members >> i & 1) warp[i].result = result_of(warp, members, i);
  for (unsigned i = 0; i < kWarp; i++)
    if ((members >> i & 1) && i != lane) make_ready(&warp[i]);
  me->wait = kActive;
  return me->result;
}

extern "C" unsigned ke_active_mask() {
  unsigned lane = current->id % kWarp, first = current->id - lane, mask = 0;
  for (unsigned i = 0; i < kWarp && first + i < num_threads; i++)
    mask |= (unsigned)(threads[first + i].wait != kDone) << i;
  return mask;
}

extern "C" int ke_lane() { return current->id % kWarp; }

}  // namespace ke
