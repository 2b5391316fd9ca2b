"""Functions over Number as LLVM IR: loops, branches and variables, in lanes that differ.

The remainder, for which the CPU has an instruction, is written as a function here: its lanes loop
differently often.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm.functions import Written
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.scalar import powers
from rune.lowering.scalar.number import Number
from tests.lowering.codegen.llvm_run import MACHINES, apply, elementwise, op, run


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch):
    """Have kernels compute `sub` by a function."""

    def install(write):
        usual = llvm_functions.operation

        def operation(name, dtype, args, operand):
            if name != "sub":
                return usual(name, dtype, args, operand)
            masks: list[Value] = []
            result: Number = write(*(Written(a, operand, masks) for a in args))
            assert isinstance(result, Written)
            return result.value

        monkeypatch.setattr(llvm_functions, "operation", operation)

    return install


def applied(a: np.ndarray, b: np.ndarray, on: str) -> np.ndarray:
    result = np.empty_like(a)
    code = elementwise([a.dtype, b.dtype], lambda x, y: op("sub", x, y), len(a), a.dtype)
    run(code, [a, b, result], MACHINES[on])
    return result


def wrapped_power(x: int, y: int, dtype: np.dtype) -> int:
    """x**y in the bits of a dtype; negative powers as they truncate."""
    if y < 0:
        return x ** (y % 2) if x in (1, -1) else 0
    bits = 8 * dtype.itemsize
    power = pow(x, y, 1 << bits)
    return power - (1 << bits) if dtype in dtypes.SIGNED and power >> (bits - 1) else power


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u16, dtypes.i32, dtypes.i64], ids=dtypes.short)
def test_powers_of_integers_wrap_and_truncate(dtype: np.dtype, on: str):
    info = np.iinfo(dtype)
    numbers = [0, 1, 2, 3, 7, info.max - 1, info.max, info.min, *([-1, -2, -3] if info.min else [])]
    bases, exponents = (a.ravel() for a in np.meshgrid(np.array(numbers, dtype), numbers))
    expected = [wrapped_power(int(x), int(y), dtype) for x, y in zip(bases, exponents, strict=True)]

    actual = apply("pow", bases, exponents.astype(dtype), on=MACHINES[on])

    assert actual.tolist() == expected


@pytest.mark.parametrize("on", MACHINES)
def test_each_lane_loops_as_often_as_it_must(in_place, on: str):
    in_place(powers.rem)
    rng = np.random.default_rng(5)
    a, b = ((rng.standard_normal(99) * 10.0 ** rng.integers(-30, 30, 99)).astype("f") for _ in "ab")
    a[:4], b[:4] = [np.inf, np.nan, 5, -0.0], [1, 1, 0, 3]
    with np.errstate(all="ignore"):
        expected = np.fmod(a, b)

    remainders = applied(a, b, on)

    np.testing.assert_array_equal(remainders, expected)
    known = ~np.isnan(expected)
    assert (np.signbit(remainders) == np.signbit(expected))[known].all()
