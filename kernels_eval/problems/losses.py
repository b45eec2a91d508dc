"""Losses of training."""

from kernels_eval.problems import inputs, sizes
from kernels_eval.problems.reference import log_softmax
from kernels_eval.problems.spec import Problem, Scalar, Tensor

# At least two columns: with one, every result is 0.
_ROWS = ((2, 3), (3, 7), (5, 64), (33, 3), (4, 257), (9, 130), (3, 1200))
_BLOCK_PER_ROW = "grid=(rows) block=(256)"


def _huber_loss(prediction, target, delta, xp):
  size = xp.abs(prediction - target)
  return xp.where(
    size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)
  )


def _cross_entropy(logits, label, xp):
  return -log_softmax(logits, xp)[xp.arange(len(label)), label]


def _kl_divergence(x, y, xp):
  log_p, log_q = log_softmax(x, xp), log_softmax(y, xp)
  return (xp.exp(log_p) * (log_p - log_q)).sum(axis=1)


PROBLEMS = (
  Problem(
    name="mse_loss",
    level=2,
    statement="Mean squared error as one number: out[0] = (sum over i < n of "
    "(prediction[i] - target[i])^2) / n.",
    dims=("n",),
    inputs=(Tensor("prediction", ("n",)), Tensor("target", ("n",))),
    outputs=(Tensor("out", ("1",)),),
    reference=lambda prediction, target, xp: (
      xp.square(prediction - target).mean().reshape(1)
    ),
    launch="grid=(1) block=(256)",
    shapes=sizes.VECTOR,
  ),
  Problem(
    name="huber_loss",
    level=1,
    statement="Huber loss of every element: with d = |prediction[i] - "
    "target[i]|, out[i] = 0.5 * d^2 if d <= delta, and out[i] = delta * (d - "
    "0.5 * delta) otherwise, for every i < n.",
    dims=("n",),
    inputs=(Tensor("prediction", ("n",)), Tensor("target", ("n",))),
    outputs=(Tensor("out", ("n",)),),
    reference=_huber_loss,
    launch="grid=(ceil_div(n, 256)) block=(256)",
    shapes=sizes.VECTOR,
    # In step with the distributions, so that both branches are taken.
    scalars=(Scalar("delta", (1.0, 0.5, 0.6, 2.0, 0.001, 40.0, 1.5)),),
  ),
  Problem(
    name="cross_entropy",
    level=3,
    statement="Cross entropy of every row of the row-major matrix "
    "logits[rows][classes] with a class number: out[r] = m + log(sum over c < "
    "classes of exp(logits[r][c] - m)) - logits[r][label[r]], where m is the "
    "largest element of row r. Every label[r] is from 0 to classes - 1.",
    dims=("rows", "classes"),
    inputs=(
      Tensor("logits", ("rows", "classes")),
      Tensor("label", ("rows",), "int32", fill=inputs.indices("classes")),
    ),
    outputs=(Tensor("out", ("rows",)),),
    reference=_cross_entropy,
    launch=_BLOCK_PER_ROW,
    shapes=sizes.of("rows classes", *_ROWS),
    # Not the small ones: log(classes) alone would be near enough.
    distributions=("normal", "uniform", "negative", "integers", "large"),
  ),
  Problem(
    name="kl_divergence",
    level=3,
    statement="Kullback-Leibler divergence between the softmaxes of matching "
    "rows of the row-major matrices x[rows][cols] and y[rows][cols]: with p = "
    "softmax(x[r]) and q = softmax(y[r]), out[r] = sum over c < cols of p[c] * "
    "(log p[c] - log q[c]). Work with log p[c] = x[r][c] - m - log(sum over k "
    "of exp(x[r][k] - m)), m being the largest element of the row, so that "
    "nothing overflows.",
    dims=("rows", "cols"),
    inputs=(Tensor("x", ("rows", "cols")), Tensor("y", ("rows", "cols"))),
    outputs=(Tensor("out", ("rows",)),),
    reference=_kl_divergence,
    launch=_BLOCK_PER_ROW,
    shapes=sizes.of("rows cols", *_ROWS),
    # Not the small ones: there the divergence is a millionth of its terms.
    distributions=("normal", "uniform", "negative", "integers", "large"),
  ),
)
