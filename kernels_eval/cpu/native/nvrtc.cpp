// Compiles CUDA C++ with NVRTC, which the host process loads once; each unit is
// compiled in a child of its own, which has it loaded already.
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile_io.h"

namespace ke {

namespace {

typedef struct _nvrtcProgram* Program;

// The part of nvrtc.h that is used; 0 is success everywhere.
struct Nvrtc {
  int (*nvrtcCreateProgram)(Program*, const char*, const char*, int,
                            const char* const*, const char* const*);
  int (*nvrtcAddNameExpression)(Program, const char*);
  int (*nvrtcCompileProgram)(Program, int, const char* const*);
  int (*nvrtcGetProgramLogSize)(Program, size_t*);
  int (*nvrtcGetProgramLog)(Program, char*);
  int (*nvrtcGetCUBINSize)(Program, size_t*);
  int (*nvrtcGetCUBIN)(Program, char*);
  int (*nvrtcGetLoweredName)(Program, const char*, const char**);
  int (*nvrtcDestroyProgram)(Program*);
} nvrtc;

// NVRTC_ERROR_*: what a text can cause; memory is what a job may have. Every
// other error is a fault of ours.
constexpr int kOutOfMemory = 1, kCompilation = 6, kNameNotValid = 10,
              kInternalError = 11;

// Ends the child with what its text has caused.
[[noreturn]] void refuse(const char* what, const char* why) {
  dprintf(2, "%s: %s\n", what, why);
  _exit(kCompileError);
}

// Ends the child if this step of NVRTC has failed.
void check(const char* what, int error) {
  switch (error) {
    case 0:
      return;
    case kCompilation:
      _exit(kCompileError);
    case kOutOfMemory:
      refuse(what, "out of memory");
    case kNameNotValid:
      refuse(what, "no such kernel");
    case kInternalError:
      refuse(what, "internal error of NVRTC");
  }
  compiler_fault(what, error);
}

void print_messages(Program program) {
  size_t size = 0;
  if (nvrtc.nvrtcGetProgramLogSize(program, &size) || size <= 1) return;
  char* text = (char*)malloc(size);
  if (!text || nvrtc.nvrtcGetProgramLog(program, text)) return;
  print_log(text, size - 1);
  free(text);
}

}  // namespace

// NVRTC looks for its library of built-in functions by name alone; loaded from
// beside it, the name is known already.
static void load_builtins(const char* path) {
  const char* slash = strrchr(path, '/');
  if (!slash) return;
  char folder[4096], file[8192];
  if ((size_t)(slash - path) >= sizeof folder) return;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
  DIR* entries = opendir(folder);
  if (!entries) return;
  constexpr const char* kPrefix = "libnvrtc-builtins.so";
  for (dirent* entry; (entry = readdir(entries));) {
    if (strncmp(entry->d_name, kPrefix, strlen(kPrefix))) continue;
    snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
    if (dlopen(file, RTLD_NOW | RTLD_GLOBAL)) break;
  }
  closedir(entries);
}

bool load_nvrtc(const char* path) {
  load_builtins(path);
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return false;
  }
#define KE_FIND(name)                                     \
  if (!(*(void**)& nvrtc.name = dlsym(library, #name))) { \
    fprintf(stderr, "%s holds no %s\n", path, #name);     \
    return false;                                         \
  }
  KE_FIND(nvrtcCreateProgram)
  KE_FIND(nvrtcAddNameExpression)
  KE_FIND(nvrtcCompileProgram)
  KE_FIND(nvrtcGetProgramLogSize)
  KE_FIND(nvrtcGetProgramLog)
  KE_FIND(nvrtcGetCUBINSize)
  KE_FIND(nvrtcGetCUBIN)
  KE_FIND(nvrtcGetLoweredName)
  KE_FIND(nvrtcDestroyProgram)
#undef KE_FIND
  // Its first compilation reads tables and its library of built-in functions;
  // the children inherit them.
  Program program;
  const char* option = "--gpu-architecture=sm_80";
  if (nvrtc.nvrtcCreateProgram(&program,
                               "__global__ void k(float* x) { *x = sinf(*x); }",
                               "warm.cu", 0, nullptr, nullptr))
    return false;
  bool works = nvrtc.nvrtcCompileProgram(program, 1, &option) == 0;
  if (!works) print_messages(program);
  nvrtc.nvrtcDestroyProgram(&program);
  if (works) code_to_huge_pages(library);
  return works;
}

// strings: working folder, source file, options, "--", name expressions. Leaves
// unit.cubin and unit.names (a mangled name a line) in the folder.
void child_compile(const Job& job, char** strings) {
  if (chdir(strings[0])) compiler_fault("chdir", 0);
  limit_resources(job);
  heap_to_huge_pages();
  char** options = strings + 2;
  int num_options = 0;
  while (options[num_options] && strcmp(options[num_options], "--"))
    num_options++;
  char** names = options + num_options + (options[num_options] ? 1 : 0);
  Program program;
  size_t size = 0;
  char* text = read_file(strings[1], &size);
  check("create", nvrtc.nvrtcCreateProgram(&program, text, "kernel.cu", 0,
                                           nullptr, nullptr));
  for (char** name = names; *name; name++)
    check("name expression", nvrtc.nvrtcAddNameExpression(program, *name));
  int error = nvrtc.nvrtcCompileProgram(program, num_options, options);
  print_messages(program);
  check("compile", error);
  check("size", nvrtc.nvrtcGetCUBINSize(program, &size));
  char* cubin = (char*)malloc(size);
  if (!cubin) refuse("cubin", "out of memory");
  check("cubin", nvrtc.nvrtcGetCUBIN(program, cubin));
  write_file("unit.cubin", cubin, size);
  static char all[64 * 1024];
  size_t used = 0;
  for (char** name = names; *name; name++) {
    const char* lowered = nullptr;
    check("lowered name",
          nvrtc.nvrtcGetLoweredName(program, *name, &lowered));
    int n = snprintf(all + used, sizeof all - used, "%s\n", lowered);
    if (n < 0 || (size_t)n >= sizeof all - used)
      refuse("mangled names of the kernels", "more than 64 KiB");
    used += (size_t)n;
  }
  write_file("unit.names", all, used);
  _exit(0);
}

}  // namespace ke
