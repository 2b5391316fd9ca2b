"""Random well-typed programs, drawn from the table of primitives.

A step of a program is a sample of some primitive (tests/ops/samples.py) whose operands are made
from values that the program already has: flattened, cut or padded, converted, and moved into the
sample's domain. So a new primitive takes part as soon as it has a sample, and floating values stay
of moderate size. Some steps are wrapped in jit, and some operands are closed-over constants.

    programs()                      any primitive, over the dtypes given
    programs(SMOOTH, f64)           programs whose derivatives can be compared with differences
    programs(WHOLE, i32)            programs of whole numbers and bools alone
    arguments(program)              arrays for its inputs
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import rune
from rune import dtypes, ops
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.types import ArrayType
from tests.ops.calls import Operand, Sample
from tests.ops.samples import samples
from tests.support.arrays import array

# Functions with jumps or ties anywhere, whose derivatives cannot be checked by differences;
# and those that cut derivatives.
UNSMOOTH = frozenset(
    {
        "max",
        "min",
        "reduce_max",
        "reduce_min",
        "cummax",
        "cummin",
        "abs",
        "sign",
        "floor",
        "ceil",
        "round",
        "trunc",
        "rem",
        "copysign",
        "nextafter",
        "bitcast",
        "stop_gradient",
        "reduce_precision",
    }
)
SHAPES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 3), (4, 1), (2, 0), (2, 3, 2))


def _is_smooth(primitive: Primitive) -> bool:
    differentiable = any(s.active for s in samples(primitive)) and primitive.name not in UNSMOOTH
    return differentiable and primitive.family not in ("comparison", "bits")


@functools.cache
def _samples_in(primitive: Primitive, kinds: tuple[np.dtype, ...]) -> tuple[Sample, ...]:
    """Samples in the program's dtypes: those in f64 are moved to the first of them."""
    distinct = {str(m): m for s in samples(primitive) if _uses(m := _in(s, kinds[0]), kinds)}
    return tuple(distinct.values())


def _in(sample: Sample, floating: np.dtype) -> Sample:
    def common_dtype(dtype: np.dtype) -> np.dtype:
        return floating if dtype in (dtypes.f32, dtypes.f64) else dtype

    operands = tuple(replace(o, dtype=common_dtype(o.dtype)) for o in sample.operands)
    params = {k: common_dtype(v) if isinstance(v, np.dtype) else v for k, v in sample.params.items()}
    return replace(sample, operands=operands, params=params)


def _uses(sample: Sample, kinds: Sequence[np.dtype]) -> bool:
    try:
        out = sample.primitive.type_rule(*sample.types, **sample.params)
    except rune.errors.RuneError:
        return False
    return all(t.dtype in kinds for t in (*sample.types, out))


ANY: tuple[Primitive, ...] = ops.PRIMITIVES
SMOOTH: tuple[Primitive, ...] = tuple(p for p in ops.PRIMITIVES if _is_smooth(p))
WHOLE: tuple[Primitive, ...] = tuple(p for p in ops.PRIMITIVES if _samples_in(p, (dtypes.i32, dtypes.bool_)))


def shapes() -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of rank 0 to 3, size 1 and size 0 included."""
    return st.sampled_from(SHAPES)


def types(kinds: Sequence[np.dtype]) -> st.SearchStrategy[ArrayType]:
    """Array types of the given dtypes."""
    return st.builds(ArrayType, shapes(), st.sampled_from(kinds))


def _one_of(primitives: tuple[Primitive, ...]) -> st.SearchStrategy[Primitive]:
    """Some primitive; every family equally often, whatever its size."""
    families = {p.family: [q for q in primitives if q.family == p.family] for p in primitives}
    return st.sampled_from(list(families.values())).flatmap(st.sampled_from)


@st.composite
def programs(
    draw: st.DrawFn,
    primitives: Sequence[Primitive] = ANY,
    floating: np.dtype = dtypes.f32,
    input_kinds: Sequence[np.dtype] = (dtypes.i32, dtypes.bool_),
    max_steps: int = 4,
) -> Program:
    """A program of a few steps; its values are of the floating dtype, i32 and bool.

    Inputs are of the floating dtype and of `input_kinds`.
    """
    kinds = (floating, dtypes.i32, dtypes.bool_)
    first, others = types([floating]), types([floating, *input_kinds])
    inputs = [draw(first), *draw(st.lists(others, max_size=2))]
    possible = tuple(p for p in primitives if _samples_in(p, kinds))
    steps = draw(st.lists(_one_of(possible), min_size=1, max_size=max_steps))

    def function(*args: Any) -> list[Any]:
        pool = list(args)
        for primitive in steps:
            sample = draw(st.sampled_from(_fitting(primitive, kinds)))
            pool.append(_step(draw, sample, pool))
        earlier = draw(st.lists(st.sampled_from(pool), max_size=2))
        return [pool[-1], *earlier]

    return rune.make_program(function)(*inputs)


def _fitting(primitive: Primitive, kinds: tuple[np.dtype, ...]) -> tuple[Sample, ...]:
    fitting = _samples_in(primitive, kinds)
    assert fitting, f"{primitive.name}: no sample in {', '.join(map(dtypes.short, kinds))}"
    return fitting


def _step(draw: st.DrawFn, sample: Sample, pool: Sequence[Any]) -> Any:
    operands = [_operand(draw, o, pool) for o in sample.operands]

    def apply(*values: Any) -> Any:
        return sample.primitive(*values, **sample.params)

    in_program = bool(operands) and draw(st.integers(0, 4)) == 4
    return rune.jit(apply)(*operands) if in_program else apply(*operands)


def _operand(draw: st.DrawFn, operand: Operand, pool: Sequence[Any]) -> Any:
    """A value of the wanted type and domain, made from one of the pool, or a constant."""
    if draw(st.integers(0, 5)) == 5:
        return array(operand.draw(np.random.default_rng(draw(st.integers(0, 9)))))
    value = draw(st.sampled_from(pool))
    return in_domain(_converted(reshaped(value, operand.shape), operand.dtype), operand)


def reshaped(value: Any, shape: tuple[Any, ...]) -> Any:
    """A value of any shape from another: cut, or padded with zeros, in row-major order."""
    operand_type, count = type_of(value), math.prod(shape)
    if operand_type.shape == shape:
        return value
    size = math.prod(operand_type.shape)
    flat = ops.reshape(value, shape=(size,))
    if size > count:
        flat = ops.slice_(flat, start=(0,), limit=(count,), stride=(1,))
    if size < count:
        zero = np.zeros((), operand_type.dtype)
        flat = ops.pad(flat, zero, low=(0,), high=(count - size,), interior=(0,))
    return ops.reshape(flat, shape=shape)


def _converted(value: Any, dtype: np.dtype) -> Any:
    operand_dtype = type_of(value).dtype
    if operand_dtype == dtype:
        return value
    if dtype == dtypes.bool_:
        return ops.ne(value, np.zeros((), operand_dtype))
    return ops.convert(value, dtype=dtype)


def in_domain(value: Any, operand: Operand) -> Any:
    """The value moved between the bounds of the sample, smoothly where it is floating."""
    dtype = operand.dtype
    low, high = (np.asarray(b).astype(dtype) for b in (operand.low, operand.high))
    if dtype in dtypes.FLOATING:
        return ops.add(ops.mul(ops.logistic(value), high - low), low)
    if dtype in dtypes.INTEGER:
        return ops.max(ops.min(value, high), low)
    return value


def concrete(type: ArrayType, rng: np.random.Generator) -> Any:
    """An array of a type."""
    if type.dtype in dtypes.FLOATING:
        return array(rng.uniform(-2, 2, type.shape).astype(type.dtype))
    if type.dtype == dtypes.bool_:
        return array(rng.integers(0, 2, type.shape).astype(bool))
    return array(rng.integers(-5, 6, type.shape).astype(type.dtype))


@st.composite
def arguments(draw: st.DrawFn, program: Program) -> list[Any]:
    """Arrays for the inputs of a program."""
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    return [concrete(t, rng) for t in program.input_types]
