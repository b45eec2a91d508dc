// Files and failures of a compilation in a child of the host process.
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host.h"

namespace ke {

[[noreturn]] inline void compiler_fault(const char* what, int code) {
  dprintf(2, "%s: error %d\n", what, code);
  _exit(kCompilerFault);
}

inline void write_file(const char* path, const char* data, size_t size) {
  int f = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (f < 0) compiler_fault("open", 0);
  while (size) {
    ssize_t n = write(f, data, size);
    if (n <= 0) compiler_fault("write", 0);
    data += n;
    size -= (size_t)n;
  }
  close(f);
}

// The file's bytes and a zero behind them.
inline char* read_file(const char* path, size_t* size) {
  int f = open(path, O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (f < 0 || fstat(f, &s)) compiler_fault("read", 0);
  *size = (size_t)s.st_size;
  char* text = (char*)malloc(*size + 1);
  ssize_t n = text ? read(f, text, *size) : -1;
  if (n != s.st_size) compiler_fault("read", 0);
  text[n] = 0;
  close(f);
  return text;
}

inline void print_log(const char* text, size_t size) {
  for (size_t at = 0; at < size;) {
    ssize_t n = write(2, text + at, size - at);
    if (n <= 0) break;
    at += (size_t)n;
  }
}

}  // namespace ke
