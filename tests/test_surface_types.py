"""The types that a checker infers of a user's program; pyright reads this file with the others."""

from __future__ import annotations

from typing import assert_type

import rune.numpy as rnp
from rune import Array


def test_elementwise_functions_give_arrays():
    x = rnp.sin(1.0)

    assert_type(x, Array)
    assert_type(rnp.floor(x), Array)
    assert_type(rnp.logical_not(x), Array)
    assert isinstance(x, Array)
