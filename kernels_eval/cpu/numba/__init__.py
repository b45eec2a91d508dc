"""Numba kernels on the CPU: typed LLVM IR, our fibre runtime, host code."""
