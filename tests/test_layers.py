"""Imports point one way: records < maths < device programs < loops <
experiments; the harness knows nothing of the learner."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]

# A module may import its own layer and those above it in this list.
LAYERS = (
  (
    "kernels_eval.schema",
    "leap_jax.chat_format",
    "leap_jax.choices",
    "leap_jax.files",
    "leap_jax.policy_error",
    "leap_jax.types",
  ),
  (
    "leap_jax.advantages",
    "leap_jax.compilations",
    "leap_jax.corrections",
    "leap_jax.dcp",
    "leap_jax.draw_kernels",
    "leap_jax.draws",
    "leap_jax.feedback",
    "leap_jax.head",
    "leap_jax.history",
    "leap_jax.losses",
    "leap_jax.methods",
    "leap_jax.models",
    "leap_jax.optimizer",
    "leap_jax.outcomes",
    "leap_jax.problems",
    "leap_jax.prompts",
    "leap_jax.random_feedback",
    "leap_jax.rewards",
    "leap_jax.slots",
    "leap_jax.tokenizer",
    "leap_jax.lora",
    "leap_jax.trained",
    "kernels_eval",
  ),
  (
    "leap_jax.batching",
    "leap_jax.buffer",
    "leap_jax.conversations",
    "leap_jax.fitting",
    "leap_jax.hosts",
    "leap_jax.joint_end",
    "leap_jax.memory",
    "leap_jax.metrics",
    "leap_jax.policy_io",
    "leap_jax.policy_source",
    "leap_jax.pretrained",
    "leap_jax.program_sizes",
    "leap_jax.sampler",
    "leap_jax.sampler_programs",
    "leap_jax.sampling",
    "leap_jax.sharding",
    "leap_jax.update",
  ),
  (
    "leap_jax.checkpoint",
    "leap_jax.judging",
    "leap_jax.policy_eval",
    "leap_jax.rollout",
  ),
  ("experiments",),
)
# What leap_jax may see of the harness. The judges stay out of its process.
HARNESS_API = (
  "kernels_eval.schema",
  "kernels_eval.problem_cards",
  "kernels_eval.client",
  "kernels_eval.inbox",
)

# The one part of the harness that may import JAX; no other may import it.
JAX_BASELINE = "kernels_eval.jax_baseline"


def _matches(name, prefix):
  return name == prefix or name.startswith(prefix + ".")


def _layer(name):
  depth = [
    (len(prefix), index)
    for index, prefixes in enumerate(LAYERS)
    for prefix in prefixes
    if _matches(name, prefix)
  ]
  return max(depth)[1] if depth else None


def _imports(path):
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.Import):
      yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
      assert node.level == 0, f"{path}: relative import"
      yield from (f"{node.module}.{alias.name}" for alias in node.names)


SOURCES = sorted(
  path.relative_to(ROOT)
  for package in ("leap_jax", "kernels_eval", "experiments")
  for path in (ROOT / package).rglob("*.py")
  if path.name != "__init__.py"
)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_imports_point_one_way(path):
  module = ".".join(path.with_suffix("").parts)
  mine = _layer(module)
  assert mine is not None, f"{path} belongs to no layer of this test"
  for name in _imports(ROOT / path):
    other = _layer(name)
    assert other is None or other <= mine, (
      f"{path} is in layer {mine} and imports {name} of layer {other}"
    )
    if _matches(module, "leap_jax") and _matches(name, "kernels_eval"):
      assert any(_matches(name, api) for api in HARNESS_API), (
        f"{path} imports {name}; leap_jax may import only {HARNESS_API}"
      )
    if _matches(module, "kernels_eval"):
      assert not _matches(name, "leap_jax"), (
        f"{path} imports {name}; the harness must not know the learner"
      )
    if _matches(module, "kernels_eval") and not _matches(module, JAX_BASELINE):
      assert not _matches(name, "jax") and not _matches(name, JAX_BASELINE), (
        f"{path} imports {name}; JAX stays in {JAX_BASELINE}, a process"
      )


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_files_hold_one_idea(path):
  assert len((ROOT / path).read_text().splitlines()) <= 400, path


def test_importing_the_learner_runs_nothing():
  import subprocess
  import sys

  # A jitted function that an import makes belongs to whoever needs it.
  code = """
import functools, importlib, pathlib, sys
import jax
found, jit = [], jax.jit
@functools.wraps(jit)
def watched(*arguments, **options):
  caller = sys._getframe(1).f_globals["__name__"]
  if caller.startswith("leap_jax"):
    found.append(caller)
  return jit(*arguments, **options)
jax.jit = watched
for path in sorted(pathlib.Path("leap_jax").rglob("*.py")):
  name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
  importlib.import_module(name)
print(found)
"""
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
  )
  assert done.stdout.strip() == "[]", done.stderr


def test_importing_the_harness_loads_no_jax():
  import subprocess
  import sys

  code = (
    "import sys, kernels_eval.client, kernels_eval.__main__; "
    "print([m for m in ('jax', 'flax', 'torch') if m in sys.modules])"
  )
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True
  )
  assert done.stdout.strip() == "[]", done.stderr
