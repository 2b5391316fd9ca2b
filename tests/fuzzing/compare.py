"""When two values of a random program agree: bit for bit, or up to rounding in smooth programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from rune.core.interpreter import current, use
from tests.fuzzing.meaning import MEANING, wide
from tests.fuzzing.program import Program, Step, evaluate
from tests.support.oracle import Oracle

ROUNDING = {"float32": 5e-4, "complex64": 5e-4, "float64": 1e-9, "complex128": 1e-9}


class Difference(AssertionError):
    """Two ways of running one program that do not agree."""


def rounding(dtype_names: Iterable[str]) -> float:
    """The tolerance, relative to the largest value, for values computed in these dtypes."""
    return max((ROUNDING.get(name, 0.0) for name in dtype_names), default=0.0)


def agree(name: str, expected: Any, actual: Any, relative: float) -> None:
    """Raise a Difference unless shape and dtype are equal, and values but for `relative` of the
    largest; -0 is 0, NaN is NaN."""
    x, y = np.asarray(expected), np.asarray(actual)
    if (x.shape, x.dtype) != (y.shape, y.dtype):
        raise Difference(f"{name} is {y.dtype}{list(y.shape)} for {x.dtype}{list(x.shape)}")
    wrong = ~_equal(x, y, relative if x.dtype.name in ROUNDING else 0.0)
    if wrong.any():
        at = tuple(int(k) for k in np.argwhere(wrong)[0])
        share = f"{int(wrong.sum())} of {wrong.size} elements differ"
        raise Difference(f"{name}[{', '.join(map(str, at))}] is {y[at]} for {x[at]}; {share}")


def _equal(x: np.ndarray, y: np.ndarray, relative: float) -> np.ndarray:
    if x.dtype.kind not in "biu":
        kind = np.complex128 if x.dtype.kind == "c" else np.float64
        x, y = x.astype(kind), y.astype(kind)
    with np.errstate(all="ignore"):
        same = (x == y) | ((x != x) & (y != y))
        if relative:
            scale = np.max(np.abs(x), initial=0.1, where=np.isfinite(x))
            same |= np.abs(x - y) <= relative * scale
    return same


def values(program: Program, args: list[Any]) -> dict[str, Any]:
    """Every named value, step by step, by the meaning of rune's primitives."""
    env = dict(zip((i.name for i in program.inputs), args, strict=True))
    with use(Oracle(current())), np.errstate(all="ignore"):
        for step in program.steps:
            env.update(evaluate(step, env, program.modules))
    return env


def means_what_numpy_says(step: Step, env: Mapping[str, Any], in_bits: bool) -> None:
    """Raise a Difference unless NumPy, given the operands, makes of them what the values are."""
    operands = {name: wide(env[name]) for name in step.operands}
    dtype_names = {env[name].dtype.name for name in (*step.operands, *step.names)}
    with np.errstate(all="ignore"):
        meanings = evaluate(step, operands, MEANING)
    for name in step.names:
        value = env[name]
        with np.errstate(all="ignore"):
            meaning = np.asarray(meanings[name]).astype(value.dtype)
        agree(f"{name} (rune for NumPy)", meaning, value, 0.0 if in_bits else rounding(dtype_names))
