"""Candidates in Numba-CUDA: text, sandboxed compiler, argument layout."""
