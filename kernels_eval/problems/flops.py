"""Least arithmetic of matrix products: what no right kernel can do without.

A floor under measured times must never convict an honest kernel, so it has to
hold for algorithms that nobody would use. Proven bounds (some 3 n^2
multiplications for n x n) say nothing. Counted here is less than any known
algorithm needs that fits matrices of a few thousand rows:

- Strassen's saves an eighth of the multiplications with each halving of the
  sides (n^2.807); the best known that fits is Pan's with n^2.773 ("Trilinear
  aggregating with implicit canceling", 1982). Counted is n^2.75 down to blocks
  of 64: of 1024 x 1024 one half, as after five halvings. Further ones do not
  pay: Strassen's additions grow by 7/4 each time, tensor cores cannot do them,
  and then they take as long as the multiplications that are left. They are not
  counted at all.
- What is known of the answer without computing it (symmetry, zeros behind a
  rectifier, a mask) is taken off by the problem.

Inputs of timed calls are random: they have no structure that would save more.
How fast it can be done, in what precision: `cuda/floor.py`.
"""

_BLOCK = 64
_SAVED_EXPONENT = 0.25  # 3 - 2.75


def product(m: int, n: int, k: int) -> float:
  """Multiplications and additions of [m, k] times [k, n], at least."""
  halved = max(min(m, n, k), _BLOCK) / _BLOCK
  return 2 * m * n * k * halved**-_SAVED_EXPONENT
