"""Real rows of even length: complex ones of half the length, of neighbours taken as parts.

    forward    z[j] = x[2j] + i x[2j+1], and of its transform Z
               X[k] = (Z[k] + conj Z[h-k]) / 2 + exp(-2πi k/n) (Z[k] - conj Z[h-k]) / 2i
    inverse    Z from X by the same lines backwards, and its inverse transform

Source: Sorensen, Jones, Heideman & Burrus 1987, "Real-valued fast Fourier transform algorithms",
IEEE Trans. ASSP 35(6), §II.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

import numpy as np

from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.fft import rows
from rune.backends.cpu.fft.lines import put_pairs, put_together_function, take_apart_function, take_pairs
from rune.backends.cpu.fft.stages import declarations
from rune.backends.cpu.fft.tables import half_turns
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, block_count, maker
from rune.lowering.codegen.llvm.ir.text import Value
from rune.ops.complex_numbers import PART, WHOLE

_POINTERS = "source target even odd turns real imag between work words"


def is_routine(n: int, dtype: np.dtype) -> bool:
    """Whether the routine takes rows of n numbers of this real dtype."""
    return n % 2 == 0 and rows.is_routine(n // 2, WHOLE[dtype])


def transformed(x: np.ndarray) -> np.ndarray:
    """Frequencies 0 to n/2 of real rows."""
    result = np.empty((*x.shape[:-1], x.shape[-1] // 2 + 1), WHOLE[x.dtype])
    _run("forward", x, result, x.shape[-1])
    return result


def inverse(x: np.ndarray) -> np.ndarray:
    """Real rows of even length from their frequencies."""
    n = 2 * (x.shape[-1] - 1)
    result = np.empty((*x.shape[:-1], n), PART[x.dtype])
    _run("inverse", x, result, n)
    return result


def _run(name: str, x: np.ndarray, result: np.ndarray, n: int) -> None:
    source, dtype = np.ascontiguousarray(x), PART.get(x.dtype, x.dtype)
    length, turns = rows.length_of(n // 2, dtype), _turns(n, dtype)
    memory, (real, imag, *places) = length.memory()
    # As in rows.py, parts are exchanged around an inverse.
    even, odd = (imag, real) if name == "inverse" else (real, imag)
    pointers = source.ctypes.data, result.ctypes.data, even, odd, turns.ctypes.data, real, imag, *places
    # Folding needs the 1/2 of the formula. Unfolding leaves 2 Z, of n/2 numbers: 1 / (2 n/2).
    factor = 1 / n if name == "inverse" else 0.5
    _entry(name, dtype)(*pointers, length.address, source.size // source.shape[-1], factor)
    del memory  # which was in use until here


@functools.lru_cache(maxsize=64)
def _turns(n: int, dtype: np.dtype) -> np.ndarray:
    return half_turns(n, dtype)


@functools.cache
def _entry(name: str, dtype: np.dtype) -> Callable[..., None]:
    factor = {"float": ctypes.c_float, "double": ctypes.c_double}[rows.shape_of(dtype).scalar]
    kinds = [*[ctypes.c_void_p] * len(_POINTERS.split()), ctypes.c_int64, factor]
    return ctypes.CFUNCTYPE(None, *kinds)(_code(name, dtype).address(name))


@compiler.lasting
def _code(name: str, dtype: np.dtype) -> compiler.Code:
    shape, parts = rows.shape_of(dtype), rows.parts_address(dtype)
    pieces = {"forward": (take_apart_function, fold_function), "inverse": (unfold_function, put_together_function)}

    def write() -> str:
        texts = [declarations(shape), *(piece(shape) for piece in pieces[name])]
        return "\n\n".join([*texts, rows.public(rows_function(shape, name, parts))])

    return compiler.compile_routine("real rows", (name, str(dtype)), {"parts": parts}, write, conventions.HURRY)


def rows_function(shape: Shape, name: str, parts: int) -> str:
    """The transform of each of `count` rows, or its inverse, times `factor`.

    parts: the address of what transforms one complex row (rows.parts_function)
    """
    make = maker(shape)
    source, target, even, odd, turns, *row_memory = make.pointers(_POINTERS)
    real, imag, *_, words = row_memory
    (count,), half = make.sizes("count"), make.writer.load("i64", words)
    factor = Value(make.writer, shape.scalar, "%factor")
    transform = f"call void inttoptr (i64 {parts} to ptr)({', '.join(f'ptr {p.text}' for p in row_memory)})"

    def forward(number: Value) -> None:
        make.call("take_apart", make.at(source, number * half * 2), even, odd, half)
        make.writer.do(transform)
        make.call("fold", real, imag, turns, make.at(target, number * (half + 1) * 2), half, factor)

    def inverse(number: Value) -> None:
        make.call("unfold", make.at(source, number * (half + 1) * 2), turns, even, odd, half)
        make.writer.do(transform)
        make.call("put_together", even, odd, make.at(target, number * half * 2), half, factor)

    make.each(count, {"forward": forward, "inverse": inverse}[name])
    return make.text(f"{name}({', '.join(f'ptr %{p}' for p in _POINTERS.split())}, i64 %count, {shape.scalar} %factor)")


def fold_function(shape: Shape) -> str:
    """Frequencies 0 to h of the real row from Z, times a factor: h + 1 pairs.

    Z[h] is Z[0], which is put there first. The last vector ends with the last pair.
    """
    make = maker(shape)
    (real, imag, turns, pairs), (half,) = make.pointers("real imag turns pairs"), make.sizes("half")
    factor = _factor(make)
    for part in (real, imag):
        make.writer.store(make.scalar(part), make.at(part, half))

    def block(number: Value) -> None:
        first = (number * shape.lanes).call("smin", half + 1 - shape.lanes)
        # The vector of h - k for the lanes of k, in reverse order.
        last = half - first - (shape.lanes - 1)
        a, b = (make.vector(make.at(part, first)) * factor for part in (real, imag))
        c, d = (_reversed(make, make.vector(make.at(part, last))) * factor for part in (real, imag))
        cosine, sine = _turn(make, turns, first, half)
        x, y = b + d, c - a  # of (Z[k] - conj Z[h-k]) / i
        put_pairs(
            make, x.fma(cosine, (-y).fma(sine, a + c)), y.fma(cosine, x.fma(sine, b - d)), make.at(pairs, first * 2)
        )

    make.each(block_count(half + 1, shape.lanes), block)
    return make.text(f"fold(ptr %real, ptr %imag, ptr %turns, ptr %pairs, i64 %half, {shape.scalar} %factor)")


def unfold_function(shape: Shape) -> str:
    """2 Z from the frequencies of a real row; imaginary parts at both ends count as 0."""
    make = maker(shape)
    (pairs, turns, real, imag), (half,) = make.pointers("pairs turns real imag"), make.sizes("half")

    def block(number: Value) -> None:
        first = (number * shape.lanes).call("smin", half - shape.lanes)
        last = half - first - (shape.lanes - 1)
        a, b = take_pairs(make, make.at(pairs, first * 2))
        c, d = (_reversed(make, part) for part in take_pairs(make, make.at(pairs, last * 2)))
        cosine, sine = _turn(make, turns, first, half)
        x, y = a - c, b + d  # of X[k] - conj X[h-k], which is turned back
        u, v = x.fma(cosine, y * sine), y.fma(cosine, -(x * sine))
        make.put(a + c - v, make.at(real, first))
        make.put(b - d + u, make.at(imag, first))

    make.each(block_count(half, shape.lanes), block)
    ends = make.scalar(pairs), make.scalar(make.at(pairs, half * 2))
    make.writer.store(ends[0] + ends[1], real)
    make.writer.store(ends[0] - ends[1], imag)
    return make.text("unfold(ptr %pairs, ptr %turns, ptr %real, ptr %imag, i64 %half)")


def _factor(make: Maker) -> Value:
    return make.writer.splat(Value(make.writer, make.shape.scalar, "%factor"), make.shape.lanes)


def _turn(make: Maker, turns: Value, first: Value, half: Value) -> tuple[Value, Value]:
    """A vector of the table of exp(-2πi k/n), whose parts are half + 1 apart."""
    return make.vector(make.at(turns, first)), make.vector(make.at(turns, first + half + 1))


def _reversed(make: Maker, vector: Value) -> Value:
    return make.writer.shuffle(vector, vector, range(make.shape.lanes - 1, -1, -1))
