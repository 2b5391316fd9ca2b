"""Eigenvalues and vectors of small symmetric matrices, without LAPACK.

A matrix is scaled by a power of two and reduced to three diagonals, whose eigenvalues are found by
rotations, which are also applied to the rows of the transformation. This module does the steps
before and after: it mirrors the triangle that is read, and sorts values in ascending order.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler, conventions
from rune.backends.cpu.gemm.shape import SCALARS, Shape, shape_for
from rune.backends.cpu.linalg import implicit_ql, lapack, moves, tridiagonal
from rune.backends.cpu.linalg.batches import entry_function, task_maker
from rune.backends.cpu.linalg.implicit_ql import powers_of
from rune.backends.cpu.linalg.lapack import Spectrum
from rune.backends.cpu.linalg.numbers import Reals
from rune.backends.cpu.linalg.reflections import greatest_of_lanes
from rune.backends.cpu.linalg.routines import declarations
from rune.backends.cpu.linalg.rows import rows_maker
from rune.backends.cpu.linalg.tridiagonal import TOGETHER, is_before, pieces
from rune.backends.cpu.scratch import in_lines
from rune.backends.shared import host_memory
from rune.errors import OutOfMemory
from rune.lowering.codegen.llvm.ir.names import bits_type
from rune.lowering.codegen.llvm.ir.text import Value
from rune.records import dataclass

MOST = 256  # rows: the rotations of larger matrices' vectors do not stay in the second cache
SIGNATURE = ("a w v matrix work parallel watch", "batch chunk apart n ld job triangle")
_ALIASED_BYTES = 512  # steps that are multiples of it use few sets of the cache
_ROWS = 7  # rows of work memory in addition to two matrices


def is_small(rows: int, dtype: np.dtype) -> bool:
    """Whether this code decomposes matrices of this size and dtype."""
    return 0 < rows <= MOST and dtype not in dtypes.COMPLEX


def scratch_of(rows: int, dtype: np.dtype) -> dict[str, int]:
    """The bytes of each work array of a core, in whole cache lines, by the name of its
    parameter."""
    shape = shape_of(dtype)
    step = step_of(rows, shape)
    matrix = max(rows + TOGETHER, step) * step * shape.bytes
    sizes = {"matrix": matrix, "work": matrix + _ROWS * step * shape.bytes}
    return {name: int(in_lines(size)) for name, size in sizes.items()}


def sizes_of(spectrum: Spectrum) -> dict[str, int]:
    """The integers of a call by name, except the number of matrices for each core (`chunk`)."""
    return {
        "batch": spectrum.batch,
        "apart": sum(scratch_of(spectrum.rows, spectrum.dtype).values()),
        "n": spectrum.rows,
        "ld": step_of(spectrum.rows, shape_of(spectrum.dtype)),
        "job": lapack.job_of(spectrum),
        "triangle": lapack.triangle_of(spectrum),
    }


def step_of(rows: int, shape: Shape) -> int:
    """The elements from row to row.

    Not a multiple of a large power of two, or columns would use only a few sets of the cache.
    """
    unit = max(shape.lanes, TOGETHER)
    step = -(-rows // unit) * unit
    return step if step * shape.bytes % _ALIASED_BYTES else step + unit


@functools.cache
def shape_of(dtype: np.dtype) -> Shape:
    """The machine's vectors of this dtype."""
    return shape_for(compiler.machine(), SCALARS[dtype])


@compiler.lasting
def code(dtype: np.dtype, effort: int = conventions.EFFORT) -> compiler.Code:
    """The function of this process for matrices of a dtype."""
    shape, narrow, numbers = shape_of(dtype), lapack.shape_of(dtype), Reals()
    texts = [
        moves.transposed_function(narrow, numbers, "transposed", lambda row: row, moves.by_parts),
        moves.changed_function(narrow, "copied", lambda row: row),
        tridiagonal.walk_function(shape, "walk", True),
        tridiagonal.walk_function(shape, "one_sided_walk", False),
        tridiagonal.reflection_function(shape),
        tridiagonal.three_diagonals_function(shape),
        tridiagonal.product_function(shape),
        implicit_ql.block_function(shape),
        implicit_ql.root_free_block_function(shape),
        implicit_ql.values_function(shape),
        mirrored_function(shape),
        ordered_function(shape),
        symmetric_function(narrow),
        entry_function("symmetric", SIGNATURE, narrow),
    ]
    lines = dict.fromkeys(f"{declarations(shape)}\n{declarations(narrow)}".splitlines())
    integer = bits_type(shape.scalar)
    exponents = [f"declare {integer} @llvm.{x}.{integer}({integer}, {integer})" for x in ("umax", "umin")]
    return compiler.compile_module("symmetric", "\n\n".join([*lines, *exponents, *texts]), effort)


def decomposed(a: np.ndarray, *, lower: bool, vectors: bool) -> tuple[np.ndarray, ...]:
    """Eigenvalues and optionally vectors, as columns. Plans compute the same bits."""
    call = _call(a.dtype, a.shape, lower, vectors)
    source, values = np.ascontiguousarray(a), np.empty(a.shape[:-1], a.dtype)
    columns = np.empty(a.shape if vectors else 0, a.dtype)
    scratch = host_memory.aligned(sum(call.scratch))
    matrix = scratch.ctypes.data
    arrays = source.ctypes.data, values.ctypes.data, columns.ctypes.data, matrix, matrix + call.scratch[0]
    # Neither a pool nor a watch: one core does the whole batch.
    _eager(a.dtype).run(*arrays, None, None, *call.numbers)
    return (values, columns) if vectors else (values,)


class _Call(NamedTuple):
    """The integers of a call. scratch: the bytes of each work array"""

    numbers: tuple[int, ...]
    scratch: tuple[int, int]


@functools.lru_cache(maxsize=256)
def _call(dtype: np.dtype, shape: tuple[int, ...], lower: bool, vectors: bool) -> _Call:
    n, batch = shape[-1], math.prod(shape[:-2])
    numbers = {**sizes_of(Spectrum("eigh", dtype, batch, n, n, vectors, lower, False)), "chunk": batch}
    scratch = scratch_of(n, dtype)
    integers = tuple(numbers[name] for name in SIGNATURE[1].split())
    return _Call(integers, (scratch["matrix"], scratch["work"]))


@dataclass(slots=True)
class _Eager:
    """The function for eager calls. It is a draft, which computes the same bits, until it has run
    for PATIENCE seconds.

    Full optimisation takes four times as long to compile, too long for a few small matrices.
    """

    dtype: np.dtype
    effort: int = conventions.HURRY
    seconds: float = 0.0  # that it has run

    def run(self, *arguments: int | None) -> None:
        """Decompose matrices."""
        function, begin = _entry(self.dtype, self.effort), perf_counter()
        function(*arguments)
        self.seconds += perf_counter() - begin
        if self.seconds > conventions.PATIENCE and self.effort == conventions.HURRY:
            self._refine()

    def _refine(self) -> None:
        try:
            _entry(self.dtype, conventions.EFFORT)
        except OutOfMemory:  # the draft goes on, and this is tried again later
            self.seconds = 0.0
        else:
            self.effort = conventions.EFFORT


@functools.cache
def _eager(dtype: np.dtype) -> _Eager:
    return _Eager(dtype)


@functools.cache
def _entry(dtype: np.dtype, effort: int) -> Callable[..., None]:
    pointers, sizes = (names.split() for names in SIGNATURE)
    kinds = [*[ctypes.c_void_p] * len(pointers), *[ctypes.c_int64] * len(sizes)]
    return ctypes.CFUNCTYPE(None, *kinds)(code(dtype, effort).address("symmetric"))


def mirrored_function(shape: Shape) -> str:
    """The symmetric matrix of a triangle of `a`, in rows `ld` apart, scaled to about 1.

    turned: `a` transposed, in rows `ld` apart
    power: the address for the power of two that undoes the scaling
    """
    make = rows_maker(shape, Reals()).make
    writer, (a, transpose, rows, power_at) = make.writer, make.pointers("a turned rows power")
    (step, n, is_lower), lanes = make.sizes("ld n lower"), shape.lanes
    (slot,) = make.zero_slots(1)
    first, second = writer.iota(lanes, "i64"), is_lower.equals(1)

    def row(i: Value) -> None:
        line, column, out = make.at(a, i * n), make.at(transpose, i * step), make.at(rows, i * step)

        def piece(at: Value) -> None:
            places = first + writer.splat(at, lanes)
            wide = writer.splat(i, lanes)
            # Rows of `a` have no padding, so the last vector of a row reads only some lanes.
            count = (n - at).call("smax", 0).call("smin", lanes)
            values = make.vector(make.at(line, at), count), make.vector(make.at(column, at))
            is_given = writer.select(writer.splat(second, lanes), places <= wide, places >= wide)
            value = writer.select(is_given, *values)
            value = writer.select(is_before(make, at, n), value, 0.0)
            make.put(value, make.at(out, at))
            best = writer.load(shape.vector, slot)
            writer.store(writer.select(value.abs() > best, value.abs(), best), slot)

        pieces(make, step, piece)

    make.each(n, row)
    # A power of two: scaling rounds nothing, so the values of a scaled matrix scale to the bit.
    power, inverse = powers_of(greatest_of_lanes(writer.load(shape.vector, slot)))
    writer.store(power, power_at)
    factor, zero = writer.splat(inverse, lanes), writer.constant(shape.vector, 0.0)
    pieces(make, n * step, lambda at: make.put(factor * make.vector(make.at(rows, at)), make.at(rows, at)))
    end = make.at(rows, n * step)
    # The rows of zeros that walks read behind the last one (tridiagonal.py).
    pieces(make, step * TOGETHER, lambda at: make.put(zero, make.at(end, at)))
    return make.text("mirrored(ptr %a, ptr %turned, ptr %rows, ptr %power, i64 %ld, i64 %n, i64 %lower)")


def ordered_function(shape: Shape) -> str:
    """Writes the values d times `power` to `w` in ascending order, and rows in this order to `out`.

    The place of a value is the number of values before it. Equal ones keep their order.
    """
    make = rows_maker(shape, Reals()).make
    writer, (d, rows, w, out, power_at) = make.writer, make.pointers("d rows w out power")
    (step, n, width), lanes = make.sizes("ld n width"), shape.lanes
    ranks, zero = writer.allocate("i64", lanes), writer.constant(f"<{lanes} x i64>", 0)
    rank = writer.allocate(f"<{lanes} x i64>")
    power = make.scalar(power_at)

    def several(first: Value) -> None:
        values = make.vector(make.at(d, first))
        places = writer.iota(lanes, "i64") + writer.splat(first, lanes)
        writer.store(zero, rank)

        def compare(j: Value) -> None:
            other = writer.splat(make.scalar(make.at(d, j)), lanes)
            is_first = (other < values) | (other.equals(values) & (writer.splat(j, lanes) < places))
            writer.store(writer.load(zero.type, rank) + is_first.cast("zext", "i64"), rank)

        make.each(n, compare)
        writer.store(writer.load(zero.type, rank), ranks)

        def put(k: Value) -> None:
            place, source = writer.load("i64", make.at(ranks, k, "i64")), first + k
            writer.store(make.scalar(make.at(d, source)) * power, make.at(w, place))
            line, target = make.at(rows, source * step), make.at(out, place * step)
            pieces(make, width, lambda at: make.put(make.vector(make.at(line, at)), make.at(target, at)))

        make.each((n - first).call("smin", lanes), put)

    pieces(make, n, several)
    return make.text("ordered(ptr %d, ptr %rows, ptr %w, ptr %out, ptr %power, i64 %ld, i64 %n, i64 %width)")


def symmetric_function(shape: Shape) -> str:
    """Eigenvalues and, depending on the job, eigenvectors."""
    task = task_maker("symmetric", SIGNATURE, shape, Reals())
    make, writer, parameters = task.of.make, task.of.make.writer, task.parameters
    a, w, v, matrix, work, n, step = (parameters[x] for x in ("a", "w", "v", "matrix", "work", "n", "ld"))
    has_vectors = parameters["job"].equals(lapack.VECTORS)
    width = writer.select(has_vectors, n, 0)
    is_lower = parameters["triangle"].equals(lapack.LOWER).cast("zext", "i64")
    # The rows of `_ROWS`, and then the second matrix.
    d, e, taus, p, x, y, power, other = (make.at(work, step * k) for k in range(8))
    failure = task.reference(make.number(0))

    def one(number: Value) -> None:
        source, values, out = make.at(a, number * n * n), make.at(w, number * n), make.at(v, number * n * n)

        def spoil() -> None:
            task.spoil(values, n, 1)
            writer.either(has_vectors, lambda: task.spoil(out, n * n, 1))

        def basis() -> None:
            make.clear(other, (n + TOGETHER) * step * shape.bytes)
            make.call("product", matrix, taus, other, p, y, step, n)
            # Transposed, so that a rotation of two vectors changes two rows.
            make.call("transposed", other, step, matrix, step, n, n)

        def put() -> None:
            make.call("ordered", d, matrix, values, other, power, step, n, width)
            writer.either(has_vectors, lambda: task.put_columns(other, step, out, (n, n), matrix))

        def solve() -> None:
            # The other triangle lies along columns; transposed it is read by vectors, too.
            make.call("transposed", source, n, other, step, n, n)
            make.call("mirrored", source, other, matrix, power, step, n, is_lower)
            make.call("three_diagonals", matrix, d, e, taus, p, x, y, step, n)
            writer.either(has_vectors, basis)
            writer.store(make.number(0), failure)
            make.call("values", d, e, matrix, failure, n, step, width)
            writer.either(writer.load("i64", failure).equals(0), put, spoil)

        writer.either(task.is_finite(source, n * n), solve, spoil)

    return task.text(one)
