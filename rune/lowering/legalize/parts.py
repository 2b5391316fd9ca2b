"""Equations on arrays of two parts, split into equations on the parts, for legalize/pairs.py.

ops/parts.py has the elementwise functions; movement moves both parts; a sum is two sums; updates in
place and running sums work on both parts at once; a product multiplies halves; a dot is one real
dot with the 2×2 matrices of the second operand, so that a large one is a single library call on the
data in place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune import dtypes
from rune.core.higher import subprograms
from rune.core.interpreter import literal, literal_like, type_of
from rune.core.lower import Bitcast, Contraction, Convert, Cumulative, Position, Reduction, Routine, Scatter, View
from rune.core.program import Atom, Equation, Program, Var, map_programs
from rune.core.staging import Stage, trace_program
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.errors import MissingRule
from rune.lowering.host_calls import AsComplex, host_call
from rune.lowering.legalize.borders import (
    AROUND,
    WITHIN,
    Border,
    Parts,
    from_memory,
    stored_type,
    to_memory,
    with_parts,
)
from rune.lowering.legalize.complex_products import product_over, running_product
from rune.lowering.legalize.interleaved import interleave
from rune.lowering.legalize.pairs import PART, has_parts, mentions_pairs
from rune.lowering.source_calls import source_call
from rune.ops import arithmetic as a
from rune.ops.contraction import Numbers, dot_general
from rune.ops.family import fit
from rune.ops.loop import LoopParams, loop, put_row
from rune.ops.parts import PARTS
from rune.ops.random import key_of_words, key_word
from rune.ops.windows import dynamic_update_slice
from rune.records import replace

BY_PARTS = {
    **PARTS,
    key_of_words: lambda first, second, impl: (first, second),
    key_word: lambda words, number: words[number],
}


def split(program: Program) -> Program:
    """The program in real numbers."""
    return _split_between(AROUND, program)


def _split_between(border: Border, program: Program) -> Program:
    if not mentions_pairs(program):
        return program
    stage = Stage(None)
    types = [t for v in program.inputs for t in border.types(v.type)]

    def run(*numbers: Value) -> list[Value]:
        inputs = iter(numbers)
        env: dict[Var, Value | Parts] = {v: border.enter(v.type, inputs) for v in program.inputs}
        for equation in program.equations:
            before = len(stage.equations)
            env.update(zip(equation.results, _results(equation, env), strict=True))
            # New equations keep the user's line, for errors and profiles.
            for k in range(before, len(stage.equations)):
                stage.equations[k] = replace(stage.equations[k], frame=equation.frame)
        return border.leave(_read(env, atom) for atom in program.outputs)

    trace = trace_program(stage, run, types, program.name)
    assert not trace.captured
    return trace.program


def _read(env: Mapping[Var, Value | Parts], atom: Atom) -> Value | Parts:
    if isinstance(atom, Var):
        return env[atom]
    if not has_parts(atom.type):
        return atom.value
    # One element viewed as two of half its size, in memory order.
    first, second = np.array([atom.value]).view(PART[atom.type.dtype])
    return Parts(atom.type, np.asarray(first), np.asarray(second))


# --- equations --------------------------------------------------------------------------------


def _results(equation: Equation, env: Mapping[Var, Value | Parts]) -> list[Value | Parts]:
    """The values of an equation's results."""
    args = [_read(env, atom) for atom in equation.operands]
    if subprograms(equation):
        return _control(equation, args)
    if equation.primitive is host_call:
        return _call_host(equation, args)
    types = [v.type for v in equation.results]
    has_pairs = any(isinstance(x, Parts) for x in args) or any(map(has_parts, types))
    if isinstance(equation.primitive.lower, Routine) and has_pairs:
        return _call_routine(equation, args)
    if equation.primitive is source_call:
        params = {**equation.params, "results": tuple(map(stored_type, equation.params["results"]))}
        outs = source_call(*map(to_memory, args), **params)
        return [from_memory(v.type, x) for v, x in zip(equation.results, outs, strict=True)]
    if not has_pairs:
        out = equation.primitive(*args, **equation.params)
        return list(out) if equation.primitive.multiple_results else [out]
    return [_shaped(types[0], _split(equation, args, equation.params))]


def _call_host(equation: Equation, args: Sequence[Value | Parts]) -> list[Value | Parts]:
    """A Python function takes and returns arrays of pairs as they lie in memory."""
    results = equation.params["results"]
    has_token = equation.params["has_token"]  # the last operand, which HostFunction removes
    types = tuple(a.type for a in equation.operands)[: -1 if has_token else None]
    params = {
        **equation.params,
        "call": AsComplex(equation.params["call"], types, results),
        "results": tuple(map(stored_type, results)),
    }
    outs = host_call(*map(to_memory, args), **params)
    return [from_memory(v.type, x) for v, x in zip(equation.results, outs, strict=True)]


def _call_routine(equation: Equation, args: Sequence[Value | Parts]) -> list[Value | Parts]:
    """A routine takes and returns complex numbers as they lie in memory (ops/linalg/dense.py)."""
    outs = equation.primitive(*map(to_memory, args), **{**equation.params, "parts": 2})
    values = outs if equation.primitive.multiple_results else [outs]
    return [from_memory(v.type, x) for v, x in zip(equation.results, values, strict=True)]


def _shaped(type: ArrayType, value: Any) -> Value | Parts:
    """A result as `Parts` if its type has parts, else as a real array of its full shape."""
    return Parts(type, *value) if has_parts(type) else fit(value, type.shape)


def _split(equation: Equation, args: Sequence[Any], params: Params) -> Any:
    """One equation on complex numbers or keys, by parts."""
    primitive, type = equation.primitive, equation.results[0].type
    if primitive in BY_PARTS:
        operands = (x.pair if isinstance(x, Parts) else x for x in args)
        return BY_PARTS[primitive](*operands, **params)
    match primitive.lower:
        case Convert():
            return _convert(args[0], type)
        case Bitcast():
            return _bitcast(args[0], type.dtype)
        # These treat both parts alike, so one operation on the array in memory handles both.
        case Scatter(combine=None | "add") | Cumulative("add"):
            return _at_once(equation, args, params)
        # Updated in place: splitting the array would copy it apart and join it again.
        case View() if primitive in (dynamic_update_slice, put_row):
            return _at_once(equation, args, params)
        case View() | Reduction("add"):
            return tuple(primitive(*_side(args, k), **params) for k in (0, 1))
        case Position():
            dtype = PART[type.dtype]
            return primitive(**{**params, "dtype": dtype}), literal(0, dtype)
        case Reduction("mul"):
            return product_over(args[0].full(), params["axes"])
        case Cumulative("mul"):
            return running_product(args[0].full(), params["axis"], params["reverse"])
        case Contraction():
            return _dot(args[0], args[1], params["dimension_numbers"])
    types = ", ".join(str(x.type) for x in equation.operands)
    raise MissingRule(f"lower: cannot compile {primitive} of {types} (it has no rule by parts)", frame=equation.frame)


def _side(args: Sequence[Value | Parts], number: int) -> list[Value]:
    """The arguments with one part of each that has two."""
    return [x.full()[number] if isinstance(x, Parts) else x for x in args]


def _at_once(equation: Equation, args: Sequence[Value | Parts], params: Params) -> tuple[Value, Value, Value]:
    """An operation on the array as it lies in memory, along axes other than the last one."""
    primitive, arrays = equation.primitive, list(map(to_memory, args))
    if primitive is dynamic_update_slice:
        # The start index on the axis of the parts, in the dtype of the other start indices.
        arrays.append(literal(0, dtypes.i32) if len(arrays) == 2 else literal_like(0, arrays[2]))
    if isinstance(primitive.lower, Scatter):
        dims = params["dims"]
        window = (*dims.offset, equation.operands[primitive.lower.updates].type.ndim)
        sizes = (*params["slice_sizes"], 2)
        params = {**params, "dims": replace(dims, offset=window), "slice_sizes": sizes}
    return with_parts(primitive(*arrays, **params), equation.results[0].type.ndim)


def _convert(x: Value | Parts, type: ArrayType) -> tuple[Value, Value]:
    dtype = PART[type.dtype]
    # From a real dtype, so the imaginary part is 0.
    if not isinstance(x, Parts):
        return a.convert(x, dtype=dtype, weak=type.weak), literal(0, dtype)
    real, imag = (a.convert(v, dtype=dtype, weak=type.weak) for v in x.pair)
    return real, imag


def _bitcast(x: Value | Parts, dtype: np.dtype) -> Any:
    """The 64 bits of a c64 and of a real dtype: the real part is the lower half."""
    if isinstance(x, Parts) and dtype in dtypes.COMPLEX:
        return x.pair
    if isinstance(x, Parts):
        low, high = (a.convert(a.bitcast(v, dtype=dtypes.u32), dtype=dtypes.u64) for v in x.full())
        bits = a.logical_or(low, a.shl(high, literal(32, dtypes.u64)))
        return bits if dtype == dtypes.u64 else a.bitcast(bits, dtype=dtype)
    bits = x if type_of(x).dtype == dtypes.u64 else a.bitcast(x, dtype=dtypes.u64)
    halves = bits, a.shr(bits, literal(32, dtypes.u64))
    return tuple(a.bitcast(a.convert(h, dtype=dtypes.u32), dtype=dtypes.f32) for h in halves)


def _control(equation: Equation, args: Sequence[Value | Parts]) -> list[Value | Parts]:
    """Control flow over arrays as they lie in memory, and over the words of single keys."""
    params = map_programs(equation.params, lambda program: _split_between(WITHIN, program))
    if equation.primitive is loop:
        form = LoopParams(**params)
        # A single key is passed as two words, so the number of constants may grow.
        params = replace(form, consts=len(WITHIN.leave(args[: form.consts]))).params()
    outs = iter(equation.primitive(*WITHIN.leave(args), **params))
    return [WITHIN.enter(v.type, outs) for v in equation.results]


def _dot(x: Parts, y: Parts, numbers: Numbers) -> tuple[Value, Value, Value]:
    """One real dot of the interleaved x with the 2×2 matrices [[c, d], [-d, c]] of y.

    (p + iq)(c + id) is the row (p, q) times that matrix; the dot contracts the rows' axis, and the
    columns' axis is the last of the result, which is therefore interleaved.
    """
    (cx, cy), (bx, by) = numbers
    c, d = y.full()
    n = y.type.ndim
    columns = interleave(c, d, axis=n), interleave(a.neg(d), c, axis=n)
    matrices = interleave(*columns, axis=n + 1)
    joint = (((*cx, x.type.ndim), (*cy, n + 1)), (bx, by))
    out = dot_general(x.interleaved(), matrices, dimension_numbers=joint)
    return with_parts(out, type_of(out).ndim - 1)
