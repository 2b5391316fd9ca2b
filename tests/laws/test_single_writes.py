"""One write into each row of a constant array is compiled to a select, and means what NumPy does.

Places are inside, at both ends and past them, counted from either end; the values have a NaN, an
infinity and a negative zero. The oracle is NumPy, one row after another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.support.close import same

EXECUTORS = [d.name for d in rune.devices() if not d.name.startswith("null")]
VALUES = np.array([-0.0, np.nan, np.inf, 2.5, -1.0], np.float32)
FORMS: dict[str, Callable[[int, Any], tuple[tuple[int, ...], Any]]] = {
    "a vector": lambda n, i: ((n, 5), (i,)),
    "a column": lambda n, i: ((5, n), (slice(None), i)),
    "a pair of positions": lambda n, i: ((n, n, 5), (i, i)),
}
MODES = [("drop", "add"), ("clip", "set"), ("promise_in_bounds", "add"), ("clip", "add"), ("drop", "set")]


def places(n: int) -> list[int]:
    """Positions along an axis, and some out of bounds."""
    return [-n - 1, -n, -1, 0, n // 2, n - 1, n, n + 130]


@dataclass(frozen=True, slots=True)
class Write:
    """One write into an array of a form whose indexed axes have n elements."""

    form: str
    n: int
    mode: str
    change: str

    @property
    def constant(self) -> float:
        """Adding to zeros is what cotangents do."""
        return 0.0 if self.change == "add" else 3.0

    def by_rune(self, i: Any, values: Any) -> Any:
        shape, where = FORMS[self.form](self.n, i)
        return getattr(rnp.full(shape, self.constant, "f32").at[where], self.change)(values, mode=self.mode)

    def by_numpy(self, i: int) -> np.ndarray:
        place = i + self.n if i < 0 else i
        place = min(max(place, 0), self.n - 1) if self.mode == "clip" else place
        shape, where = FORMS[self.form](self.n, place)
        array = np.full(shape, self.constant, np.float32)
        if 0 <= place < self.n:
            array[where] = array[where] + VALUES if self.change == "add" else VALUES
        return array


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("device", EXECUTORS)
def test_one_write_into_a_constant_is_that_of_numpy(device: str, form: str):
    for n, (mode, change) in zip((1, 5, 17, 130, 2), MODES, strict=True):
        write = Write(form, n, mode, change)
        compiled = rune.jit(write.by_rune, device=device)
        promised = range(-n, n)
        for i in places(n):
            if mode != "promise_in_bounds" or i in promised:
                same([np.asarray(compiled(np.int32(i), VALUES))], [write.by_numpy(i)])


@pytest.mark.parametrize("device", EXECUTORS)
@pytest.mark.parametrize("n", [2, 131])
def test_the_cotangent_of_one_element_a_row_is_that_of_numpy(device: str, n: int):
    rows = np.arange(7)
    labels = np.array([0, n - 1, -1, -n, n // 2, 1, 0], np.int32)

    def picked(x: Any, weights: Any) -> Any:
        return (rnp.take_along_axis(x, labels[:, None], -1)[:, 0] * weights).sum()

    weights = np.linspace(-1.0, 1.0, 7, dtype=np.float32)
    gradient = rune.jit(rune.grad(picked), device=device)(np.ones((7, n), np.float32), weights)

    expected = np.zeros((7, n), np.float32)
    expected[rows, labels] = weights
    same([np.asarray(gradient)], [expected])
