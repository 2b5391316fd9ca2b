"""Movement along axes of symbolic size, which may be 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import DimensionError
from tests.support.arrays import array
from tests.support.close import same


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("config", [(1, 1, 1), (0, 3, 2), (3, 0, 3)], ids=str)
def test_gaps_lie_between_elements_and_an_empty_axis_has_none(config: tuple[int, int, int], size: int):
    def padded(x: Any) -> Any:
        return lax.pad(x, np.float32(7), [config])

    x = array(np.arange(size), np.float32)

    same(padded(x), rune.jit(padded, dims={"n": (0, 9)})(x))


WINDOWS: dict[str, Callable[..., Any]] = {
    "gather": lambda x, i, mode: lax.gather(x, i, _DIMS, (3,), mode=mode),
    "gradient": lambda x, i, mode: rune.grad(lambda y: lax.gather(y, i, _DIMS, (3,), mode=mode).sum())(x),
}
_DIMS = lax.GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))


@pytest.mark.parametrize("mode", ["clip", "promise_in_bounds"])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_that_may_be_longer_than_their_axis_are_refused(name: str, mode: str):
    # Moved inside of two elements, a window of three would begin in front of them.
    function = rune.jit(partial(WINDOWS[name], mode=mode), dims={"n": (1, 9)}, in_dims=("n", None))

    with pytest.raises(DimensionError, match=r"gather: cannot decide n < 3"):
        function(rnp.ones(2), rnp.array([[0]]))


def test_windows_that_always_fit_are_read_and_so_are_those_filled():
    x, at = np.arange(5, dtype=np.float32), rnp.array([[3], [-2]])
    clip = rune.jit(partial(WINDOWS["gather"], mode="clip"), dims={"n": (3, 9)}, in_dims=("n", None))
    fill = rune.jit(partial(WINDOWS["gather"], mode="fill"), dims={"n": (1, 9)}, in_dims=("n", None))

    assert clip(x, at).tolist() == [[2, 3, 4], [0, 1, 2]]
    assert np.isnan(np.asarray(fill(x[:2], rnp.array([[0]])))).all()
