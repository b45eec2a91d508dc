"""The system calls that a process may make which runs a candidate's Python.

Three classes: allowed; hostile (starting processes, reaching others, changing
files), which end the process with SIGSYS, so that the judge knows; and all
others, which fail with EPERM, because a library may ask for something harmless
that nobody has thought of. Of signals there is abort() alone: a process that
kills itself would look as if the machine had run out of memory.
"""

import ctypes
import errno
import os
import platform
import signal
import struct

# name: (x86_64, aarch64); None where the architecture has no such call.
_NUMBERS = {
  "read": (0, 63), "write": (1, 64), "close": (3, 57), "stat": (4, None),
  "fstat": (5, 80), "lstat": (6, None), "poll": (7, None), "lseek": (8, 62),
  "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215),
  "brk": (12, 214), "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135),
  "rt_sigreturn": (15, 139), "ioctl": (16, 29), "pread64": (17, 67),
  "readv": (19, 65), "writev": (20, 66), "access": (21, None),
  "sched_yield": (24, 124), "mremap": (25, 216), "madvise": (28, 233),
  "nanosleep": (35, 101), "getpid": (39, 172), "exit": (60, 93),
  "uname": (63, 160), "fcntl": (72, 25), "getcwd": (79, 17),
  "readlink": (89, None), "gettimeofday": (96, 169), "getrusage": (98, 165),
  "sysinfo": (99, 179), "getuid": (102, 174), "getgid": (104, 176),
  "geteuid": (107, 175), "getegid": (108, 177), "getppid": (110, 173),
  "sigaltstack": (131, 132), "gettid": (186, 178), "futex": (202, 98),
  "sched_getaffinity": (204, 123), "getdents64": (217, 61),
  "clock_gettime": (228, 113), "clock_nanosleep": (230, 115),
  "exit_group": (231, 94), "newfstatat": (262, 79), "readlinkat": (267, 78),
  "faccessat": (269, 48), "ppoll": (271, 73), "getrandom": (318, 278),
  "statx": (332, 291), "rseq": (334, 293), "faccessat2": (439, 439),
}  # fmt: skip
_HOSTILE = {
  "kill": (62, 129), "tkill": (200, 130),
  "socket": (41, 198), "connect": (42, 203), "bind": (49, 200),
  "socketpair": (53, 199), "clone": (56, 220), "fork": (57, None),
  "vfork": (58, None), "execve": (59, 221), "ptrace": (101, 117),
  "truncate": (76, 45), "rename": (82, None), "mkdir": (83, None),
  "rmdir": (84, None), "creat": (85, None), "link": (86, None),
  "unlink": (87, None), "symlink": (88, None), "chmod": (90, None),
  "mkdirat": (258, 34), "unlinkat": (263, 35), "linkat": (265, 37),
  "symlinkat": (266, 36), "fchmodat": (268, 53), "unshare": (272, 97),
  "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
  "renameat2": (316, 276), "memfd_create": (319, 279), "execveat": (322, 281),
  "clone3": (435, 435), "pidfd_getfd": (438, 438),
}  # fmt: skip
_OPEN = {"open": ((2, None), 1), "openat": ((257, 56), 2)}  # place of flags
_TGKILL = (234, 131)  # allowed as abort() uses it
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

COMPILING = frozenset((*_NUMBERS, *_OPEN))
"""All that a compiler needs: it opens what Landlock leaves it, for reading."""
COMPUTING = frozenset(
  (
    *("brk", "mmap", "mprotect", "mremap", "munmap", "madvise", "write"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack"),
    *(
      "clock_gettime",
      "gettimeofday",
      "getpid",
      "gettid",
      "exit",
      "exit_group",
    ),
  )
)
"""Nothing is opened or read, and none of these can wait: a process without
processor time means that the machine is busy."""

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_ALLOW, _KILL, _EPERM = 0x7FFF0000, 0x80000000, 0x00050001
_LOAD, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x45, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _FILTER = 38, 22, 2


def _step(code, k, yes=0, no=0):
  return struct.pack("<HBBI", code, yes, no, k)


def _program(calls, column, architecture, pid):
  steps = [
    _step(_LOAD, _ARCHITECTURE_AT),
    _step(_EQUAL, architecture, 1, 0),
    _step(_RETURN, _KILL),
    _step(_LOAD, _NUMBER_AT),
  ]
  allowed = {name: n for name, n in _NUMBERS.items() if name in calls}
  for table, action in ((allowed, _ALLOW), (_HOSTILE, _KILL)):
    for numbers in table.values():
      if numbers[column] is not None:
        steps += [_step(_EQUAL, numbers[column], 0, 1), _step(_RETURN, action)]
  for name, (numbers, flags_index) in _OPEN.items():
    if numbers[column] is not None:
      steps += [
        _step(_EQUAL, numbers[column], 0, 4),
        _step(_LOAD, _ARGUMENTS_AT + 8 * flags_index),
        _step(_ANY_BIT, _WRITING, 1, 0),
        _step(_RETURN, _ALLOW if name in calls else _EPERM),
        _step(_RETURN, _KILL),
      ]
  steps += [
    _step(_EQUAL, _TGKILL[column], 0, 6),
    _step(_LOAD, _ARGUMENTS_AT),
    _step(_EQUAL, pid, 0, 3),
    _step(_LOAD, _ARGUMENTS_AT + 8 * 2),
    _step(_EQUAL, signal.SIGABRT, 0, 1),
    _step(_RETURN, _ALLOW),
    _step(_RETURN, _KILL),
  ]
  return b"".join([*steps, _step(_RETURN, _EPERM)])


class _Filter(ctypes.Structure):
  _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_char_p)]


def _libc():
  return ctypes.CDLL(None, use_errno=True)


def is_available() -> bool:
  """Whether the kernel takes filters, on an architecture that we know."""
  if platform.machine() not in _ARCHITECTURES:
    return False
  # A filter at address 0 is looked at only where there are filters.
  failed = _libc().prctl(_PR_SET_SECCOMP, _FILTER, None, 0, 0)
  return bool(failed) and ctypes.get_errno() == errno.EFAULT


def confine(calls: frozenset[str]) -> None:
  """Leaves this process COMPILING or COMPUTING, for good.

  Raises:
    OSError: the machine has no such filter, and nothing is confined.
  """
  if platform.machine() not in _ARCHITECTURES:
    raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
  column, architecture = _ARCHITECTURES[platform.machine()]
  program = _program(calls, column, architecture, os.getpid())
  libc = _libc()
  libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
  record = _Filter(len(program) // 8, program)
  if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(record), 0, 0):
    raise OSError(ctypes.get_errno(), "the kernel takes no system-call filter")
