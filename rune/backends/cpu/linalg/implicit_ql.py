"""Eigenvalues of three diagonals by implicit QL, and the rotations of the rows of a basis.

A block between elements of e that vanish is scaled to about 1 by a power of two. It is walked along
from its end with the greater element to the other, as LAPACK's steqr does, so that graded matrices
keep their small values: places count from the start of that walk. Each rotation is applied to two
rows at once, by vectors, while the next one is computed: its root and quotients take longer.
Source: Golub & Van Loan 4e, §8.3.5; Bowdler, Martin, Reinsch & Wilkinson 1968, Numer. Math. 11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.backends.cpu.linalg.reflections import TINY
from rune.backends.cpu.linalg.tridiagonal import LEAST
from rune.lowering.codegen.llvm.text import Value, Writer
from rune.records import dataclass

SWEEPS = 30  # for each eigenvalue, as in LAPACK
ROUNDING = {"float": float(np.finfo(np.float32).eps) / 2, "double": float(np.finfo(np.float64).eps) / 2}
_INTEGERS = {"float": ("i32", 23, 0xFF), "double": ("i64", 52, 0x7FF)}


def again(writer: Writer, body: Callable[[], Value]) -> None:
    """Repeat while the body says so."""
    head, after = writer.name("again"), writer.name("over")
    writer.jump(head)
    with writer.region(head):
        writer.branch(body(), head, after)
    writer.label(after)


def powers_of(value: Value) -> tuple[Value, Value]:
    """The power of two below a positive number, and its reciprocal."""
    (integer, digits, most), writer = _INTEGERS[value.type], value.writer
    exponent = (value.to_bits() >> digits) & most
    exponent = exponent.call("umax", 1).call("umin", most - 2)
    inverse = writer.constant(integer, most - 1) - exponent
    return tuple((x << digits).from_bits(value.type) for x in (exponent, inverse))


@dataclass(frozen=True, slots=True)
class _Block:
    """Places of a block while its function is written, counted along the walk."""

    make: Maker
    base: Value
    way: Value  # 1 or -1
    shift: Value  # of e, which has one element less: 0 or -1

    def d_at(self, k: Value) -> Value:
        """Where the diagonal's element k is."""
        (d,) = self.make.pointers("d")
        return self.make.at(d, self.base + self.way * k)

    def e_at(self, k: Value) -> Value:
        """Where the element between k and k + 1 is."""
        (e,) = self.make.pointers("e")
        return self.make.at(e, self.base + self.way * k + self.shift)

    def row(self, k: Value) -> Value:
        """The basis's row k."""
        (rows,), (step,) = self.make.pointers("rows"), self.make.sizes("ld")
        return self.make.at(rows, (self.base + self.way * k) * step)


def _slots(writer: Writer, values: Sequence[Value]) -> list[Value]:
    slots = [writer.allocate(v.type) for v in values]
    for value, slot in zip(values, slots, strict=True):
        writer.store(value, slot)
    return slots


def block_function(shape: Shape) -> str:
    """The values of `length` elements of d from `first` on, and the basis's rows rotated.

    width: elements of a row that are rotated.  Where they do not converge, 1 goes to `failed`.
    """
    make = maker(shape)
    writer, (d, e, failed), (first, length) = make.writer, make.pointers("d e failed"), make.sizes("first length")
    last, one = length - 1, make.number(1)
    lines = (make.at(d, first), length), (make.at(e, first), last)
    power, inverse = powers_of(_greatest(make, lines))
    _multiply(make, lines, inverse)
    head, end = (make.scalar(make.at(d, at)) for at in (first, first + last))
    is_backward = end.abs() < head.abs()
    block = _Block(
        make,
        writer.select(is_backward, first + last, first),
        writer.select(is_backward, -one, one),
        writer.select(is_backward, -one, make.number(0)),
    )
    place, sweeps = _slots(writer, [make.number(0), length * SWEEPS])

    def one_value() -> Value:
        k = writer.load("i64", place)
        m = _next_small(block, k, last)

        def done() -> None:
            writer.store(k + 1, place)

        def sweep() -> None:
            _sweep(block, k, m)
            writer.store(writer.load("i64", sweeps) - 1, sweeps)

        writer.either(m.equals(k), done, sweep)
        return (writer.load("i64", place) < length) & (writer.load("i64", sweeps) > 0)

    again(writer, one_value)
    writer.either(writer.load("i64", sweeps).equals(0), lambda: writer.store(one, failed))
    _multiply(make, lines[:1], power)
    arrays = "ptr %d, ptr %e, ptr %rows, ptr %failed"
    return make.text(f"block({arrays}, i64 %first, i64 %length, i64 %ld, i64 %width)")


def _greatest(make: Maker, lines: Sequence[tuple[Value, Value]]) -> Value:
    """The greatest absolute value."""
    writer, slot = make.writer, make.writer.allocate(make.shape.scalar)
    writer.store(writer.constant(make.shape.scalar, 0.0), slot)
    for at, count in lines:

        def one(k: Value, at: Value = at) -> None:
            value, best = make.scalar(make.at(at, k)).abs(), make.scalar(slot)
            writer.store(writer.select(value > best, value, best), slot)

        make.each(count, one)
    return make.scalar(slot)


def _multiply(make: Maker, lines: Sequence[tuple[Value, Value]], factor: Value) -> None:
    for at, count in lines:

        def one(k: Value, at: Value = at) -> None:
            place = make.at(at, k)
            make.writer.store(make.scalar(place) * factor, place)

        make.each(count, one)


def _next_small(block: _Block, k: Value, last: Value) -> Value:
    """The first place from k on behind which e vanishes beside the diagonal. It becomes 0 there."""
    make, writer = block.make, block.make.writer
    (slot,) = _slots(writer, [k - 1])
    eps, tiny = ROUNDING[make.shape.scalar], TINY[make.shape.scalar]

    def next_one() -> Value:
        m = writer.load("i64", slot) + 1
        writer.store(m, slot)

        def is_large() -> Value:
            size = make.scalar(block.e_at(m))
            here, there = (make.scalar(block.d_at(at)).abs() for at in (m, m + 1))
            return size * size > (here * (eps * eps)) * there + tiny

        return writer.where(m < last, is_large)

    again(writer, next_one)
    m, zero = writer.load("i64", slot), writer.constant(make.shape.scalar, 0.0)
    writer.either(m < last, lambda: writer.store(zero, block.e_at(m)))
    return m


def _sweep(block: _Block, k: Value, m: Value) -> None:
    """Rotations from place m down to k, with Wilkinson's shift of the first two."""
    make, writer, scalar = block.make, block.make.writer, block.make.shape.scalar
    zero, one = (writer.constant(scalar, x) for x in (0.0, 1.0))
    p, off = make.scalar(block.d_at(k)), make.scalar(block.e_at(k))
    ratio = (make.scalar(block.d_at(k + 1)) - p) / (off * 2.0)
    # Its square may leave the range where 1 is of no account.
    root = writer.select(ratio.abs() < 1 / LEAST[scalar] ** 0.25, ratio.fma(ratio, one).call("sqrt"), ratio.abs())
    start = make.scalar(block.d_at(m)) - p + off / (ratio + root.copysign(ratio))
    slots = _slots(writer, [start, one, one, zero])

    def rotate(turn: Value) -> None:
        i = m - 1 - turn
        g, c, s, p = map(make.scalar, slots)
        off = make.scalar(block.e_at(i))
        f, b = s * off, c * off
        c, s, r = _rotation(make, f, g)
        writer.either(turn > 0, lambda: writer.store(r, block.e_at(i + 1)))
        g = make.scalar(block.d_at(i + 1)) - p
        r = (make.scalar(block.d_at(i)) - g).fma(s, c * b * 2.0)
        p = s * r
        writer.store(g + p, block.d_at(i + 1))
        for value, slot in zip((c.fma(r, -b), c, s, p), slots, strict=True):
            writer.store(value, slot)
        _rotate_rows(block, i, c, s)

    make.each(m - k, rotate)
    g, p = make.scalar(slots[0]), make.scalar(slots[3])
    writer.store(make.scalar(block.d_at(k)) - p, block.d_at(k))
    writer.store(g, block.e_at(k))


def _rotation(make: Maker, f: Value, g: Value) -> tuple[Value, Value, Value]:
    """c, s and r with c g + s f = r and c f = s g."""
    writer, scalar = make.writer, make.shape.scalar
    slots = _slots(writer, [f, g, writer.constant(scalar, 1.0)])
    least = LEAST[scalar]

    def enlarge() -> None:
        writer.store(f * (1 / least**0.5), slots[0])
        writer.store(g * (1 / least**0.5), slots[1])
        writer.store(writer.constant(scalar, least**0.5), slots[2])

    writer.either(f.fma(f, g * g) < least, enlarge)
    f, g, size = map(make.scalar, slots)
    total = f.fma(f, g * g)
    root = total.call("sqrt")
    is_none = total < least  # beside the greatest element, about 1, both are of no account
    c, s = writer.select(is_none, 1.0, g / root), writer.select(is_none, 0.0, f / root)
    return c, s, writer.select(is_none, 0.0, root * size)


def _rotate_rows(block: _Block, i: Value, c: Value, s: Value) -> None:
    """Rows i and i + 1 of the basis."""
    make, writer, (width,) = block.make, block.make.writer, block.make.sizes("width")
    lanes = make.shape.lanes
    low, high = block.row(i), block.row(i + 1)
    c, s = (writer.splat(x, lanes) for x in (c, s))

    def piece(at: Value) -> None:
        x, y = (make.vector(make.at(row, at)) for row in (low, high))
        make.put(s.fma(x, c * y), make.at(high, at))
        make.put(c.fma(x, -(s * y)), make.at(low, at))

    writer.count_up(make.number(0), width, lanes, piece)


def values_function(shape: Shape) -> str:
    """All values of d and e, in the order in which they are met, block by block."""
    make = maker(shape)
    writer, (d, e, rows, failed) = make.writer, make.pointers("d e rows failed")
    n, step, width = make.sizes("n ld width")
    (place,) = _slots(writer, [make.number(0)])
    eps = ROUNDING[shape.scalar]

    def one_block() -> Value:
        first = writer.load("i64", place)
        (slot,) = _slots(writer, [first - 1])

        def next_one() -> Value:
            m = writer.load("i64", slot) + 1
            writer.store(m, slot)

            def is_large() -> Value:
                here, there = (make.scalar(make.at(d, at)).abs().call("sqrt") for at in (m, m + 1))
                return make.scalar(make.at(e, m)).abs() > here * there * eps

            return writer.where(m < n - 1, is_large)

        again(writer, next_one)
        m = writer.load("i64", slot)
        length = m + 1 - first
        writer.either(length > 1, lambda: make.call("block", d, e, rows, failed, first, length, step, width))
        writer.store(m + 1, place)
        return m + 1 < n

    again(writer, one_block)
    return make.text("values(ptr %d, ptr %e, ptr %rows, ptr %failed, i64 %n, i64 %ld, i64 %width)")
