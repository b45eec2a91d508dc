// Data races: the rare half of order.h, and the messages.
#include <stdio.h>

#include "order.h"

namespace ke {

uint32_t interval = 1, block_first_interval = 1;
uint32_t warp_syncs[kMaxWarps];
Stamp now;
unsigned num_suspects;

void refresh_now() {
  if (!current) return;
  uint32_t id = current->id;
  now = {interval, id | warp_syncs[id / kWarp] << kWhoBits};
}

void next_interval() {
  interval++;
  memset(warp_syncs, 0, sizeof warp_syncs);
  refresh_now();
}

// ---- fences

namespace {

// For each block of the launch: when it started, and the interval of its last
// fence. Blocks run one after another, so the list is sorted.
constexpr unsigned kBlockLog = 1 << 16;
uint32_t block_started[kBlockLog], block_fenced[kBlockLog];
unsigned num_blocks;
bool block_acquired;      // has done an atomic or read something volatile
uint32_t block_released;  // interval of the last fence-and-atomic

}  // namespace

void order_begin_launch() {
  next_interval();
  num_blocks = 0;
}

void order_begin_block() {
  next_interval();
  block_first_interval = interval;
  block_acquired = false;
  if (num_blocks < kBlockLog) {
    block_started[num_blocks] = interval;
    block_fenced[num_blocks] = 0;
  }
  num_blocks++;
}

void note_fence(bool of_device) {
  if (!current) return;
  current->fenced = interval;
  if (of_device && num_blocks <= kBlockLog)
    block_fenced[num_blocks - 1] = interval;
}

void note_atomic() {
  block_acquired = true;
  current->acquired = interval;
  if (current->fenced == interval)
    current->released = block_released = interval;
}

void note_volatile_read() { block_acquired = true; }

bool ordered_by_fence(uint32_t when) {
  if (!block_acquired) return false;
  // Beyond the log nothing is known, so nothing is held against anybody.
  if (num_blocks > kBlockLog && when >= block_started[kBlockLog - 1])
    return true;
  unsigned low = 0, high = num_blocks < kBlockLog ? num_blocks : kBlockLog;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    (block_started[middle] <= when ? low : high) = middle;
  }
  return high > low && block_fenced[low] >= when;
}

bool ordered_by_lock(uint32_t who) {
  if (current->acquired != interval) return false;
  return who < kMaxThreads ? threads[who].released == interval
                           : block_released == interval;
}

// ---- messages

namespace {

Text name_of_time(const Stamp& s) {
  Text t;
  if (s.interval < block_first_interval)
    snprintf(t.text, sizeof t.text, "a thread of another block");
  else if (s.who() >= kMaxThreads)
    snprintf(t.text, sizeof t.text, "other threads of the block");
  else
    return name_of_thread(&threads[s.who()]);
  return t;
}

// What would have ordered the two accesses.
const char* remedy(const Stamp& s) {
  if (s.interval < block_first_interval)
    return "blocks run in any order: use an atomic";
  if (s.warp() == now.warp())
    return "neither __syncthreads() nor __syncwarp() lies between the two";
  return "no __syncthreads() lies between the two";
}

}  // namespace

void race_on_read(const char* address, void* pc, const Stamp& other) {
  fault(kDataRace, pc, -1, "data race: reads %s, which was written by %s; %s",
        name_of_place(address).text, name_of_time(other).text, remedy(other));
}

void uninitialized(const char* address, bool is_shared, void* pc) {
  fault(kUninitialized, pc, -1, "reads %s before anything was written there%s",
        name_of_place(address).text,
        is_shared && num_threads > 1 ? " (is a __syncthreads() missing?)" : "");
}

// ---- writes that may turn out harmless
//
// Threads that store the value already there do not race in any way that can
// show. The check runs before the store, so the verdict waits for a later check
// of the same thread, or until it gives way to another. (Not for the next one
// if that is a load: in a copy of an object the check of the store comes
// first.)

namespace {

struct Suspect {
  char* address;
  unsigned bytes;
  char old_value[4];
};
constexpr unsigned kMaxSuspects = 4;
Suspect suspects[kMaxSuspects];  // parts of one access
void* suspect_pc;
char suspect_text[400];
bool suspects_wait;  // since one load

}  // namespace

void suspect(char* address, unsigned bytes, void* pc, const char* verb,
             const Stamp& other) {
  if (num_suspects == kMaxSuspects) return;
  if (num_suspects == 0) {
    suspect_pc = pc;
    snprintf(suspect_text, sizeof suspect_text,
             "data race: writes %s, which was %s by %s; %s",
             name_of_place(address).text, verb, name_of_time(other).text,
             remedy(other));
  }
  Suspect& s = suspects[num_suspects++];
  s.address = address;
  s.bytes = bytes;
  memcpy(s.old_value, address, bytes);
}

void settle_suspicion_before(Kind kind) {
  if (kind == kLoad && !suspects_wait) {
    suspects_wait = true;
    return;
  }
  settle_suspicion();
}

void settle_suspicion() {
  suspects_wait = false;
  bool changed = false;
  for (unsigned i = 0; i < num_suspects; i++)
    changed |= memcmp(suspects[i].old_value, suspects[i].address,
                      suspects[i].bytes) != 0;
  num_suspects = 0;
  if (changed) fault(kDataRace, suspect_pc, -1, "%s", suspect_text);
}

}  // namespace ke
