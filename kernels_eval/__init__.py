"""A judge for GPU kernels: compile, run and check candidates out of process.

Usable alone (`python -m kernels_eval --help`); knows nothing of the learner.
"""
