#!/usr/bin/env bash
# The one gate, run by people and by CI alike: style, layers, README, tests.
set -euo pipefail
cd "$(dirname "$0")"
python -m ruff format --check .
python -m ruff check .
python -m pytest -q "$@"
