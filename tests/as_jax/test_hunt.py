"""Random programs, drawn from templates of their text, give the answers of jax 0.10.2.

Each is run statement by statement and compiled as a whole; `./scripts/fuzz --hunt` compares others
with an installed jax. The last tests plant faults in rune, and check that they are found.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import rune
from rune.ops import updates
from tests.as_jax.hunt.answers import Answered, Leaf, as_one, step_by_step
from tests.as_jax.hunt.beside import Difference, coarsest, difference, differences, report
from tests.as_jax.hunt.draw import draw
from tests.as_jax.hunt.stored import stored
from tests.as_jax.hunt.structures import structure
from tests.as_jax.hunt.text import Program, Statement
from tests.fuzzing.planted import FAULTS
from tests.support.sampling import IS_WHOLE

EVERY = 1 if IS_WHOLE else 10
STORED = {a.program.seed: a for a in stored()}
NESTED = (20_001, 20_002, 20_004, 20_005, 20_007, 20_008)  # 0.1 to 0.3 seconds each
Fault = Callable[[], AbstractContextManager[Any]]


@pytest.mark.parametrize("seed", list(STORED)[::EVERY])
def test_a_program_of_a_hunt_answers_as_jax_does(seed: int):
    assert report(differences(STORED[seed])) == ""


@pytest.mark.parametrize("seed", NESTED)
def test_blocks_in_blocks_mean_the_same_in_one_program(seed: int):
    program = draw(seed, structure)
    expected, actual = step_by_step(program, program.arguments), as_one(program)

    for statement in program.statements:
        for name in statement.names:
            unit = coarsest(program, statement)
            assert difference(expected[name], actual[name], statement, unit) == "", program.source()


def _clipped_writes() -> AbstractContextManager[Any]:
    scatter_of_rune = updates._scattered

    def clipped(scatter: Any, x: Any, entries: Any, values: Any, mode: str) -> Any:
        return scatter_of_rune(scatter, x, entries, values, "clip")

    return patch.object(updates, "_scattered", clipped)


PLANTED: dict[str, tuple[Fault, str]] = {
    "writes out of bounds are clipped": (_clipped_writes, ".at["),
    "an index that wraps": (FAULTS["an index that wraps"], ""),
    "a lost lane of a tail": (FAULTS["a lost lane of a tail"], ""),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_met_by_a_stored_program(name: str):
    fault, text = PLANTED[name]
    answers: list[Answered] = [a for a in STORED.values() if text in a.program.source()]

    with fault(), rune.configure(cache_dir=""):
        assert any(differences(a) for a in answers)


@pytest.mark.parametrize("x64", [False, True])
def test_a_device_may_refuse_64_bits_only_where_a_program_has_them(x64: bool):
    program = Program(0, {"v0": np.ones(3, np.float32)}, (Statement(("v1",), "v1 = jnp.sin(v0)", "elementwise"),), x64)
    message = "refused with BackendError: sin: no f64 on webgpu:0"

    assert Difference(program, "v1", "compiled", message, Leaf(np.ones(3), weak=False)).is_deliberate == x64
