// A look at the candidate's library before it is loaded.
//
// Loading runs constructors, and names that the candidate defines itself could
// take the place of the run-time checks. Device code has neither. The text has
// been searched for the words already (cpu/translate.py), but a preprocessor
// can put words together; the symbols here are what came out of it.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime.h"

namespace ke {

namespace {

// Each `__constant__` variable has a section with this name and a number
// (device.h).
constexpr char kConstantSection[] = ".ke_constant.";

struct File : LibraryFile {
  template <class T>
  const T* at(size_t offset, size_t count) const {
    if (offset > size || count > (size - offset) / sizeof(T))
      fault(kLoadFailed, nullptr, -1, "the library is damaged");
    return (const T*)(bytes + offset);
  }
};

bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool is_reserved(const char* name) {
  if (starts_with(name, "ke_launch_")) return false;
  static const char* const prefixes[] = {"ke_", "__tsan_", "__ubsan_",
                                         "__wrap_"};
  for (const char* prefix : prefixes)
    if (starts_with(name, prefix)) return true;
  static const char* const names[] = {"threadIdx", "blockIdx", "blockDim",
                                      "gridDim"};
  for (const char* other : names)
    if (strcmp(name, other) == 0) return true;
  return false;
}

void examine_symbols(const File& file, const ElfW(Shdr) & table,
                     const ElfW(Shdr) & names) {
  size_t count = table.sh_size / sizeof(ElfW(Sym));
  const ElfW(Sym)* symbols = file.at<ElfW(Sym)>(table.sh_offset, count);
  const char* text = file.at<char>(names.sh_offset, names.sh_size);
  if (!names.sh_size || text[names.sh_size - 1])
    fault(kLoadFailed, nullptr, -1, "the library is damaged");
  for (size_t i = 0; i < count; i++) {
    const ElfW(Sym) & s = symbols[i];
    if (s.st_shndx == SHN_UNDEF || s.st_name >= names.sh_size) continue;
    if ((s.st_info & 15) == STT_GNU_IFUNC)
      fault(kLoadFailed, nullptr, -1, "`%s` is resolved at load time",
            text + s.st_name);
    if (is_reserved(text + s.st_name))
      fault(kReservedName, nullptr, -1,
            "`%.80s` is a name of the executor's own, which a kernel may not "
            "define",
            text + s.st_name);
  }
}

// Code that the loader would run besides constructors: `_init` of the text.
void examine_dynamic(const File& file, const ElfW(Shdr) & table) {
  size_t count = table.sh_size / sizeof(ElfW(Dyn));
  const ElfW(Dyn)* entries = file.at<ElfW(Dyn)>(table.sh_offset, count);
  for (size_t i = 0; i < count; i++)
    if (entries[i].d_tag == DT_INIT || entries[i].d_tag == DT_FINI)
      fault(kReservedName, nullptr, -1,
            "a function that runs when the kernel is loaded or unloaded; a "
            "device has none");
}

void add_constant(Constants* constants, const ElfW(Shdr) & section,
                  bool is_behind_another) {
  unsigned n = constants->num_runs;
  if (is_behind_another) {  // one run, with the gap between the two
    constants->bytes[n - 1] =
        section.sh_addr + section.sh_size - constants->offsets[n - 1];
    return;
  }
  if (n == Constants::kMaxRuns) return;
  constants->offsets[n] = section.sh_addr;
  constants->bytes[n] = section.sh_size;
  constants->num_runs++;
}

}  // namespace

LibraryFile open_library(const char* path) {
  int f = open(path, O_RDONLY | O_CLOEXEC);
  struct stat s;
  if (f < 0 || fstat(f, &s))
    fault(kMachine, nullptr, -1, "the compiled kernel is gone");
  LibraryFile file = {nullptr, (size_t)s.st_size};
  file.bytes =
      (const char*)mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, f, 0);
  close(f);
  if (file.bytes == (const char*)MAP_FAILED)
    fault(kMachine, nullptr, -1, "cannot map the compiled kernel");
  return file;
}

Constants examine_library(LibraryFile opened) {
  File file = {opened};
  Constants constants = {};
  const ElfW(Ehdr)* head = file.at<ElfW(Ehdr)>(0, 1);
  const ElfW(Shdr)* sections =
      file.at<ElfW(Shdr)>(head->e_shoff, head->e_shnum);
  if (head->e_shstrndx >= head->e_shnum)
    fault(kLoadFailed, nullptr, -1, "the library is damaged");
  const ElfW(Shdr) & names = sections[head->e_shstrndx];
  const char* text = file.at<char>(names.sh_offset, names.sh_size);
  size_t constructors = 0, variables = 0;
  int last_constant = -2;
  for (int i = 0; i < head->e_shnum; i++) {
    const ElfW(Shdr) & section = sections[i];
    if (section.sh_flags & SHF_ALLOC && section.sh_flags & SHF_WRITE)
      variables += section.sh_size;
    if (section.sh_name < names.sh_size &&
        names.sh_size - section.sh_name > sizeof kConstantSection &&
        starts_with(text + section.sh_name, kConstantSection)) {
      add_constant(&constants, section, last_constant == i - 1);
      last_constant = i;
    }
    if (section.sh_type == SHT_DYNAMIC) examine_dynamic(file, section);
    if (section.sh_type == SHT_INIT_ARRAY ||
        section.sh_type == SHT_PREINIT_ARRAY ||
        section.sh_type == SHT_FINI_ARRAY)
      constructors += section.sh_size / sizeof(void*);
    if ((section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) &&
        section.sh_link < head->e_shnum)
      examine_symbols(file, section, sections[section.sh_link]);
  }
  // One belongs to the instrumentation (it calls __tsan_init).
  if (constructors > 1)
    fault(kLoadFailed, nullptr, -1,
          "dynamic initialisation of a global variable is not possible on a "
          "device");
  if (variables > kMaxVariableBytes)
    fault(kLoadFailed, nullptr, -1,
          "the global variables take %zu bytes; at most %zu", variables,
          kMaxVariableBytes);
  munmap(const_cast<char*>(file.bytes), file.size);
  return constants;
}

}  // namespace ke
