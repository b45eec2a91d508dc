// The sandboxed host process: serves a judge's jobs over a socket, each job in
// a child of its own. Layouts are packed by cpu/host.py; change both together.
#pragma once
#include <stdint.h>

namespace ke {

constexpr uint32_t kMaxFrame = 128 * 1024;
constexpr uint32_t kMaxLog = 64 * 1024;

enum JobKind : uint32_t {
  kCommand = 1,
  kRun = 2,
  kCompile = 3,
  kAssemble = 4,
};

// Followed by NUL-terminated strings: for a command the working folder, then
// its arguments; for a run the library's path; for compilations see
// nvrtc.cpp and nvjitlink.cpp. A run's frame carries the descriptor of its
// plan.
struct Job {
  uint32_t kind;
  uint32_t num_strings;
  uint32_t wall_limit_ms, cpu_limit_ms;
  uint64_t address_space_bytes, file_bytes;
  uint32_t num_processes;
  uint32_t log_bytes;
};

enum Outcome : uint32_t {
  kExited = 0,
  kSignalled = 1,
  kWallLimit = 2,
  kCpuLimit = 3,
  kNoChild = 4,
};

// Followed by the log.
struct Answer {
  uint32_t outcome;
  int32_t code;  // exit status or signal
  uint32_t wall_us;
  uint32_t log_bytes;
  uint64_t total_log_bytes;  // before the cut
  uint64_t peak_resident_bytes;
  uint32_t started;  // a run came to the point where it loads the library
  uint32_t cpu_ms;
};

// Exit statuses of a compilation besides 0.
constexpr int kCompileError = 1, kCompilerFault = 3;
// nvrtc.cpp
bool load_nvrtc(const char* library);
[[noreturn]] void child_compile(const Job& job, char** strings);
// nvjitlink.cpp
bool load_nvjitlink(const char* library);
[[noreturn]] void child_assemble(const Job& job, char** strings);

// huge_pages.cpp: where the system has them; nothing changes where it has not.
void code_to_huge_pages(void* library);  // of dlopen; nobody runs it meanwhile
void heap_to_huge_pages();               // of this process, from now on

// confine.cpp
void limit_resources(const Job& job);
void forbid_most_calls();       // what loading a library needs
void forbid_all_but_compute();  // what a kernel needs

}  // namespace ke
