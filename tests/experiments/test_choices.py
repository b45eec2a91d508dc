"""Names that settings may have: the keys of the tables that they choose in."""

import pytest

from experiments import gathering, settings
from leap_jax import choices, corrections, head, lora, losses, methods
from leap_jax.models import attention, sizes, whole_rows
from tests.experiments.command_lines import parse


@pytest.mark.parametrize(
  "table,names",
  [
    (sizes.SIZES, choices.SIZES),
    (whole_rows.REMAT, choices.REMAT),
    (whole_rows.LAYERS, choices.LAYERS),
    (head.HEADS, choices.HEADS),
    (dict.fromkeys(lora.TARGETS), choices.LORA_TARGETS),
    (attention.IMPLEMENTATIONS, choices.ATTENTION),
    (methods.METHODS, choices.METHODS),
    (methods.TURN_ADVANTAGES, choices.TURN_LEVEL_METHODS),
    (methods.GATES, choices.GATES),
    (methods.REWARDS, choices.REWARDS),
    (methods.CREDITS, choices.CREDITS),
    (corrections.CORRECTIONS, choices.CORRECTIONS),
    (gathering.SAMPLINGS, choices.SAMPLINGS),
    (losses.NORMALIZATIONS, choices.NORMALIZATIONS),
    (losses.DENOMINATORS, choices.DENOMINATORS),
  ],
)
def test_choices_are_the_keys_of_their_tables(table, names):
  assert tuple(table) == names


@pytest.mark.parametrize("name", choices.TURN_LEVEL_METHODS)
@pytest.mark.parametrize("part", ["reward=rank", "credit=shared"])
def test_a_method_that_pays_turns_takes_no_part_of_another_one(name, part):
  with pytest.raises(settings.UsageError) as error:
    parse(f"--config.method.name={name}", f"--config.method.{part}")
  text = str(error.value)
  assert f"config.method.name={name} pays turns" in text and "leap" in text
  with pytest.raises(ValueError, match="no reward, no credit"):
    methods.make_method(
      name,
      **dict([part.split("=")]),
      f_lo=0.5,
      f_hi=0.875,
      gamma=0.4,
    )
  # Its gate may be another one.
  parse(f"--config.method.name={name}", "--config.method.gate=difficulty")
