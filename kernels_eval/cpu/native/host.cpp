// Serves jobs, one at a time, until the judge closes the socket.
//
// The process runs inside of the sandbox (sandbox.py starts it there) and is
// the first process of its PID namespace where there is one, so that after a
// job it can end whatever that job has left behind.
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern "C" int ke_execute(char* mapping, uint64_t mapping_bytes,
                          const char* library_path, void (*before_candidate)(),
                          void (*before_launches)());

namespace ke {

namespace {

int kSocket;  // to the judge
constexpr int kMaxStrings = 256;
// A run child's descriptors: the plan, and a pipe on which it says that it has
// started. What the candidate's process writes into the plan's report can be
// forged; that the pipe has been written to cannot be undone.
constexpr int kPlan = 3, kStarted = 4;

uint64_t now_us() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

struct Frame {
  alignas(16) char bytes[kMaxFrame];
  size_t size;
  int descriptor;
};

bool receive(Frame* frame) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part = {frame->bytes, sizeof frame->bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n;
  do n = recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  frame->size = (size_t)n;
  frame->descriptor = -1;
  cmsghdr* c = CMSG_FIRSTHDR(&message);
  if (c && c->cmsg_type == SCM_RIGHTS)
    memcpy(&frame->descriptor, CMSG_DATA(c), sizeof(int));
  return true;
}

// Ends and reaps everything the job has started.
void sweep(pid_t child) {
  kill(-child, SIGKILL);
  if (getpid() == 1) {
    kill(-1, SIGKILL);  // the namespace holds nothing but us and the job
    while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
    }
    return;
  }
  // Orphans come to us: we are their sub-reaper.
  char path[64], text[4096];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  int f = open(path, O_RDONLY | O_CLOEXEC);
  if (f >= 0) {
    ssize_t n = read(f, text, sizeof text - 1);
    close(f);
    text[n > 0 ? n : 0] = 0;
    char* rest = nullptr;
    for (char* word = strtok_r(text, " \n", &rest); word;
         word = strtok_r(nullptr, " \n", &rest))
      kill(atoi(word), SIGKILL);
  }
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

uint64_t ms(const timeval& t) {
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

uint64_t cpu_ms(pid_t child) {
  clockid_t clock;
  timespec t;
  if (clock_getcpuclockid(child, &clock) || clock_gettime(clock, &t)) return 0;
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

// Before a compiler looks for the driver by that library's name.
bool hide_driver() {
  if (dlopen("libke_no_driver.so", RTLD_NOW | RTLD_LOCAL)) return true;
  fprintf(stderr, "%s\n", dlerror());
  return false;
}

[[noreturn]] void child_command(const Job& job, char** strings) {
  if (chdir(strings[0])) {
    dprintf(2, "cannot enter %s: %s\n", strings[0], strerror(errno));
    _exit(126);
  }
  limit_resources(job);
  execv(strings[1], strings + 1);
  dprintf(2, "cannot start %s: %s\n", strings[1], strerror(errno));
  _exit(127);
}

void before_candidate() {
  if (write(kStarted, "1", 1) != 1) _exit(4);
  close(kStarted);
  forbid_most_calls();
}

[[noreturn]] void child_run(const Job& job, char** strings) {
  struct stat s;
  if (fstat(kPlan, &s)) _exit(4);
  char* mapping = (char*)mmap(nullptr, (size_t)s.st_size,
                              PROT_READ | PROT_WRITE, MAP_SHARED, kPlan, 0);
  if (mapping == (char*)MAP_FAILED) _exit(4);
  close(kPlan);
  limit_resources(job);
  _exit(ke_execute(mapping, (uint64_t)s.st_size, strings[0], before_candidate,
                   forbid_all_but_compute));
}

// Reads what is there: as much as there is room for is kept, all is counted.
// False at the end, and where there is nothing yet of a pipe that does not
// wait.
bool take(int pipe, uint32_t cap, Answer* answer, char* log) {
  char chunk[16384];
  ssize_t n = read(pipe, chunk, sizeof chunk);
  if (n <= 0) return false;
  answer->total_log_bytes += (uint64_t)n;
  uint32_t room = cap - answer->log_bytes;
  uint32_t kept = (uint32_t)n < room ? (uint32_t)n : room;
  memcpy(log + answer->log_bytes, chunk, kept);
  answer->log_bytes += kept;
  return true;
}

void serve(const Job& job, char** strings, int plan, Answer* answer,
           char* log) {
  int log_pipe[2], started_pipe[2];
  *answer = Answer{};
  answer->outcome = kNoChild;
  if (pipe2(log_pipe, O_CLOEXEC)) return;
  if (pipe2(started_pipe, O_CLOEXEC | O_NONBLOCK)) {
    close(log_pipe[0]);
    close(log_pipe[1]);
    return;
  }
  uint64_t start = now_us();
  pid_t child = fork();
  if (child < 0) {
    answer->code = errno;
    close(log_pipe[0]);
    close(log_pipe[1]);
    close(started_pipe[0]);
    close(started_pipe[1]);
    return;
  }
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(log_pipe[1], 1);
    dup2(log_pipe[1], 2);
    unsigned first_unused = kPlan;
    if (plan >= 0) {
      // Out of the way first: one may lie where the other has to go.
      int p = fcntl(plan, F_DUPFD, kStarted + 1);
      int s = fcntl(started_pipe[1], F_DUPFD, kStarted + 1);
      dup2(p, kPlan);
      dup2(s, kStarted);
      first_unused = kStarted + 1;
    }
    syscall(SYS_close_range, first_unused, ~0u, 0u);
    if (job.kind == kCommand) child_command(job, strings);
    if (job.kind == kCompile) child_compile(job, strings);
    if (job.kind == kAssemble) child_assemble(job, strings);
    child_run(job, strings);
  }
  setpgid(child, child);
  close(log_pipe[1]);
  close(started_pipe[1]);
  int process = (int)syscall(SYS_pidfd_open, child, 0);
  uint32_t cap = job.log_bytes < kMaxLog ? job.log_bytes : kMaxLog;
  bool log_open = true;
  Outcome cut = kExited;  // the limit that ended the job, if one did
  for (;;) {
    pollfd waits[3] = {{log_open ? log_pipe[0] : -1, POLLIN, 0},
                       {process, POLLIN, 0},
                       {kSocket, 0, 0}};
    poll(waits, 3, 20);
    bool is_abandoned = waits[2].revents & POLLHUP;  // by the judge
    if (waits[0].revents) log_open = take(log_pipe[0], cap, answer, log);
    siginfo_t info = {};
    if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child) {
      answer->outcome = info.si_code == CLD_EXITED ? kExited : kSignalled;
      answer->code = info.si_status;
      break;
    }
    if (now_us() - start > (uint64_t)job.wall_limit_ms * 1000)
      cut = kWallLimit;
    else if (cpu_ms(child) > job.cpu_limit_ms)
      cut = kCpuLimit;
    if (cut != kExited || is_abandoned) {
      kill(-child, SIGKILL);
      kill(child, SIGKILL);
      answer->outcome = cut;
      break;
    }
  }
  answer->wall_us = (uint32_t)(now_us() - start);
  rusage usage = {};
  int status;
  while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  answer->peak_resident_bytes = (uint64_t)usage.ru_maxrss * 1024;
  answer->cpu_ms = (uint32_t)(ms(usage.ru_utime) + ms(usage.ru_stime));
  if (cut == kExited && answer->outcome == kSignalled) {
    if (answer->code == SIGXCPU) answer->outcome = kCpuLimit;
  }
  sweep(child);  // nobody writes from here on
  // What the child wrote just before its end is still in the pipe.
  fcntl(log_pipe[0], F_SETFL, O_NONBLOCK);
  while (log_open) log_open = take(log_pipe[0], cap, answer, log);
  close(log_pipe[0]);
  char one;
  answer->started = read(started_pipe[0], &one, 1) == 1;
  close(started_pipe[0]);
  if (process >= 0) close(process);
}

int serve_all() {
  static Frame frame;
  static char out[sizeof(Answer) + kMaxLog];
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // A child may not attach to us or read our memory.
  prctl(PR_SET_DUMPABLE, 0);
  if (send(kSocket, "ready", 5, 0) != 5) return 1;
  while (receive(&frame)) {
    Job job;
    char* strings[kMaxStrings + 1] = {};
    if (frame.size < sizeof job) return 1;
    memcpy(&job, frame.bytes, sizeof job);
    char *at = frame.bytes + sizeof job, *end = frame.bytes + frame.size;
    uint32_t n = 0;
    for (; n < job.num_strings && n < kMaxStrings && at < end; n++) {
      char* stop = (char*)memchr(at, 0, (size_t)(end - at));
      if (!stop) return 1;
      strings[n] = at;
      at = stop + 1;
    }
    if (n != job.num_strings || n < (job.kind == kRun ? 1u : 2u)) return 1;
    Answer answer;
    serve(job, strings, frame.descriptor, &answer, out + sizeof answer);
    if (frame.descriptor >= 0) close(frame.descriptor);
    memcpy(out, &answer, sizeof answer);
    size_t size = sizeof answer + answer.log_bytes;
    if (send(kSocket, out, size, MSG_NOSIGNAL) != (ssize_t)size) return 1;
  }
  return 0;
}

}  // namespace

}  // namespace ke

// Usage: ke_host SOCKET [--nvrtc=LIBRARY] [--nvjitlink=LIBRARY] [--first]
//
// --first: become the first process of the PID namespace that the caller has
// unshared (the caller itself stays outside of it).
int main(int argc, char** argv) {
  if (argc < 2) return 2;
  ke::kSocket = atoi(argv[1]);
  const char *nvrtc = nullptr, *nvjitlink = nullptr;
  bool first = false;
  for (int i = 2; i < argc; i++) {
    if (strncmp(argv[i], "--nvrtc=", 8) == 0) nvrtc = argv[i] + 8;
    if (strncmp(argv[i], "--nvjitlink=", 12) == 0) nvjitlink = argv[i] + 12;
    if (strcmp(argv[i], "--first") == 0) first = true;
  }
  if (first) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pid_t child = fork();
    if (child < 0) return 1;
    if (child > 0) {
      close(ke::kSocket);
      int status = 0;
      while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if ((nvrtc || nvjitlink) && !ke::hide_driver()) return 1;
  if (nvrtc && !ke::load_nvrtc(nvrtc)) return 1;
  if (nvjitlink && !ke::load_nvjitlink(nvjitlink)) return 1;
  return ke::serve_all();
}
