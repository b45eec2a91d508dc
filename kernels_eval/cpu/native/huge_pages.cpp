// Huge pages for a compiler, whose children otherwise spend a tenth of their
// time in page faults: a fork does not hand on the mappings of a file's pages.
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host.h"

namespace ke {

namespace {

constexpr uintptr_t kHuge = 2u << 20, kSmall = 4096;

uintptr_t round_up(uintptr_t n) { return (n + kHuge - 1) / kHuge * kHuge; }

long num_faults() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// Whether this block, which nobody has touched, comes as one page.
bool is_huge(char* block) {
  long before = num_faults();
  for (uintptr_t i = 0; i < kHuge; i += kSmall)
    ((volatile char*)block)[i] = 0;
  return num_faults() - before < 8;
}

// Puts a copy in the place of whole blocks that nobody writes to. True: there
// is more to gain.
bool replace(uintptr_t begin, uintptr_t end, int protection) {
  begin = round_up(begin);
  end = end / kHuge * kHuge;
  if (begin >= end) return true;
  size_t size = end - begin;
  char* memory = (char*)mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == (char*)MAP_FAILED) return false;
  char* copy = (char*)round_up((uintptr_t)memory);
  bool works = madvise(copy, size, MADV_HUGEPAGE) == 0 && is_huge(copy);
  if (works) {
    memcpy(copy, (char*)begin, size);
    works = mprotect(copy, size, protection) == 0 &&
            mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
                   (void*)begin) != MAP_FAILED;
    __builtin___clear_cache((char*)begin, (char*)end);
  }
  // What has moved is no longer there.
  munmap(memory, size + kHuge);
  return works;
}

int visit(dl_phdr_info* info, size_t, void* address) {
  if (info->dlpi_addr != *(uintptr_t*)address) return 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || part.p_flags & PF_W) continue;
    uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    int protection = PROT_READ | (part.p_flags & PF_X ? PROT_EXEC : 0);
    if (!replace(begin, begin + part.p_memsz, protection)) break;
  }
  return 1;
}

}  // namespace

void code_to_huge_pages(void* library) {
  link_map* map = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &map)) return;
  uintptr_t address = map->l_addr;
  dl_iterate_phdr(visit, &address);
}

void heap_to_huge_pages() {
  constexpr size_t kBytes = 8u << 20;  // about what a plain compilation takes
  // All of it from the heap, and kept there.
  mallopt(M_MMAP_THRESHOLD, 2 * kBytes);
  mallopt(M_TRIM_THRESHOLD, 2 * kBytes);
  void* memory = malloc(kBytes);
  if (!memory) return;
  uintptr_t begin = round_up((uintptr_t)memory);
  uintptr_t end = ((uintptr_t)memory + kBytes) / kHuge * kHuge;
  madvise((void*)begin, end - begin, MADV_HUGEPAGE);
  free(memory);
}

}  // namespace ke
