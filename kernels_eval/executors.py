"""Names of what candidates run on."""

CPU = "cpu"
CUDA = "cuda"
DEVICES = (CPU, CUDA)
AUTO = "auto"  # the GPU where one is usable, else the CPU
EXECUTORS = (AUTO, *DEVICES)
"""As settings give them."""
