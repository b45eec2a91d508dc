"""LEAP: multi-turn reinforcement learning on kernels, in JAX."""
