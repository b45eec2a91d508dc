"""Landlock: what this process and its children may do with files, and on newer
kernels with TCP ports, abstract sockets and signals.

A Linux security module that needs no privileges (kernel 5.13). Three system
calls; the standard library has no wrapper.
"""

import ctypes
import os
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE
_ALL_V1 = (1 << 13) - 1
_REFER, _TRUNCATE = 1 << 13, 1 << 14
_READ = _EXECUTE | _READ_FILE | _READ_DIR


class _Ruleset(ctypes.Structure):
  _fields_ = [
    ("fs", ctypes.c_uint64),
    ("net", ctypes.c_uint64),
    ("scoped", ctypes.c_uint64),
  ]


class _PathBeneath(ctypes.Structure):
  _pack_ = 1
  _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def _libc():
  return ctypes.CDLL(None, use_errno=True)


def abi_version() -> int:
  """The kernel's Landlock version; 0 where there is none."""
  return max(_libc().syscall(_CREATE, None, 0, _VERSION_FLAG), 0)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> bool:
  """Leaves this process the listed folders and files, for good.

  Args:
    readable: paths that may be read and executed.
    writable: paths that may be read, executed, written and removed.

  Returns:
    False where the kernel has no Landlock (nothing is restricted then).

  Raises:
    OSError: the kernel has it but refused.
  """
  version = abi_version()
  if not version:
    return False
  handled = _ALL_V1
  handled |= _REFER if version >= 2 else 0
  handled |= _TRUNCATE if version >= 3 else 0
  libc = _libc()
  net = 3 if version >= 4 else 0  # bind and connect of TCP
  scoped = 3 if version >= 6 else 0  # abstract sockets and signals
  attributes = _Ruleset(handled, net, scoped)
  size = 24 if version >= 6 else 16 if version >= 4 else 8
  ruleset = libc.syscall(_CREATE, ctypes.byref(attributes), size, 0)
  if ruleset < 0:
    raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
  for paths, rights in ((readable, _READ), (writable, handled)):
    for path in paths:
      try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
      except FileNotFoundError:
        continue
      allowed = rights if os.path.isdir(path) else rights & _FILE_RIGHTS
      rule = _PathBeneath(allowed & handled, parent)
      failed = libc.syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
      os.close(parent)
      if failed:
        raise OSError(ctypes.get_errno(), f"landlock_add_rule {path}")
  libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
  if libc.syscall(_RESTRICT, ruleset, 0):
    raise OSError(ctypes.get_errno(), "landlock_restrict_self")
  os.close(ruleset)
  return True
