"""The short form of tests/sharding/soak.py."""

from __future__ import annotations

import pytest

from tests.sharding.soak import SUBJECTS


@pytest.mark.parametrize(("subject", "times"), [("steps", 300), ("programs", 3)])
def test_training_holds_nothing_and_delays_change_nothing(subject: str, times: int):
    assert SUBJECTS[subject](times)
