// Names of places and threads, and what to say of a bad address.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>

#include "regions.h"

namespace ke {

namespace {

const char* verb_of(Kind kind) {
  return kind == kLoad ? "reads" : kind == kStore ? "writes" : "updates";
}

// `bytes` from `base` on; an address in front of it has a negative offset.
ptrdiff_t index_of(ptrdiff_t offset, size_t item_bytes) {
  ptrdiff_t item = (ptrdiff_t)item_bytes;
  return offset >= 0 ? offset / item : -((-offset + item - 1) / item);
}

}  // namespace

Text name_of_thread(const Thread* thread) {
  Text t;
  const uint3& i = thread->index;
  if (blockDim.z > 1)
    snprintf(t.text, sizeof t.text, "thread (%u,%u,%u)", i.x, i.y, i.z);
  else if (blockDim.y > 1)
    snprintf(t.text, sizeof t.text, "thread (%u,%u)", i.x, i.y);
  else
    snprintf(t.text, sizeof t.text, "thread %u", i.x);
  return t;
}

Text name_of_place(const char* address) {
  Text t;
  for (int i = 0; i < num_regions; i++) {
    const Region& r = regions[i];
    size_t offset = (size_t)(address - r.base);
    if (offset >= r.bytes) continue;
    if (r.scope == kBuffer)
      snprintf(t.text, sizeof t.text, "%s[%zu]", r.buffer->name,
               offset / r.buffer->item_bytes);
    else if (r.scope == kDynamicShared)
      snprintf(t.text, sizeof t.text, "dynamic shared memory at byte %zu",
               offset);
    else if (r.scope == kShared && r.bytes == r.shared->element_bytes)
      snprintf(t.text, sizeof t.text, "shared %s", r.shared->name);
    else if (r.scope == kShared)
      snprintf(t.text, sizeof t.text, "shared %s[%zu]", r.shared->name,
               offset / r.shared->element_bytes);
    else
      continue;
    return t;
  }
  Dl_info info;
  if (dladdr(address, &info) && info.dli_sname && info.dli_sname[0] != '_' &&
      address >= (const char*)info.dli_saddr)
    snprintf(t.text, sizeof t.text, "global variable %.100s", info.dli_sname);
  else
    snprintf(t.text, sizeof t.text, "a global or local variable");
  return t;
}

void out_of_bounds(const char* address, unsigned bytes, Kind kind, void* pc) {
  const char* verb = verb_of(kind);
  if ((size_t)address < 4096)
    fault(kOutOfBounds, pc, -1, "out of bounds: %s through a null pointer",
          verb);
  if (fibre_of_stack(address) >= 0)
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s the local memory of another thread", verb);
  size_t dynamic = (size_t)(address - ke_dynamic_arena);
  if (dynamic < kDynamicSharedBytes) {
    size_t given = 0;
    for (int i = 0; i < num_regions; i++)
      if (regions[i].scope == kDynamicShared) given = regions[i].bytes;
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s dynamic shared memory at byte %zu, but the launch "
          "gives smem=%zu bytes",
          verb, dynamic, given);
  }
  // Blame the region that ends or starts nearest.
  const Region* nearest = nullptr;
  size_t least = 1 << 18;
  for (int i = 0; i < num_regions; i++) {
    const Region& r = regions[i];
    if (r.scope != kBuffer && r.scope != kShared) continue;
    size_t distance = address < r.base ? (size_t)(r.base - address)
                                       : (size_t)(address - r.base) - r.bytes;
    if (r.scope == kShared && distance > kSharedGap) continue;
    if (distance < least) {
      least = distance;
      nearest = &r;
    }
  }
  if (!nearest)
    fault(kOutOfBounds, pc, -1,
          "out of bounds: %s %u bytes at address 0x%zx, far outside of every "
          "buffer",
          verb, bytes, (size_t)address);
  const Region& r = *nearest;
  bool is_buffer = r.scope == kBuffer;
  const char* name = is_buffer ? r.buffer->name : r.shared->name;
  size_t item = is_buffer ? r.buffer->item_bytes : r.shared->element_bytes;
  fault(kOutOfBounds, pc, -1,
        "out of bounds: %s %s%s[%td], but %s has %zu element%s", verb,
        is_buffer ? "" : "shared ", name, index_of(address - r.base, item),
        name, r.bytes / item, r.bytes / item == 1 ? "" : "s");
}

void misaligned(const char* address, unsigned bytes, Kind kind, void* pc) {
  fault(kMisaligned, pc, -1,
        "misaligned: %s %u bytes at %s, an address that is not a multiple of "
        "%u",
        verb_of(kind), bytes, name_of_place(address).text, bytes);
}

}  // namespace ke
