// Runs a plan: every case, every launch of it, every block of that.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "runtime.h"

namespace ke {

namespace {

// 48 arguments (launch_plan.py), each of up to 17 words for an array of
// Numba's.
constexpr unsigned kMaxArguments = 48 * 17;

struct Loaded {
  const char* path;
  const Constants* constants;
};

int add_segments(dl_phdr_info* info, size_t, void* data) {
  Loaded* loaded = (Loaded*)data;
  if (!info->dlpi_name || strcmp(info->dlpi_name, loaded->path)) return 0;
  const char* base = (const char*)info->dlpi_addr;
  // First: they lie inside of a segment, and the first hit counts.
  const Constants& constants = *loaded->constants;
  for (unsigned i = 0; i < constants.num_runs; i++)
    memory_add_module(base + constants.offsets[i], constants.bytes[i], false);
  // The linker's tables lie in a writable segment but are made read-only.
  size_t fixed_start = 0, fixed_end = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) & p = info->dlpi_phdr[i];
    if (p.p_type != PT_GNU_RELRO) continue;
    fixed_start = p.p_vaddr;
    fixed_end = p.p_vaddr + p.p_memsz;
  }
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) & p = info->dlpi_phdr[i];
    if (p.p_type != PT_LOAD) continue;
    size_t start = p.p_vaddr, end = p.p_vaddr + p.p_memsz;
    if (p.p_flags & PF_X) {
      set_module(base, base + start, base + end);
      continue;
    }
    bool writable = p.p_flags & PF_W;
    if (writable && fixed_start < fixed_end && fixed_start >= start &&
        fixed_start < end) {
      if (fixed_end > end) fixed_end = end;
      memory_add_module(base + fixed_start, fixed_end - fixed_start, false);
      memory_add_module(base + start, fixed_start - start, true);
      start = fixed_end;
    }
    memory_add_module(base + start, end - start, writable);
  }
  return 1;
}

bool has_blocks(const Case& c, const Launch* launches) {
  for (unsigned l = 0; l < c.num_launches; l++) {
    const Launch& launch = launches[c.first_launch + l];
    if (launch.grid[0] > 1 || launch.grid[1] > 1 || launch.grid[2] > 1)
      return true;
  }
  return false;
}

// Every block of a launch, in the order of their numbers or in the opposite
// one: either is as good on a device, so that what depends on it is wrong.
void run_blocks(void (*entry)(void**), void** arguments, bool last_first) {
  uint64_t per_layer = (uint64_t)gridDim.x * gridDim.y;
  uint64_t num_blocks = per_layer * gridDim.z;
  for (uint64_t i = 0; i < num_blocks; i++) {
    uint64_t b = last_first ? num_blocks - 1 - i : i;
    blockIdx = {(unsigned)(b % gridDim.x),
                (unsigned)(b % per_layer / gridDim.x),
                (unsigned)(b / per_layer)};
    run_block(entry, arguments);
  }
}

}  // namespace

extern "C" int ke_execute(char* mapping, uint64_t mapping_bytes,
                          const char* library_path, void (*before_candidate)(),
                          void (*before_launches)()) {
  const Plan* plan = (const Plan*)mapping;
  static bool called;  // a candidate could find this function, too
  if (called) return 4;
  called = true;
  if (mapping_bytes < sizeof(Plan) || plan->magic != kMagic ||
      plan->total_bytes != mapping_bytes)
    return 4;
  fault_init((Report*)(mapping + plan->report_offset));
  printf_buffer = mapping + plan->printf_offset;
  printf_capacity = plan->printf_capacity;
  access_limit = plan->access_limit;
  static_shared_limit = plan->static_shared_limit_bytes;
  const Case* cases = (const Case*)(mapping + plan->cases_offset);
  const Launch* launches = (const Launch*)(mapping + plan->launches_offset);
  const Argument* arguments =
      (const Argument*)(mapping + plan->arguments_offset);
  const Buffer* buffers = (const Buffer*)(mapping + plan->buffers_offset);
  // What needs memory of the machine comes before the candidate, which could
  // not be told from it later.
  memory_init(mapping, mapping_bytes);
  threads_init();
  LibraryFile file = open_library(library_path);
  handle_signals();
  report->state = kRunning;

  before_candidate();
  Constants constants = examine_library(file);
  void* library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fault(kLoadFailed, nullptr, -1, "%s", dlerror());
  Loaded loaded = {library_path, &constants};
  dl_iterate_phdr(add_segments, &loaded);
  constexpr unsigned kMaxEntries = 64;
  void (*entries[kMaxEntries])(void**) = {};
  for (unsigned i = 0; i < plan->num_launches; i++) {
    unsigned entry = launches[i].entry;
    if (entry >= kMaxEntries) return 4;
    char name[32];
    snprintf(name, sizeof name, "ke_launch_%u", entry);
    if (!entries[entry]) *(void**)&entries[entry] = dlsym(library, name);
    if (!entries[entry]) fault(kLoadFailed, nullptr, -1, "no symbol %s", name);
  }
  before_launches();

  // Of the cases with several blocks every other one runs them backwards. A
  // plan of one case, which no judge makes, runs forward.
  unsigned num_wide = 0, wide = 0;
  for (unsigned c = 0; c < plan->num_cases; c++)
    num_wide += has_blocks(cases[c], launches);
  for (unsigned c = 0; c < plan->num_cases; c++) {
    report->case_index = c;
    last_thread_first = c % 2 == 1;
    bool last_block_first = false;
    if (has_blocks(cases[c], launches)) {
      last_block_first =
          wide % 2 == 1 || (num_wide == 1 && plan->num_cases > 1);
      wide++;
    }
    const Buffer* own = buffers + cases[c].first_buffer;
    memory_begin_case(own, cases[c].num_buffers);
    for (unsigned l = 0; l < cases[c].num_launches; l++) {
      const Launch& launch = launches[cases[c].first_launch + l];
      gridDim = {launch.grid[0], launch.grid[1], launch.grid[2]};
      blockDim = {launch.block[0], launch.block[1], launch.block[2]};
      num_threads = blockDim.x * blockDim.y * blockDim.z;
      if (!num_threads || num_threads > kMaxThreads) return 4;
      char* pointers[kMaxArguments];
      void* values[kMaxArguments];
      if (launch.num_arguments > kMaxArguments) return 4;
      for (unsigned a = 0; a < launch.num_arguments; a++) {
        const Argument& argument = arguments[launch.first_argument + a];
        if (argument.is_buffer) {
          pointers[a] = mapping + own[argument.buffer].offset;
          values[a] = &pointers[a];
        } else {
          values[a] = (void*)&argument.bits;
        }
      }
      memory_begin_launch(launch.dynamic_shared_bytes);
      run_blocks(entries[launch.entry], values, last_block_first);
    }
    memory_end_case();
  }
  report->shared_bytes = most_shared_bytes;
  report->state = kFinished;
  return 0;
}

}  // namespace ke
