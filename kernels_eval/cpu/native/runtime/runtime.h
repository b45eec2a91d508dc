// Shared by the runtime's files; the candidate sees device.h instead.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "plan.h"

struct uint3 {
  unsigned x, y, z;
};

namespace ke {

constexpr unsigned kMaxThreads = 1024, kWarp = 32;
constexpr unsigned kMaxWarps = kMaxThreads / kWarp;

// ---- threads of the current block (schedule.cpp)

enum Wait : uint8_t {
  kIdle,
  kReady,
  kActive,
  kAtBarrier,
  kAtWarp,
  kAtActiveMask,
  kDone
};

struct Thread {
  Wait wait;
  uint16_t id;  // linear within the block
  uint3 index;
  int fibre;
  // Block barrier. `place` tells apart two barriers in one line.
  int line, place, predicate, count;
  // Warp meeting.
  int warp_op, argument, width;
  unsigned mask;
  uint64_t value, result;
  void* pc;
  // Intervals (below) of the last fence, of the last atomic after a fence in
  // the same interval, and of the last atomic of any kind.
  uint32_t fenced, released, acquired;
};

extern Thread threads[kMaxThreads];
extern Thread* current;  // null outside of a block
extern unsigned num_threads;
// Threads start in the order of their numbers, or in the opposite one: either
// is as good on a device, so that what depends on it is wrong.
extern bool last_thread_first;

void make_ready(Thread* thread);
void park(Wait why);  // returns when the scheduler resumes the thread
void let_others_run();
void threads_init();  // before any other
void run_block(void (*entry)(void**), void** arguments);
void warps_begin_block();
bool answer_active_masks();  // warp.cpp; false if no thread asks

// ---- fibres (fibre.cpp)

constexpr size_t kStackBytes = 512 * 1024;              // as on a device
constexpr size_t kStackSpan = kStackBytes + 64 * 1024;  // mapped for a stack

void fibres_init(void (*entry)());    // maps the stacks
void fibre_resume(int fibre);         // from the scheduler
void fibre_suspend();                 // back to the scheduler
void fibre_switch(int from, int to);  // both have run before
char* fibre_stack(int fibre);         // its lowest address
// Which fibre's stack or guard page holds the address, or -1.
int fibre_of_stack(const void* address);
int fibre_of_guard(const void* address);

// ---- memory (memory.cpp)

void memory_init(char* mapping, uint64_t mapping_bytes);
void memory_begin_case(const Buffer* buffers, unsigned num_buffers);
void memory_end_case();
void memory_begin_launch(unsigned dynamic_shared_bytes);
void memory_begin_block();
void memory_end_block();
void memory_add_module(const char* base, size_t bytes, bool writable);
// Memory for the records of all global variables, before any is known.
constexpr size_t kMaxVariableBytes = 8 << 20;
extern char* own_stack;  // of the current thread
void check_atomic(void* address, unsigned bytes, bool is_swap, void* pc);
extern uint64_t num_accesses, access_limit;
// The count of accesses at which something other than a check is due.
extern uint64_t next_event;
void schedule_event(void* pc);
extern uint32_t static_shared_limit, most_shared_bytes;

// ---- names for messages (place.cpp)

struct Text {
  char text[160];
};
Text name_of_place(const char* address);
Text name_of_thread(const Thread* thread);

// ---- faults (fault.cpp)

void fault_init(Report* report);
void set_module(const char* base, const char* code_start, const char* code_end);
[[noreturn]] void fault(Fault kind, void* pc, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
void handle_signals();
extern char* printf_buffer;
extern uint64_t printf_capacity;
extern Report* report;

// ---- the candidate's library (library.cpp)

struct LibraryFile {
  const char* bytes;
  size_t size;
};
LibraryFile open_library(const char* path);

// Where `__constant__` variables lie, from the library's load address on.
struct Constants {
  static constexpr unsigned kMaxRuns = 32;
  unsigned num_runs;
  size_t offsets[kMaxRuns], bytes[kMaxRuns];
};

// Ends the process with a fault if the library holds what no device code holds.
// Gives the file back.
Constants examine_library(LibraryFile file);

}  // namespace ke

extern uint3 threadIdx, blockIdx, blockDim, gridDim;
