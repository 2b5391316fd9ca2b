"""Functions that return what control flow cannot use are refused with a clear error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, OutOfMemory, ShapeError, TransformError


@rune.tree.register_dataclass
@dataclass(frozen=True)
class _Rows:
    values: Any

    def __post_init__(self):
        if len(self.values.shape) != 2:
            raise TypeError("two axes needed")


def _is_small(rows: Any) -> Any:
    return rows.values[0, 0] < 8.0


LOOPS: dict[str, Any] = {
    "scan": lambda step, x: rune.lax.scan(lambda c, _: (step(c), None), x, None, length=3)[0],
    "fori_loop": lambda step, x: rune.fori_loop(0, 3, lambda _, c: step(c), x),
    "while_loop": lambda step, x: rune.while_loop(_is_small, step, x),
    "cond": lambda step, x: rune.cond(x.values[0, 0] > 0.0, lambda c: step(step(step(c))), lambda c: c, x),
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_values_may_be_of_a_class_that_refuses_all_but_arrays_of_its_rank(wrap: Any, name: str):
    result = wrap(lambda x: LOOPS[name](lambda c: _Rows(2.0 * c.values), x))(_Rows(rnp.ones((2, 3))))

    assert np.array_equal(result.values, np.full((2, 3), 8.0))


@pytest.mark.parametrize("condition", [None, {}, (), [], 1.0, (True,), rnp.ones(2, bool)], ids=str)
def test_a_condition_that_is_not_a_bool_is_refused(condition: Any):
    with pytest.raises(TransformError, match="while_loop: cannot go on while cond_fun gives"):
        rune.while_loop(lambda x: condition, lambda x: x + 1, 0)


@pytest.mark.parametrize("slices", [1.0, rnp.ones(3), rnp.ones(()), rnp.ones((5, 1))], ids=str)
def test_an_operation_that_gives_other_slices_is_refused(slices: Any):
    with pytest.raises(TransformError, match=r"associative_scan: cannot combine slices f32\[2\]"):
        rune.associative_scan(lambda a, b: slices, rnp.arange(5.0))


@pytest.mark.parametrize("bounds", [(1, 2**63), (2**64, 2**65), (0, 10**30)])
def test_a_size_beyond_every_index_is_refused(bounds: tuple[int, int]):
    with pytest.raises(ArgumentError, match="jit: cannot declare n up to"):
        rune.jit(lambda x: x + 1, dims={"n": bounds})(rnp.ones(3))


@pytest.mark.parametrize("n", [2**63, 2**64, 10**30])
@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_an_axis_beyond_every_index_is_refused(wrap: Any, n: int):
    with pytest.raises(ShapeError, match="cannot have an axis of"):
        wrap(lambda: rnp.zeros(n).sum())()


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_an_array_beyond_all_addresses_raises_out_of_memory(wrap: Any):
    with pytest.raises(OutOfMemory):
        wrap(lambda: rnp.sort(rnp.zeros((2**40, 2**20)))[3, 4])()
