"""What a text needs of the language beyond the plain part.

NVRTC reads its own declarations of textures, surfaces and the device runtime in
front of every text; `--minimal` leaves them out, which saves a tenth of the
time that a plain kernel takes. Only a text that cannot name them does without,
so that its errors are the ones that it would get with them.
"""

import re

from kernels_eval import source

_MINIMAL_SINCE = (12, 4)  # NVRTC's version
# Found by comparing which names of the toolkit's headers and of NVRTC are
# declared with and without the option (12.4, 12.9, 13.0 and 13.5); wider than
# what was found.
_OMITTED = re.compile(
  r"_*(?:cuda|CUDA(?!_ARCH__|CC__|CC_RTC__)|CU[a-z_]|tex|TEX|surf|SURF)\w*"
  r"|__nv_\w*(?:tex|surf)\w*|__CUDACC_RTC_MINIMAL__|libraryPropertyType\w*"
  r"|(?:MAJOR|MINOR)_VERSION|PATCH_LEVEL"
)
_OF_THE_PRELUDE = re.compile(
  r"CUDART_(?:INF|NAN|PI|MAX_NORMAL|MIN_DENORM)(?:_F)?"
)
# Headers that hold the same either way.
_PLAIN_INCLUDE = re.compile(
  r"#[ \t]*include[ \t]*[<\"](?:ke_\w+\.h|cuda_(?:fp|bf)16\.(?:h|hpp))[>\"]"
)
_READS_FILES = re.compile(r"\b(?:include(?:_next)?|import|embed|__has_\w+)\b")
# In a raw text, comments and strings included, for most have none of it.
_SUSPICIOUS = re.compile(
  r"cuda|CU[A-Za-z_]|tex|TEX|surf|SURF|libraryProp|_VERSION|PATCH_LEVEL|<<<|##"
)
_SPLICE = re.compile(r"\\[ \t\f\v]*\n")


def _words(tokens):
  """Names, with those of the preprocessor lines."""
  for token in tokens:
    if token.kind == "directive":
      yield from _words(source.code(" " + token.text[1:]))
    elif token.kind == "name":
      yield token.text


def _is_omitted(name):
  return _OMITTED.fullmatch(name) and not _OF_THE_PRELUDE.fullmatch(name)


def _without_plain_includes(text):
  """Lines joined; `%:` is another way to write `#`, which nobody follows."""
  joined = _SPLICE.sub("", text)
  return _PLAIN_INCLUDE.sub("", joined).replace("%:", "##")


def limits(program: str) -> bool:
  """Whether a text may name `std::numeric_limits`.

  Args:
    program: without the headers that are left out.
  """
  text = _without_plain_includes(program)
  return (
    "numeric_limits" in text
    or "##" in text
    or _READS_FILES.search(text) is not None
  )


def whole_language(unit: str) -> bool:
  """Whether a unit may name what `--minimal` omits.

  Args:
    unit: all that NVRTC reads but for headers.
  """
  text = _without_plain_includes(unit)
  if not (_SUSPICIOUS.search(text) or _READS_FILES.search(text)):
    return False
  tokens = source.code(text)
  directives = [t.text for t in tokens if t.kind == "directive"]
  return (
    any(t.text == "<<<" for t in tokens)
    or any("##" in d or "<<<" in d for d in directives)
    or any(map(_READS_FILES.search, directives))
    or any(map(_is_omitted, _words(tokens)))
  )


def options(unit: str, version: str) -> list[str]:
  """Those of NVRTC that shorten a unit's compilation and change nothing.

  Args:
    unit: all that NVRTC reads but for headers.
    version: NVRTC's.
  """
  number = tuple(map(int, version.split(".")))
  if number < _MINIMAL_SINCE or whole_language(unit):
    return []
  return ["--minimal"]
