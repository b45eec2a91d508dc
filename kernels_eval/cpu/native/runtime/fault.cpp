// What went wrong, written into the report before the process ends: faults
// found by the checks, undefined behaviour found by the compiler's
// instrumentation (-fsanitize=undefined calls the handlers below), signals.
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "runtime.h"

namespace ke {

Report* report;
char* printf_buffer;
uint64_t printf_capacity;

namespace {
const char* module_base;
const char *code_start, *code_end;  // of the candidate

void where(void* pc, int line) {
  report->line = line;
  // A return address points behind its call.
  report->module_offset = pc ? (uint64_t)((char*)pc - 1 - module_base) : 0;
  if (current) {
    uint3 t = current->index, b = blockIdx;
    report->thread[0] = t.x, report->thread[1] = t.y, report->thread[2] = t.z;
    report->block[0] = b.x, report->block[1] = b.y, report->block[2] = b.z;
  }
}
}  // namespace

void fault_init(Report* r) { report = r; }
void set_module(const char* base, const char* start, const char* end) {
  module_base = base;
  code_start = start;
  code_end = end;
}

void fault(Fault kind, void* pc, int line, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(report->text, kTextBytes, format, arguments);
  va_end(arguments);
  where(pc, line);
  report->fault = kind;
  report->state = kFaulted;
  _exit(3);
}

namespace {

// In case of a stack overflow there is no stack left to run a handler on.
alignas(16) char signal_stack[64 * 1024];

// The stack may have run out in a function of ours: the nearest return address
// of the candidate's lies a little further up.
void* candidate_frame(void* pc, const char* stack) {
  auto ours = [](const void* p) {
    return (const char*)p < code_start || (const char*)p >= code_end;
  };
  const char* top = fibre_stack(current->fibre) + kStackSpan;
  const char* low = top - kStackSpan;
  if (!ours(pc)) return pc;
  void* const* word = (void* const*)(stack < low ? low : stack);
  for (; (const char*)word < top; word++)
    if (!ours(*word)) return *word;
  return pc;
}

void on_signal(int number, siginfo_t* info, void* context) {
  void* pc = nullptr;
  const char* stack = nullptr;
#if defined(__x86_64__)
  pc = (void*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  stack = (const char*)((ucontext_t*)context)->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  pc = (void*)((ucontext_t*)context)->uc_mcontext.pc;
  stack = (const char*)((ucontext_t*)context)->uc_mcontext.sp;
#endif
  pc = (char*)pc + 1;  // where() steps back
  if (number == SIGSEGV && current &&
      fibre_of_guard(info->si_addr) == current->fibre)
    fault(kStackOverflow, candidate_frame(pc, stack), -1,
          "stack overflow: the thread uses more than %zu KiB of local memory",
          kStackBytes / 1024);
  if (number == SIGSEGV || number == SIGBUS)
    fault(kBadAddress, pc, -1, "bad address: 0x%zx", (size_t)info->si_addr);
  if (number == SIGFPE)
    fault(kDivisionByZero, pc, -1, "integer division overflows");
  fault(kOtherSignal, pc, -1, "signal %d", number);
}

}  // namespace

void handle_signals() {
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  for (int number : numbers) sigaction(number, &action, nullptr);
}

namespace {
struct Source {
  const char* file;
  uint32_t line, column;
};
struct Type {
  uint16_t kind, info;
  char name[1];
};

// A place in the candidate has its file's name; device.h is ours.
int line_of(const Source& s) {
  return s.file && strcmp(s.file, "kernel.cu") == 0 ? (int)s.line : -1;
}
}  // namespace

extern "C" {

void __ubsan_handle_divrem_overflow_abort(const Source* at, uint64_t,
                                          uint64_t) {
  fault(kDivisionByZero, __builtin_return_address(0), line_of(*at),
        "integer division by zero");
}

void __ubsan_handle_out_of_bounds_abort(const void* data, uint64_t index) {
  struct Data {
    Source at;
    const Type *array, *index;
  };
  const Data* d = (const Data*)data;
  char text[32];
  if (d->index->info & 1)
    snprintf(text, sizeof text, "%lld",
             (long long)(d->index->info >> 1 == 5 ? (int32_t)index
                                                  : (int64_t)index));
  else
    snprintf(text, sizeof text, "%llu", (unsigned long long)index);
  fault(kOutOfBounds, __builtin_return_address(0), line_of(d->at),
        "out of bounds: index %s of an array of type %s", text, d->array->name);
}

void __ubsan_handle_type_mismatch_v1_abort(const void* data, uint64_t address) {
  struct Data {
    Source at;
    const Type* type;
    unsigned char log_alignment, kind;
  };
  const Data* d = (const Data*)data;
  if (!address)
    fault(kOutOfBounds, __builtin_return_address(0), line_of(d->at),
          "out of bounds: a null pointer is used as %s", d->type->name);
  fault(kMisaligned, __builtin_return_address(0), line_of(d->at),
        "misaligned: %s at an address that is not a multiple of %u",
        d->type->name, 1u << d->log_alignment);
}

void __ubsan_handle_builtin_unreachable(const Source* at) {
  fault(kUnreachable, __builtin_return_address(0), line_of(*at),
        "reaches a place marked unreachable");
}

void __ubsan_handle_missing_return(const Source* at) {
  fault(kUnreachable, __builtin_return_address(0), line_of(*at),
        "leaves a function that returns a value without one");
}

void ke_trap(int line) { fault(kTrap, nullptr, line, "__trap()"); }

void ke_assert_failed(const char* text, int line) {
  fault(kAssertion, nullptr, line, "assertion failed: %s", text);
}

// Time must pass for a thread that does nothing but look at the clock.
long long ke_clock() {
  static long long looks;
  return (long long)num_accesses + 16 * ++looks;
}

int ke_printf(const char* format, ...) {
  uint64_t used = report->printf_bytes;
  uint64_t room = used < printf_capacity ? printf_capacity - used : 0;
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(printf_buffer + used, room, format, arguments);
  va_end(arguments);
  if (n > 0) {
    uint64_t kept = (uint64_t)n < room ? (uint64_t)n : room;
    report->printf_bytes = (uint32_t)(used + kept);
  }
  return n;
}

}  // extern "C"

}  // namespace ke
