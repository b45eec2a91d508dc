"""Tokens, expressions and frames: the parts that read untrusted bytes."""

import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels_eval import expressions, frames, source


def _kinds(text):
  return [(t.kind, t.text) for t in source.tokens(text)]


def test_kinds_of_tokens():
  text = (
    "#define A 1 // x\nint a = 0x1p-3f + 1'000; /* b\n */ \"s\\\"\" 'c' <<<"
  )
  assert _kinds(text) == [
    ("directive", "#define A 1 // x"),
    ("name", "int"),
    ("name", "a"),
    ("mark", "="),
    ("number", "0x1p-3f"),
    ("mark", "+"),
    ("number", "1'000"),
    ("mark", ";"),
    ("comment", "/* b\n */"),
    ("string", '"s\\""'),
    ("string", "'c'"),
    ("mark", "<<<"),
  ]


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    # Continued lines: comments, names, directives.
    ("// a \\\nb\nc", [("comment", "// a b"), ("name", "c")]),
    ("// a \\ \t\nb", [("comment", "// a b")]),
    ("a\\\nb", [("name", "ab")]),
    ("/\\\n/ a\nb", [("comment", "// a"), ("name", "b")]),
    ("#d\\\nefine X \\\n y\nz", [("directive", "#define X  y"), ("name", "z")]),
    # What looks like a comment or a directive and is none.
    ('"//" a', [("string", '"//"'), ("name", "a")]),
    ("'\"' // \"", [("string", "'\"'"), ("comment", '// "')]),
    ("#define Q '\"' \"/*\"\nb", [("directive", "#define Q '\"' \"/*\""),
                                  ("name", "b")]),
    ("a # b", [("name", "a"), ("mark", "#"), ("name", "b")]),
    ("/* */ # b", [("comment", "/* */"), ("directive", "# b")]),
    ("#if /* a\n b */ 1\nc", [("directive", "#if /* a\n b */ 1"),
                              ("name", "c")]),
    ('R"x(a)" b)x" c', [("string", 'R"x(a)" b)x"'), ("name", "c")]),
    # Unfinished.
    ("/* a", [("comment", "/* a")]),
    ('"a\nb', [("string", '"a'), ("name", "b")]),
    ("größe_2", [("name", "größe_2")]),
    ("a$b @", [("name", "a$b"), ("mark", "@")]),
  ],
)  # fmt: skip
def test_tokens(text, expected):
  assert _kinds(text) == expected


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1 \n\\/*\"'#R()<>=.;\t$\u00e9", max_size=60))
def test_tokens_cover_the_text_in_order(text):
  """Every character but white space and joined line ends is in one token."""
  end = 0
  for token in source.tokens(text):
    assert token.start >= end
    assert not text[end : token.start].replace("\\", "").strip()
    assert token.text
    end = token.end
  assert not text[end:].replace("\\", "").strip()


def test_lines():
  lines = source.Lines("ab\n\nc")
  assert [lines.at(i) for i in (0, 2, 3, 4)] == [1, 1, 2, 3]


DIMS = {"n": 10, "rows": 3}


@pytest.mark.parametrize(
  ("text", "value"),
  [
    ("1 + 2 * n", 21), ("(1 + 2) * n", 30), ("n // 3", 3), ("-n // 3", -4),
    ("n % 4 - rows", -1), ("ceil_div(n, 4)", 3), ("next_pow2(n)", 16),
    ("next_pow2(0)", 1), ("min(n, rows) + max(n, rows)", 13), ("--n", 10),
    ("10 - 4 - 3", 3), ("2 * -3", -6), ("next_pow2(16)", 16),
  ],
)  # fmt: skip
def test_expressions(text, value):
  assert expressions.value_of(text, DIMS) == value


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("", "empty"), ("n +", "expected more"), ("n n", "unexpected `n`"),
    ("m", "no dimension `m`"), ("row", "did you mean `rows`?"),
    ("n / 2", "ceil_div"), ("n // 0", "division by zero"),
    ("n % (n - 10)", "modulo by zero"), ("ceil_div(1, 0)", "ceil_div by zero"),
    ("min(1)", "takes 2 arguments"), ("f(1)", "no function `f`"),
    ("9" * 20, "20 digits"), ("9" * 19, "19 digits"),
    ("9223372036854775807 + 1", "beyond 64 bits"),
    ("next_pow2(9223372036854775807)", "too large"),
    ("(" * 40 + "1" + ")" * 40, "nested deeper"), ("-" * 40 + "1", "nested"),
    ("1" + "+1" * 200, "characters"), ("__import__('os')", "unexpected"),
    ("n.real", "unexpected '.'"), ("n[0]", "unexpected '['"),
    ("2 ** 9", "unexpected `*`"), ("\u0663", "unexpected"),
  ],
)  # fmt: skip
def test_expressions_that_are_refused(text, words):
  with pytest.raises(expressions.ExpressionError, match=".*") as caught:
    expressions.value_of(text, DIMS)
  assert words in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="n12+-*/%(), minmaxceil_dv", max_size=40))
def test_expressions_never_raise_anything_else(text):
  try:
    value = expressions.value_of(text, DIMS)
  except expressions.ExpressionError as error:
    assert "\n" not in str(error)
  else:
    assert isinstance(value, int)
    assert abs(value) <= expressions.MAX_VALUE


class _Slow(io.RawIOBase):
  """A pipe that gives and takes a few bytes at a time."""

  def __init__(self):
    self.data = bytearray()

  def read(self, count=-1):
    part = bytes(self.data[: min(count, 3)])
    del self.data[: len(part)]
    return part

  def write(self, data):
    part = bytes(data[:2])
    self.data += part
    return len(part)


def test_frames_survive_partial_reads_and_writes():
  pipe = _Slow()
  frames.write(pipe, b"hello world")
  frames.write(pipe, b"")
  assert frames.read(pipe) == b"hello world"
  assert frames.read(pipe) == b""
  assert frames.read(pipe) is None


@pytest.mark.parametrize(
  "data",
  [b"\x01", b"\x05\0\0\0abc", struct.pack("<I", frames.MAX_BYTES + 1)],
)
def test_broken_frames(data):
  with pytest.raises(frames.FrameError):
    frames.read(io.BytesIO(data))


def test_frames_that_are_too_long_are_not_sent():
  pipe = io.BytesIO()
  with pytest.raises(frames.FrameError):
    frames.write(pipe, b"x" * (frames.MAX_BYTES + 1))
  assert pipe.getvalue() == b""


@settings(max_examples=100, deadline=None)
@given(st.lists(st.binary(max_size=20), max_size=5), st.integers(0, 120))
def test_complete_frames_are_taken_as_they_arrive(payloads, cut):
  pipe = io.BytesIO()
  for payload in payloads:
    frames.write(pipe, payload)
  data = pipe.getvalue()
  received = bytearray(data[:cut])
  first = frames.take(received)
  received += data[cut:]
  assert first + frames.take(received) == payloads
  assert not received
  with pytest.raises(frames.FrameError):
    frames.take(bytearray(struct.pack("<I", frames.MAX_BYTES + 1)))
