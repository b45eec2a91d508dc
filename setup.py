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
  "matplotlib>=3.9",
  "ml-collections>=1.0",
  "msgspec>=0.19",
  "numpy>=2.0",
  "optax>=0.2.5",
  # The v0 CheckpointManager; the v1 API takes its place in 1.0.
  "orbax-checkpoint>=0.11.25,<0.13",
  "safetensors>=0.5",
  "tensorboardX>=2.6.2",
  "tokenizers>=0.21",
  "tqdm>=4.66",
]

# Pinned to a minor version: the machines of a cluster must have the same one,
# and how an actor that hangs is killed is no promise of Ray's interface.
RAY = "ray>=2.60,<2.61"

EXTRAS = {
  "cuda12": ["jax[cuda12]>=0.10.2,<0.12"],
  "cuda13": ["jax[cuda13]>=0.10.2,<0.12"],
  "ray": [RAY],
  "test": [
    "beartype>=0.20",
    "hypothesis>=6.100",
    "pytest>=8.3",
    RAY,
    "ruff>=0.15",
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
      "problems/cuda/*.cu",
    ],
    "leap_jax": ["data/*", "templates/*.txt"],
    "experiments": ["results/**/*.json"],
  },
  python_requires=">=3.11",
  install_requires=BASE,
  extras_require=EXTRAS,
)
