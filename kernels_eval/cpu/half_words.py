"""Whether a text needs the declarations of the 16-bit floats.

They take a third of the time that the device headers take, and they bring the
plain names `half` and `half2`, which a text without them may give to something
of its own: `int half = n / 2`.
"""

import re
from collections.abc import Iterable

from kernels_eval import source

_HEADER = re.compile(r"#\s*include\s*[<\"]cuda_(?:fp|bf)16\.")
# Names that only those headers have, and the two plain ones.
_OWN = re.compile(
  r"__\w*(?:half|bfloat16|bf16)\w*|make_b?(?:half|float16)2|nv_bfloat16\w*"
  r"|make_bfloat162|CUDART_\w+_(?:FP|BF)16"
)
_PLAIN = ("half", "half2")
# In front of a type; what stands behind any other word is being declared.
_NO_TYPE = frozenset(
  """return const volatile static inline extern constexpr case sizeof alignof
  typename new else do goto operator __device__ __global__ __host__ __constant__
  __shared__ __forceinline__ __noinline__ __restrict__ __inline__ register
  mutable virtual explicit friend typedef""".split()
)
_BEHIND_A_NAME = ("(", "=", ";", ",", "[", ")", "{", ">", ":", "+=", "-=")


def _declares(tokens, i):
  """Whether the plain name at i is one that the text declares."""
  following = tokens[i + 1].text if i + 1 < len(tokens) else ""
  before = tokens[i - 1] if i else None
  # A type is never assigned to, nor the last of a list.
  if following == "=" or (before and before.text == "," and following == ";"):
    return True
  if before is None or following not in _BEHIND_A_NAME:
    return False
  return (before.kind == "name" and before.text not in _NO_TYPE) or (
    before.text in ("*", "&") and following != ">"
  )


def _words(tokens) -> Iterable[list[source.Token]]:
  """The tokens of the text, and those of each preprocessor line."""
  yield [t for t in tokens if t.kind != "directive"]
  for token in tokens:
    if token.kind == "directive":
      yield source.code(" " + token.text[1:])


def needed(text: str) -> bool:
  """Whether the text uses 16-bit floats, as far as its words show."""
  if "half" not in text and "16" not in text:
    return False
  used, declared = set(), set()
  tokens = source.code(text)
  if any(t.kind == "directive" and _HEADER.match(t.text) for t in tokens):
    return True
  for words in _words(tokens):
    for i, token in enumerate(words):
      if token.kind != "name":
        continue
      if _OWN.fullmatch(token.text):
        return True
      if token.text in _PLAIN:
        used.add(token.text)
        if _declares(words, i):
          declared.add(token.text)
  return bool(used - declared)
