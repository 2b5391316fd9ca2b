"""The program of a seed, written where jax runs: arguments of odd sizes, lines and blocks."""

from __future__ import annotations

from collections.abc import Callable

import jax
import ml_dtypes
import numpy as np

from tests.as_jax.hunt.functions import transformed_function
from tests.as_jax.hunt.structures import structure
from tests.as_jax.hunt.tables import KINDS, SMOOTH
from tests.as_jax.hunt.text import Program
from tests.as_jax.hunt.writer import Type, Writer

SMALL = (1, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 11, 13, 17, 31)
LIMITS = (63, 64, 65, 127, 128, 129, 130, 255, 256, 257, 509, 1023, 1024, 1025, 4097)
HUGE = 65_537
NARROW = ("int32", "int32", "int8", "uint8", "uint32", "int16", "uint16", "bool")
HALVES = ("float16", "bfloat16", "complex64")
MANNERS = ("smooth", "whole", "hard", "ties", "wide")


def _grow(w: Writer, is_smooth: bool) -> None:
    if w.chance(0.3):
        structure(w, is_smooth)
    elif w.chance(0.5 if is_smooth else 0.2):
        transformed_function(w, is_smooth)
    else:
        w.add_of(SMOOTH if is_smooth and w.chance(0.3) else KINDS)


def draw(seed: int, grow: Callable[[Writer, bool], object] = _grow) -> Program:
    """The program of a seed; it may have no statements. grow: adds a statement, or does not."""
    rng = np.random.default_rng(seed)
    x64, is_smooth = seed % 5 == 0, seed % 2 == 0
    w = Writer(rng, x64)
    arguments = _arguments(w, is_smooth)
    with np.errstate(all="ignore"), jax.enable_x64(x64):
        w.values |= {name: Type(x.shape, x.dtype) for name, x in arguments.items()}
        length = 2 + w.below(4)
        for _ in range(4 * length):
            grow(w, is_smooth)
            if len(w.statements) >= length:
                break
    read = {n for s in w.statements for n in s.operands}
    return Program(seed, {n: x for n, x in arguments.items() if n in read}, tuple(w.statements), x64)


def _arguments(w: Writer, is_smooth: bool) -> dict[str, np.ndarray]:
    pool = [w.choose(SMALL) for _ in range(2)] + [w.choose(LIMITS)] * w.chance(0.25) + [0] * w.chance(0.06)
    pool += [1] * w.chance(0.3)
    wide = ("float64", "int64", "float64", "complex128", "uint64") if w.x64 else ()
    floats = ("float32", "float32", "float32", *(["float64"] * 3 if w.x64 else ["bfloat16"]))
    all_dtypes = (*["float32"] * 6, *NARROW, *HALVES, *wide)
    arguments: dict[str, np.ndarray] = {}
    for k in range(2 + w.below(3)):
        dtype = w.choose(floats) if is_smooth or k == 0 else w.choose(all_dtypes)
        manner = "smooth" if is_smooth else w.choose(MANNERS)
        arguments[f"v{k}"] = numbers(w.rng, _shape(w, pool), dtype, manner)
    if w.chance(0.4):  # positions, some of which lie outside
        n = w.choose(pool)
        arguments[f"v{len(arguments)}"] = w.rng.integers(-n - 2, n + 3, w.choose([(), (3,), (2, 2)])).astype("int32")
    if w.chance(0.02):
        arguments["v0"] = numbers(w.rng, (HUGE,), "float32", "smooth")
    return arguments


def _shape(w: Writer, pool: list[int]) -> tuple[int, ...]:
    while True:
        shape = tuple(w.choose(pool) for _ in range(w.choose([0, 1, 1, 2, 2, 2, 3, 3, 4])))
        if np.prod(shape) <= 5000:
            return shape


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype_name: str, manner: str) -> np.ndarray:
    """Values of one kind: gentle, whole, with extremes, with many equal ones, of any magnitude."""
    dtype = np.dtype(ml_dtypes.bfloat16 if dtype_name == "bfloat16" else dtype_name)
    if dtype.kind == "c":
        parts = [numbers(rng, shape, "float32", manner) for _ in range(2)]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    if dtype.kind in "biu":
        return _integers(rng, shape, dtype, manner)
    match manner:
        case "smooth":
            values = rng.normal(size=shape)
        case "wide":
            values = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, shape)
        case "ties":
            values = rng.choice([-1.0, 0.0, 0.5, 2.0], shape)
        case _:
            values = rng.integers(-4, 5, shape).astype(float)
    with np.errstate(all="ignore"):
        numbers_ = np.asarray(values).astype(dtype)
        if manner == "hard":
            info = ml_dtypes.finfo(dtype)
            extremes = [
                np.nan,
                np.inf,
                -np.inf,
                -0.0,
                info.max,
                -info.max,
                info.tiny,
                info.smallest_subnormal,
                info.eps,
            ]
            hard = rng.choice(np.array(extremes, dtype=np.float64), shape).astype(dtype)
            numbers_ = np.where(rng.random(shape) < 0.2, hard, numbers_)
    return numbers_


def _integers(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, manner: str) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    info = np.iinfo(dtype)
    if manner == "hard":
        extremes = np.array([info.min, info.max, 0, 1, info.max - 1, info.max // 2], dtype)
        return rng.choice(extremes, shape)
    if manner == "wide":
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    return rng.integers(0 if dtype.kind == "u" else -5, 7, shape).astype(dtype)
