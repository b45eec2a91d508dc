// Stands in for the CUDA driver (it has its name, libcuda.so.1) in the process
// that compiles. nvJitLink asks for the driver's version through cuInit, which
// would begin to use the GPU, or crash where the sandbox hides it.
extern "C" int cuInit(unsigned) {
  return 100;  // CUDA_ERROR_NO_DEVICE
}

extern "C" int cuGetExportTable(const void**, const void*) {
  return 500;  // CUDA_ERROR_NOT_FOUND
}
