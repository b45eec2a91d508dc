// Which accesses are ordered, and who touched a word last.
//
// The rules of CUDA, as far as programs use them:
//
//   - launches follow one another;
//   - in a block, __syncthreads() orders everything before it with everything
//     after it. Time is counted in intervals: a new one starts with each case,
//     launch, block and barrier;
//   - in a warp, __syncwarp() does the same. A shuffle or a vote does not;
//   - between blocks, and between threads of one block: write, fence, atomic on
//     one side, atomic, read on the other ("last block" reductions, locks);
//   - atomics never race with one another. A plain read of what others update
//     atomically is let pass: every compare-and-swap loop starts with one.
//
// A Cell remembers for four bytes the last write and the last read. Several
// readers that nothing orders are kept as one: "lanes of warp w", or "many".
// Whoever is ordered after all of them takes their place.
#pragma once
#include <string.h>

#include "runtime.h"

namespace ke {

extern uint32_t interval, block_first_interval;
extern uint32_t warp_syncs[kMaxWarps];  // meetings in this interval

constexpr unsigned kWhoBits = 11;
constexpr uint32_t kLanes = kMaxThreads;        // + warp: lanes of that warp
constexpr uint32_t kMany = kLanes + kMaxWarps;  // threads of several warps
constexpr uint32_t kMaxSyncs = (1u << 21) - 1;
static_assert(kMany < 1u << kWhoBits, "a stamp holds who and when");

struct Stamp {
  uint32_t interval;
  uint32_t packed;  // who, then warp_syncs of its warp

  uint32_t who() const { return packed & ((1u << kWhoBits) - 1); }
  uint32_t syncs() const { return packed >> kWhoBits; }
  // The warp that holds all of `who`; kMaxWarps for many.
  uint32_t warp() const {
    return who() < kLanes ? who() / kWarp : who() - kLanes;
  }
  bool operator==(const Stamp& o) const {
    return interval == o.interval && packed == o.packed;
  }
};

extern Stamp now;    // of the current thread
void refresh_now();  // after any change of thread, interval or warp_syncs
void next_interval();

struct Cell {
  Stamp write, read;
  uint32_t elsewhere;  // last interval in which a block before that of `read`
                       // has read the word, or updated it atomically
  uint8_t write_is_atomic, write_is_volatile, read_is_volatile;
  uint8_t is_split;  // each byte has a cell of its own
};
static_assert(sizeof(Cell) == 24, "six words a cell");

// What lies before these intervals does not matter to an access: memory written
// earlier counts as never written, and earlier accesses are ordered. Shared
// memory starts anew with each block, global memory with each case.
struct Since {
  uint32_t valid, ordered;
};

// kSwap: an atomic that stores what it is given, whatever was there.
enum Kind : uint8_t { kLoad, kStore, kAtomic, kSwap };

struct Access {
  Kind kind;
  bool is_volatile, is_shared;
  Since since;
  void* pc;
  const char* address;  // of all that is accessed
  size_t bytes;
};

bool ordered_by_fence(uint32_t when);  // `when` lies in an earlier block
bool ordered_by_lock(uint32_t who);

// Is the access stamped `s` unordered with one by the current thread now?
inline bool unordered(const Stamp& s, Since since) {
  if (s.interval < since.ordered) return false;
  if (s.interval < block_first_interval) return !ordered_by_fence(s.interval);
  if (s.interval != interval || s.who() == now.who()) return false;
  if (s.warp() == now.warp() && s.syncs() < now.syncs()) return false;
  return !ordered_by_lock(s.who());
}

// A write that may turn out harmless: see race.cpp.
void suspect(char* address, unsigned bytes, void* pc, const char* verb,
             const Stamp& other);
void settle_suspicion();
void settle_suspicion_before(Kind kind);  // a check follows
extern unsigned num_suspects;
[[noreturn]] void race_on_read(const char* address, void* pc,
                               const Stamp& other);
[[noreturn]] void uninitialized(const char* address, bool is_shared, void* pc);
// A load finds nothing at `address`: a fault, unless that may be padding.
void unwritten(const char* address, const Access& a);

// Joins the current thread to an access of the same interval.
inline Stamp joined(const Stamp& s) {
  if (s.who() == now.who()) return now;
  if (s.warp() != now.warp()) return {interval, kMany};
  if (s.syncs() < now.syncs()) return now;  // ordered before us
  return {interval, (kLanes + now.warp()) | now.syncs() << kWhoBits};
}

inline void read_cell(Cell& c, const char* address, const Access& a) {
  if (c.write.interval < a.since.valid) unwritten(address, a);
  if (!c.write_is_atomic && unordered(c.write, a.since) &&
      !(a.is_volatile && c.write_is_volatile &&
        c.write.interval < block_first_interval))
    race_on_read(address, a.pc, c.write);
  if (c.read.interval == interval) {
    if (c.read.who() == kMany || c.read == now) return;
    c.read = joined(c.read);
    c.read_is_volatile &= a.is_volatile;
    return;
  }
  if (c.read.interval < block_first_interval && !c.read_is_volatile &&
      c.read.interval >= a.since.ordered)
    c.elsewhere = c.read.interval;
  c.read = now;
  c.read_is_volatile = a.is_volatile;
}

inline void write_cell(Cell& c, char* address, unsigned bytes,
                       const Access& a) {
  bool atomic = a.kind != kStore;
  Stamp before = c.write, next = now;
  if (atomic && !c.write_is_atomic && before.interval == interval &&
      before.who() == now.who())
    return;  // its own plain write is what others may clash with
  if (!(before == now)) {
    bool both_atomic = atomic && c.write_is_atomic;
    if (!both_atomic) {
      if (unordered(before, a.since) &&
          !(a.is_volatile && c.write_is_volatile &&
            before.interval < block_first_interval))
        suspect(address, bytes, a.pc, "written", before);
    } else if (before.interval == interval) {
      next = joined(before);
    } else if (before.interval < block_first_interval &&
               before.interval >= a.since.ordered) {
      c.elsewhere = before.interval;
    }
  }
  if (!atomic) {
    if (unordered(c.read, a.since))
      suspect(address, bytes, a.pc, "read", c.read);
    else if (c.elsewhere >= a.since.ordered && !ordered_by_fence(c.elsewhere))
      suspect(address, bytes, a.pc, "used", {c.elsewhere, 0});
  }
  c.write = next;
  c.write_is_atomic = atomic;
  c.write_is_volatile = a.is_volatile;
}

// ---- fences, for the rules above (race.cpp)

void order_begin_launch();
void order_begin_block();
void note_fence(bool of_device);
void note_atomic();
void note_volatile_read();

}  // namespace ke
