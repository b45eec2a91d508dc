#!/usr/bin/env bash
# Every run of the README's table: three methods, three seeds, one after another.
# A run that was stopped goes on; a finished one is skipped. About 30 minutes on
# two cores. Results go to experiments/results/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-runs/reproduce}
python -m experiments.sweep --table=main \
  --rows=leap,grpo_multi_turn,grpo_single_turn --seeds=3 \
  --config=experiments/configs/quickstart.py \
  --runs="$runs" --results="$runs/results"
mkdir -p experiments/results/quickstart
cp -r "$runs/results/." experiments/results/quickstart/
python -m experiments.tables --write=README.md
