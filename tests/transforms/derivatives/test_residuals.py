"""Values computed only from constants are not residuals: they are recomputed.

Zeros that an update is written to, positions, masks of indices: none of them is stored
between the forward and the backward pass, eagerly or between two compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.core.interpreter import type_of
from rune.transforms.derivatives.linearize import linearize_flat
from tests.support.arrays import array
from tests.support.close import same

X, V, AT = array(np.ones((6, 6))), array(np.ones(6)), array(np.array([0, 2, 0], np.int32))

# Linear in x and v, so that nothing but indices and masks could be kept.
FUNCTIONS: dict[str, tuple[Callable[..., Any], set[str]]] = {
    "a gather": (lambda x, v: x[AT].sum() + v.sum(), {"i32[3,1]"}),
    "an update by index": (lambda x, v: x.at[AT].set(v), {"i32[3,1]"}),
    "a sum by index": (lambda x, v: x.at[:, AT].add(v[:3]), {"i32[3,1]"}),
    "an update of a window": (lambda x, v: x.at[1:3, 2].set(v[:2]), set()),
    "an update with steps": (lambda x, v: x.at[::2, ::-3].set(v[:3, None]), set()),
    "a padding": (lambda x, v: rnp.pad(x, 1, constant_values=v[0]), set()),
    "a triangle": (lambda x, v: rnp.tril(x) + v, set()),
    "a mask of positions": (lambda x, v: rnp.where(rnp.arange(6) < 2, x, v), set()),
}


def residual_types(function: Callable[..., Any]) -> set[str]:
    """The types of the residuals."""
    _, linear = linearize_flat(lambda x, v: [function(x, v)], [X, V], [True, True])
    return {str(type_of(r)) for r in linear.residuals}


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_no_value_made_from_numbers_alone_is_kept(function: Any, expected: set[str]):
    assert residual_types(function) == expected


@pytest.mark.parametrize(("function", "expected"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_no_value_made_from_numbers_alone_passes_from_one_compiled_program_to_the_next(
    function: Any, expected: set[str]
):
    def total(x: Any, v: Any) -> Any:
        return function(x, v).sum()

    program = rune.make_program(rune.grad(rune.jit(total), (0, 1)))(X, V)

    forward = program.equations[0]
    assert {str(r.type) for r in forward.results} <= {"f64[]", *expected}
    same(rune.grad(total, (0, 1))(X, V), rune.grad(rune.jit(total), (0, 1))(X, V))


def test_a_mask_that_depends_on_an_argument_is_a_residual():
    assert residual_types(lambda x, v: rnp.where(x > 0, x, v)) == {"bool[6,6]"}


def test_a_residual_that_takes_many_steps_is_kept_and_not_recomputed():
    def function(x: Any, v: Any) -> Any:
        mask = rnp.arange(6) < 3
        for _ in range(2000):
            mask = mask[::-1]
        return rnp.where(mask, x, v)

    assert residual_types(function) == {"bool[6,6]"}
