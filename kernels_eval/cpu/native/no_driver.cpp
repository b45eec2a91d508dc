// Stands in for the CUDA driver (it has its name, libcuda.so.1) in the process
// that compiles. NVRTC loads the driver, nvJitLink calls its cuInit, which
// would begin to use the GPU, and crashes where the sandbox hides it.
extern "C" int cuInit(unsigned) {
  return 100;  // CUDA_ERROR_NO_DEVICE
}

extern "C" int cuGetExportTable(const void**, const void*) {
  return 500;  // CUDA_ERROR_NOT_FOUND
}
