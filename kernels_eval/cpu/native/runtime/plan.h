// What the judge asks for and what the run answers, in one shared mapping.
//
// The judge writes a Plan and its tables at offset 0, then the buffers, each on
// its own pages. The run child executes the plan and fills in the Report.
// cpu/protocol.py packs the same layout; change both together.
#pragma once
#include <stdint.h>

namespace ke {

constexpr uint32_t kMagic = 0x4b455031;  // "KEP1"
constexpr int kNameBytes = 32;
constexpr int kTextBytes = 512;

enum Role : uint32_t { kInput = 0, kOutput = 1, kScratch = 2 };

struct Buffer {
  uint64_t offset;  // bytes from the start of the mapping, page aligned
  uint64_t bytes;
  uint32_t role;
  uint32_t item_bytes;
  char name[kNameBytes];
};

struct Argument {
  uint32_t is_buffer;
  uint32_t buffer;  // index within the case
  uint64_t bits;    // scalar value, low bytes first
};

struct Launch {
  uint32_t entry;  // calls ke_launch_<entry>
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t dynamic_shared_bytes;
  uint32_t first_argument, num_arguments;
};

struct Case {
  uint32_t first_launch, num_launches;
  uint32_t first_buffer, num_buffers;
};

enum State : uint32_t { kNotStarted = 0, kRunning, kFinished, kFaulted };

enum Fault : uint32_t {
  kNoFault = 0,
  kOutOfBounds,
  kMisaligned,
  kInputModified,
  kUninitialized,
  kDataRace,
  kDivergentBarrier,
  kDivergentWarp,
  kDivisionByZero,
  kStackOverflow,
  kBadAddress,
  kTrap,
  kAssertion,
  kSharedLimit,
  kAccessLimit,
  kUnreachable,
  kLoadFailed,
  kReservedName,
  kOtherSignal,
  kMachine,  // no memory for records of ours, say; before the candidate starts
};

struct Report {
  uint32_t state;
  uint32_t case_index;
  uint32_t fault;
  int32_t line;  // of the candidate, or -1: then resolve module_offset
  uint64_t module_offset;
  uint32_t thread[3], block[3];
  uint32_t shared_bytes;  // largest static use of any block
  uint32_t printf_bytes;
  char text[kTextBytes];
};

struct Plan {
  uint32_t magic;
  uint32_t num_cases, num_launches, num_arguments, num_buffers;
  uint32_t static_shared_limit_bytes;
  uint64_t access_limit;
  uint64_t total_bytes;
  uint64_t cases_offset, launches_offset, arguments_offset, buffers_offset;
  uint64_t report_offset;
  uint64_t printf_offset, printf_capacity;
};

}  // namespace ke
