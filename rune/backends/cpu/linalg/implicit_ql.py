"""Eigenvalues of tridiagonal matrices by implicit QL, which also rotates the rows of a basis.

The matrix is split into blocks at negligible elements of e. A block is scaled to about 1 by a power
of two. Its values are found from one end to the other, beginning at the end with the smaller
diagonal element, as in LAPACK's steqr, so that graded matrices keep their small eigenvalues. Places
in a block count from that end. Each rotation changes two rows, in vectors, while the processor
already computes the next rotation, whose root and quotients have a longer latency.
Source: Golub & Van Loan 4e, §8.3.5; Bowdler, Martin, Reinsch & Wilkinson 1968, Numer. Math. 11.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker
from rune.backends.cpu.linalg.reflections import TINY
from rune.backends.cpu.linalg.tridiagonal import LEAST
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.records import dataclass

SWEEPS = 30  # the most for each eigenvalue, as in LAPACK
ROUNDING = {"float": float(np.finfo(np.float32).eps) / 2, "double": float(np.finfo(np.float64).eps) / 2}
_INTEGERS = {"float": ("i32", 23, 0xFF), "double": ("i64", 52, 0x7FF)}


def again(writer: Writer, body: Callable[[], Value]) -> None:
    """Repeat the body while its value is true."""
    head, after = writer.name("again"), writer.name("over")
    writer.jump(head)
    with writer.region(head):
        writer.branch(body(), head, after)
    writer.label(after)


def powers_of(value: Value) -> tuple[Value, Value]:
    """The greatest power of two that is at most a positive number, and its reciprocal."""
    (integer, digits, most), writer = _INTEGERS[value.type], value.writer
    exponent = (value.to_bits() >> digits) & most
    # Kept in a range where both the power and its reciprocal are normal numbers.
    exponent = exponent.call("umax", 1).call("umin", most - 2)
    # Biased exponents of a power and its reciprocal add up to twice the bias: most - 1.
    inverse = writer.constant(integer, most - 1) - exponent
    return (exponent << digits).from_bits(value.type), (inverse << digits).from_bits(value.type)


@dataclass(frozen=True, slots=True)
class _Block:
    """The addresses in a block, for the function being written. Places count along the walk."""

    make: Maker
    base: Value
    way: Value  # 1 or -1
    shift: Value  # of e, which has one element less: 0 or -1

    def d_at(self, k: Value) -> Value:
        """The address of the diagonal's element k."""
        (d,) = self.make.pointers("d")
        return self.make.at(d, self.base + self.way * k)

    def e_at(self, k: Value) -> Value:
        """The address of the element between k and k + 1."""
        (e,) = self.make.pointers("e")
        return self.make.at(e, self.base + self.way * k + self.shift)

    def row(self, k: Value) -> Value:
        """The address of the basis's row k."""
        (rows,), (step,) = self.make.pointers("rows"), self.make.sizes("ld")
        return self.make.at(rows, (self.base + self.way * k) * step)


def _slots(writer: Writer, values: Sequence[Value]) -> list[Value]:
    slots = [writer.allocate(v.type) for v in values]
    for value, slot in zip(values, slots, strict=True):
        writer.store(value, slot)
    return slots


def block_function(shape: Shape) -> str:
    """The eigenvalues of the block of `length` elements from `first` on; rotates the basis's rows.

    width: the number of elements of a row that are rotated
    failed: 1 is stored here if the values do not converge
    """
    make = maker(shape)
    _write_block(make, lambda x: x, lambda off: off * off, _sweep)
    arrays = "ptr %d, ptr %e, ptr %rows, ptr %failed"
    return make.text(f"block({arrays}, i64 %first, i64 %length, i64 %ld, i64 %width)")


def root_free_block_function(shape: Shape) -> str:
    """The eigenvalues alone. Squares of e and of sines suffice, which saves a root per rotation."""
    make = maker(shape)
    _write_block(make, lambda x: x * x, lambda off: off, _root_free_sweep)
    return make.text("root_free_block(ptr %d, ptr %e, ptr %failed, i64 %first, i64 %length)")


def _write_block(
    make: Maker,
    represent: Callable[[Value], Value],
    square: Callable[[Value], Value],
    sweep: Callable[[_Block, Value, Value], None],
) -> None:
    """Write the code of a block.

    represent: gives the number that is stored for an element of e
    square: gives the square of the element from that number
    """
    writer, (d, e, failure), (first, length) = make.writer, make.pointers("d e failed"), make.sizes("first length")
    last, one = length - 1, make.number(1)
    diagonal, others = (make.at(d, first), length), (make.at(e, first), last)
    power, inverse = powers_of(_greatest(make, [diagonal, others]))
    _change(make, diagonal, lambda x: x * inverse)
    _change(make, others, lambda x: represent(x * inverse))
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
        m = _next_small(block, k, last, square)

        def sweep_once() -> None:
            sweep(block, k, m)
            writer.store(writer.load("i64", sweeps) - 1, sweeps)

        writer.either(m.equals(k), lambda: writer.store(k + 1, place), sweep_once)
        return (writer.load("i64", place) < length) & (writer.load("i64", sweeps) > 0)

    again(writer, one_value)
    # The sweeps are used up only if the values do not converge.
    writer.either(writer.load("i64", sweeps).equals(0), lambda: writer.store(one, failure))
    _change(make, diagonal, lambda x: x * power)


def _greatest(make: Maker, lines: Sequence[tuple[Value, Value]]) -> Value:
    """The greatest absolute value in these lines."""
    writer, slot = make.writer, make.writer.allocate(make.shape.scalar)
    writer.store(writer.constant(make.shape.scalar, 0.0), slot)
    for at, count in lines:
        # `at` is a default argument to bind this line's value.
        def one(k: Value, at: Value = at) -> None:
            value, best = make.scalar(make.at(at, k)).abs(), make.scalar(slot)
            writer.store(writer.select(value > best, value, best), slot)

        make.each(count, one)
    return make.scalar(slot)


def _change(make: Maker, line: tuple[Value, Value], change: Callable[[Value], Value]) -> None:
    def one(k: Value) -> None:
        place = make.at(line[0], k)
        make.writer.store(change(make.scalar(place)), place)

    make.each(line[1], one)


def _next_small(block: _Block, k: Value, last: Value, square: Callable[[Value], Value]) -> Value:
    """The first place from k on after which e is negligible beside the diagonal. Sets this e to
    0."""
    make, writer = block.make, block.make.writer
    (slot,) = _slots(writer, [k - 1])
    eps, tiny = ROUNDING[make.shape.scalar], TINY[make.shape.scalar]

    def next_one() -> Value:
        m = writer.load("i64", slot) + 1
        writer.store(m, slot)

        def is_large() -> Value:
            lower, upper = (make.scalar(block.d_at(at)).abs() for at in (m, m + 1))
            # As in LAPACK's steqr. TINY decides if a diagonal element is zero.
            return square(make.scalar(block.e_at(m))) > (lower * (eps * eps)) * upper + tiny

        return writer.where(m < last, is_large)

    again(writer, next_one)
    m, zero = writer.load("i64", slot), writer.constant(make.shape.scalar, 0.0)
    writer.either(m < last, lambda: writer.store(zero, block.e_at(m)))
    return m


def _shift(block: _Block, k: Value, off: Value) -> Value:
    """Wilkinson's shift for places k and k + 1, minus d at k."""
    make, writer, scalar = block.make, block.make.writer, block.make.shape.scalar
    # The shift is d - e² / (δ + sign(δ) √(δ² + e²)) for δ = (d' - d) / 2. Here everything is
    # divided by e, so that the squares of small elements do not underflow.
    ratio = (make.scalar(block.d_at(k + 1)) - make.scalar(block.d_at(k))) / (off * 2.0)
    # For a huge ratio the 1 under the root is negligible, and the square may overflow.
    is_usual = ratio.abs() < 1 / LEAST[scalar] ** 0.25
    root = writer.select(is_usual, ratio.fma(ratio, ratio.like(1.0)).call("sqrt"), ratio.abs())
    return -(off / (ratio + root.copysign(ratio)))


def _sweep(block: _Block, k: Value, m: Value) -> None:
    """One QL sweep: rotations from place m down to k."""
    make, writer, scalar = block.make, block.make.writer, block.make.shape.scalar
    zero, one = (writer.constant(scalar, x) for x in (0.0, 1.0))
    shift = _shift(block, k, make.scalar(block.e_at(k)))
    start = make.scalar(block.d_at(m)) - make.scalar(block.d_at(k)) - shift
    slots = _slots(writer, [start, one, one, zero])

    def rotate(turn: Value) -> None:
        i = m - 1 - turn
        g, c, s, p = map(make.scalar, slots)
        off = make.scalar(block.e_at(i))
        f, b = s * off, c * off
        c, s, r = _rotation(make, f, g)
        # Nothing lies beyond the first rotation: e at m is 0.
        writer.either(turn > 0, lambda: writer.store(r, block.e_at(i + 1)))
        g = make.scalar(block.d_at(i + 1)) - p
        r = (make.scalar(block.d_at(i)) - g).fma(s, c * (b * 2.0))
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
    writer, scalar, least = make.writer, make.shape.scalar, LEAST[make.shape.scalar]
    slots = [writer.allocate(scalar) for _ in range(3)]

    def put(f: Value, g: Value, total: Value, size: float) -> None:
        root = total.call("sqrt")
        for value, slot in zip((g / root, f / root, root * size), slots, strict=True):
            writer.store(value, slot)

    def put_small() -> None:
        size = least**0.5
        low, high = f * (1 / size), g * (1 / size)
        total = low.fma(low, high * high)
        writer.either(total < least, put_none, lambda: put(low, high, total, size))

    def put_none() -> None:
        # Both are negligible beside the block's greatest element, which is about 1.
        for value, slot in zip((1.0, 0.0, 0.0), slots, strict=True):
            writer.store(writer.constant(scalar, value), slot)

    total = f.fma(f, g * g)
    writer.either(total < least, put_small, lambda: put(f, g, total, 1.0))
    c, s, r = map(make.scalar, slots)
    return c, s, r


def _root_free_sweep(block: _Block, k: Value, m: Value) -> None:
    """The same without roots, by Pal, Walker and Kahan. Here c and s are the squares of both."""
    make, writer, scalar = block.make, block.make.writer, block.make.shape.scalar
    zero, one = (writer.constant(scalar, x) for x in (0.0, 1.0))
    shift = _shift(block, k, make.scalar(block.e_at(k)).call("sqrt"))
    shift = make.scalar(block.d_at(k)) + shift
    start = make.scalar(block.d_at(m)) - shift
    slots = _slots(writer, [start, start * start, one, zero])

    def rotate(turn: Value) -> None:
        i = m - 1 - turn
        gamma, p, c, s = map(make.scalar, slots)
        off, element = make.scalar(block.e_at(i)), make.scalar(block.d_at(i))
        r = p + off
        writer.either(turn > 0, lambda: writer.store(s * r, block.e_at(i + 1)))
        # One quotient, independent of r / p, instead of two factors: a shorter dependency chain.
        following = p.fma(element - shift, -(off * gamma)) / r
        writer.store(gamma + (element - following), block.d_at(i + 1))
        usual = following * following * (r / p)
        # As in LAPACK's sterf for a cosine of 0; here also for one whose quotient may overflow.
        is_usual = p > r * TINY[scalar]
        after = writer.choose(is_usual, lambda: usual, lambda: c * off)
        for value, slot in zip((following, after, p / r, off / r), slots, strict=True):
            writer.store(value, slot)

    make.each(m - k, rotate)
    gamma, p, _, s = map(make.scalar, slots)
    writer.store(s * p, block.e_at(k))
    writer.store(shift + gamma, block.d_at(k))


def _rotate_rows(block: _Block, i: Value, c: Value, s: Value) -> None:
    """Rotate the rows i and i + 1 of the basis."""
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
    """All eigenvalues of the matrix with diagonals d and e, block by block, unsorted."""
    make = maker(shape)
    writer, (d, e, rows, failure) = make.writer, make.pointers("d e rows failed")
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
                # As in LAPACK's steqr: the product of the elements themselves might underflow.
                lower, upper = (make.scalar(make.at(d, at)).abs().call("sqrt") for at in (m, m + 1))
                return make.scalar(make.at(e, m)).abs() > lower * upper * eps

            return writer.where(m < n - 1, is_large)

        again(writer, next_one)
        m = writer.load("i64", slot)
        length = m + 1 - first

        def with_rows() -> None:
            make.call("block", d, e, rows, failure, first, length, step, width)

        def alone() -> None:
            make.call("root_free_block", d, e, failure, first, length)

        writer.either(length > 1, lambda: writer.either(width > 0, with_rows, alone))
        writer.store(m + 1, place)
        return m + 1 < n

    again(writer, one_block)
    return make.text("values(ptr %d, ptr %e, ptr %rows, ptr %failed, i64 %n, i64 %ld, i64 %width)")
