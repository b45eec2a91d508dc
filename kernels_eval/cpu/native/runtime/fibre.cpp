// Stacks and the switch between them. A fibre is a stack that runs CUDA threads
// one after another; a thread that waits keeps its fibre until it is resumed.
#include <sys/mman.h>
#include <unistd.h>

#include "runtime.h"
// KE_UCONTEXT selects the portable switch, for tests of it.
#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(KE_UCONTEXT)
#undef KE_UCONTEXT
#define KE_UCONTEXT 1
#include <ucontext.h>
#endif

namespace ke {

namespace {

constexpr size_t kPage = 64 * 1024;  // the largest page size of aarch64
// Stacks start at different offsets within a page: at the same one, the hot end
// of each would fall into the same few sets of the caches.
constexpr size_t kColours = 128, kColourBytes = 320;
static_assert(kColours * kColourBytes <= kPage, "a page holds all offsets");
constexpr size_t kSlot = kPage + kStackBytes + kPage;

char* slots;  // kMaxThreads slots: guard page, stack, offset
void (*fibre_entry)();
bool started[kMaxThreads];

char* stack_low(int fibre) { return slots + fibre * kSlot + kPage; }
char* stack_top(int fibre) {
  return stack_low(fibre) + kStackBytes +
         (size_t)fibre % kColours * kColourBytes;
}

}  // namespace

// The switch saves what a called function must preserve and swaps stacks.
#if KE_UCONTEXT  // Slower, but the C library knows how.

static ucontext_t contexts[kMaxThreads], scheduler_context;

static void first_frame(int fibre) {
  getcontext(&contexts[fibre]);
  contexts[fibre].uc_stack.ss_sp = stack_low(fibre);
  contexts[fibre].uc_stack.ss_size =
      (size_t)(stack_top(fibre) - stack_low(fibre));
  contexts[fibre].uc_link = nullptr;
  makecontext(&contexts[fibre], fibre_entry, 0);
}

#elif defined(__x86_64__)

extern "C" void ke_switch(void** save, void* load);
asm(R"(
.text
.globl ke_switch
.hidden ke_switch
.type ke_switch,@function
ke_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ke_switch, .-ke_switch
)");

static void* saved[kMaxThreads];
static void* scheduler;

static void first_frame(int fibre) {
  void** top = (void**)stack_top(fibre);
  *--top = nullptr;  // keeps the stack 16-byte aligned at the entry
  *--top = (void*)fibre_entry;
  for (int i = 0; i < 6; i++) *--top = nullptr;
  saved[fibre] = top;
}

#else  // aarch64

extern "C" void ke_switch(void** save, void* load);
asm(R"(
.text
.globl ke_switch
.hidden ke_switch
.type ke_switch,%function
ke_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size ke_switch, .-ke_switch
)");

static void* saved[kMaxThreads];
static void* scheduler;

static void first_frame(int fibre) {
  void** top = (void**)stack_top(fibre);
  top -= 20;
  for (int i = 0; i < 20; i++) top[i] = nullptr;
  top[11] = (void*)fibre_entry;  // x30
  saved[fibre] = top;
}

#endif

void fibres_init(void (*entry)()) {
  fibre_entry = entry;
  slots = (char*)mmap(nullptr, kSlot * kMaxThreads, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (slots == (char*)MAP_FAILED)
    fault(kMachine, nullptr, -1, "no memory for the stacks of threads");
}

void fibre_resume(int fibre) {
  if (!started[fibre]) {
    if (mprotect(stack_low(fibre), kStackBytes + kPage, PROT_READ | PROT_WRITE))
      _exit(4);
    first_frame(fibre);
    started[fibre] = true;
  }
#if KE_UCONTEXT
  swapcontext(&scheduler_context, &contexts[fibre]);
#else
  ke_switch(&scheduler, saved[fibre]);
#endif
}

void fibre_suspend() {
  int fibre = current->fibre;
#if KE_UCONTEXT
  swapcontext(&contexts[fibre], &scheduler_context);
#else
  ke_switch(&saved[fibre], scheduler);
#endif
}

void fibre_switch(int from, int to) {
#if KE_UCONTEXT
  swapcontext(&contexts[from], &contexts[to]);
#else
  ke_switch(&saved[from], saved[to]);
#endif
}

char* fibre_stack(int fibre) { return stack_low(fibre); }

int fibre_of_stack(const void* address) {
  size_t offset = (const char*)address - slots;
  if (offset >= kSlot * kMaxThreads || offset % kSlot < kPage) return -1;
  return (int)(offset / kSlot);
}

int fibre_of_guard(const void* address) {
  size_t offset = (const char*)address - slots;
  if (offset >= kSlot * kMaxThreads || offset % kSlot >= kPage) return -1;
  return (int)(offset / kSlot);
}

}  // namespace ke
