"""Every case again by generation: other sizes, strides, shapes that broadcast, and dtypes.

A variant is a case on other arguments, made from those that the case draws. The library (NumPy,
SciPy) is the oracle: where it raises, rune must raise an error of its own. Deliberate differences
are in surface_differences.py, each with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import wraps
from typing import Any

import ml_dtypes
import numpy as np

from rune import dtypes, tree
from rune.errors import RuneError
from tests.numpy.spelling import Case
from tests.support.arrays import array
from tests.support.surface_laws import drawn, silently


@dataclass(frozen=True, slots=True)
class Variant:
    """Arguments for the library and for rune, and the relative error that their dtype allows."""

    label: str
    wide_operands: Sequence[Any]
    ours: Sequence[Any]
    error: float = 3e-5

    def __str__(self) -> str:
        return self.label


Variants = Callable[[Case], Iterator[Variant]]


def _sensible(law: Variants) -> Variants:
    """The variants of a law that the case does not exclude."""

    @wraps(law)
    def selected_variants(case: Case) -> Iterator[Variant]:
        variants = law(case)
        return (v for v in variants if not any(fnmatchcase(v.label, p) for p in case.without))

    return selected_variants


# --- sizes ------------------------------------------------------------------------------------


@_sensible
def sizes(case: Case) -> Iterator[Variant]:
    """Each distinct size replaced everywhere by 0, 1 and odd numbers: all at once, and one by one.

    Sizes with a meaning of their own, which the case names, stay.
    """
    extents = sorted({d for s in case.specs for d in s.shape} - set(case.keeps))
    for label, to in _renamings(extents):
        specs = [replace(s, shape=tuple(to.get(d, d) for d in s.shape)) for s in case.specs]
        yield _in_single(label, drawn(replace(case, specs=tuple(specs))))


def _renamings(sizes: list[int]) -> Iterator[tuple[str, dict[int, int]]]:
    if not sizes:
        return
    for size in (0, 1):
        yield f"all {size}", dict.fromkeys(sizes, size)
    yield "odd", dict(zip(sizes, range(5, 99, 2)))
    for old in sizes if len(sizes) > 1 else ():
        for size in (0, 1):
            yield f"{old} to {size}", {s: size if s == old else s for s in sizes}


def _in_single(label: str, data: list[np.ndarray]) -> Variant:
    ours = [array(_rounded(d)) for d in data]
    return Variant(label, [_widened(_rounded(d)) for d in data], ours)


def _rounded(x: np.ndarray) -> np.ndarray:
    return np.asarray(x, {"f": np.float32, "c": np.complex64}.get(np.asarray(x).dtype.kind))


def _widened(x: np.ndarray) -> np.ndarray:
    """The array in the dtype in which the library computes."""
    wider = {dtypes.bf16: np.float64, dtypes.f16: np.float64, dtypes.f32: np.float64}
    return x.astype(wider.get(x.dtype) or {dtypes.c64: np.complex128}.get(x.dtype, x.dtype))


# --- strides ----------------------------------------------------------------------------------


@_sensible
def strides(case: Case) -> Iterator[Variant]:
    """Arrays that are views: every other element, reversed, by columns; of rune and of NumPy."""
    data = [_rounded(d) for d in drawn(case)]
    operands = [_widened(d) for d in data]
    for label, view in _VIEWS.items():
        yield Variant(label, operands, [view(d, array) for d in data])
    yield Variant("views of NumPy", operands, [_every_other(d, np.asarray) for d in data])


def _every_other(x: np.ndarray, function: Any) -> Any:
    return function(np.repeat(x, 2, -1))[..., ::2] if x.ndim else function(x)


def _reversed(x: np.ndarray, function: Any) -> Any:
    back = (slice(None, None, -1),) * x.ndim
    return function(x[back].copy())[back]


def _by_columns(x: np.ndarray, function: Any) -> Any:
    return function(x.T.copy()).T


_VIEWS = {"every other": _every_other, "reversed": _reversed, "by columns": _by_columns}

# --- broadcasting -----------------------------------------------------------------------------

_PAIRS = (
    ((3, 1), (1, 4)),
    ((), (2, 3)),
    ((2, 3), ()),
    ((2, 1, 3), (4, 1)),
    ((0,), (1,)),
    ((2, 0), (1, 1)),
    ((5,), (5,)),
    ((2, 3), (2,)),
    ((3,), (4,)),
    ((0,), (3,)),
)


def is_elementwise_of_two(case: Case) -> bool:
    """Whether the case calls a ufunc of two arguments, and does nothing else."""
    ufunc = getattr(case.oracle, case.name, None)
    return isinstance(ufunc, np.ufunc) and ufunc.nin == 2 and not ufunc.signature


@_sensible
def broadcasts(case: Case) -> Iterator[Variant]:
    """Pairs of shapes that broadcast, and pairs that do not."""
    for pair in _PAIRS:
        specs = [replace(s, shape=shape) for s, shape in zip(case.specs, pair)]
        label = f"{pair[0]} and {pair[1]}".replace(",)", ")")
        yield _in_single(label, drawn(replace(case, specs=tuple(specs))))


# --- dtypes -----------------------------------------------------------------------------------

DTYPES = (
    dtypes.bool_,
    dtypes.i8,
    dtypes.i16,
    dtypes.i32,
    dtypes.i64,
    dtypes.u8,
    dtypes.u16,
    dtypes.u32,
    dtypes.u64,
    dtypes.bf16,
    dtypes.f16,
    dtypes.f32,
    dtypes.f64,
    dtypes.c64,
    dtypes.c128,
)
_MASK, _POSITION = ("b",), ("n",)


@_sensible
def of_dtypes(case: Case) -> Iterator[Variant]:
    """All arguments but masks in one dtype; positions into others only in those of integers."""
    for dtype in DTYPES:
        data = [
            _cast(d, dtype) if k in _changed(case, dtype) else np.asarray(_rounded(d))
            for k, d in enumerate(drawn(case))
        ]
        operands, ours = [_widened(d) for d in data], [array(d, d.dtype) for d in data]
        yield Variant(dtypes.short(dtype), operands, ours, max((_error(d.dtype) for d in data), default=0))


def _changed(case: Case, dtype: np.dtype) -> list[int]:
    kinds = [s.kind for s in case.specs]
    exempt = set(_MASK if set(kinds) - set(_MASK) else ())
    if set(kinds) - {*_MASK, *_POSITION} and dtype not in dtypes.INTEGER:
        exempt.update(_POSITION)
    return [k for k, kind in enumerate(kinds) if kind not in exempt]


def _cast(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Small numbers of the dtype, near those of x and away from 0 where those are."""
    x = np.asarray(x)
    if dtype in dtypes.COMPLEX:
        return np.asarray(x * (1 + 0.5j) if x.dtype.kind == "f" else x).astype(dtype)
    real = np.real(x)
    if dtype in dtypes.INTEGER:
        integers = np.where(real > 0, np.ceil(real), np.floor(real))
        return (np.abs(integers) if dtype in dtypes.UNSIGNED else integers).astype(dtype)
    return real > 0 if dtype == dtypes.bool_ else real.astype(dtype)


def _error(dtype: np.dtype) -> float:
    """The error of a few roundings at a number of magnitude 1."""
    if dtype in dtypes.COMPLEX:
        return {dtypes.c64: 3e-5, dtypes.c128: 1e-10}[dtype]
    if dtype not in dtypes.FLOATING:
        return 3e-5
    return {dtypes.f64: 1e-10, dtypes.f32: 3e-5}.get(dtype, 16 * float(ml_dtypes.finfo(dtype).eps))


# --- agreement --------------------------------------------------------------------------------

_OF_VALUES = (np.linalg.LinAlgError, ZeroDivisionError)


def disagreement(case: Case, variant: Variant) -> str | None:
    """How rune differs from the library, if it does."""
    expected = _outcome(case, case.oracle, variant.wide_operands, (Exception,))
    if isinstance(expected, _OF_VALUES) or _is_out_of_bounds(expected):
        # Errors about values, which no compiled program can raise: NaN, or a clamped index.
        _outcome(case, case.ours, variant.ours, (RuneError, OverflowError))
        return None
    try:
        outcome = _outcome(case, case.ours, variant.ours, (RuneError, OverflowError))
    except Exception as error:
        return f"raises {type(error).__name__}, not an error of its own: {error}"
    if isinstance(expected, Exception):
        return None if isinstance(outcome, Exception) else f"gives {outcome!r} where the oracle raises"
    if isinstance(outcome, Exception):
        return f"raises {str(outcome).splitlines()[0]}"
    return _unequal(expected, outcome, variant.error * case.slack)


def _outcome(case: Case, library: Any, args: Sequence[Any], errors: tuple) -> Any:
    try:
        return silently(case, library, args)
    except errors as error:
        return error


def _is_out_of_bounds(expected: Any) -> bool:
    words = ("out of bounds", "out-of-bounds", "non-empty take")
    return isinstance(expected, IndexError) and any(w in str(expected) for w in words)


def _unequal(expected: Any, actual: Any, error: float) -> str | None:
    expected_leaves, actual_leaves = tree.leaves_with_path(expected), tree.leaves_with_path(actual)
    if [tree.keystr(p) for p, _ in expected_leaves] != [tree.keystr(p) for p, _ in actual_leaves]:
        return f"gives another tree, {actual!r} for {expected!r}"
    with np.errstate(all="ignore"):
        pairs = ((np.asarray(x), np.asarray(y)) for (_, x), (_, y) in zip(expected_leaves, actual_leaves))
        return next((reason for x, y in pairs if (reason := _differs(x, y, error))), None)


def _kind(dtype: np.dtype) -> str:
    if dtype in dtypes.INTEGER:
        return "iu"
    return "f" if dtype in dtypes.FLOATING else dtype.kind


def _differs(x: np.ndarray, y: np.ndarray, error: float) -> str | None:
    if x.shape != y.shape:
        return f"has the shape {y.shape}, not {x.shape}"
    if _kind(x.dtype) != _kind(y.dtype):
        return f"has the dtype {y.dtype}, not {x.dtype}"
    if _kind(x.dtype) == "iu":  # of 64 bits the library's may be; they wrap alike
        return None if np.array_equal(x.astype(y.dtype), y) else f"is {y}, not {x}"
    if x.dtype == bool:
        return None if np.array_equal(x, y) else f"is {y}, not {x}"
    y = y.astype(x.dtype)
    finite = np.abs(x[np.isfinite(x)])
    limit = max(error, _error(x.dtype)) * max(1.0, float(finite.max(initial=0)))
    return None if np.allclose(y, x, limit, limit, equal_nan=True) else f"is {y}, not {x}"
