"""Functions over Number as LLVM IR: loops, branches and variables, in lanes that differ.

The forms that no function of the CPU asks for, as it has instructions, are written as IR here, and
held against Python's and NumPy's integers and remainders.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.lowering.codegen import llvm_functions
from rune.lowering.codegen.llvm_functions import Context, Written
from rune.lowering.scalar import integers, powers
from rune.lowering.scalar.number import Number
from tests.lowering.codegen.llvm_run import MACHINES, elementwise, op, run


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch):
    """Have kernels compute `sub` by a function."""

    def install(write):
        def operation(name, dtype, args, operand):
            context = Context([])
            result: Number = write(*(Written(a, operand, context) for a in args))
            assert isinstance(result, Written)
            return result.value

        monkeypatch.setattr(llvm_functions, "operation", operation)

    return install


def applied(a: np.ndarray, b: np.ndarray, on: str) -> np.ndarray:
    result = np.empty_like(a)
    code = elementwise([a.dtype, b.dtype], lambda x, y: op("sub", x, y), len(a), a.dtype)
    run(code, [a, b, result], MACHINES[on])
    return result


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u16, dtypes.i64], ids=dtypes.short)
def test_powers_of_integers_loop_in_lanes(in_place, dtype: np.dtype, on: str):
    in_place(integers.power)
    bases, exponents = (x.ravel().astype(dtype) for x in np.mgrid[0:8, 0:9])
    modulus = 1 << 8 * dtype.itemsize
    expected = [pow(int(x), int(y), modulus) for x, y in zip(bases, exponents, strict=True)]

    powers_of_bases = applied(bases, exponents, on)

    assert (powers_of_bases == np.array(expected, np.uint64).astype(dtype)).all()


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
