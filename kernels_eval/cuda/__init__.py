"""The executor for NVIDIA GPUs: NVRTC in the sandbox, trusted launchers."""
