"""The answers of this process's `jax` to a program of a hunt, and how exact they are."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from tests.as_jax.hunt.draw import draw
from tests.as_jax.hunt.text import Program, bound, function

WIDER = {"float32": "float64", "float16": "float64", "bfloat16": "float64", "complex64": "complex128"}
NARROW = re.compile(r"\b(float32|float16|bfloat16|complex64)\b")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A result: its bits, and whether its dtype is weak."""

    bits: np.ndarray
    weak: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """A program, and the value of each of its names."""

    program: Program
    leaves: Mapping[str, Leaf]


@dataclass(frozen=True, slots=True)
class Doubt:
    """How far jax's own answer is from one in 64 bits, how far a rounding moves it, and what
    it answers to each statement alone: XLA compiles a few programs wrongly, and some not at all."""

    error: np.ndarray | None
    spread: np.ndarray | None
    alone: Leaf | None
    overflows: np.ndarray | None = None  # elements that are numbers in 64 bits alone


def leaf(value: Any) -> Leaf:
    """The bits of an array."""
    return Leaf(np.asarray(value), bool(getattr(value, "weak_type", False)))


def step_by_step(program: Program, arguments: Mapping[str, np.ndarray]) -> dict[str, Leaf]:
    """Every name of a program, each statement evaluated on its own."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(program.x64):
        warnings.simplefilter("ignore")
        values: dict[str, Any] = {name: jnp.asarray(x) for name, x in arguments.items()}
        for statement in program.statements:
            values |= bound(statement, values)
        return {name: leaf(values[name]) for name in program.results}


def as_one(program: Program) -> dict[str, Leaf]:
    """Every name of a program that is compiled as a whole."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), jax.enable_x64(program.x64):
        warnings.simplefilter("ignore")
        arguments = [jnp.asarray(x) for x in program.arguments.values()]
        results = jax.jit(function(program.source()))(*arguments)
        return {name: leaf(x) for name, x in zip(program.results, results, strict=True)}


def doubt(program: Program, name: str, expected: Leaf) -> Doubt:
    """How exact jax's answer is for one name."""
    try:
        wide = _wide(program)
        truth = step_by_step(wide, wide.arguments)[name].bits
        error = apart(expected.bits, truth)
        overflows = np.isfinite(widest(truth)) & ~np.isfinite(widest(expected.bits))
    except Exception:  # a text that fixes its dtypes has no wide twin
        error = overflows = None
    try:
        neighbours = [step_by_step(program, _nudged(program, k))[name].bits for k in range(4)]
        spread = np.max([apart(expected.bits, m) for m in neighbours], axis=0)
    except Exception:
        spread = None
    try:
        alone = step_by_step(program, program.arguments)[name]
    except Exception:
        alone = None
    return Doubt(error, spread, alone, overflows)


def _wide(program: Program) -> Program:
    statements = tuple(replace(s, text=NARROW.sub(lambda m: WIDER[m[1]], s.text)) for s in program.statements)
    arguments = {n: x.astype(WIDER.get(x.dtype.name, x.dtype.name)) for n, x in program.arguments.items()}
    return Program(program.seed, arguments, statements, True)


def _nudged(program: Program, number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    return {name: _neighbour(x, rng) for name, x in program.arguments.items()}


def _neighbour(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    if x.dtype.kind in "biu":
        return x
    unit = float(ml_dtypes.finfo(x.dtype).eps)
    with np.errstate(all="ignore"):
        return (widest(x) * (1 + rng.choice([-unit, unit], x.shape))).astype(x.dtype)


def widest(x: np.ndarray) -> np.ndarray:
    """The numbers in 64 bits, so that differences can be taken."""
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def apart(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The distance of each pair of elements; 0 for equal ones, NaNs and infinities among them."""
    if x.dtype.kind in "iu" and y.dtype.kind in "iu" and max(x.dtype.itemsize, y.dtype.itemsize) == 8:
        return (x != y).astype(np.float64)
    a, b = widest(x), widest(y)
    with np.errstate(all="ignore"):
        distance = np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf)
        return np.where((a == b) | ((a != a) & (b != b)), 0.0, distance)


def drawn(seeds: Sequence[int]) -> list[Answered]:
    """The programs of these seeds that have statements."""
    answers_of_seeds = [_answered(draw(seed)) for seed in seeds]
    return [a for a in answers_of_seeds if a is not None and a.program.statements]


def _answered(program: Program) -> Answered | None:
    try:
        return Answered(program, as_one(program))
    except Exception:  # refused where it is compiled: no program
        return None
