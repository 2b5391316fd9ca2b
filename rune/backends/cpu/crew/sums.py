"""Sums and extremes of several arrays as native code, in the fixed tree of rune/ops/among.py.

    @combine(operands, origin, target, bytes)    target[i] = operands[0][i] + operands[1][i] + ...

`operands` points to pointers, and `origin` is the offset in bytes at which the work begins in each.
Neighbours are combined first, then neighbours of those, element by element: bitwise the results
that NumPy gives for entire arrays, zeros and NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler
from rune.backends.cpu.crew.words import byte
from rune.backends.cpu.routines import Code, define
from rune.lowering.codegen.llvm.ir.text import Value

_FLOATS = {dtypes.f32: "float", dtypes.f64: "double"}
_PARTS = {dtypes.c64: "float", dtypes.c128: "double"}  # complex numbers are summed by their parts
_SIGNED = {dtypes.i8: "i8", dtypes.i16: "i16", dtypes.i32: "i32", dtypes.i64: "i64"}
_UNSIGNED = {dtypes.u8: "i8", dtypes.u16: "i16", dtypes.u32: "i32", dtypes.u64: "i64"}
_TRUTHS = {dtypes.bool_: "i8"}  # 0 and 1, of which there are extremes alone
_BYTES = {"float": 4, "double": 8, "i8": 1, "i16": 2, "i32": 4, "i64": 8}


def is_known(kind: str, dtype: np.dtype) -> bool:
    """Whether native code can combine arrays of this dtype by psum, pmax or pmin."""
    return dtype in {**_FLOATS, **_SIGNED, **_UNSIGNED, **(_PARTS if kind == "psum" else _TRUTHS)}


def function(kind: str, dtype: np.dtype, count: int) -> int:
    """The address of `combine` for `count` operands."""
    scalar = {**_FLOATS, **_PARTS, **_SIGNED, **_UNSIGNED, **_TRUTHS}[dtype]
    suffix = "u" if dtype in {**_UNSIGNED, **_TRUTHS} and kind != "psum" else ""
    return _code(f"{kind}{suffix}", scalar, count).address("combine")


@compiler.lasting
def _code(kind: str, scalar: str, count: int) -> compiler.Code:
    signature = ("void", "combine", "ptr operands, i64 origin, ptr target, i64 bytes")
    return compiler.compile_module("combine", define(signature, partial(_combine, kind, scalar, count), ""))


def _combine(
    kind: str, scalar: str, count: int, code: Code, operands: Value, origin: Value, target: Value, bytes: Value
) -> None:
    starts = [byte(code, _operand(code, operands, k), origin) for k in range(count)]
    size, width = _BYTES[scalar], compiler.machine().vector_bytes
    dense = bytes.binary("and", -width)

    def step(type: str, at: Value) -> None:
        # Aligned to elements only: a part of an array may begin at any of them.
        values = [code.load(type, byte(code, start, at), size) for start in starts]
        code.store(in_tree(partial(_pair, kind), values), byte(code, target, at), size)

    code.count_up(code.constant("i64", 0), dense, width, partial(step, f"<{width // size} x {scalar}>"))
    code.count_up(dense, bytes, size, partial(step, scalar))


def _operand(code: Code, operands: Value, number: int) -> Value:
    return code.load("ptr", code.item(operands, "ptr", number))


def in_tree(combine: Callable[[Value, Value], Value], values: Sequence[Value]) -> Value:
    """The values combined two by two, neighbours first."""
    while len(values) > 1:
        pairs = [combine(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
        values = [*pairs, values[-1]] if len(values) % 2 else pairs
    return values[0]


def _pair(kind: str, a: Value, b: Value) -> Value:
    if kind == "psum":
        return a + b
    order = "gt" if kind.startswith("pmax") else "lt"
    if not a.is_float:
        return a.writer.select(a.compare(f"{'u' if kind.endswith('u') else 's'}{order}", b), a, b)
    # As in NumPy: of two zeros the second one, and NaN always wins.
    return a.writer.select(a.compare(f"o{order}", b) | a.is_nan(), a, b)
