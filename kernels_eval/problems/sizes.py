"""Shapes of cases that several topics share.

The first is as simple as can be, since it is the first failure that a policy
sees. The others are odd, prime, one element wide or just beyond a block, so
that a kernel without bounds or for multiples of 32 only is found out. There is
one more than there are distributions (`inputs.DEFAULT`): shapes and
distributions go in step, and the first distribution would otherwise meet
nothing but the smallest shape.
"""


def of(names: str, *sizes: tuple[int, ...]) -> tuple[dict[str, int], ...]:
  """Dimensions of some cases: `of("rows cols", (1, 1), (5, 3))`."""
  return tuple(dict(zip(names.split(), s, strict=True)) for s in sizes)


VECTOR = of("n", (1,), (33,), (256,), (1000,), (31,), (2049,), (4099,))
ROWS = of(
  "rows cols", (1, 1), (3, 7), (5, 64), (33, 3), (2, 257), (9, 130), (2, 1500)
)
MATRIX = of(
  "rows cols", (1, 1), (5, 3), (32, 32), (1, 257), (130, 2), (33, 65), (67, 41)
)
MATMUL = of(
  "m n k",
  (1, 1, 1),
  (5, 3, 7),
  (16, 16, 16),
  (33, 17, 65),
  (1, 40, 9),
  (31, 1, 130),
  (37, 41, 50),
)
PLANES = of(
  "planes height width",
  (1, 1, 1),
  (2, 3, 5),
  (3, 16, 16),
  (1, 17, 40),
  (5, 1, 33),
  (2, 31, 32),
  (3, 33, 19),
)
