// One block at a time: start threads, park them at barriers and warp meetings,
// resume them, and say who is missing when nobody can go on.
//
// A thread that never waits costs a function call: its fibre goes straight on
// with the next thread. Only a thread that waits takes its stack out of use.
#include "order.h"

uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace ke {

Thread threads[kMaxThreads];
Thread* current;
unsigned num_threads;
bool last_thread_first;

namespace {

void (*kernel)(void**);
void** kernel_arguments;
unsigned next_thread, num_done;
bool prefer_new;  // start another thread before resuming those that are ready

// A thread that has made this many accesses lets the others run: it may wait
// for one of them in a loop.
constexpr uint64_t kSlice = 1 << 16;

Thread* ready[kMaxThreads];
unsigned ready_head, ready_count;

int idle[kMaxThreads];
int num_idle, num_fibres;

bool any_left() { return next_thread < num_threads; }

void become(Thread* thread) {
  current = thread;
  thread->wait = kActive;
  threadIdx = thread->index;
  own_stack = fibre_stack(thread->fibre);
  refresh_now();
  next_event = num_accesses + kSlice;
  if (next_event > access_limit) next_event = access_limit;
}

Thread* take_next(int fibre) {
  unsigned i = last_thread_first ? num_threads - 1 - next_thread : next_thread;
  next_thread++;
  Thread* thread = &threads[i];
  *thread = Thread{};
  thread->id = (uint16_t)i;
  thread->index = {i % blockDim.x, i / blockDim.x % blockDim.y,
                   i / (blockDim.x * blockDim.y)};
  thread->fibre = fibre;
  return thread;
}

void fibre_main() {
  for (;;) {
    kernel(kernel_arguments);
    settle_suspicion();
    current->wait = kDone;
    num_done++;
    if (ready_count == 0 && any_left()) {
      become(take_next(current->fibre));
    } else {
      idle[num_idle++] = current->fibre;
      fibre_suspend();  // resumed with another thread as `current`
    }
  }
}

[[noreturn]] void report_divergent_barrier(const Thread* waiting,
                                           const Thread* other) {
  Text a = name_of_thread(waiting), b = name_of_thread(other);
  current = const_cast<Thread*>(waiting);
  if (other->wait == kDone)
    fault(kDivergentBarrier, nullptr, waiting->line,
          "divergent __syncthreads(): %s waits, but %s has left the kernel",
          a.text, b.text);
  fault(kDivergentBarrier, nullptr, waiting->line,
        "divergent __syncthreads(): %s waits here, but %s waits at %s line %d",
        a.text, b.text,
        other->line == waiting->line ? "another one in" : "the one in",
        other->line);
}

[[noreturn]] void report_missing_lane(const Thread* waiting) {
  unsigned warp = waiting->id / kWarp;
  Text name = name_of_thread(waiting);
  const char* a = name.text;
  current = const_cast<Thread*>(waiting);
  for (unsigned lane = 0; lane < kWarp; lane++) {
    unsigned id = warp * kWarp + lane;
    if (!(waiting->mask >> lane & 1) || id >= num_threads) continue;
    const Thread* other = &threads[id];
    if (other->wait == kDone)
      fault(kDivergentWarp, waiting->pc, -1,
            "divergent warp operation: %s waits for lane %u of its mask "
            "0x%08x, which has left the kernel",
            a, lane, waiting->mask);
    if (other->wait == kAtBarrier)
      fault(kDivergentWarp, waiting->pc, -1,
            "divergent warp operation: %s waits for lane %u of its mask "
            "0x%08x, which waits at __syncthreads() in line %d",
            a, lane, waiting->mask, other->line);
    if (other->wait == kAtWarp &&
        (other->mask != waiting->mask || other->warp_op != waiting->warp_op))
      fault(kDivergentWarp, waiting->pc, -1,
            "divergent warp operation: %s waits for lane %u of its mask "
            "0x%08x, which is in another warp operation (mask 0x%08x)",
            a, lane, waiting->mask, other->mask);
  }
  fault(kDivergentWarp, waiting->pc, -1,
        "divergent warp operation: %s waits for lanes that never arrive", a);
}

// Nobody can run. Either everybody has come to one barrier, or it is a fault.
void open_barrier() {
  const Thread *at_barrier = nullptr, *other = nullptr;
  for (unsigned i = 0; i < num_threads; i++) {
    if (threads[i].wait == kAtWarp) report_missing_lane(&threads[i]);
    if (threads[i].wait == kAtBarrier && !at_barrier) at_barrier = &threads[i];
  }
  for (unsigned i = 0; i < num_threads; i++)
    if (threads[i].wait == kDone || threads[i].place != at_barrier->place)
      other = &threads[i];
  if (other) report_divergent_barrier(at_barrier, other);
  int count = 0;
  for (unsigned i = 0; i < num_threads; i++) count += threads[i].predicate;
  next_interval();
  for (unsigned i = 0; i < num_threads; i++) {
    threads[i].count = count;
    make_ready(&threads[i]);
  }
}

}  // namespace

void make_ready(Thread* thread) {
  thread->wait = kReady;
  ready[(ready_head + ready_count++) % kMaxThreads] = thread;
}

namespace {

Thread* take_ready() {
  Thread* thread = ready[ready_head];
  ready_head = (ready_head + 1) % kMaxThreads;
  ready_count--;
  return thread;
}

}  // namespace

void park(Wait why) {
  settle_suspicion();
  current->wait = why;
  if (ready_count && !prefer_new) {  // straight on, not by way of run_block
    int from = current->fibre;
    become(take_ready());
    fibre_switch(from, current->fibre);
  } else {
    fibre_suspend();
  }
}

void let_others_run() {
  prefer_new = any_left();
  if (!prefer_new && ready_count == 0) {
    become(current);  // nobody else: another slice
    return;
  }
  settle_suspicion();
  make_ready(current);
  fibre_suspend();
}

void threads_init() { fibres_init(fibre_main); }

void run_block(void (*entry)(void**), void** arguments) {
  kernel = entry;
  kernel_arguments = arguments;
  next_thread = num_done = 0;
  ready_head = ready_count = 0;
  for (unsigned i = 0; i < num_threads; i++) threads[i].wait = kIdle;
  warps_begin_block();
  memory_begin_block();
  while (num_done < num_threads) {
    if (ready_count && !(prefer_new && any_left())) {
      become(take_ready());
      fibre_resume(current->fibre);
    } else if (any_left()) {
      prefer_new = false;
      int fibre = num_idle ? idle[--num_idle] : num_fibres++;
      become(take_next(fibre));
      fibre_resume(fibre);
    } else if (!answer_active_masks()) {
      open_barrier();
    }
  }
  current = nullptr;
  memory_end_block();
}

// `place` is a number of its own for each barrier of the text.
extern "C" void ke_sync_block(int line, int place) {
  current->line = line;
  current->place = place;
  current->predicate = 0;
  park(kAtBarrier);
}

// op: 0 count, 1 and, 2 or.
extern "C" int ke_sync_block_reduce(int line, int place, int op,
                                    int predicate) {
  Thread* me = current;
  me->line = line;
  me->place = place;
  me->predicate = predicate;
  park(kAtBarrier);
  if (op == 0) return me->count;
  if (op == 1) return me->count == (int)num_threads;
  return me->count != 0;
}

}  // namespace ke
