#!/usr/bin/env bash
# The headline: one cold start, and from it LEAP, unpruned multi-turn and
# single-turn GRPO, each with two seeds and for the same seconds of training, on
# one GPU.
#
#   bash experiments/headline.sh MODEL [--config.X.Y=VALUE ...]
#
# MODEL is Qwen2.5-Coder-0.5B-Instruct, as a GGUF file or a folder. Whatever is
# stopped goes on by the same command. Then
#
#   python -m experiments.headline --runs=runs/headline/results
#
# says what came out. The project's own runs are those of the folder
# experiments/results/headline_0_5b: with others in their place (all three rows),
# python -m experiments.regenerate makes headline.json and the README's tables.
# Variables: RUNS (runs/headline) and RESULTS (RUNS/results) are other folders,
# TRAINING_S another time, SEEDS another number of seeds; FIRST_SEED leaves out
# those before it, which another GPU does in folders of its own.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -lt 1 ] || [[ $1 == -* ]]; then
  echo "bash experiments/headline.sh MODEL [--config.X.Y=VALUE ...]" >&2
  exit 2
fi
model=$1
shift
runs=${RUNS:-runs/headline}
seeds=${SEEDS:-2}
config=(--config=experiments/configs/headline_0_5b.py
  "--config.policy.source=$model" "$@")
sweep=(python -m experiments.sweep --table=headline "${config[@]}"
  --config.run.max_training_s="${TRAINING_S:-80.0}"
  --first_seed="${FIRST_SEED:-0}" --seeds="$seeds" --runs="$runs/rows"
  --results="${RESULTS:-$runs/results}")
# What the cold start compiles the sweep need not compile again.
export JAX_COMPILATION_CACHE_DIR
JAX_COMPILATION_CACHE_DIR=$(realpath -m "$runs/compiled")
# What is wrong with it is said before the cold start.
"${sweep[@]}" --dry_run
python -m experiments.run "${config[@]}" --config.run.num_iterations=0 \
  --workdir="$runs/cold"
python -m experiments.fork "$runs/cold" --table=headline \
  --seeds="$seeds" --runs="$runs/rows"
exec "${sweep[@]}"  # which passes a SIGTERM on to its run
