// Assembles PTX to cubins with nvJitLink, which the host process loads once.
// PTX from a Numba candidate's process is believed in nothing: it is read here,
// in a sandboxed child, and never by the launcher's driver.
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "compile_io.h"

namespace ke {

namespace {

typedef struct nvJitLink* Handle;
constexpr int kPtx = 2;  // NVJITLINK_INPUT_PTX
// NVJITLINK_ERROR_*: what no text can cause. Everything else is its fault.
constexpr int kUnrecognizedOption = 1, kMissingArch = 2, kThreadPool = 7,
              kIncompatibleOptions = 11, kUnrecognizedArch = 16,
              kUnsupportedArch = 17;

bool is_fault(int error) {
  return error == kUnrecognizedOption || error == kMissingArch ||
         error == kThreadPool || error == kIncompatibleOptions ||
         error == kUnrecognizedArch || error == kUnsupportedArch;
}

// The part of nvJitLink.h that is used; 0 is success everywhere.
struct NvJitLink {
  int (*nvJitLinkCreate)(Handle*, uint32_t, const char**);
  int (*nvJitLinkAddData)(Handle, int, const void*, size_t, const char*);
  int (*nvJitLinkComplete)(Handle);
  int (*nvJitLinkGetLinkedCubinSize)(Handle, size_t*);
  int (*nvJitLinkGetLinkedCubin)(Handle, void*);
  int (*nvJitLinkGetErrorLogSize)(Handle, size_t*);
  int (*nvJitLinkGetErrorLog)(Handle, char*);
  int (*nvJitLinkDestroy)(Handle*);
} link;

constexpr char kWarmUp[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k() { ret; }\n";

void print_errors(Handle handle) {
  size_t size = 0;
  if (link.nvJitLinkGetErrorLogSize(handle, &size) || size <= 1) return;
  char* text = (char*)malloc(size);
  if (text && !link.nvJitLinkGetErrorLog(handle, text))
    print_log(text, strnlen(text, size));
  free(text);
}

// Up to the point where the cubin can be fetched; 0 or the first error.
int assemble(Handle* handle, const char* ptx, size_t size, int num_options,
             const char** options) {
  int error = link.nvJitLinkCreate(handle, (uint32_t)num_options, options);
  if (error) compiler_fault("nvJitLinkCreate", error);
  error = link.nvJitLinkAddData(*handle, kPtx, ptx, size, "kernel.ptx");
  return error ? error : link.nvJitLinkComplete(*handle);
}

}  // namespace

bool load_nvjitlink(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return false;
  }
#define KE_FIND(name)                                    \
  if (!(*(void**)& link.name = dlsym(library, #name))) { \
    fprintf(stderr, "%s holds no %s\n", path, #name);    \
    return false;                                        \
  }
  KE_FIND(nvJitLinkCreate)
  KE_FIND(nvJitLinkAddData)
  KE_FIND(nvJitLinkComplete)
  KE_FIND(nvJitLinkGetLinkedCubinSize)
  KE_FIND(nvJitLinkGetLinkedCubin)
  KE_FIND(nvJitLinkGetErrorLogSize)
  KE_FIND(nvJitLinkGetErrorLog)
  KE_FIND(nvJitLinkDestroy)
#undef KE_FIND
  // What the first use reads, the children inherit.
  Handle handle = nullptr;
  const char* option = "-arch=sm_80";
  bool works = !assemble(&handle, kWarmUp, sizeof kWarmUp, 1, &option);
  if (!works) print_errors(handle);
  link.nvJitLinkDestroy(&handle);
  return works;
}

// strings: working folder, number of units, options. Reads unit0.ptx and so on,
// leaves unit0.cubin and so on beside them.
void child_assemble(const Job& job, char** strings) {
  if (chdir(strings[0])) compiler_fault("chdir", 0);
  limit_resources(job);
  int count = atoi(strings[1]), num_options = 0;
  while (strings[2 + num_options]) num_options++;
  for (int i = 0; i < count; i++) {
    char name[32];
    size_t size = 0;
    snprintf(name, sizeof name, "unit%d.ptx", i);
    char* ptx = read_file(name, &size);
    Handle handle = nullptr;
    int error = assemble(&handle, ptx, size + 1, num_options,
                         (const char**)strings + 2);
    if (error) print_errors(handle);
    if (is_fault(error)) compiler_fault("nvJitLink", error);
    if (error) _exit(kCompileError);
    if ((error = link.nvJitLinkGetLinkedCubinSize(handle, &size)))
      compiler_fault("nvJitLinkGetLinkedCubinSize", error);
    char* cubin = (char*)malloc(size);
    if (!cubin) compiler_fault("memory", 0);
    if ((error = link.nvJitLinkGetLinkedCubin(handle, cubin)))
      compiler_fault("nvJitLinkGetLinkedCubin", error);
    snprintf(name, sizeof name, "unit%d.cubin", i);
    write_file(name, cubin, size);
    link.nvJitLinkDestroy(&handle);
    free(cubin);
    free(ptx);
  }
  _exit(0);
}

}  // namespace ke
