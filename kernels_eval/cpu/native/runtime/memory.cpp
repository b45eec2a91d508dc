// Every load and store of a candidate is checked here, one call each: the
// compiler instruments it as for a thread sanitizer (-fsanitize=thread), and
// this file takes that library's place. (An address sanitizer's
// instrumentation would not do: it leaves out the store of `x += 1`, whose load
// it has checked.)
//
// Four questions about an access: is it inside of a buffer, a shared variable,
// the thread's own stack or the module? Is it aligned? Was the memory ever
// written? Does it race with another thread (order.h)?
#include <sys/mman.h>

#include "regions.h"

extern "C" {
alignas(1024) char ke_dynamic_arena[ke::kDynamicSharedBytes];
}

namespace ke {

uint64_t num_accesses, access_limit = ~0ull, next_event = ~0ull;
uint32_t static_shared_limit = 48 * 1024, most_shared_bytes;
Region regions[kMaxRegions];
int num_regions;
char* own_stack;

namespace {

char* map_base;
Cell* map_words;
Cell* map_byte_cells;
constexpr int kMaxBuffers = 64, kMaxModules = 16 + Constants::kMaxRuns;
Region modules[kMaxModules];
int num_modules;
int num_base_regions;  // without shared variables
uint64_t block_serial;
size_t static_shared_bytes, dynamic_bytes;

// Shared variables get their cells once, from here.
constexpr size_t kSharedCells = 4 << 20;
Cell* shared_cells;
size_t shared_cells_used;
// So do global variables: five cells for each four bytes.
constexpr size_t kModuleCells = kMaxVariableBytes / 4 * 5 + (1 << 20);
Cell* module_cells;
size_t module_cells_used;

// Pages appear when they are written to, so that size costs nothing.
Cell* new_cells(size_t count) {
  void* p = mmap(nullptr, count * sizeof(Cell), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    fault(kMachine, nullptr, -1, "no memory for %zu records of accesses",
          count);
  return (Cell*)p;
}

// ---- one access

// Inlined into each of the compiler's entry points, for their constants.
#define KE_HOT __attribute__((always_inline)) inline

KE_HOT void touch_cell(Cell& c, char* address, unsigned bytes,
                       const Access& a) {
  if (a.kind == kLoad) {
    read_cell(c, address, a);
  } else {
    // An atomic reads too: never-written memory is as bad there.
    if (a.kind == kAtomic && c.write.interval < a.since.valid)
      uninitialized(address, a.is_shared, a.pc);
    write_cell(c, address, bytes, a);
  }
}

__attribute__((noinline)) void touch_bytes(const Region& r, size_t offset,
                                           unsigned bytes, const Access& a) {
  Cell& word = r.words[offset / 4];
  Cell* cells = r.byte_cells + offset / 4 * 4;
  if (!word.is_split) {
    for (int i = 0; i < 4; i++) cells[i] = word;
    word.is_split = 1;
  }
  for (unsigned i = 0; i < bytes; i++)
    touch_cell(cells[offset % 4 + i], r.base + offset + i, 1, a);
}

KE_HOT void touch(const Region& r, size_t offset, size_t bytes,
                  const Access& a) {
  while (bytes) {
    unsigned here = 4 - (unsigned)(offset % 4);
    if (here > bytes) here = (unsigned)bytes;
    Cell& c = r.words[offset / 4];
    if (here == 4 && !c.is_split)
      touch_cell(c, r.base + offset, 4, a);
    else
      touch_bytes(r, offset, here, a);
    offset += here;
    bytes -= here;
  }
}

// Each place in the code touches one region most of the time.
constexpr unsigned kSites = 1024;
uint8_t region_of_site[kSites];
unsigned site_of(void* pc) {
  size_t x = (size_t)pc;
  return (unsigned)(x ^ x >> 10) % kSites;
}

bool contains(const Region& r, const char* address, size_t bytes) {
  size_t offset = (size_t)(address - r.base);
  return offset < r.bytes && bytes <= r.bytes - offset;
}

const Region* find(char* address, size_t bytes, Kind kind, void* pc) {
  for (int i = 0; i < num_regions; i++) {
    if ((size_t)(address - regions[i].base) >= regions[i].bytes) continue;
    if (!contains(regions[i], address, bytes))
      out_of_bounds(regions[i].base + regions[i].bytes, (unsigned)bytes, kind,
                    pc);
    region_of_site[site_of(pc)] = (uint8_t)i;
    return &regions[i];
  }
  // Shared variables lie among the module's data, with gaps round them.
  for (int i = num_base_regions; i < num_regions; i++)
    if ((size_t)(address - regions[i].base + kSharedGap) <
        regions[i].bytes + 2 * kSharedGap)
      out_of_bounds(address, (unsigned)bytes, kind, pc);
  for (int i = 0; i < num_modules; i++) {
    if (!contains(modules[i], address, bytes)) continue;
    if (modules[i].read_only && kind != kLoad)
      fault(kOutOfBounds, pc, -1, "writes to %s, which is a constant",
            name_of_place(address).text);
    return &modules[i];
  }
  out_of_bounds(address, (unsigned)bytes, kind, pc);
}

KE_HOT void check(char* address, size_t bytes, Kind kind, bool is_volatile,
                  void* pc) {
  if (!current) return;  // constructors of the module, before any launch
  if (num_suspects) settle_suspicion_before(kind);
  if (++num_accesses >= next_event) schedule_event(pc);
  if ((size_t)(address - own_stack) < kStackSpan) return;
  const Region* r = &regions[region_of_site[site_of(pc)]];
  if (!contains(*r, address, bytes)) r = find(address, bytes, kind, pc);
  if (r->read_only) {
    if (kind != kLoad && r->buffer)
      fault(kInputModified, pc, -1, "writes to %s, which is an input",
            name_of_place(address).text);
    return;
  }
  if (is_volatile && kind == kLoad) note_volatile_read();
  touch(*r, (size_t)(address - r->base), bytes,
        {kind, is_volatile, r->scope == kShared || r->scope == kDynamicShared,
         r->since, pc, address, bytes});
}

// A power of two up to 16 is a single access of the device.
template <unsigned kBytes>
inline void check_aligned(void* address, Kind kind, bool is_volatile,
                          void* pc) {
  if ((size_t)address % kBytes && current)
    misaligned((char*)address, kBytes, kind, pc);
  check((char*)address, kBytes, kind, is_volatile, pc);
}

}  // namespace

// ---- what happens when

void schedule_event(void* pc) {
  if (num_accesses >= access_limit)
    fault(kAccessLimit, pc, -1,
          "more than %llu memory accesses: the kernel does not end",
          (unsigned long long)access_limit);
  let_others_run();
}

void check_atomic(void* address, unsigned bytes, bool is_swap, void* pc) {
  Kind kind = is_swap ? kSwap : kAtomic;
  if ((size_t)address % bytes) misaligned((char*)address, bytes, kind, pc);
  check((char*)address, bytes, kind, false, pc);
  note_atomic();
}

void memory_init(char* mapping, uint64_t mapping_bytes) {
  map_base = mapping;
  map_words = new_cells(mapping_bytes / 4);
  map_byte_cells = new_cells(mapping_bytes);
  shared_cells = new_cells(kSharedCells);
  module_cells = new_cells(kModuleCells);
}

void memory_add_module(const char* base, size_t bytes, bool writable) {
  if (num_modules == kMaxModules || !bytes) return;
  size_t skip = (size_t)base % 4;  // cells count from a multiple of four
  base -= skip;
  bytes += skip;
  Region& r = modules[num_modules++];
  r = {};
  r.base = const_cast<char*>(base);
  r.bytes = bytes;
  r.scope = kGlobal;
  r.read_only = !writable;
  if (writable) {
    size_t words = bytes / 4 + 1;
    if (module_cells_used + 5 * words > kModuleCells)
      fault(kLoadFailed, nullptr, -1,
            "the global variables take more than %zu bytes", kMaxVariableBytes);
    r.words = module_cells + module_cells_used;
    r.byte_cells = r.words + words;
    module_cells_used += 5 * words;
  }
}

// The records of a case's buffers take 30 times their memory, and each case has
// its own: those of a large one must not wait for the end of the process.
void memory_end_case() {
  size_t start = ~(size_t)0, end = 0;
  for (int i = 0; i < num_regions; i++) {
    if (regions[i].scope != kBuffer) continue;
    size_t offset = (size_t)(regions[i].base - map_base);
    if (offset < start) start = offset;
    if (offset + regions[i].bytes > end) end = offset + regions[i].bytes;
  }
  constexpr size_t kWorthACall = 1 << 20;
  if (end < start + kWorthACall) return;
  // Buffers lie far apart (protocol.py): no page holds cells of two cases.
  auto drop = [](Cell* first, Cell* last) {
    constexpr size_t kPage = 64 * 1024;
    size_t low = ((size_t)first + kPage - 1) / kPage * kPage;
    size_t high = (size_t)last / kPage * kPage;
    if (low < high) madvise((void*)low, high - low, MADV_DONTNEED);
  };
  drop(map_words + start / 4, map_words + end / 4);
  drop(map_byte_cells + start, map_byte_cells + end);
}

void memory_begin_case(const Buffer* buffers, unsigned num_buffers) {
  next_interval();
  while (num_regions) regions[--num_regions].bytes = 0;  // sites know them
  for (unsigned i = 0; i < num_buffers && i < kMaxBuffers; i++) {
    const Buffer& b = buffers[i];
    regions[num_regions++] = {map_base + b.offset,
                              b.bytes,
                              map_words + b.offset / 4,
                              map_byte_cells + b.offset,
                              kBuffer,
                              b.role == kInput,
                              &b,
                              nullptr,
                              {interval, interval}};
  }
  // Dynamic shared memory: the launch says how much.
  regions[num_regions++] = {
      ke_dynamic_arena, 0,
      shared_cells,     shared_cells + kDynamicSharedBytes / 4,
      kDynamicShared,   false,
      nullptr,          nullptr};
  shared_cells_used =
      shared_cells_used ? shared_cells_used : kDynamicSharedBytes / 4 * 5;
  num_base_regions = num_regions;
}

void memory_begin_launch(unsigned bytes) {
  order_begin_launch();
  // What earlier launches did is ordered before everything here.
  for (int i = 0; i < num_base_regions; i++)
    regions[i].since.ordered = interval;
  for (int i = 0; i < num_modules; i++) modules[i].since.ordered = interval;
  dynamic_bytes = bytes < kDynamicSharedBytes ? bytes : kDynamicSharedBytes;
  regions[num_base_regions - 1].bytes = dynamic_bytes;
}

void memory_begin_block() {
  order_begin_block();
  block_serial++;
  static_shared_bytes = 0;
  for (int i = num_base_regions; i < num_regions; i++) regions[i].bytes = 0;
  num_regions = num_base_regions;
  regions[num_base_regions - 1].since = {interval, interval};
  // Shared memory is never fresh on a device: it starts as NaN here.
  if (dynamic_bytes) memset(ke_dynamic_arena, 0xff, dynamic_bytes);
}

void memory_end_block() {
  if (static_shared_bytes > most_shared_bytes)
    most_shared_bytes = (uint32_t)static_shared_bytes;
}

extern "C" {

// A thread comes to the declaration of a shared variable. The first one of the
// block makes it known.
void ke_enter_shared(ke_shared_record* v) {
  if (v->block_serial == block_serial) return;
  v->block_serial = block_serial;
  static_shared_bytes += v->bytes;
  size_t words = (v->bytes + 3) / 4;
  bool has_room = v->cells || shared_cells_used + 5 * words <= kSharedCells;
  if (static_shared_bytes > static_shared_limit || !has_room ||
      num_regions == kMaxRegions)
    fault(kSharedLimit, nullptr, v->line,
          "the kernel uses too much shared data (%zu bytes with %s, %u max)",
          static_shared_bytes, v->name, static_shared_limit);
  if (!v->cells) {
    v->cells = shared_cells + shared_cells_used;
    shared_cells_used += 5 * words;
  }
  Cell* cells = (Cell*)v->cells;
  regions[num_regions++] = {(char*)v->address,
                            v->bytes,
                            cells,
                            cells + words,
                            kShared,
                            false,
                            nullptr,
                            v,
                            {block_first_interval, block_first_interval}};
  memset(v->address, 0xff, v->bytes);
}

void ke_fence(int scope) { note_fence(scope != 0); }

unsigned ke_dynamic_shared_bytes() { return (unsigned)dynamic_bytes; }

// Ranges: copies of large objects, memcpy and memset.
static void check_range(const void* address, size_t bytes, Kind kind,
                        void* pc) {
  if (bytes) check((char*)const_cast<void*>(address), bytes, kind, false, pc);
}

// The linker sends a candidate's calls of the C functions here (--wrap),
// including those that the compiler makes of large assignments.
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  void* pc = __builtin_return_address(0);
  check_range(from, bytes, kLoad, pc);
  check_range(to, bytes, kStore, pc);
  return memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  void* pc = __builtin_return_address(0);
  check_range(from, bytes, kLoad, pc);
  check_range(to, bytes, kStore, pc);
  return memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  check_range(to, bytes, kStore, __builtin_return_address(0));
  return memset(to, value, bytes);
}

// What the compiler calls before each access. "unaligned": a packed member,
// say, of which the device would load the bytes.
#define KE_CALL(name, n, kind, is_volatile)                              \
  void __tsan_##name##n(void* p) {                                       \
    check_aligned<n>(p, kind, is_volatile, __builtin_return_address(0)); \
  }                                                                      \
  void __tsan_unaligned_##name##n(void* p) {                             \
    check((char*)p, n, kind, is_volatile, __builtin_return_address(0));  \
  }
#define KE_CALLS(n)                      \
  KE_CALL(read, n, kLoad, false)         \
  KE_CALL(write, n, kStore, false)       \
  KE_CALL(volatile_read, n, kLoad, true) \
  KE_CALL(volatile_write, n, kStore, true)
KE_CALLS(1)
KE_CALLS(2)
KE_CALLS(4)
KE_CALLS(8)
KE_CALLS(16)
#undef KE_CALLS
#undef KE_CALL

void __tsan_read_range(void* p, size_t bytes) {
  check_range(p, bytes, kLoad, __builtin_return_address(0));
}
void __tsan_write_range(void* p, size_t bytes) {
  check_range(p, bytes, kStore, __builtin_return_address(0));
}
void __tsan_vptr_update(void** p, void*) {
  check_range(p, sizeof *p, kStore, __builtin_return_address(0));
}
void __tsan_vptr_read(void** p) {
  check_range(p, sizeof *p, kLoad, __builtin_return_address(0));
}
// Numba's local arrays, whose size g++ would know (-fsanitize=bounds).
void ke_check_local(char* address, size_t bytes, char* array, size_t size,
                    int is_store) {
  void* pc = __builtin_return_address(0);
  if (++num_accesses >= next_event) schedule_event(pc);
  ptrdiff_t offset = address - array, item = (ptrdiff_t)bytes;
  if (offset >= 0 && (size_t)offset + bytes <= size) return;
  ptrdiff_t index = offset >= 0 ? offset / item : -((item - 1 - offset) / item);
  fault(kOutOfBounds, pc, -1,
        "out of bounds: %s element %td of a local array that has %zu",
        is_store ? "writes" : "reads", index, size / bytes);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

}  // extern "C"

}  // namespace ke
