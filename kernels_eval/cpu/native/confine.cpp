// Limits and system-call filters for a job's child.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host.h"

namespace ke {

namespace {

void limit(int which, uint64_t value) {
  rlimit r = {value, value};
  setrlimit((__rlimit_resource)which, &r);
}

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

void install(sock_filter* code, int n) {
  sock_fprog program = {(unsigned short)n, code};
  // Kernels without seccomp leave the other protections in place.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) _exit(5);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) && errno != EINVAL)
    _exit(5);
}

// Allows the listed calls; any other kills the process (SIGSYS). With
// `no_code`, memory can no longer be made executable.
template <int N>
void allow_only(const int (&calls)[N], bool no_code) {
  if (!kArchitecture) return;
  constexpr uint32_t kKill = SECCOMP_RET_KILL_PROCESS;
  sock_filter code[2 * N + 12];
  int n = 0;
  code[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  code[n++] = BPF_STMT(BPF_RET | BPF_K, kKill);
  code[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  if (no_code) {
    // The third argument of both holds the protection.
    code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 1, 0);
    code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 4);
    code[n++] =
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2]));
    code[n++] = BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
    code[n++] = BPF_STMT(BPF_RET | BPF_K, kKill);
    code[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  for (int call : calls) {
    code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    code[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[n++] = BPF_STMT(BPF_RET | BPF_K, kKill);
  install(code, n);
}

// RLIMIT_NPROC does not bind root, so what may not start processes is refused
// the calls.
void forbid_processes() {
  if (!kArchitecture) return;
  constexpr uint32_t kRefuse = SECCOMP_RET_ERRNO | EAGAIN;
  constexpr uint32_t kFirstOfX32 = 0x40000000;  // other numbers, same calls
  static const int calls[] = {
      SYS_clone,
#ifdef SYS_clone3
      SYS_clone3,
#endif
#ifdef SYS_fork
      SYS_fork,
      SYS_vfork,
#endif
  };
  sock_filter code[16];
  int n = 0;
  code[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  code[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  code[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  code[n++] = BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kFirstOfX32, 0, 1);
  code[n++] = BPF_STMT(BPF_RET | BPF_K, kRefuse);
  for (int call : calls) {
    code[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
    code[n++] = BPF_STMT(BPF_RET | BPF_K, kRefuse);
  }
  code[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  install(code, n);
}

}  // namespace

void limit_resources(const Job& job) {
  limit(RLIMIT_CORE, 0);
  if (job.address_space_bytes) limit(RLIMIT_AS, job.address_space_bytes);
  if (job.file_bytes) limit(RLIMIT_FSIZE, job.file_bytes);
  if (job.num_processes) limit(RLIMIT_NPROC, job.num_processes);
  // The server watches the processor time itself; this is the second line.
  limit(RLIMIT_CPU, job.cpu_limit_ms / 1000 + 2);
  limit(RLIMIT_NOFILE, 64);
  if (job.num_processes == 1) forbid_processes();
}

void forbid_most_calls() {
  static const int calls[] = {
      SYS_read,          SYS_close,        SYS_openat,         SYS_fstat,
      SYS_newfstatat,    SYS_lseek,        SYS_pread64,        SYS_mmap,
      SYS_munmap,        SYS_mprotect,     SYS_mremap,         SYS_madvise,
      SYS_brk,           SYS_futex,        SYS_getrandom,      SYS_readlinkat,
      SYS_clock_gettime, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn,
      SYS_sigaltstack,   SYS_exit,         SYS_exit_group,     SYS_prctl,
      SYS_getcwd,
#ifdef SYS_statx
      SYS_statx,
#endif
#ifdef SYS_seccomp
      SYS_seccomp,
#endif
#ifdef SYS_readlink
      SYS_readlink,
#endif
#ifdef SYS_open
      SYS_open,
#endif
#ifdef SYS_access
      SYS_access,
#endif
  };
  allow_only(calls, false);
}

void forbid_all_but_compute() {
  static const int calls[] = {
      // None of these can wait: a run without processor time means that the
      // machine is busy.
      SYS_munmap,         SYS_madvise, SYS_brk,        SYS_clock_gettime,
      SYS_rt_sigreturn,   SYS_exit,    SYS_exit_group,
      SYS_rt_sigprocmask,  // of swapcontext()
  };
  allow_only(calls, true);
}

}  // namespace ke
