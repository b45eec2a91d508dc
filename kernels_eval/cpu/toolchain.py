"""The compiler, and the executor's native parts built with it.

The parts (runtime library, host program, precompiled device header) are built
once for each compiler version and kept in the user's cache folder.
"""

import atexit
import contextlib
import dataclasses
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import time

from kernels_eval import cache_folder, temporary

NATIVE = pathlib.Path(__file__).parent / "native"

# How a candidate is compiled. -O0: kernels run for milliseconds, so the
# compiler's time matters more than theirs (-O1 takes 10 ms longer), and no
# access of theirs is optimised away. Wrapping arithmetic as on a device.
# The thread sanitizer's instrumentation calls a check before each access, which
# runtime/memory.cpp provides, so libtsan and libubsan are not needed.
CANDIDATE_FLAGS = (
  "-std=c++17",
  "-O0",
  "-g1",
  "-gdwarf-4",  # addr2line 2.40 confuses the files of version 5
  "-fPIC",
  "-fwrapv",
  "-fsigned-char",  # the same on every processor
  "-fno-finite-loops",
  "-fno-strict-aliasing",
  "-ffp-contract=off",
  "-nostdinc",
  "-nostdinc++",
  "-fno-exceptions",
  "-fno-rtti",
  "-fno-threadsafe-statics",
  "-fno-asynchronous-unwind-tables",
  "-fno-stack-protector",
  "-fstack-clash-protection",  # a large frame must not jump the guard page
  # Calls, so that the linker can send them to checked versions.
  "-fno-builtin-printf",
  "-fno-builtin-memcpy",
  "-fno-builtin-memmove",
  "-fno-builtin-memset",
  "-fsanitize=thread",
  "--param=tsan-distinguish-volatile=1",
  "--param=tsan-instrument-func-entry-exit=0",
  "-fsanitize=bounds,integer-divide-by-zero,alignment,unreachable,return",
  "-fno-sanitize-recover=all",
  "-fdiagnostics-color=never",
  "-fno-diagnostics-show-caret",
  "-fmax-errors=8",
  "-Werror=vla",  # no extension of ours: a device compiler refuses them
  "-Wno-narrowing",  # but allows these
  "-Wno-cpp",  # `#warning` would fill the log, which host_code.py reads
)
_NATIVE_FLAGS = ("-std=c++17", "-O2", "-g1", "-fno-exceptions", "-fno-rtti")
# It is written in the candidates' own dialect (device.h).
_LIBDEVICE_FLAGS = (*_NATIVE_FLAGS, "-fPIC", "-nostdinc", "-ffp-contract=off")


_UNIT, _ASSEMBLY, _OBJECT, _HEADER = "UNIT.cpp", "ASSEMBLY", "OBJECT", "HEADER"
_UNUSED_S = 30 * 24 * 3600.0
_PLAIN, _WITH_HALF = "device.h", "device_with_half.h"


class ToolchainError(Exception):
  """The machine cannot run the CPU executor; one line says why."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
  """Paths of the tools and of the built parts."""

  compiler: str
  # Argument lists with the names UNIT, ASSEMBLY and OBJECT for files.
  compile_arguments: tuple[str, ...]
  assemble_arguments: tuple[str, ...]
  linker: str
  line_resolver: str
  version: str
  parts: pathlib.Path  # folder of ke_host, libke_runtime.so, headers(.gch)
  libm: str
  libgcc: str

  @property
  def host(self) -> pathlib.Path:
    """The program that serves jobs inside of the sandbox."""
    return self.parts / "ke_host"

  def release(self) -> None:
    """Removes parts that were built for this process alone. Judges end without
    their exit functions; what a killed one leaves, the next pool removes."""
    if self.parts.name.startswith(temporary.PREFIX):
      shutil.rmtree(self.parts, ignore_errors=True)

  @property
  def programs(self) -> tuple[str, ...]:
    """What has to be readable inside of the sandbox."""
    return (
      self.compiler,
      self.compile_arguments[0],
      self.assemble_arguments[0],
      self.linker,
      self.line_resolver,
      self.libgcc,
    )

  def compile_commands(
    self, unit: str, artefact: str, has_half: bool = True
  ) -> list[list[str]]:
    """Argument lists of compiler proper and assembler.

    Args:
      unit: file to compile.
      artefact: object file to make.
      has_half: False saves the time to read the 16-bit floats' declarations.

    Not the driver `g++`, which would start them itself: its children's time
    would not be seen, their signals would be turned into text, and they would
    outlive it.
    """
    names = {
      _UNIT: unit,
      _ASSEMBLY: artefact + ".s",
      _OBJECT: artefact,
      _HEADER: str(self.parts / (_WITH_HALF if has_half else _PLAIN)),
    }
    return [
      [names.get(a, a) for a in arguments]
      for arguments in (self.compile_arguments, self.assemble_arguments)
    ]

  def link_command(self, artefact: str, library: str) -> list[str]:
    """Argument list that links; undefined symbols are errors, and what a
    candidate may use is the runtime and the mathematics library."""
    return [
      self.linker,
      "-shared",
      # A variable of the text called `times` is not the C library's function.
      "-Bsymbolic",
      "-z",
      "defs",
      "-z",
      "relro",
      "-z",
      "now",
      "-z",
      "noexecstack",
      "--wrap=memcpy",
      "--wrap=memmove",
      "--wrap=memset",
      artefact,
      "-o",
      library,
      "-L" + str(self.parts),
      "-lke_runtime",
      self.libm,
      self.libgcc,
    ]


def _run(command):
  try:
    done = subprocess.run(
      command,
      capture_output=True,
      text=True,
      timeout=300,
      env={**os.environ, "LC_ALL": "C"},
    )
  except (OSError, subprocess.TimeoutExpired) as error:
    raise ToolchainError(f"{command[0]}: {error}") from None
  if done.returncode:
    raise ToolchainError(
      f"`{command[0]}` failed while building the CPU executor: "
      f"{_first_line(done.stderr or done.stdout)}"
    )
  return done.stdout.strip()


def _first_line(text):
  """Of what a tool has printed: the first error, or the first line."""
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  errors = [line for line in lines if "error" in line.lower()]
  return (errors or lines or ["it printed nothing"])[0][:400]


def _libm(compiler):
  # Not libm.so, which may be a linker script that names more libraries.
  for name in ("libm.so.6", "libm.so"):
    path = _run([compiler, f"-print-file-name={name}"])
    if os.path.isabs(path):
      return path
  raise ToolchainError(f"`{compiler}` finds no libm; install the C library")


def _find(name, compiler):
  found = _run([compiler, f"-print-prog-name={name}"])
  path = shutil.which(found)
  if path is None:
    raise ToolchainError(f"no `{name}` found; install binutils")
  return path


def _steps(compiler):
  """What the driver would start: compiler proper and assembler."""
  try:
    done = subprocess.run(
      [
        *(compiler, "-###", *CANDIDATE_FLAGS, "-include", _HEADER),
        *("-c", _UNIT, "-o", _OBJECT),
      ],
      capture_output=True,
      text=True,
      timeout=60,
      env={**os.environ, "LC_ALL": "C"},
    )
  except (OSError, subprocess.TimeoutExpired) as error:
    raise ToolchainError(f"{compiler}: {error}") from None
  lines = [x for x in done.stderr.splitlines() if x.startswith(" ")]
  steps = [shlex.split(line) for line in lines]
  if len(steps) != 2 or "cc1plus" not in steps[0][0]:
    raise ToolchainError(
      f"`{compiler} -###` shows no compiler proper and assembler; is it GCC?"
    )
  compile_step, assemble_step = steps
  if "-o" not in compile_step or assemble_step[-2:-1] != [_OBJECT]:
    raise ToolchainError(f"cannot read what `{compiler} -###` prints")
  compile_step[compile_step.index("-o") + 1] = _ASSEMBLY
  assemble_step[-1] = _ASSEMBLY
  assemble_step[0] = _find("as", compiler)
  return tuple(compile_step), tuple(assemble_step)


def _sources():
  return sorted(
    p for p in NATIVE.rglob("*") if p.suffix in (".h", ".cpp", ".map")
  )


def _build(folder, compiler):
  for header in NATIVE.glob("*.h"):
    shutil.copy(header, folder / header.name)
  runtime = [str(p) for p in sorted((NATIVE / "runtime").glob("*.cpp"))]
  libdevice = str(folder / "libdevice.o")
  _run(
    [
      *(compiler, *_LIBDEVICE_FLAGS, "-c", str(NATIVE / "libdevice.cpp")),
      *("-o", libdevice),
    ]
  )
  _run(
    [
      compiler,
      *_NATIVE_FLAGS,
      "-fPIC",
      "-shared",
      f"-Wl,--version-script={NATIVE / 'runtime' / 'exports.map'}",
      "-Wl,-soname,libke_runtime.so",
      *runtime,
      libdevice,
      "-o",
      str(folder / "libke_runtime.so"),
      "-lm",
      "-ldl",
    ]
  )
  _run(
    [
      *(compiler, *_NATIVE_FLAGS, "-fPIC", "-shared"),
      *(str(NATIVE / "no_driver.cpp"), "-Wl,-soname,libcuda.so.1"),
      *("-o", str(folder / "libke_no_driver.so")),
    ]
  )
  _run(
    [
      compiler,
      *_NATIVE_FLAGS,
      str(NATIVE / "host.cpp"),
      str(NATIVE / "confine.cpp"),
      str(NATIVE / "huge_pages.cpp"),
      str(NATIVE / "nvrtc.cpp"),
      str(NATIVE / "nvjitlink.cpp"),
      f"-L{folder}",
      "-lke_runtime",
      "-ldl",
      "-Wl,-rpath,$ORIGIN",
      "-o",
      str(folder / "ke_host"),
    ]
  )
  for header in (_PLAIN, _WITH_HALF):
    _run(
      [
        *(compiler, *CANDIDATE_FLAGS, "-x", "c++-header"),
        *(str(folder / header), "-o", str(folder / f"{header}.gch")),
      ]
    )


def prepare(compiler_name: str = "g++") -> Toolchain:
  """Finds the compiler and builds what is not in the cache yet.

  Raises:
    ToolchainError: no usable compiler.
  """
  compiler = shutil.which(compiler_name)
  if compiler is None:
    raise ToolchainError(
      f"no C++ compiler: `{compiler_name}` is not on PATH; install g++ 11 or "
      "newer (Debian, Ubuntu: apt install g++)"
    )
  version = _run([compiler, "-dumpfullversion"])
  major = version.split(".")[0]
  if not major.isdigit() or int(major) < 11:
    raise ToolchainError(f"g++ {version} is too old; 11 or newer is needed")
  digest = hashlib.sha256()
  for path in _sources():
    digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
  digest.update(repr((compiler, version, CANDIDATE_FLAGS)).encode())
  name = f"cpu-{digest.hexdigest()[:16]}"
  parts = cache_folder.path() / name
  if _is_complete(parts):
    with contextlib.suppress(OSError):  # not ours, or read-only
      os.utime(parts)
  else:
    try:
      parts = _build_into_cache(parts, compiler)
    except OSError as error:
      raise ToolchainError(f"cannot build the CPU executor: {error}") from None
  compile_step, assemble_step = _steps(compiler)
  return Toolchain(
    compiler,
    compile_step,
    assemble_step,
    _find("ld", compiler),
    _find("addr2line", compiler),
    version,
    parts,
    _libm(compiler),
    _run([compiler, "-print-libgcc-file-name"]),
  )


def _is_complete(parts):
  return (parts / f"{_WITH_HALF}.gch").exists()  # what is built last


def _remove_old(cache):
  """Removes parts of other versions that nobody has used for a month."""
  with contextlib.suppress(OSError):
    for folder in [*cache.glob("cpu-*"), *cache.glob(".build-*")]:
      if time.time() - folder.stat().st_mtime > _UNUSED_S:
        shutil.rmtree(folder, ignore_errors=True)


def _build_into_cache(parts, compiler):
  try:
    parts.parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=".build-", dir=parts.parent)
  except OSError:
    # No cache (read-only home): build for this process alone.
    own = temporary.make_root()
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    _build(own, compiler)
    return own
  try:
    _build(pathlib.Path(folder), compiler)
    os.chmod(folder, 0o755)
    try:
      os.rename(folder, parts)
    except OSError:
      if not _is_complete(parts):  # somebody has removed a file
        shutil.rmtree(parts)
        os.rename(folder, parts)
      else:  # another process was faster
        shutil.rmtree(folder)
  except BaseException:
    shutil.rmtree(folder, ignore_errors=True)
    raise
  _remove_old(parts.parent)
  return parts
