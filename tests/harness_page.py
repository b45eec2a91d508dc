"""docs/harness.md, for the tests of what it says."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "harness.md").read_text()


def blocks(language):
  """Texts of the fenced blocks of one language."""
  return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


def table(heading):
  """Cells of the first table behind a heading."""
  text = PAGE[PAGE.index(f"\n{heading}\n") :]
  rows = re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()[2:]
  return [[cell.strip() for cell in r.strip("|").split(" | ")] for r in rows]
