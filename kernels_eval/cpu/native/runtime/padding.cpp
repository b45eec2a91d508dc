// Loads of what nobody has written: a fault, or the padding of an object.
#include "regions.h"

namespace ke {

// A copy of an object reads its padding, which nobody ever writes. Padding is
// shorter than the object's alignment, so that something written lies in the
// same aligned piece; and an object with padding is at least twice as large as
// its alignment, which is 16 at most.
void unwritten(const char* address, const Access& a) {
  size_t piece = 1;
  while (piece < 16 && 4 * piece <= a.bytes) piece *= 2;
  const char* first = address - (size_t)address % piece;
  const char* last = first + piece;
  if (first < a.address) first = a.address;
  if (last > a.address + a.bytes) last = a.address + a.bytes;
  auto was_written = [&](const Region& r) {
    for (const char* p = first; p < last; p++) {
      size_t offset = (size_t)(p - r.base);
      const Cell& word = r.words[offset / 4];
      const Cell& c = word.is_split ? r.byte_cells[offset] : word;
      if (c.write.interval >= a.since.valid) return true;
    }
    return false;
  };
  for (int i = 0; i < num_regions; i++)
    if ((size_t)(a.address - regions[i].base) < regions[i].bytes &&
        was_written(regions[i]))
      return;
  uninitialized(address, a.is_shared, a.pc);
}

}  // namespace ke
