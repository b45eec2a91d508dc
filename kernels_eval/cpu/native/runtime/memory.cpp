// Every load and store of a candidate is checked here, one call each
// (-fsanitize=kernel-address with calls, and this file instead of libasan).
//
// Four questions about an access: is it inside of a buffer, a shared variable,
// the thread's own stack or the module? Is it aligned? Was the memory ever
// written? Does it race with another thread? The last two need a Cell for each
// four bytes: who wrote it last and who read it last, and when. "When" is an
// interval (see runtime.h) and, inside a warp, the count of warp meetings.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime.h"

struct ke_shared_variable {  // as in device.h
  const char* name;
  size_t bytes, align, element_bytes;
  int line;
  void* address;
  uint64_t block_serial;
};

extern "C" {
uint64_t ke_block_serial = 1;
}

namespace ke {

uint32_t interval = 1, launch_first_interval = 1, block_first_interval = 1;
uint16_t warp_syncs[kMaxThreads / kWarp];
uint64_t num_accesses, access_limit = ~0ull;
uint32_t static_shared_limit = 48 * 1024, most_shared_bytes;

namespace {

// ---- cells

struct Stamp {
  uint32_t interval;
  uint16_t id;    // linear thread, or kMany
  uint16_t sync;  // warp_syncs of that thread's warp
};
struct Cell {
  Stamp write, read;
  uint8_t write_mask, read_mask;  // which of the four bytes
  uint8_t write_atomic, read_many_warp;
};
static_assert(sizeof(Cell) == 20, "five words a cell");
constexpr uint16_t kMany = 0xffff, kManyInWarp = 0xfffe;

Stamp now() { return {interval, current->id, warp_syncs[current->id / kWarp]}; }

bool same_block(const Stamp& s) { return s.interval >= block_first_interval; }

// What lies before these intervals does not matter to an access: memory
// written earlier counts as never written, and earlier accesses are ordered.
// Shared memory starts anew with each block, global memory with each case, and
// launches follow one another.
struct Since {
  uint32_t valid, ordered;
};

// Is the access stamped `s` unordered with one by the current thread now?
bool unordered(const Stamp& s, uint8_t many_warp, Since since) {
  if (s.interval < since.ordered) return false;
  if (!same_block(s)) return true;
  if (s.interval != interval) return false;
  if (s.id == kMany) return true;
  unsigned warp = s.id == kManyInWarp ? many_warp : s.id / kWarp;
  if (s.id == current->id) return false;
  if (warp != current->id / kWarp) return true;
  return s.sync == warp_syncs[warp];
}

// ---- fences between blocks
//
// The one ordering between blocks that CUDA programs use: write, fence, atomic
// in one block; atomic, read in another (the "last block" reduction).

constexpr unsigned kBlockLog = 1 << 16;
uint32_t block_started[kBlockLog], block_fenced[kBlockLog];
unsigned num_blocks;
bool block_did_atomic;

bool released(uint32_t when) {
  unsigned low = 0, high = num_blocks < kBlockLog ? num_blocks : kBlockLog;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    (block_started[middle] <= when ? low : high) = middle;
  }
  return high > low && block_fenced[low] >= when;
}

bool ordered_by_fence(const Stamp& s) {
  return !same_block(s) && block_did_atomic && released(s.interval);
}

// ---- regions

struct Region {
  char* base;
  size_t bytes;
  const Buffer* buffer;
  Cell* cells;
};
constexpr int kMaxRegions = 64;
Region regions[kMaxRegions];
int num_regions;
uint32_t case_first_interval;
char* shadow;  // one Cell for each four bytes of the mapping
char* map_base;
size_t map_bytes;

struct Module {
  const char* base;
  size_t bytes;
  bool writable;
};
Module modules[16];
int num_modules;

constexpr size_t kSharedBytes = 512 * 1024;  // limits, gaps and dynamic
constexpr size_t kSharedGap = 64;
struct SharedVariable {
  char* base;
  size_t bytes, element_bytes;
  const char* name;
};
alignas(1024) char shared_arena[kSharedBytes];
Cell shared_cells[kSharedBytes / 4];
SharedVariable shared_variables[64];
int num_shared;
size_t shared_used, shared_static_bytes;
size_t dynamic_bytes;
constexpr size_t kDynamicOffset = 256 * 1024;

// ---- names for messages

void describe_time(char* out, size_t size, const Stamp& s) {
  if (!same_block(s)) {
    snprintf(out, size, "a thread of another block");
  } else if (s.id == kMany || s.id == kManyInWarp) {
    snprintf(out, size, "other threads of the block");
  } else {
    describe_thread(out, size, &threads[s.id]);
  }
}

struct Place {
  char text[160];
};

Place describe_place(const char* address) {
  Place p;
  for (int i = 0; i < num_regions; i++) {
    const Region& r = regions[i];
    if ((size_t)(address - r.base) < r.bytes) {
      snprintf(p.text, sizeof p.text, "%s[%zu]", r.buffer->name,
               (size_t)(address - r.base) / r.buffer->item_bytes);
      return p;
    }
  }
  for (int i = 0; i < num_shared; i++) {
    const SharedVariable& v = shared_variables[i];
    if ((size_t)(address - v.base) < v.bytes) {
      if (v.bytes == v.element_bytes)
        snprintf(p.text, sizeof p.text, "shared %s", v.name);
      else
        snprintf(p.text, sizeof p.text, "shared %s[%zu]", v.name,
                 (size_t)(address - v.base) / v.element_bytes);
      return p;
    }
  }
  snprintf(p.text, sizeof p.text, "a global variable");
  return p;
}

// ---- writes that may turn out harmless
//
// Threads that store the value already there do not race in any way that can
// show. The check runs before the store, so the verdict waits for the next
// check of the same fibre.

struct Pending {
  char* address;
  unsigned bytes;
  char old_value[16];
  void* pc;
  char text[384];
} pending;

void suspect(char* address, unsigned bytes, void* pc, const char* verb,
             const Stamp& other) {
  if (pending.address) return;
  char who[64];
  describe_time(who, sizeof who, other);
  Place place = describe_place(address);
  pending.address = address;
  pending.bytes = bytes < 16 ? bytes : 16;
  pending.pc = pc;
  memcpy(pending.old_value, address, pending.bytes);
  snprintf(pending.text, sizeof pending.text,
           "data race: writes %s, which %s has %s with nothing in between "
           "that orders the two",
           place.text, who, verb);
}

[[noreturn]] void race_on_read(const char* address, void* pc,
                               const Stamp& other) {
  char who[64];
  describe_time(who, sizeof who, other);
  Place place = describe_place(address);
  fault(kDataRace, pc, -1,
        "data race: reads %s, which %s has written with nothing in between "
        "that orders the two",
        place.text, who);
}

[[noreturn]] void uninitialized(const char* address, void* pc) {
  Place place = describe_place(address);
  fault(kUninitialized, pc, -1, "reads %s before anything was written there",
        place.text);
}

// ---- one access to one cell

void note_read(Cell& c, uint8_t mask) {
  Stamp me = now();
  if (c.read.interval != me.interval || c.read_mask == 0) {
    c.read = me;
    c.read_mask = mask;
    return;
  }
  c.read_mask |= mask;
  if (c.read.id == me.id) {
    c.read.sync = me.sync;
    return;
  }
  unsigned warp = me.id / kWarp;
  unsigned before = c.read.id == kMany         ? kMany
                    : c.read.id == kManyInWarp ? c.read_many_warp
                                               : c.read.id / kWarp;
  if (before == warp) {
    c.read.id = kManyInWarp;
    c.read_many_warp = (uint8_t)warp;
    c.read.sync = me.sync;
  } else {
    c.read.id = kMany;
  }
}

void read_cell(Cell& c, uint8_t mask, const char* address, void* pc,
               Since since) {
  if (c.write.interval < since.valid) {
    uninitialized(address, pc);
  } else if ((c.write_mask & mask) && !c.write_atomic &&
             unordered(c.write, 0, since)) {
    if (!ordered_by_fence(c.write)) race_on_read(address, pc, c.write);
  }
  note_read(c, mask);
}

void write_cell(Cell& c, uint8_t mask, char* address, unsigned bytes, void* pc,
                bool atomic, Since since) {
  bool both_atomic = atomic && c.write_atomic;
  if (c.write.interval && (c.write_mask & mask) && !both_atomic &&
      unordered(c.write, 0, since)) {
    if (!ordered_by_fence(c.write))
      suspect(address, bytes, pc, "written", c.write);
  } else if (!atomic && c.read.interval && (c.read_mask & mask) &&
             unordered(c.read, c.read_many_warp, since)) {
    if (!ordered_by_fence(c.read)) suspect(address, bytes, pc, "read", c.read);
  }
  Stamp me = now();
  if (c.write.interval == me.interval && c.write.id == me.id)
    mask |= c.write_mask;
  c.write = me;
  c.write_mask = mask;
  c.write_atomic = atomic;
}

// ---- dispatch

enum Kind { kLoad, kStore, kAtomic };

void touch(Cell* cells, size_t offset, char* address, unsigned bytes, Kind kind,
           void* pc, Since since) {
  size_t end = offset + bytes;
  while (offset < end) {
    unsigned lane = offset & 3, here = 4 - lane;
    if (here > end - offset) here = (unsigned)(end - offset);
    uint8_t mask = (uint8_t)(((1u << here) - 1) << lane);
    Cell& c = cells[offset >> 2];
    if (kind == kLoad)
      read_cell(c, mask, address, pc, since);
    else if (kind == kStore)
      write_cell(c, mask, address, here, pc, false, since);
    else {
      // An atomic reads too: never-written memory is as bad there.
      if (c.write.interval < since.valid) uninitialized(address, pc);
      write_cell(c, mask, address, here, pc, true, since);
    }
    offset += here;
    address += here;
  }
}

const char* verb_of(Kind kind) {
  return kind == kLoad ? "reads" : kind == kStore ? "writes" : "updates";
}

[[noreturn]] void out_of_bounds(const char* address, unsigned bytes, Kind kind,
                                void* pc) {
  // Blame the nearest buffer if the address lies in the gap round it.
  constexpr size_t kNear = 1 << 16;
  for (int i = 0; i < num_regions; i++) {
    const Region& r = regions[i];
    ptrdiff_t offset = address - r.base;
    if (offset >= -(ptrdiff_t)kNear && offset < (ptrdiff_t)(r.bytes + kNear)) {
      ptrdiff_t item = r.buffer->item_bytes;
      ptrdiff_t index =
          offset >= 0 ? offset / item : -((-offset + item - 1) / item);
      fault(kOutOfBounds, pc, -1,
            "out of bounds: %s %s[%td], but %s has %zu elements", verb_of(kind),
            r.buffer->name, index, r.buffer->name, r.bytes / (size_t)item);
    }
  }
  fault(kOutOfBounds, pc, -1,
        "out of bounds: %s %u bytes at address 0x%zx, far outside of every "
        "buffer",
        verb_of(kind), bytes, (size_t)address);
}

[[noreturn]] void shared_out_of_bounds(const char* address, Kind kind,
                                       void* pc) {
  if (address >= shared_arena + kDynamicOffset)
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s dynamic shared memory at byte %zu, but the launch "
          "gives smem=%zu bytes",
          verb_of(kind), (size_t)(address - shared_arena) - kDynamicOffset,
          dynamic_bytes);
  const SharedVariable* nearest = nullptr;
  for (int i = 0; i < num_shared; i++)
    if (shared_variables[i].base <= address) nearest = &shared_variables[i];
  if (nearest)
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s shared %s[%zu], but %s has %zu elements",
          verb_of(kind), nearest->name,
          (size_t)(address - nearest->base) / nearest->element_bytes,
          nearest->name, nearest->bytes / nearest->element_bytes);
  fault(kOutOfBounds, pc, -1, "out of bounds: %s shared memory", verb_of(kind));
}

bool check_shared(char* address, unsigned bytes, Kind kind, void* pc) {
  size_t offset = (size_t)(address - shared_arena);
  if (offset >= kSharedBytes) return false;
  bool inside = false;
  if (offset >= kDynamicOffset) {
    inside = offset - kDynamicOffset + bytes <= dynamic_bytes;
  } else {
    static int last;
    for (int k = -1; k < num_shared && !inside; k++) {
      int i = k < 0 ? last : k;
      if (i >= num_shared) continue;
      const SharedVariable& v = shared_variables[i];
      if ((size_t)(address - v.base) + bytes <= v.bytes &&
          (size_t)(address - v.base) < v.bytes) {
        inside = true;
        last = i;
      }
    }
  }
  if (!inside) shared_out_of_bounds(address, kind, pc);
  touch(shared_cells, offset, address, bytes, kind, pc,
        {block_first_interval, block_first_interval});
  return true;
}

[[noreturn]] void misaligned(const char* address, unsigned bytes, Kind kind,
                             void* pc) {
  Place place = describe_place(address);
  fault(kMisaligned, pc, -1,
        "misaligned: %s %u bytes at %s, an address that is not a multiple of "
        "%u",
        verb_of(kind), bytes, place.text, bytes);
}

void check(char* address, unsigned bytes, Kind kind, void* pc) {
  if (!current) return;  // constructors of the module, before any launch
  settle_pending();
  if (++num_accesses > access_limit)
    fault(kAccessLimit, pc, -1,
          "more than %llu memory accesses: the kernel does not end",
          (unsigned long long)access_limit);
  // Powers of two up to 16 are single accesses of the device.
  bool power = (bytes & (bytes - 1)) == 0 && bytes <= 16;
  if (power && ((size_t)address & (bytes - 1)))
    misaligned(address, bytes, kind, pc);
  if (check_shared(address, bytes, kind, pc)) return;
  static int last;
  for (int k = -1; k < num_regions; k++) {
    int i = k < 0 ? last : k;
    if (i >= num_regions) continue;
    const Region& r = regions[i];
    size_t offset = (size_t)(address - r.base);
    if (offset >= r.bytes) continue;
    if (bytes > r.bytes - offset)
      out_of_bounds(r.base + r.bytes, bytes, kind, pc);
    last = i;
    if (kind != kLoad && r.buffer->role == kInput)
      fault(kInputModified, pc, -1, "writes to %s[%zu], which is an input",
            r.buffer->name, offset / r.buffer->item_bytes);
    // An input is never written, so there is nothing else to go wrong.
    if (r.buffer->role != kInput)
      touch(r.cells, offset, address, bytes, kind, pc,
            {case_first_interval, launch_first_interval});
    return;
  }
  int fibre = fibre_of_stack(address);
  if (fibre >= 0) {
    if (fibre == current->fibre) return;
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s the local memory of another thread",
          verb_of(kind));
  }
  for (int i = 0; i < num_modules; i++)
    if ((size_t)(address - modules[i].base) < modules[i].bytes &&
        (kind == kLoad || modules[i].writable))
      return;
  out_of_bounds(address, bytes, kind, pc);
}

}  // namespace

void settle_pending() {
  if (!pending.address) return;
  bool changed = memcmp(pending.old_value, pending.address, pending.bytes) != 0;
  pending.address = nullptr;
  if (changed) fault(kDataRace, pending.pc, -1, "%s", pending.text);
}

void check_atomic(void* address, unsigned bytes, void* pc) {
  check((char*)address, bytes, kAtomic, pc);
  block_did_atomic = true;
}

void memory_init(char* mapping, uint64_t mapping_bytes) {
  map_base = mapping;
  map_bytes = mapping_bytes;
  size_t bytes = mapping_bytes / 4 * sizeof(Cell);
  shadow = (char*)mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (shadow == (char*)MAP_FAILED)
    fault(kLoadFailed, nullptr, -1, "no memory for %zu bytes of shadow", bytes);
}

void memory_begin_case(const Buffer* buffers, unsigned num_buffers) {
  num_regions = 0;
  case_first_interval = ++interval;
  for (unsigned i = 0; i < num_buffers && i < kMaxRegions; i++) {
    const Buffer& b = buffers[i];
    regions[num_regions++] = {map_base + b.offset, b.bytes, &b,
                              (Cell*)shadow + b.offset / 4};
  }
}

void memory_begin_launch(unsigned bytes) {
  launch_first_interval = ++interval;
  dynamic_bytes = bytes;
  num_blocks = 0;
}

void memory_begin_block() {
  block_first_interval = ++interval;
  ke_block_serial++;
  if (num_blocks < kBlockLog) {
    block_started[num_blocks] = interval;
    block_fenced[num_blocks] = 0;
  }
  num_blocks++;
  block_did_atomic = false;
  memset(warp_syncs, 0, sizeof warp_syncs);
  num_shared = 0;
  shared_used = shared_static_bytes = 0;
  // Shared memory is never fresh on a device: it starts as NaN here.
  if (dynamic_bytes) memset(shared_arena + kDynamicOffset, 0xff, dynamic_bytes);
}

void memory_end_block() {
  if (shared_static_bytes > most_shared_bytes)
    most_shared_bytes = (uint32_t)shared_static_bytes;
}

void memory_add_module(const char* base, size_t bytes, bool writable) {
  if (num_modules < 16) modules[num_modules++] = {base, bytes, writable};
}

extern "C" {

void* ke_dynamic_shared() { return shared_arena + kDynamicOffset; }

// First use of a shared variable in this block: give it a place.
void* ke_shared_slow(ke_shared_variable* v) {
  size_t align = v->align < 16 ? 16 : v->align;
  size_t base = (shared_used + align - 1) / align * align;
  shared_static_bytes += v->bytes;
  if (shared_static_bytes > static_shared_limit ||
      base + v->bytes + kSharedGap > kDynamicOffset || num_shared == 64)
    fault(kSharedLimit, nullptr, v->line,
          "the kernel uses too much shared data (%zu bytes with %s, %u max)",
          shared_static_bytes, v->name, static_shared_limit);
  v->address = shared_arena + base;
  v->block_serial = ke_block_serial;
  memset(v->address, 0xff, v->bytes);
  shared_used = base + v->bytes + kSharedGap;
  shared_variables[num_shared++] = {(char*)v->address, v->bytes,
                                    v->element_bytes, v->name};
  return v->address;
}

void ke_fence(int scope) {
  if (scope && num_blocks && num_blocks <= kBlockLog)
    block_fenced[num_blocks - 1] = interval;
}

void* ke_memcpy(void* to, const void* from, size_t bytes) {
  void* pc = __builtin_return_address(0);
  char *t = (char*)to, *f = (char*)from;
  for (size_t i = 0; i < bytes; i++) {
    check(f + i, 1, kLoad, pc);
    check(t + i, 1, kStore, pc);
    t[i] = f[i];
  }
  return to;
}

void* ke_memset(void* to, int value, size_t bytes) {
  void* pc = __builtin_return_address(0);
  for (size_t i = 0; i < bytes; i++) {
    check((char*)to + i, 1, kStore, pc);
    ((char*)to)[i] = (char)value;
  }
  return to;
}

// Copies that the compiler itself asks for (large aggregates): the linker sends
// them here (--wrap), since a candidate has no C library.
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  return memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  return memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  return memset(to, value, bytes);
}

// The compiler calls these before each access.
#define KE_CHECK(n)                                          \
  void __asan_load##n(void* p) {                             \
    check((char*)p, n, kLoad, __builtin_return_address(0));  \
  }                                                          \
  void __asan_store##n(void* p) {                            \
    check((char*)p, n, kStore, __builtin_return_address(0)); \
  }
KE_CHECK(1)
KE_CHECK(2)
KE_CHECK(4) KE_CHECK(8) KE_CHECK(16)
#undef KE_CHECK
    void __asan_loadN(void* p, size_t bytes) {
  check((char*)p, (unsigned)bytes, kLoad, __builtin_return_address(0));
}
void __asan_storeN(void* p, size_t bytes) {
  check((char*)p, (unsigned)bytes, kStore, __builtin_return_address(0));
}
void __asan_handle_no_return() {}

}  // extern "C"

}  // namespace ke
