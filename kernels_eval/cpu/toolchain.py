"""The compiler, and the executor's native parts built with it.

The parts (runtime library, host program, precompiled device header) are built
once for each compiler version and kept in the user's cache folder.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile

NATIVE = pathlib.Path(__file__).parent / "native"

# How a candidate is compiled. -O1: kernels run for milliseconds, so the
# compiler's time matters more than theirs. Wrapping arithmetic as on a device.
# Every access calls a check (threshold 0) in runtime/memory.cpp, so libasan and
# libubsan are not needed.
CANDIDATE_FLAGS = (
  "-std=c++17",
  "-O1",
  "-g1",
  "-fPIC",
  "-fwrapv",
  "-fno-strict-aliasing",
  "-ffp-contract=off",
  "-nostdinc",
  "-nostdinc++",
  "-fno-exceptions",
  "-fno-rtti",
  "-fno-threadsafe-statics",
  "-fno-asynchronous-unwind-tables",
  "-fno-stack-protector",
  "-fsanitize=kernel-address",
  "--param=asan-instrumentation-with-call-threshold=0",
  "-fsanitize=bounds,integer-divide-by-zero,alignment,null,unreachable,return",
  "-fno-sanitize-recover=all",
  "-fdiagnostics-color=never",
  "-fno-diagnostics-show-caret",
  "-fmax-errors=8",
  "-w",
)
_NATIVE_FLAGS = ("-std=c++17", "-O2", "-g1", "-fno-exceptions", "-fno-rtti")


class ToolchainError(Exception):
  """The machine cannot run the CPU executor; one line says why."""


@dataclasses.dataclass(frozen=True)
class Toolchain:
  """Paths of the tools and of the built parts."""

  compiler: str
  linker: str
  line_resolver: str
  version: str
  parts: pathlib.Path  # folder of ke_host, libke_runtime.so, device.h(.gch)
  libgcc: str

  @property
  def host(self) -> pathlib.Path:
    """The program that serves jobs inside of the sandbox."""
    return self.parts / "ke_host"

  def compile_command(self, unit: str, artefact: str) -> list[str]:
    """Argument list that compiles one translation unit."""
    return [
      self.compiler,
      *CANDIDATE_FLAGS,
      "-include",
      str(self.parts / "device.h"),
      "-x",
      "c++",
      "-c",
      unit,
      "-o",
      artefact,
    ]

  def link_command(self, artefact: str, library: str) -> list[str]:
    """Argument list that links; undefined symbols are errors, and what a
    candidate may use is the runtime and the mathematics library."""
    return [
      self.linker,
      "-shared",
      "-z",
      "defs",
      "--wrap=memcpy",
      "--wrap=memmove",
      "--wrap=memset",
      artefact,
      "-o",
      library,
      "-L" + str(self.parts),
      "-lke_runtime",
      "-L" + os.path.dirname(_library("libm.so", self.compiler)),
      "-lm",
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
      f"{(done.stderr or done.stdout).strip()[:2000]}"
    )
  return done.stdout.strip()


@functools.cache
def _library(name, compiler):
  return _run([compiler, f"-print-file-name={name}"])


def _find(name, compiler):
  found = _run([compiler, f"-print-prog-name={name}"])
  path = shutil.which(found)
  if path is None:
    raise ToolchainError(f"no `{name}` found; install binutils")
  return path


def _sources():
  return sorted(
    p for p in NATIVE.rglob("*") if p.suffix in (".h", ".cpp", ".map")
  )


def _build(folder, compiler):
  for header in NATIVE.glob("*.h"):
    shutil.copy(header, folder / header.name)
  runtime = [str(p) for p in sorted((NATIVE / "runtime").glob("*.cpp"))]
  _run(
    [
      compiler,
      *_NATIVE_FLAGS,
      "-fPIC",
      "-shared",
      f"-Wl,--version-script={NATIVE / 'runtime' / 'exports.map'}",
      "-Wl,-soname,libke_runtime.so",
      *runtime,
      "-o",
      str(folder / "libke_runtime.so"),
      "-lm",
      "-ldl",
    ]
  )
  _run(
    [
      compiler,
      *_NATIVE_FLAGS,
      str(NATIVE / "host.cpp"),
      str(NATIVE / "confine.cpp"),
      f"-L{folder}",
      "-lke_runtime",
      "-Wl,-rpath,$ORIGIN",
      "-o",
      str(folder / "ke_host"),
    ]
  )
  _run(
    [
      compiler,
      *CANDIDATE_FLAGS,
      "-x",
      "c++-header",
      str(folder / "device.h"),
      "-o",
      str(folder / "device.h.gch"),
    ]
  )


def _cache_folder():
  base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
  return pathlib.Path(base) / "kernels_eval"


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
  if int(version.split(".")[0]) < 11:
    raise ToolchainError(f"g++ {version} is too old; 11 or newer is needed")
  digest = hashlib.sha256()
  for path in _sources():
    digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
  digest.update(repr((compiler, version, CANDIDATE_FLAGS)).encode())
  name = f"cpu-{digest.hexdigest()[:16]}"
  parts = _cache_folder() / name
  if not (parts / "device.h.gch").exists():
    parts = _build_into_cache(parts, compiler)
  return Toolchain(
    compiler,
    _find("ld", compiler),
    _find("addr2line", compiler),
    version,
    parts,
    _run([compiler, "-print-libgcc-file-name"]),
  )


def _build_into_cache(parts, compiler):
  try:
    parts.parent.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=".build-", dir=parts.parent)
  except OSError:
    # No cache (read-only home): build for this process alone.
    folder = tempfile.mkdtemp(prefix="kernels_eval-build-")
    _build(pathlib.Path(folder), compiler)
    _remove_at_exit(folder)
    return pathlib.Path(folder)
  try:
    _build(pathlib.Path(folder), compiler)
    os.chmod(folder, 0o755)
    try:
      os.rename(folder, parts)
    except OSError:  # another process was faster
      shutil.rmtree(folder)
  except BaseException:
    shutil.rmtree(folder, ignore_errors=True)
    raise
  return parts


def _remove_at_exit(folder):
  import atexit

  atexit.register(shutil.rmtree, folder, ignore_errors=True)
