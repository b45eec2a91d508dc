"""Names of what candidates run on, as settings give them."""

AUTO = "auto"  # the GPU where one is usable, else the CPU
CPU = "cpu"
CUDA = "cuda"
EXECUTORS = (AUTO, CPU, CUDA)
