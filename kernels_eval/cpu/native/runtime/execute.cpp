// Runs a plan: every case, every launch of it, every block of that.
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime.h"

namespace ke {

namespace {

uint64_t now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

// 48 arguments (launch_plan.py), each of up to 17 words for an array of Numba's.
constexpr unsigned kMaxArguments = 48 * 17;

struct Loaded {
  const char* path;
  bool found;
};

int add_segments(dl_phdr_info* info, size_t, void* data) {
  Loaded* loaded = (Loaded*)data;
  if (!info->dlpi_name || strcmp(info->dlpi_name, loaded->path)) return 0;
  loaded->found = true;
  const char* base = (const char*)info->dlpi_addr;
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
  memory_init(mapping, mapping_bytes);
  handle_signals();
  report->state = kRunning;

  before_candidate();
  examine_library(library_path);
  void* library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (!library) fault(kLoadFailed, nullptr, -1, "%s", dlerror());
  Loaded loaded = {library_path, false};
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

  uint64_t start = now_us();
  for (unsigned c = 0; c < plan->num_cases; c++) {
    report->case_index = c;
    last_thread_first = c % 2 == 1;
    const Buffer* own = buffers + cases[c].first_buffer;
    memory_begin_case(own, cases[c].num_buffers);
    for (unsigned l = 0; l < cases[c].num_launches; l++) {
      const Launch& launch = launches[cases[c].first_launch + l];
      report->launch_index = l;
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
      for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
          for (unsigned x = 0; x < gridDim.x; x++) {
            blockIdx = {x, y, z};
            run_block(entries[launch.entry], values);
          }
    }
    report->num_cases_done = c + 1;
  }
  report->elapsed_us = now_us() - start;
  report->num_accesses = num_accesses;
  report->shared_bytes = most_shared_bytes;
  report->state = kFinished;
  return 0;
}

}  // namespace ke
