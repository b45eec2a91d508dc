"""Names of the kernels of `helpers.cu`, which have C linkage."""

from kernels_eval import dtypes

SCRUB = "ke_scrub_shared"
NAMES = (
  SCRUB,
  *(f"ke_draw_{n}" for n in (1, 2, 4, 8)),
  *(f"ke_compare_{name}" for name in dtypes.DTYPES),
  "ke_digest",
  "ke_count_changed",
)
