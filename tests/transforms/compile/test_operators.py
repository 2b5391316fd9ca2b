"""Operators of arrays that are applied often are native code, and nobody can tell by the results.

First the bits, for every operator and kind of operands, before and after; then what must not change
with native code: derivatives, settings, errors, donated and strided operands, threads.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.array import Array
from rune.errors import DeletedArrayError, NaNError, ShapeError
from rune.transforms.compile import operators
from tests.support.work import calls

OFTEN = 6
HARD = np.array([0.0, -0.0, 1.0, -2.5, 1e-45, -3e-39, np.inf, -np.inf, np.nan, 3.4e38, 7.0], np.float32)
WHOLE = np.array([0, 1, -1, 2**31 - 1, -(2**31), 7, 12, -5, 3, 40, 2], np.int32)
PAIRS = [getattr(operator, n) for n in "add sub mul truediv floordiv mod lt le gt ge eq ne".split()]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch):
    """Operators that start to count anew, and compile after few calls."""
    with monkeypatch.context() as m:
        m.setattr(operators, "OFTEN", OFTEN)
        m.setattr(operators, "OFTEN_OF_MANY", OFTEN)
        operators.attach()
        yield
    operators.attach()


def bits(x: Any) -> bytes:
    array = np.asarray(x)
    return np.where(np.isnan(array), np.nan, array).tobytes() if array.dtype.kind == "f" else array.tobytes()


def often(f: Callable[..., Any], *args: Any) -> list[Any]:
    return [f(*args) for _ in range(OFTEN + 4)]


def is_native(f: Callable[..., Any], *args: Any) -> bool:
    # All that is left of Python is the method, and its call of native code.
    return calls(lambda: f(*args)) <= calls(lambda: len(args)) + 2


def arrays(*values: Any) -> tuple[Any, ...]:
    return tuple(rnp.asarray(v) for v in values)


@pytest.mark.parametrize("f", PAIRS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "f16"])
def test_every_call_has_the_bits_of_the_first(f: Callable[..., Any], dtype: str):
    is_integer = dtype == "i32"
    x = rnp.asarray(np.resize(WHOLE if is_integer else HARD, 121), dtype)
    y = rnp.asarray(np.repeat(WHOLE if is_integer else HARD, 11), dtype)
    assert len({bits(r) for r in often(f, x, y)}) == 1


@pytest.mark.parametrize("f", BITS, ids=lambda f: f.__name__)
def test_bits_of_integers_are_those_of_the_first_call(f: Callable[..., Any]):
    x, y = arrays(np.resize(WHOLE, 121), np.repeat(WHOLE, 11))
    assert len({bits(r) for r in often(f, x, y)}) == 1


@pytest.mark.parametrize("number", [0.1, -0.0, 3, -7, 1e300, 16_777_217, float("nan"), True, 2.5 + 1j])
@pytest.mark.parametrize("f", PAIRS[:6], ids=lambda f: f.__name__)
def test_python_numbers_are_rounded_as_in_the_first_call(f: Callable[..., Any], number: Any):
    if f in (operator.floordiv, operator.mod) and isinstance(number, complex):
        pytest.skip("complex numbers have no remainders")
    (x,) = arrays(HARD)
    assert len({(bits(r), r.type) for r in often(f, x, number)}) == 1
    assert len({(bits(r), r.type) for r in often(lambda a, b: f(b, a), x, number)}) == 1


@pytest.mark.parametrize("size", [0, 1, 2, 7, 16, 33, 130, 257, 4_099, 65_537])
def test_sums_of_every_size_are_those_of_numpy(size: int):
    values = np.random.default_rng(size).normal(size=(2, size)).astype(np.float32)
    x, y = arrays(*values)
    for result in often(operator.add, x, y):
        assert bits(result) == bits(values[0] + values[1])
    for result in often(operator.neg, x):
        assert bits(result) == bits(-values[0])


def test_a_sum_applied_often_runs_no_python_but_its_method():
    x, y = arrays(HARD, HARD)
    often(operator.add, x, y)
    assert is_native(operator.add, x, y)
    often(operator.add, x, 1.5)
    assert is_native(operator.add, x, 1.5)


def test_many_types_are_told_apart():
    pairs = [arrays(np.ones(n, np.float32), np.full(n, n, np.float32)) for n in range(1, 13)]
    for _ in range(OFTEN + 4):
        for n, (x, y) in enumerate(pairs, 1):
            assert (x + y).shape == (n,)
            assert float((x + y)[0]) == n + 1


def test_derivatives_and_lanes_are_taken_after_native_calls():
    x, y = arrays(HARD[2:4], HARD[2:4])
    often(operator.mul, x, y)
    assert rune.grad(lambda a: rnp.sum(a * y))(x).tolist() == y.tolist()
    assert rune.vmap(lambda a: a * 2.0)(x).tolist() == [2.0, -5.0]
    assert rune.jit(lambda a: a * y)(x).tolist() == (x * y).tolist()


def test_settings_are_obeyed_after_native_calls():
    x, zero = arrays(np.zeros(3, np.float32), np.zeros(3, np.float32))
    often(operator.truediv, x, zero)
    with rune.configure(check_nans=True), pytest.raises(NaNError):
        operator.truediv(x, zero)
    with rune.configure(x64=True):
        assert (x + 1).dtype == np.float32
    (integers,) = arrays(WHOLE)
    often(operator.add, integers, 1)
    with rune.configure(x64=True):
        assert bits(integers + 1) == bits(WHOLE + np.int32(1))


def test_errors_are_those_of_other_calls():
    x, y = arrays(np.ones(3, np.float32), np.ones(4, np.float32))
    often(operator.add, x, x)
    with pytest.raises(ShapeError, match="broadcast"):
        operator.add(x, y)
    with pytest.raises(TypeError):
        operator.add(x, object())
    deleted = rnp.ones(3)
    deleted.delete()
    with pytest.raises(DeletedArrayError):
        operator.add(deleted, x)


def test_strided_committed_and_numpy_operands_are_read():
    base = np.arange(12, dtype=np.float32)
    x, y = arrays(base[::2].copy(), base[:6])
    often(operator.sub, x, y)
    strided = rnp.asarray(base)[::2]
    assert bits(strided - y) == bits(base[::2] - base[:6])
    assert (rune.device_put(x, "cpu") - y).committed
    assert bits(x - base[:6]) == bits(base[::2] - base[:6])


def test_an_operator_is_native_in_every_thread():
    x, y = arrays(HARD, HARD)
    with ThreadPoolExecutor(4) as pool:
        results = [r for part in pool.map(lambda _: often(operator.add, x, y), range(8)) for r in part]
    with np.errstate(over="ignore"):
        assert {bits(r) for r in results} == {bits(HARD + HARD)}


def test_operators_have_signatures():
    x, y = arrays(HARD, HARD)
    often(operator.add, x, y)
    assert Array.__add__.__name__ == "__add__"
