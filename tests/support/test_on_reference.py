"""Running the compiled programs on `reference` as well detects faults that the CPU would hide."""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune.errors import CheckError
from tests.fuzzing.planted import FAULTS
from tests.support.on_reference import interpreted_as_well


def test_a_race_fails_the_test():
    fault = FAULTS["a diagonal in step with its matrix"]
    with fault(), interpreted_as_well(), pytest.raises(CheckError):
        rune.jit(lambda x: (x * 2, rnp.diag(x * 2)))(rnp.ones((3, 3)))


def test_a_correct_program_passes_silently():
    with interpreted_as_well():
        assert rune.jit(lambda x: rnp.sort(x) + rnp.sum(x))(rnp.ones(3))[0] == 4
