"""Makes all that is generated in README and docs, from committed files alone.

    python -m experiments.regenerate [--check]

Tables between markers, headline.json where its runs are there, and pictures.
--check writes nothing, says which tables are stale, and ends with status 1 if
any is. (Pictures are not compared: their bytes depend on the version of the
library that draws.)
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from experiments import (
  comparison,
  headline,
  intervals,
  plots,
  records,
  rows,
  tables,
)
from experiments.bench import table as bench_table

ROOT = pathlib.Path(__file__).parents[1]
_RESULTS = ROOT / "experiments" / "results"
PLOTS = ROOT / "docs" / "plots"
"""A folder for each of the results."""


class Block(NamedTuple):
  """What stands between two markers of a page."""

  page: pathlib.Path
  markers: tuple[str, str]
  make: Callable[[], str]


def _of_sweep(page: str, results: str, table: str) -> Block:
  def make():
    runs = records.load(
      _RESULTS / results, rows.TABLES[table], allow_mixed=False
    )
    draws = intervals.draw(runs) if any(runs.values()) else None
    return comparison.markdown(table, runs, draws)

  return Block(ROOT / page, tables.markers(table), make)


def headline_record() -> dict | None:
  """headline.json as its runs give it now; None where there are none."""
  folder = _RESULTS / headline.FOLDER
  if not folder.is_dir():
    return None
  return headline.record_of(folder, allow_mixed=False)


_README = ROOT / "README.md"
BLOCKS = (
  Block(
    _README,
    tables.markers("headline"),
    lambda: headline.markdown(headline_record()),
  ),
  Block(
    _README,
    (tables.BEGIN, tables.END),
    lambda: tables.markdown(tables.load(tables.RESULTS)),
  ),
  Block(
    _README,
    (bench_table.BEGIN, bench_table.END),
    lambda: bench_table.markdown(bench_table.load(bench_table.RESULTS)),
  ),
  *(
    _of_sweep("docs/results.md", "tables_tiny", table)
    for table in ("main", "cost", "time", "feedback", "dcp", "reward")
  ),
  _of_sweep("docs/results.md", "tables_tiny_credit", "credit"),
  *(
    _of_sweep("docs/results.md", "tables_tiny_revisits", table)
    for table in ("sampling", "smoothing")
  ),
  _of_sweep("docs/headline.md", headline.FOLDER, "headline"),
  *(
    _of_sweep("docs/transfer.md", "functions_tiny", table)
    for table in ("main", "feedback")
  ),
)
# Pictures that pages show: results, table, which of plots.PICTURES.
PICTURES = (
  (headline.FOLDER, "headline", "accuracy"),
  ("tables_tiny", "main", "accuracy"),
  ("tables_tiny", "main", "step_time"),
  ("tables_tiny", "dcp", "gate"),
)


def shown(block: Block) -> str:
  """What its page has between the markers.

  Raises:
    TableError: the page has no such markers.
  """
  return tables.between(block.page, *block.markers)


def _check() -> int:
  stale = [block for block in BLOCKS if shown(block) != block.make()]
  for block in stale:
    print(f"{block.page}: {block.markers[0]} is stale")
  path = _RESULTS / headline.FILE
  kept = json.loads(path.read_text()) if path.exists() else None
  if kept != headline_record():
    print(f"{path} is stale")
    return 1
  return 1 if stale else 0


def _write() -> int:
  record = headline_record()
  if record is not None:
    (_RESULTS / headline.FILE).write_text(headline.text(record))
  for block in BLOCKS:
    if tables.write(block.page, block.make(), *block.markers):
      print(f"{block.page}: {block.markers[0]}")
  for results, table, picture in PICTURES:
    runs = records.load(
      _RESULTS / results, rows.TABLES[table], allow_mixed=False
    )
    if not any(runs.values()):
      print(f"{picture} of {results}: not run, the picture is as it was")
      continue
    folder = PLOTS / results
    print(plots.draw_one(folder, table, picture, runs, intervals.draw(runs)))
  return 0


def main(argv: Sequence[str]) -> int:
  """Writes or checks."""
  parser = argparse.ArgumentParser(
    prog="python -m experiments.regenerate",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  parser.add_argument("--check", action="store_true")
  arguments = parser.parse_args(argv)
  try:
    return _check() if arguments.check else _write()
  except (tables.TableError, OSError) as error:
    print(f"experiments.regenerate: {error}", file=sys.stderr)
    return 2


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
