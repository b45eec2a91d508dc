"""Functions that references of several topics share.

Like every reference they stay in the precision of their arguments, since
`compare` learns from a float32 run what single precision loses, and name the
functions of arrays by `xp`, which is NumPy or has its names.
"""

from types import ModuleType

import numpy as np


def sigmoid(x: np.ndarray, xp: ModuleType) -> np.ndarray:
  """1 / (1 + exp(-x)), with exp of negative numbers only."""
  e = xp.exp(-xp.abs(x))
  return xp.where(x >= 0, 1 / (1 + e), e / (1 + e))


def gelu(x: np.ndarray, xp: ModuleType) -> np.ndarray:
  """GELU in its tanh form."""
  inner = 0.7978845608 * (x + 0.044715 * x * x * x)
  return 0.5 * x * (1 + xp.tanh(inner))


def softmax(x: np.ndarray, xp: ModuleType) -> np.ndarray:
  """Softmax of each row."""
  e = xp.exp(x - x.max(axis=1, keepdims=True))
  return e / e.sum(axis=1, keepdims=True)


def log_softmax(x: np.ndarray, xp: ModuleType) -> np.ndarray:
  """Logarithm of the softmax of each row."""
  shifted = x - x.max(axis=1, keepdims=True)
  return shifted - xp.log(xp.exp(shifted).sum(axis=1, keepdims=True))
