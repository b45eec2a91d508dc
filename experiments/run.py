"""Trains a policy: warm start, held-out evaluation, iterations, report.

    python -m experiments.run --config=FILE [--workdir=DIR] [--config.X.Y=V ...]

The same folder again goes on where the run stopped. Settings and their meaning
stand in experiments/configs/base.py; `--help` prints them with their values.
"""

import contextlib
import pathlib
import sys
import time
import traceback

from absl import flags

from experiments import endings, processes
from experiments import settings as settings_lib
from experiments.config_file import asks_for_help
from experiments.endings import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from experiments.settings import UsageError

# Everything else is imported where it is used: a mistake on the command line
# is answered at once, before JAX is loaded.


def _define(values: flags.FlagValues) -> None:
  flags.DEFINE_string(
    "workdir",
    None,
    "folder of the run; the same folder resumes it (default: runs/CONFIG)",
    flag_values=values,
  )
  processes.define(values)


def _help(argv) -> int:
  print(__doc__)
  path = settings_lib.config_path(argv[1:])
  path = path or str(pathlib.Path(__file__).parent / "configs" / "base.py")
  print(f"Settings of {path}:\n")
  for key, value in settings_lib.flat(settings_lib.load_file(path)).items():
    print(f"  --config.{key}={value}")
  return EXIT_OK


def _say(text: str) -> None:
  """A line that does not tear a progress bar."""
  import tqdm

  tqdm.tqdm.write(text, file=sys.stderr)


def _train(config, settings, run_folder, shared_folder, pool, chosen) -> int:
  """Everything behind the start-up checks; `chosen` is of start.choose."""
  import contextlib
  import dataclasses

  import numpy as np

  from experiments import (
    compute,
    heldout,
    iterations,
    picture,
    problem_sets,
    rehearsal,
    report,
    start,
    state,
    warm_start,
    workdir,
  )
  from experiments import programs as programs_lib
  from leap_jax import (
    checkpoint,
    compilations,
    hosts,
    memory,
    metrics,
    policy_io,
    sharding,
  )

  with contextlib.ExitStack() as stack:
    compiled = stack.enter_context(compilations.counted())
    started = time.perf_counter()
    source = start.open_policy(config, chosen, shared_folder, pool)
    model, tokenizer = source.model, source.tokenizer
    shape = state.rollout_shape(config)
    cards = chosen.cards
    if cards is None:  # the vocabulary is there now
      cards = problem_sets.for_run(config, chosen.names, tokenizer, shape)
    mesh = sharding.make_mesh(config.run.model_devices)
    count = memory.num_params(model)
    checkpoints = checkpoint.Checkpoints(
      shared_folder / "checkpoints", config.run.keep_checkpoints
    )
    stack.callback(checkpoints.close)
    progress, train_state, rollouts, frozen, base = start.begin(
      config, source, mesh, shared_folder, checkpoints, _say
    )
    trained = compute.trained_of(config)
    writer = metrics.Writer(
      run_folder, progress.warm_steps + progress.iterations
    )
    stack.callback(writer.close)
    run = state.Run(
      config=config,
      workdir=run_folder,
      pool=pool,
      writer=writer,
      checkpoints=checkpoints,
      compiled=compiled,
      mesh=mesh,
      model=model,
      tokenizer=tokenizer,
      shape=shape,
      train=cards.train,
      heldout=cards.heldout,
      num_skipped=cards.num_skipped,
      say=_say,
      trained=trained,
      frozen=frozen,
      base=base,
      problems=progress.problems,
      remat=progress.remat,
    )
    _say(
      f"policy: {count / 1e6:.2f} M parameters, {model.vocab_size} tokens; "
      f"problems: {len(cards.train)} to train, {len(cards.heldout)} held out"
      + (f", {run.num_skipped} too long" if run.num_skipped else "")
    )
    is_warm = progress.warm_steps >= config.warm_start.num_steps
    dataset = () if is_warm else source.conversations()
    progress.spend("start", chosen.seconds + time.perf_counter() - started)

    # -------------------------------------------------------- warm start
    if not is_warm:
      train_state = warm_start.warm_start(
        run, train_state, progress, rollouts, dataset
      )
      # Reinforcement learning starts with an optimizer of its own.
      train_state = start.fresh_state(config, model, mesh, train_state.params)

    # ----------------------------------------------------------- compile
    started = time.perf_counter()
    programs = programs_lib.compile_programs(run, train_state)
    rehearsal.rehearse(run, programs)
    hosts.wait_for_all()  # or they would be waited for in an iteration
    progress.spend("compile", time.perf_counter() - started)

    # ---------------------------------------------------------- evaluate
    if progress.before is None:
      progress.before = heldout.evaluate(
        run, programs, train_state, progress, "before"
      )
      state.save(run, train_state, rollouts, progress)

    # ------------------------------------------------------------- train
    train_state, rollouts = iterations.train(
      run, programs, train_state, rollouts, progress
    )

    # ------------------------------------------------------------ report
    after = progress.evaluated
    if after is None:
      after = heldout.evaluate(run, programs, train_state, progress, "after")
    control = None
    if config.eval.random_feedback:
      control = heldout.evaluate_with_random_feedback(
        run, programs, train_state, progress
      )
    policy_io.save(
      run_folder / "policy",
      model,
      compute.exported(trained, frozen, train_state),
      tokenizer,
      np.float32,
    )
    result = report.results(settings, progress, after, control, count)
    drawn = picture.draw(run_folder, result)
    workdir.write_lines(
      run_folder / "problems.jsonl",
      (
        {"name": name} | dataclasses.asdict(seen)
        for name, seen in progress.problems.seen.items()
      ),
    )
    # Last: whoever finds it finds a run that has left everything behind.
    workdir.write_json(run_folder / "results.json", result)
    print("\n" + report.table(result))
    print(f"\n{run_folder / 'results.json'}\n{drawn}")
  return EXIT_OK


def _finished(config, run_folder) -> bool:
  """Prints the table of a run that has done its iterations already."""
  from experiments import budget, report, workdir

  result = workdir.outcome(run_folder)
  if result is None:
    return False
  done, wanted = result["run"]["iterations"], config.run.num_iterations
  seconds = result["run"].get("training_seconds", 0.0)
  if not budget.is_spent(
    done,
    seconds,
    num_iterations=wanted,
    max_training_s=config.run.max_training_s,
  ):
    _say(f"{run_folder} has {done} iterations; going on to {wanted}")
    return False
  print(report.table(result))
  print(
    f"\n{run_folder} is finished; a larger --config.run.num_iterations goes "
    "on, another --workdir starts anew"
  )
  return True


def main(argv: list[str]) -> int:
  """Runs from the command line; returns the exit status.

  One of several processes that fails ends here, and the others with it.
  """
  said = []

  def fail(text):
    said.append(str(text))
    print(f"experiments.run: {text}", file=sys.stderr)

  try:
    if asks_for_help(argv):
      return _help(argv)
    config, values = settings_lib.parse(argv, _define)
    name = pathlib.Path(settings_lib.config_path(argv[1:])).stem
    run_folder = pathlib.Path(values.workdir or f"runs/{name}")
    processes.check(values)
  except UsageError as error:
    fail(error)
    return EXIT_USAGE
  if values.num_processes == 1:
    return _run(config, values, run_folder, fail)
  from leap_jax import joint_end

  try:
    status = _run(config, values, run_folder, fail)
  except BaseException as error:
    traceback.print_exc()
    said.append(f"{type(error).__name__}: {error}".splitlines()[0])
    status = EXIT_FAILED
  if status != EXIT_OK:
    joint_end.leave(status, said[-1])
  return status


def _run(config, values, run_folder, fail) -> int:
  """A run; every failure that is known is a line and an exit status."""
  try:
    with contextlib.ExitStack() as stack:
      return _begin(config, values, run_folder, fail, stack)
  except (Exception, KeyboardInterrupt) as error:
    known = endings.of(error, run_folder)
    if known is None:
      raise
    line, status = known
    fail(line)
    return status


def _begin(config, values, run_folder, fail, stack) -> int:
  """Takes the folder, opens the policy, starts the judges, trains."""
  settings = settings_lib.flat(config)
  if values.num_processes > 1:
    from leap_jax import joint_end

    processes.connect(values, settings)
    stack.enter_context(joint_end.ending_together(fail))
  from experiments import workdir

  if values.process_id == 0:
    stack.enter_context(workdir.held(run_folder))
  workdir.check(run_folder, settings)
  if _finished(config, run_folder):
    return EXIT_OK
  shared_folder = run_folder
  if values.process_id > 0:
    # What the others write for themselves is thrown away.
    run_folder = stack.enter_context(workdir.scratch())
  workdir.record(run_folder, settings)
  for key, value in settings.items():
    _say(f"config.{key}={value}")

  from experiments import compile_cache, pools, start
  from leap_jax import hosts

  if config.run.compilation_cache is not None:
    compile_cache.use(config.run.compilation_cache)
  chosen = start.choose(config, _say)
  pool = stack.enter_context(hosts.judges(lambda: pools.make_pool(config)))
  _say(pool.description)
  return _train(config, settings, run_folder, shared_folder, pool, chosen)


if __name__ == "__main__":
  sys.exit(main(sys.argv))
