"""What is generated in README and docs, from committed files."""

import json
import pathlib
import re

import pytest

from experiments import headline, regenerate, tables

ROOT = pathlib.Path(__file__).parents[2]


def _name(block):
  return f"{block.page.name} {block.markers[0].split()[1]}"


@pytest.mark.parametrize("block", regenerate.BLOCKS, ids=_name)
def test_pages_show_what_is_generated(block):
  assert regenerate.shown(block) == block.make()


def test_every_marker_of_a_page_is_regenerated():
  known = {(block.page, block.markers) for block in regenerate.BLOCKS}
  found = {
    (page, tables.markers(name))
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    for name in re.findall(r"<!-- (\w+) table: begin -->", page.read_text())
  }
  assert found == known


def test_every_picture_of_a_page_is_regenerated():
  shown = {
    (page.parent / path).resolve()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
    for path in re.findall(r"!\[[^]]*\]\(([^)]+\.png)\)", page.read_text())
  }
  made = {
    regenerate.PLOTS / results / f"{table}_{name}.png"
    for results, table, name in regenerate.PICTURES
  }
  assert shown == made == set((ROOT / "docs").rglob("*.png"))


def test_the_kept_headline_is_that_of_its_runs():
  """Either both are there or neither is."""
  path = ROOT / "experiments" / "results" / headline.FILE
  kept = json.loads(path.read_text()) if path.exists() else None
  assert kept == regenerate.headline_record()


def test_results_that_are_not_there_are_not_run(monkeypatch, tmp_path):
  monkeypatch.setattr(regenerate, "_RESULTS", tmp_path)
  block = regenerate._of_sweep("docs/headline.md", headline.FOLDER, "headline")
  assert "| **LEAP** | not run |" in block.make()


def test_a_stale_page_is_named(monkeypatch, tmp_path, capsys):
  block = regenerate.BLOCKS[0]
  begin, end = block.markers
  page = tmp_path / "page.md"
  page.write_text(f"a\n{begin}\nold\n{end}\nb\n")
  stale = block._replace(page=page)
  monkeypatch.setattr(regenerate, "BLOCKS", (stale,))
  monkeypatch.setattr(regenerate, "PICTURES", ())
  kept = tmp_path / "headline.json"
  monkeypatch.setattr(headline, "FILE", str(kept))
  monkeypatch.setattr(regenerate, "headline_record", lambda: None)
  assert regenerate.main(["--check"]) == 1
  assert f"{page}: {begin} is stale" in capsys.readouterr().out
  assert regenerate.main([]) == 0
  assert page.read_text() == f"a\n{begin}\n{block.make()}\n{end}\nb\n"
  assert regenerate.main(["--check"]) == 0
  kept.write_text(headline.text({"seeds": [0]}))
  assert regenerate.main(["--check"]) == 1
  assert f"{kept} is stale" in capsys.readouterr().out
  kept.unlink()
  page.write_text("no markers")
  assert regenerate.main(["--check"]) == 2
