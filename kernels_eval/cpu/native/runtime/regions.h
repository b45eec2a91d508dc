// The memory that a candidate may touch.
#pragma once
#include "order.h"

// As in device.h: one for each `__shared__` declaration, in the candidate.
struct ke_shared_record {
  const char* name;
  size_t bytes, element_bytes;
  int line;
  void* address;
  uint64_t block_serial;
  void* cells;
};

namespace ke {

enum Scope : uint8_t {
  kBuffer,  // of the current case
  kShared,
  kDynamicShared,
  kGlobal,  // `__device__` and `__constant__` variables
};

struct Region {
  char* base;
  size_t bytes;
  Cell* words;       // one for each four bytes, or null: never checked
  Cell* byte_cells;  // one for each byte, used where a word is split
  Scope scope;
  bool read_only;
  const Buffer* buffer;            // of kBuffer
  const ke_shared_record* shared;  // of kShared
  Since since;
};

constexpr int kMaxRegions = 160;
extern Region regions[kMaxRegions];
extern int num_regions;

constexpr size_t kDynamicSharedBytes = 128 * 1024;
constexpr size_t kSharedGap = 64;  // unused bytes on either side (device.h)

[[noreturn]] void out_of_bounds(const char* address, unsigned bytes, Kind kind,
                                void* pc);
[[noreturn]] void misaligned(const char* address, unsigned bytes, Kind kind,
                             void* pc);

}  // namespace ke

extern "C" char ke_dynamic_arena[ke::kDynamicSharedBytes];
