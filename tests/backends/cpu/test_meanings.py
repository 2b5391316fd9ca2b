"""Functions of primitives for operands of known types have the bits of the NumPy expression."""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.backends.cpu.meanings import meaning_of
from rune.core.types import ArrayType
from rune.ops.arithmetic import select
from rune.ops.movement import slice_
from rune.ops.scalars import MANY
from rune.ops.transcendental import integer_pow
from tests.support.close import same

DTYPES = [dtypes.f32, dtypes.f64, dtypes.bf16, dtypes.f8_e5m2, dtypes.c64, dtypes.i32, dtypes.u8, dtypes.i4]


def drawn(shape: tuple[int, ...], dtype: np.dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-7, 8, shape).astype(np.float64).astype(dtype)


def types(*arrays: np.ndarray) -> list[ArrayType]:
    return [ArrayType(x.shape, x.dtype) for x in arrays]


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_a_slice_has_the_elements_of_numpys(dtype: np.dtype):
    for x in (drawn((7, 5), dtype), drawn((5, 7), dtype).T):
        run = meaning_of(slice_, types(x), {"start": (1, 0), "limit": (6, 5), "stride": (2, 3)})

        same(np.asarray(run(x)), x[1:6:2, 0:5:3])
    point = drawn((), dtype)
    same(np.asarray(meaning_of(slice_, types(point), {"start": (), "limit": (), "stride": ()})(point)), point)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
@pytest.mark.parametrize("size", [1, 13, MANY - 1, MANY])
def test_selected_elements_are_those_of_where(size: int, dtype: np.dtype):
    mask = np.random.default_rng(1).random(size) < 0.5
    for a, b in ((drawn((size,), dtype), drawn((size,), dtype, 2)), (drawn((size,), dtype)[::-1], drawn((), dtype))):
        run = meaning_of(select, types(mask, a, b), {})

        same(np.asarray(run(mask, a, b)), np.where(mask, a, b))


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
@pytest.mark.parametrize("exponent", [0, 2, 3, 5])
def test_powers_are_rounded_once(exponent: int, dtype: np.dtype):
    x = drawn((3, 5), dtype)
    expected = np.asarray(integer_pow.reference(x, exponent=exponent))  # type: ignore[misc]
    if dtype in dtypes.FLOATING:
        expected = (x.astype(np.float64) ** exponent).astype(dtype)

    same(np.asarray(meaning_of(integer_pow, types(x), {"exponent": exponent})(x)), expected)
