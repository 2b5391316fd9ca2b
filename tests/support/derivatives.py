"""Directional derivatives by central differences in f64, to compare derivatives with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.support.arrays import array

STEP = 1e-5
WHY = "central differences in f64: h² from truncation, eps / h from rounding"


def directions(rng: np.random.Generator, arrays: Sequence[Any]) -> list[Any]:
    """A random direction for every argument."""
    return [array(_direction(rng, np.asarray(a))) for a in arrays]


def _direction(rng: np.random.Generator, like: np.ndarray) -> np.ndarray:
    real = rng.uniform(-1, 1, like.shape)
    return real + 1j * rng.uniform(-1, 1, like.shape) if np.iscomplexobj(like) else real


def differences(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> np.ndarray:
    """(f(x + h t) - f(x - h t)) / 2h."""
    x, t = [np.asarray(p) for p in primals], [np.asarray(v) for v in tangents]
    upper = function(*(array(a + STEP * b) for a, b in zip(x, t)))
    lower = function(*(array(a - STEP * b) for a, b in zip(x, t)))
    return (np.asarray(upper) - np.asarray(lower)) / (2 * STEP)


def inner(a: Sequence[Any], b: Sequence[Any]) -> float:
    """The inner product of two lists of arrays that transposition keeps.

    Of complex arrays it is the real part of the sum of products, without conjugation.
    """
    products = (np.sum(np.asarray(x) * np.asarray(y)) for x, y in zip(a, b, strict=True))
    return float(sum(np.real(p) for p in products))
