"""Movement along axes of a size that is not known, and may be 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from tests.support.arrays import array
from tests.support.close import same


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("config", [(1, 1, 1), (0, 3, 2), (3, 0, 3)], ids=str)
def test_gaps_lie_between_elements_and_an_empty_axis_has_none(config: tuple[int, int, int], size: int):
    def padded(x: Any) -> Any:
        return lax.pad(x, np.float32(7), [config])

    x = array(np.arange(size), np.float32)

    same(padded(x), rune.jit(padded, dims={"n": (0, 9)})(x))
