#!/usr/bin/env bash
# The headline: one cold start a seed, and from it LEAP, unpruned multi-turn and
# single-turn GRPO, each for the same seconds of training, on one GPU.
#
#   bash experiments/headline.sh MODEL [FIRST_SEED LAST_SEED]
#
# MODEL is Qwen2.5-Coder-0.5B-Instruct, as a GGUF file or a folder. Seeds 0 and 1
# where none are named. Whatever is stopped goes on by the same command. Then
#
#   python -m experiments.regenerate
#
# makes headline.json and the README's tables. RUNS and RESULTS name other
# folders, as a second GPU needs that does another seed at the same time;
# TRAINING_S another time.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -ne 1 ] && [ $# -ne 3 ]; then
  echo "give MODEL, or MODEL FIRST_SEED LAST_SEED" >&2
  exit 2
fi
model=$1 first=${2:-0} last=${3:-1}
runs=${RUNS:-runs/headline}
results=${RESULTS:-experiments/results/headline_0_5b}
config=(--config=experiments/configs/headline_0_5b.py
  "--config.policy.source=$model")
rows=leap,grpo_multi_turn,grpo_single_turn
# What the cold start compiles the sweep need not compile again.
export JAX_COMPILATION_CACHE_DIR="$PWD/$runs/compiled"
case $runs in /*) JAX_COMPILATION_CACHE_DIR=$runs/compiled ;; esac
for seed in $(seq "$first" "$last"); do
  python -m experiments.run "${config[@]}" --config.seed="$seed" \
    --config.run.num_iterations=0 --workdir="$runs/cold/seed$seed"
  python -m experiments.fork "$runs/cold/seed$seed" --rows="$rows" \
    --runs="$runs/rows"
done
python -m experiments.sweep --table=main --rows="$rows" "${config[@]}" \
  --config.run.max_training_s="${TRAINING_S:-100.0}" \
  --first_seed="$first" --seeds=$((last + 1)) \
  --runs="$runs/rows" --results="$results"
