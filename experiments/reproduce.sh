#!/usr/bin/env bash
# Every run of the README's table: three methods, three seeds, one after another.
# A run that was stopped goes on; a finished one is skipped. About 30 minutes on
# two cores. Results go to experiments/results/quickstart.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=${1:-runs/reproduce}
for seed in 0 1 2; do
  for method in leap grpo_multi_turn grpo_single_turn; do
    config=quickstart
    [ "$method" = grpo_multi_turn ] && config=quickstart_grpo_multi
    [ "$method" = grpo_single_turn ] && config=quickstart_grpo_single
    folder="$runs/$method/seed$seed"
    python -m experiments.run \
      --config="experiments/configs/$config.py" \
      --config.seed="$seed" --workdir="$folder"
    out="experiments/results/quickstart/$method/seed$seed"
    mkdir -p "$out"
    cp "$folder/results.json" "$out/"
    gzip -9 -n -c "$folder/metrics.jsonl" > "$out/metrics.jsonl.gz"
  done
done
python -m experiments.tables --write=README.md
