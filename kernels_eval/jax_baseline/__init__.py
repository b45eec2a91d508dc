"""A problem's reference as jitted JAX, as a second baseline of timing.

The only part of the harness that imports JAX. It runs as a process of its own
(`python -m kernels_eval.jax_baseline`), which `cuda/jax_reference.py` starts;
nothing else imports it.
"""
