"""LEAP in JAX: multi-turn reinforcement learning for GPU kernels."""

from setuptools import find_packages, setup

# Base dependencies run the CPU path. jax 0.10.2 is the last release for Python
# 3.11 and 0.11.2 the newest that is tested; the code keeps to what both have.
BASE = [
  "absl-py>=2.1",
  "chex>=0.1.90",
  "flax>=0.12.8",
  "jax>=0.10.2,<0.12",
  "jaxtyping>=0.3",
  # Chat templates are Jinja programs; every published model has one.
  "jinja2>=3.1",
  "matplotlib>=3.9",
  "ml-collections>=1.0",
  "ml-dtypes>=0.5",
  "msgspec>=0.19",
  "numpy>=2.0",
  "optax>=0.2.5",
  # The v0 CheckpointManager; the v1 API takes its place in 1.0.
  "orbax-checkpoint>=0.11.25,<0.13",
  "tensorboardX>=2.6.2",
  "tokenizers>=0.21",
  "tqdm>=4.66",
]

# What the GPU executor of the harness needs. The bindings' major version is the
# toolkit's; nvidia-ml-py asks the driver for its state.
_GPU = ["cuda-pathfinder>=1.3.4", "nvidia-ml-py>=12.560"]
_CUDA13 = [
  "cuda-bindings>=13.0,<14",
  "nvidia-cuda-nvrtc>=13.0,<14",
  "nvidia-nvjitlink>=13.0,<14",
  *_GPU,
]

# Numba-CUDA candidates: a compiler, for which no GPU is needed. numba-cuda
# 0.30 uses np.row_stack, which NumPy 2.5 has dropped. libNVVM must not be newer
# than the driver that takes its PTX: one minor version for both.
_NUMBA = [
  "llvmlite>=0.45",
  "numba-cuda>=0.30.4,<0.31",
  "cuda-bindings>=13.0,<13.1",
  "nvidia-nvvm>=13.0,<13.1",
  "numpy>=2.0,<2.5",
]

# GGUF files: what turns quantized blocks into numbers.
_GGUF = ["gguf>=0.17"]

# One minor version: the machines of a cluster must have the same,
# and how an actor that hangs is killed is no promise of Ray's interface.
_RAY = "ray>=2.60,<2.61"

EXTRAS = {
  "cuda12": [
    "jax[cuda12]>=0.10.2,<0.12",
    "cuda-bindings>=12.9,<13",
    "nvidia-cuda-nvrtc-cu12>=12.8",
    "nvidia-nvjitlink-cu12>=12.8",
    *_GPU,
  ],
  "cuda13": ["jax[cuda13]>=0.10.2,<0.12", *_CUDA13],
  "gguf": _GGUF,
  "numba": _NUMBA,
  # What published policies are compared with (experiments/parity.py).
  "parity": ["accelerate>=1.0", "torch>=2.6", "transformers>=5.0", *_GGUF],
  "ray": [_RAY],
  "test": [
    "beartype>=0.20",
    "hypothesis>=6.100",
    "pytest>=8.3",
    "pytest-xdist>=3.6",
    "ruff>=0.15",
    "safetensors>=0.5",  # whose files ours must be
    "setuptools>=69",
    *_CUDA13,  # compiling for a GPU is tested without one
    *_GGUF,
    *_NUMBA,
  ],
}

setup(
  name="leap-jax",
  version="0.1.0",
  description=__doc__.splitlines()[0],
  packages=find_packages(
    include=["leap_jax*", "kernels_eval*", "experiments*"]
  ),
  package_data={
    "kernels_eval": [
      "cpu/native/*.h",
      "cpu/native/*.cpp",
      "cpu/native/runtime/*",
      "cuda/*.cu",
      "cuda/include/*.h",
      "cuda/include/cub/*.cuh",
      "problems/cuda/*.cu",
      "soak/kernels/*/*.cu",
      "problems/numba/*.py",
    ],
    "leap_jax": ["data/tiny/*", "templates/*.txt"],
    "experiments": [
      "results/**/*.json",
      "results/**/*.jsonl.gz",
      "results/**/*.md",
      "results/**/*.txt",
    ],
  },
  python_requires=">=3.11",
  install_requires=BASE,
  extras_require=EXTRAS,
)
