"""compute-sanitizer's texts to findings."""

import pytest

from kernels_eval.cuda import sanitizer_log
from tests.kernels_eval.sanitizer_texts import OUT_OF_BOUNDS, RACE

_MISALIGNED_IN_A_HEADER = """\
========= Invalid __shared__ write of size 16 bytes
=========     at __half2_store()+0x50 in /usr/include/cuda_fp16.hpp:1234
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f02 is misaligned
=========         Device Frame: k(float *)+0x30 in /tmp/a/kernel.cu:5
========= ERROR SUMMARY: 1 error
"""
_HAZARD = """\
========= Warning: (Warp Level Programming) Potential RAW hazard detected at \
__shared__ 0x8c in block (3,0,0) :
=========     Write Thread (35,0,0) at k(int *)+0x90 in kernel.cu:14
=========     Read Thread (32,0,0) at k(int *)+0x120 in kernel.cu:16
=========     Current Value : 35
"""


def test_an_access_out_of_bounds():
  finding = sanitizer_log.read(OUT_OF_BOUNDS)
  assert finding.kind == "out_of_bounds"
  assert finding.line == 7
  assert (finding.thread, finding.block) == ((33, 1, 0), (2, 0, 5))
  assert finding.message == (
    "invalid __global__ read of size 4 bytes: the address is out of bounds"
  )


def test_the_line_is_the_candidates_not_a_headers():
  finding = sanitizer_log.read(_MISALIGNED_IN_A_HEADER)
  assert (finding.kind, finding.line) == ("misaligned", 5)


def test_one_with_a_line_comes_before_one_without():
  without = OUT_OF_BOUNDS.replace(" in kernel.cu:7", "").replace(
    " in kernel.cu:12", ""
  )
  assert sanitizer_log.read(without).line == 99
  without = without.replace(" in kernel.cu:99", "")
  finding = sanitizer_log.read(without)
  assert finding.line is None and finding.thread == (33, 1, 0)


def test_a_race_names_both_lines():
  finding = sanitizer_log.read(RACE)
  assert (finding.kind, finding.line) == ("data_race", 4)
  assert finding.message == (
    "race in shared memory between write in line 4 and read in line 5 and "
    "write in line 8"
  )


def test_a_hazard_names_both_threads():
  finding = sanitizer_log.read(_HAZARD)
  assert (finding.kind, finding.line) == ("data_race", 14)
  assert (finding.thread, finding.block) == ((35, 0, 0), (3, 0, 0))
  assert "read of thread (32, 0, 0) in line 16" in finding.message


@pytest.mark.parametrize(
  "log",
  [
    "",
    "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
    "========= Program hit CUDA_ERROR_ILLEGAL_ADDRESS (error 700) due to "
    '"an illegal memory access" on CUDA API call to cuStreamSynchronize.\n',
    "Invalid __global__ write of size 4 bytes\n     at k() in kernel.cu:3\n",
    "=========",
  ],
)
def test_nothing_found(log):
  assert sanitizer_log.read(log) is None


def test_the_last_words_are_the_summary():
  words = sanitizer_log.last_words(RACE)
  assert words.startswith(": RACECHECK SUMMARY: 1 hazard")
  assert sanitizer_log.last_words("========= a\nprinted\n=========\n") == ": a"
  assert sanitizer_log.last_words("printed\n=========\n") == ""
