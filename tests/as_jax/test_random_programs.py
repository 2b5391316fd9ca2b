"""Random programs give the answers of jax 0.10.2; `./scripts/fuzz --jax` draws more."""

from __future__ import annotations

import pytest

from tests.as_jax.random_programs.beside import difference
from tests.as_jax.random_programs.dialect import answer
from tests.as_jax.random_programs.stored import stored

STORED = stored()


@pytest.mark.parametrize("seed", STORED)
def test_a_random_program_answers_as_jax_does(seed: str):
    query, expected = STORED[seed]

    assert difference(expected, answer(query), query) == ""
