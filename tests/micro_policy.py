"""Fixtures: a micro policy that compiles in seconds, and its compiled parts."""

import jax
import pytest

from kernels_eval import problem_cards, problems
from kernels_eval.schema import Evaluation, Phase, Status
from leap_jax import buffer, draws, prompts, sampler, tokenizer
from leap_jax.models import sizes, transformer
from leap_jax.sampling import Settings
from leap_jax.types import RolloutShape

NAMES = (
  "chain-relu",
  "chain-add_1-half",
  "chain-square-sum",
  "chain-mul_y-neg",
)


@pytest.fixture(scope="session")
def vocabulary():
  """A tokenizer trained on four problems and their solutions."""
  texts = []
  for name in NAMES:
    texts.append(prompts.problem_message(problem_cards.card(name)).text)
    texts.append(prompts.answer_message(problems.get(name).canonical).text)
  return tokenizer.train(texts, 400)


@pytest.fixture(scope="session")
def cards():
  """Problem cards of the same four."""
  return [problem_cards.card(name) for name in NAMES]


@pytest.fixture(scope="session")
def shape():
  """Two problems, four samples, three turns."""
  return RolloutShape(
    num_problems=2,
    group_size=4,
    num_turns=3,
    max_prompt_tokens=96,
    max_feedback_tokens=40,
    max_new_tokens=12,
    max_context_tokens=212,
    row_buckets=(4, 8),
  )


@pytest.fixture(scope="session")
def model(vocabulary):
  """Sizes of the micro policy."""
  return sizes.model_config("micro", vocabulary.vocab_size)


@pytest.fixture(scope="session")
def params(model):
  """Random parameters."""
  return transformer.init(model, jax.random.key(0))


@pytest.fixture(scope="session")
def sampling(model, shape, params, vocabulary):
  """The compiled sampler at temperature 0.8."""
  settings = Settings(draws.Rule(0.8), vocabulary.stop_tokens)
  return sampler.make_sampler(model, shape, settings, params)


@pytest.fixture(scope="session")
def programs(shape):
  """Compiled buffer functions."""
  return buffer.compile_programs(shape)


@pytest.fixture
def verdict():
  """verdict(request, status) -> Evaluation."""

  def make(request, status=Status.WRONG_ANSWER, message="y[0] is 1"):
    return Evaluation(
      id=request.id,
      problem=request.problem,
      status=status,
      phase=Phase.JUDGE,
      message=message,
      executor="fake",
    )

  return make
