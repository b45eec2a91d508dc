"""NumPy functions that references of several topics share.

Like every reference they stay in the precision of their arguments: `compare`
learns from a float32 run what single precision loses.
"""

import numpy as np


def sigmoid(x: np.ndarray) -> np.ndarray:
  """1 / (1 + exp(-x)), with exp of negative numbers only."""
  e = np.exp(-np.abs(x))
  return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def gelu(x: np.ndarray) -> np.ndarray:
  """GELU in its tanh form."""
  inner = 0.7978845608 * (x + 0.044715 * x * x * x)
  return 0.5 * x * (1 + np.tanh(inner))


def softmax(x: np.ndarray) -> np.ndarray:
  """Softmax of each row."""
  e = np.exp(x - x.max(axis=1, keepdims=True))
  return e / e.sum(axis=1, keepdims=True)


def log_softmax(x: np.ndarray) -> np.ndarray:
  """Logarithm of the softmax of each row."""
  shifted = x - x.max(axis=1, keepdims=True)
  return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
