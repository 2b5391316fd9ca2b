"""Whole programs as strangers write them give the answers of jax 0.10.2.

A run tries one in six, and all with RUNE_TEST_WHOLE=1. test_libraries.py tries those of
libraries.
"""

from __future__ import annotations

import pytest

from tests.as_jax.libraries.run import DEFAULT_RTOL, difference, leaves
from tests.as_jax.programs.answers import answers, programs
from tests.support.sampling import one_in

PROGRAMS = programs()
ANSWERS = answers()


@pytest.mark.parametrize("name", one_in(6, list(PROGRAMS)))
def test_a_program_answers_as_jax_does(name):
    assert difference(leaves(PROGRAMS[name]()), ANSWERS[name], DEFAULT_RTOL) == ""


def test_every_answer_is_of_a_program():
    assert ANSWERS.keys() == PROGRAMS.keys()
