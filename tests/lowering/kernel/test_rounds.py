"""Rounds of loops: what an operation costs where a language writes it as a function with loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rune import dtypes
from rune.lowering.kernel.expr import Local, Op
from rune.lowering.kernel.nodes import Store
from rune.lowering.kernel.rounds import most_rounds
from rune.lowering.kernel.scalar import SCALAR_MEANING
from rune.lowering.legalize.scalars import expansion
from rune.lowering.scalar.table import ROWS
from tests.support.close import same

# What functions are written for: narrower numbers are computed in one of these.
REGISTERS = [np.dtype(t) for t in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")]
FORMS = [
    (name, dtype)
    for name in ROWS
    for dtype in REGISTERS
    if dtype in ROWS[name].dtypes and expansion(name, dtype) is not None
]


@pytest.mark.parametrize(("name", "dtype"), FORMS, ids=[f"{n} {dtypes.short(d)}" for n, d in FORMS])
def test_an_operation_counts_at_least_the_rounds_of_its_function(name: str, dtype: np.dtype):
    function = expansion(name, dtype)
    assert function is not None
    call = Op(name, function.params, dtype)

    within = most_rounds((*function.body, Store("y", 0, function.result)))
    rounds_of_call = most_rounds((Store("y", 0, call),))

    assert within is not None
    assert rounds_of_call is not None
    assert within <= rounds_of_call


def test_a_remainder_of_f64_takes_more_rounds_than_one_of_f32():
    def counted(dtype: np.dtype) -> int | None:
        return most_rounds((Store("y", 0, Op("rem", (Local("a", dtype), Local("b", dtype)), dtype)),))

    assert counted(dtypes.f64) == 210
    assert counted(dtypes.f32) == 64


@pytest.mark.parametrize("addend", [math.inf, -math.inf])
def test_an_infinite_addend_decides_a_fused_sum_whose_product_overflows(addend: float):
    product = np.array([1e300]), np.array([-math.copysign(1e300, addend)])

    same(np.array([addend]), SCALAR_MEANING["fma"](*product, np.array([addend])))
