#!/usr/bin/env bash
# The one gate, run by people and by CI alike: style, layers, README, tests.
set -euo pipefail
cd "$(dirname "$0")"
python -m ruff format --check .
python -m ruff check .
# Two files at a time: most tests wait for a compiler, g++ or XLA.
python -m pytest -q -n 2 --dist loadfile "$@"
