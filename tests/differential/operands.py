"""The operands of each call: random numbers, other dtypes, hard values, Python numbers.

A variant turns the arguments that a case asks for into arrays, or is None if it does not apply to
the case. Draws depend on names alone: the program that stores answers and the tests see the same
numbers. Denormals are left out: XLA flushes them to zero, rune follows NumPy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tests.numpy.spelling import Case, Spec

Operands = tuple[Any, ...]
Variant = Callable[[Case], Operands | None]

HARD_REALS = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 0.5, 2.0, -3.5, 1e-30, 1e30, 3e38, -3e38])
HARD_INTEGERS = (0, 1, -1, 2, 31, 32)


def _generator(case: Case, label: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{case.module} {case.name} @ {label}".encode()))


def _drawn(case: Case, label: str) -> list[np.ndarray]:
    rng = _generator(case, label)
    return [spec.draw(rng) for spec in case.specs]


def _single(x: np.ndarray) -> np.ndarray:
    narrow = {"f": np.float32, "c": np.complex64}.get(x.dtype.kind)
    return x if narrow is None else x.astype(narrow)


def plain(case: Case) -> Operands:
    """The drawn numbers, of single precision."""
    return tuple(map(_single, _drawn(case, "plain")))


def hard(number: int) -> Variant:
    """Half of the numbers are infinite, NaN, zeros of both signs, huge, or the ends of a dtype."""

    def operands(case: Case) -> Operands | None:
        if not any(spec.kind in "fi" or spec.is_real for spec in case.specs):
            return None
        rng = _generator(case, f"hard {number}")
        return tuple(_hardened(s, _single(s.draw(rng)), rng) for s in case.specs)

    return operands


def _hardened(spec: Spec, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if spec.kind in ("b", "n", "z"):
        return x
    values = HARD_REALS if spec.is_real else _hard_integers(x.dtype)
    hard = rng.choice(values, x.shape).astype(x.dtype)
    return np.where(rng.random(x.shape) < 0.5, hard, x)


def _hard_integers(dtype: np.dtype) -> np.ndarray:
    ends = np.iinfo(dtype)
    return np.array([*HARD_INTEGERS, ends.min, ends.max, ends.min + 1], dtype)


def of_dtype(dtype: Any) -> Variant:
    """The real arguments in another dtype; integers are up to 100 in size."""

    def operands(case: Case) -> Operands | None:
        if not any(spec.is_real and spec.kind != "z" for spec in case.specs):
            return None
        arrays = _drawn(case, str(np.dtype(dtype)))
        return tuple(
            _cast(x, dtype) if spec.is_real and spec.kind != "z" else _single(x)
            for spec, x in zip(case.specs, arrays, strict=True)
        )

    return operands


def _cast(x: np.ndarray, dtype: Any) -> np.ndarray:
    if np.dtype(dtype).kind == "b":
        return x > 0
    if np.dtype(dtype).kind in "iu":
        low = 0 if np.dtype(dtype).kind == "u" else -100
        return np.clip(np.round(x * 30), low, 100).astype(dtype)
    return x.astype(dtype)


def python_numbers(case: Case) -> Operands | None:
    """The first element of every argument as a Python number, where all are elementwise."""
    if not case.specs or not all(spec.kind in ("f", "pos", "unit", "big") for spec in case.specs):
        return None
    return tuple(float(np.float32(x.flat[0])) if x.size else 0.0 for x in _drawn(case, "python"))


VARIANTS: Mapping[str, Variant] = {
    "f32": plain,
    "hard 1": hard(1),
    "hard 2": hard(2),
    "bf16": of_dtype(ml_dtypes.bfloat16),
    "c64": of_dtype(np.complex64),
    "i8": of_dtype(np.int8),
    "u32": of_dtype(np.uint32),
    "bool": of_dtype(np.bool_),
    "python": python_numbers,
}
DIFFERENTIATED = ("f32", "hard 1", "hard 2")  # tried with tangents, too
