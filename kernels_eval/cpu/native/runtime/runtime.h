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

// ---- threads of the current block (schedule.cpp)

enum Wait : uint8_t { kIdle, kReady, kActive, kAtBarrier, kAtWarp, kDone };

struct Thread {
  Wait wait;
  uint16_t id;  // linear within the block
  uint3 index;
  int fibre;
  // Block barrier.
  int line, op, predicate, count;
  // Warp meeting.
  int warp_op, argument, width;
  unsigned mask;
  uint64_t value, result;
  void* pc;
};

extern Thread threads[kMaxThreads];
extern Thread* current;  // null outside of a block
extern unsigned num_threads;

void make_ready(Thread* thread);
void park(Wait why);  // returns when the scheduler resumes the thread
void run_block(void (*entry)(void**), void** arguments);

// ---- fibres (fibre.cpp)

constexpr size_t kStackBytes = 256 * 1024;

void fibres_init(void (*entry)());
void fibre_resume(int fibre);  // from the scheduler
void fibre_suspend();          // back to the scheduler
// Which fibre's stack or guard page holds the address, or -1.
int fibre_of_stack(const void* address);
int fibre_of_guard(const void* address);

// ---- memory (memory.cpp)

// Time as far as ordering goes: a new interval starts with each block and each
// block barrier. Two accesses in different intervals of one block are ordered.
extern uint32_t interval, launch_first_interval, block_first_interval;
extern uint16_t warp_syncs[kMaxThreads / kWarp];

void memory_init(char* mapping, uint64_t mapping_bytes);
void memory_begin_case(const Buffer* buffers, unsigned num_buffers);
void memory_begin_launch(unsigned dynamic_shared_bytes);
void memory_begin_block();
void memory_end_block();
void memory_add_module(const char* base, size_t bytes, bool writable);
void check_atomic(void* address, unsigned bytes, void* pc);
void settle_pending();
extern uint64_t num_accesses, access_limit;
extern uint32_t static_shared_limit, most_shared_bytes;

// ---- faults (fault.cpp)

void fault_init(Report* report, const char* module_base);
void set_module_base(const char* base);
[[noreturn]] void fault(Fault kind, void* pc, int line, const char* format, ...)
    __attribute__((format(printf, 4, 5)));
void describe_thread(char* out, size_t size, const Thread* thread);
void handle_signals();
extern char* printf_buffer;
extern uint64_t printf_capacity;
extern Report* report;

}  // namespace ke

extern uint3 threadIdx, blockIdx, blockDim, gridDim;
