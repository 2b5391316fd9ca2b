"""Every elementwise function gives the same on hard values: eager, compiled and by NumPy.

NaN, infinities, both zeros, denormals and the ends of the dtype, in all pairs; types, errors and
values, within the ulps of docs/accuracy.md.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.errors import RuneError
from tests.support.close import ulp_distance

DTYPES = ("float32", "float16", "bfloat16", "int8", "uint8", "bool", "complex64")
# docs/accuracy.md; two complex answers may each be 6 from the truth.
ULPS = {"f32": 4, "f16": 1, "bf16": 1, "c64": 12}
NAMES = sorted(
    name
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc)
    and hasattr(rnp, name)
    and getattr(np, name).nout == 1
    and getattr(np, name).signature is None
)
# Where NumPy's own answer differs, by intent (docs/guide/from-numpy.md) or by its mistake.
OTHER_THAN_NUMPY = {
    "expm1",
    "reciprocal",
    "sign",  # complex: parts of infinities
    "nextafter",  # which of two zeros, in f16
    "spacing",  # of negative f16 NumPy's are positive
    "fmax",
    "fmin",
    "maximum",
    "minimum",  # which of two zeros
    "logaddexp",
    "logaddexp2",  # in f16 NumPy rounds each step
}


def hard_values(kind: str) -> np.ndarray:
    """Numbers of the dtype at which functions go wrong; complex ones are finite."""
    dtype = dtypes.as_dtype(kind)
    if dtype == dtypes.bool_:
        return np.array([False, True])
    if dtype in dtypes.INTEGER:
        info = np.iinfo(dtype)
        small = [-3, -1] if info.min else []
        return np.array([info.min, info.min + 1, *small, 0, 1, 2, 7, info.max - 1, info.max], dtype)
    if dtype in dtypes.COMPLEX:
        parts = (0.0, 1.0, -2.5, 0.5)
        return np.array([complex(x, y) for x in parts for y in parts], dtype)
    info = ml_dtypes.finfo(dtype)
    ends = (float(info.max), float(info.smallest_normal), float(info.smallest_subnormal))
    ends = (*ends, ends[1] / 2)
    middle = (0.0, 1.0, 0.5, 2.0, 3.0, 1e-3, 3.4, 100.0, np.inf)
    return np.array([np.nan, *(s * x for x in (*middle, *ends) for s in (1, -1))]).astype(dtype)


def operands(name: str, kind: str) -> list[np.ndarray]:
    values = hard_values(kind)
    if getattr(np, name).nin == 1:
        return [values]
    return [np.repeat(values, len(values)), np.tile(values, len(values))]


def arrays(name: str, kind: str) -> list[Any]:
    return [rnp.asarray(x, dtype=kind) for x in operands(name, kind)]


def refusal(name: str, kind: str) -> str | None:
    """The error of a call, eagerly."""
    try:
        getattr(rnp, name)(*arrays(name, kind))
    except RuneError as error:
        return type(error).__name__
    return None


def distance(expected: np.ndarray, actual: np.ndarray) -> float:
    """The distance in ulps; infinite if integers, or the signs of zeros, differ."""
    if expected.dtype not in dtypes.INEXACT:
        return np.inf if (expected != actual).any() else 0.0
    if expected.dtype in dtypes.FLOATING:
        zeros = (expected == 0) & (actual == 0)
        if (np.signbit(expected) != np.signbit(actual))[zeros].any():
            return np.inf
    with np.errstate(all="ignore"):
        return float(ulp_distance(expected, actual).max(initial=0))


@pytest.mark.parametrize("kind", DTYPES)
def test_compiled_functions_equal_eager_functions_on_hard_values(kind: str):
    names = [name for name in NAMES if refusal(name, kind) is None]
    operands_of = {name: arrays(name, kind) for name in names}

    eager = {name: getattr(rnp, name)(*xs) for name, xs in operands_of.items()}
    results = rune.jit(lambda operands_of: {n: getattr(rnp, n)(*xs) for n, xs in operands_of.items()})(operands_of)

    for name in names:
        expected, actual = eager[name], results[name]
        assert (actual.type, name) == (expected.type, name)
        limit = ULPS.get(dtypes.short(expected.dtype), 0)
        assert distance(np.asarray(expected), np.asarray(actual)) <= limit, name


VAGUE = complex(-0.0, np.inf)


@pytest.mark.parametrize(
    ("base", "exponent"), [(VAGUE, VAGUE), (VAGUE, 1j), (0j, -2.5 + 0j), (0j, 1j), (0j, 0j), (0j, 2.5 + 1j)]
)
def test_powers_of_complex_zeros_and_infinities_have_a_value_where_numpy_has_one(base: complex, exponent: complex):
    with np.errstate(all="ignore"):
        expected = np.isnan(np.power(np.complex64(base), np.complex64(exponent)))

    for power in (rnp.power, rune.jit(rnp.power)):
        result = np.asarray(power(rnp.asarray(base), rnp.asarray(exponent)))
        assert np.isnan(result) == expected


@pytest.mark.parametrize("kind", DTYPES)
def test_a_call_refused_eagerly_is_refused_while_tracing(kind: str):
    for name in NAMES:
        error = refusal(name, kind)
        if error is not None:
            with pytest.raises(RuneError) as traced_error:
                rune.eval_shape(getattr(rnp, name), *arrays(name, kind))
            assert (name, type(traced_error.value).__name__) == (name, error)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8", "uint8", "bool", "complex64"])
def test_functions_agree_with_numpy_on_hard_values(kind: str):
    for name in NAMES:
        if name in OTHER_THAN_NUMPY or refusal(name, kind) is not None:
            continue
        actual = np.asarray(getattr(rnp, name)(*arrays(name, kind)))
        expected = by_numpy(name, kind, actual.dtype)
        if expected is not None:
            assert distance(expected, actual) <= ULPS.get(dtypes.short(actual.dtype), 0), name


def by_numpy(name: str, kind: str, dtype: np.dtype) -> np.ndarray | None:
    """NumPy's answer, where it has one of this dtype."""
    if dtype in dtypes.INTEGER and name == "floor_divide":
        return None  # x // 0 has all bits set here, as in JAX
    with np.errstate(all="ignore"):
        try:
            value = getattr(np, name)(*operands(name, kind))
        except (TypeError, ValueError):
            return None
    return value if value.dtype == dtype else None
