"""Reduces a symmetric matrix to three diagonals, and multiplies the reflections that do this.

Row j, from the last to the second, is reflected onto its element j - 1: A = Q T Qᵀ,
Q = H_{n-1} ... H_1. Each reflection walks once over the rows before it. This walk applies the
previous reflection to the rows, and at the same time sums the product for the next one, so memory
is read once. The whole matrix is stored, not only a triangle, so that vectors are along rows. A
reflection's vector stays in its row, followed by zeros.

Rows are `ld` apart, a multiple of the lanes and of TOGETHER. After the last are TOGETHER rows of
zeros. The greatest element is about 1.
Source: Golub & Van Loan 4e, §8.3.1.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import Maker, maker, sum_of_lanes, zeros
from rune.backends.cpu.linalg.batches import padded_to
from rune.backends.cpu.linalg.reflections import TINY, greatest_of_lanes
from rune.lowering.codegen.llvm.ir.text import Value

TOGETHER = 4  # the most rows that a walk changes at once
WIDTH = 2  # vectors of a row that are in registers at once
# For sums of squares of at least this size, errors of squares that underflow are negligible.
LEAST = {k: TINY[k] / float(np.finfo(t).eps) ** 2 for k, t in (("float", np.float32), ("double", np.float64))}


def pieces(make: Maker, end: Value, body: Callable[[Value], None]) -> None:
    """body(first element) for each vector of a row that has elements before `end`."""
    make.writer.count_up(make.number(0), padded_to(end, make.shape.lanes), make.shape.lanes, body)


def summed(make: Maker, end: Value, value: Callable[[Value], tuple[Value, Value]]) -> Value:
    """The sum, along a row, of the products of two vectors."""
    writer, (slot,) = make.writer, make.zero_slots(1)

    def piece(at: Value) -> None:
        a, b = value(at)
        writer.store(a.fma(b, writer.load(make.shape.vector, slot)), slot)

    pieces(make, end, piece)
    return sum_of_lanes(writer.load(make.shape.vector, slot))


def is_before(make: Maker, at: Value, end: Value) -> Value:
    """The lanes in which the vector at `at` has elements before `end`."""
    lanes, writer = make.shape.lanes, make.writer
    return writer.iota(lanes, "i64") < writer.splat(end - at, lanes)


def walk_function(shape: Shape, name: str, is_symmetric: bool) -> str:
    """Subtracts v wᵀ, or v wᵀ + w vᵀ, from rows, and gives their product y with x.

    There are `count` rows and columns. Elements of v, w and x must be 0 from `count` on.
    """
    make = maker(shape)
    writer, (rows, v, w, x, y), (step, count) = make.writer, make.pointers("rows v w x y"), make.sizes("ld count")
    # Rows past the last one are unchanged, because v, w and x are 0 there.
    end, (vectors, lanes) = padded_to(count, TOGETHER), ((shape.vector), shape.lanes)

    def columns(first: Value, width: int, together: int) -> None:
        places = [first + k * lanes for k in range(width)]
        along = [[make.vector(make.at(row, at)) for at in places] for row in (v, w)]
        sums = zeros(make, together, width)

        def some(begin: Value) -> None:
            for k, slots in enumerate(sums):
                row = begin + k
                minus, other, factor = (writer.splat(make.scalar(make.at(vector, row)), lanes) for vector in (v, w, x))
                line = make.at(rows, row * step)
                for number, (at, slot) in enumerate(zip(places, slots, strict=True)):
                    value = (-minus).fma(along[1][number], make.vector(make.at(line, at)))
                    value = (-other).fma(along[0][number], value) if is_symmetric else value
                    make.put(value, make.at(line, at))
                    writer.store(factor.fma(value, writer.load(vectors, slot)), slot)

        writer.count_up(make.number(0), end, together, some)
        for number, at in enumerate(places):
            total = writer.load(vectors, sums[0][number])
            for slots in sums[1:]:
                total = total + writer.load(vectors, slots[number])
            make.put(total, make.at(y, at))

    across, wide = padded_to(count, lanes), WIDTH * lanes
    even = across.round_down(wide)
    writer.count_up(make.number(0), even, wide, lambda at: columns(at, WIDTH, TOGETHER // WIDTH))
    # One vector remains: more rows at once give as many independent sums as two vectors do.
    writer.either(across > even, lambda: columns(even, 1, TOGETHER))
    return make.text(f"{name}(ptr %rows, ptr %v, ptr %w, ptr %x, ptr %y, i64 %ld, i64 %count)")


def reflection_function(shape: Shape) -> str:
    """The reflection of row j onto its element j - 1: v in `x`, `tau`, and the element in
    `beta`."""
    make = maker(shape)
    writer, (row, x, beta_at, tau_at), (step, j) = make.writer, make.pointers("row x beta tau"), make.sizes("ld j")
    last, one = j - 1, writer.constant(shape.scalar, 1.0)
    size_at, head_at, total_at = (writer.allocate(shape.scalar) for _ in range(3))

    def squares() -> None:
        def others(at: Value) -> tuple[Value, Value]:
            value = writer.select(is_before(make, at, last), make.vector(make.at(row, at)), 0.0)
            return value, value

        head = make.scalar(make.at(row, last))
        writer.store(head, head_at)
        writer.store(summed(make, j, others), total_at)

    def enlarge() -> None:
        size = _greatest(make, row, j)
        writer.store(size, size_at)
        factor = writer.splat(one / size, shape.lanes)
        pieces(make, j, lambda at: make.put(make.vector(make.at(row, at)) * factor, make.at(row, at)))
        squares()

    writer.store(one, size_at)
    squares()
    head, total = (writer.load(shape.scalar, x) for x in (head_at, total_at))
    # If the squares nearly underflow, scale the row up and compute them again.
    writer.either(head.fma(head, total) < LEAST[shape.scalar], enlarge)
    head, total, size = (writer.load(shape.scalar, x) for x in (head_at, total_at, size_at))
    is_done = total.equals(0.0)
    # Of the opposite sign, so that the difference has no cancellation.
    beta = -(head.fma(head, total).call("sqrt").copysign(head))
    gap = head - beta
    writer.store(writer.select(is_done, head, beta) * size, beta_at)
    writer.store(writer.select(is_done, 0.0, -gap / beta), tau_at)
    scale = writer.splat(writer.select(is_done, 0.0, one / gap), shape.lanes)
    head_place = writer.splat(last, shape.lanes)

    def normalise(at: Value) -> None:
        places = writer.iota(shape.lanes, "i64") + writer.splat(at, shape.lanes)
        value = writer.select(places < head_place, make.vector(make.at(row, at)) * scale, 0.0)
        make.put(writer.select(places.equals(head_place), 1.0, value), make.at(x, at))

    pieces(make, step, normalise)
    return make.text("reflection(ptr %row, ptr %x, ptr %beta, ptr %tau, i64 %ld, i64 %j)")


def _greatest(make: Maker, row: Value, end: Value) -> Value:
    """The greatest absolute value in a row before `end`, or TINY if that is greater."""
    writer, shape, tiny = make.writer, make.shape, TINY[make.shape.scalar]
    slot = writer.allocate(shape.vector)
    writer.store(writer.constant(shape.vector, tiny), slot)

    def piece(at: Value) -> None:
        value = writer.select(is_before(make, at, end), make.vector(make.at(row, at)).abs(), 0.0)
        best = writer.load(shape.vector, slot)
        writer.store(writer.select(value > best, value, best), slot)

    pieces(make, end, piece)
    return greatest_of_lanes(writer.load(shape.vector, slot))


def three_diagonals_function(shape: Shape) -> str:
    """The diagonals d and e of the matrix `rows`. Its rows become vectors with factors `taus`.

    w, x, y: memory for one row each
    """
    make = maker(shape)
    writer, (rows, d, e, taus, w, x, y) = make.writer, make.pointers("rows d e taus w x y")
    (step, n), lanes = make.sizes("ld n"), shape.lanes
    pieces(make, step, lambda at: make.put(writer.constant(shape.vector, 0.0), make.at(w, at)))

    def reflect(turn: Value) -> None:
        j = n - 1 - turn
        row, before = (make.at(rows, k * step) for k in (j, j + 1))
        factor, other = (writer.splat(make.scalar(make.at(vector, j)), lanes) for vector in (before, w))

        def renew(at: Value) -> None:
            value = (-factor).fma(make.vector(make.at(w, at)), make.vector(make.at(row, at)))
            make.put((-other).fma(make.vector(make.at(before, at)), value), make.at(row, at))

        # Only this row is brought up to date first; `walk` does the others on its way.
        pieces(make, j + 1, renew)
        writer.store(make.scalar(make.at(row, j)), make.at(d, j))
        tau_at = make.at(taus, j)
        make.call("reflection", row, x, make.at(e, j - 1), tau_at, step, j)
        make.call("walk", rows, before, w, x, y, step, j)
        tau = make.scalar(tau_at)
        along = summed(make, j, lambda at: (make.vector(make.at(x, at)), make.vector(make.at(y, at))))
        # The matrix reflected is A - v wᵀ - w vᵀ for w = p - (τ pᵀv / 2) v and p = τ A v (§8.3.1).
        # Here v is in x, and A v in y.
        half = writer.splat(-(tau * tau * along * 0.5), lanes)
        wide = writer.splat(tau, lanes)

        def put(at: Value) -> None:
            value = make.vector(make.at(x, at))
            product = half.fma(value, wide * make.vector(make.at(y, at)))
            make.put(writer.select(is_before(make, at, j), product, 0.0), make.at(w, at))
            make.put(value, make.at(row, at))

        pieces(make, step, put)

    make.each(n - 1, reflect)
    writer.store(make.scalar(rows), d)
    writer.store(writer.constant(shape.scalar, 0.0), make.at(e, n - 1))
    writer.store(writer.constant(shape.scalar, 0.0), taus)
    arrays = "ptr %rows, ptr %d, ptr %e, ptr %taus, ptr %w, ptr %x, ptr %y"
    return make.text(f"three_diagonals({arrays}, i64 %ld, i64 %n)")


def product_function(shape: Shape) -> str:
    """Q of the vectors in `rows` and their factors, in `out`, which must contain zeros."""
    make = maker(shape)
    writer, (rows, taus, out, w, y) = make.writer, make.pointers("rows taus out w y")
    (step, n), one = make.sizes("ld n"), writer.constant(shape.scalar, 1.0)
    make.each(n, lambda i: writer.store(one, make.at(out, i * (step + 1))))
    pieces(make, step, lambda at: make.put(writer.constant(shape.vector, 0.0), make.at(y, at)))

    def reflect(j: Value) -> None:
        row, tau = make.at(rows, j * step), writer.splat(make.scalar(make.at(taus, j)), shape.lanes)
        pieces(make, step, lambda at: make.put(tau * make.vector(make.at(y, at)), make.at(w, at)))
        # The next vector is the row after this one; after the last there are rows of zeros.
        make.call("one_sided_walk", out, row, w, make.at(row, step), y, step, j + 1)

    make.each(n, reflect)
    return make.text("product(ptr %rows, ptr %taus, ptr %out, ptr %w, ptr %y, i64 %ld, i64 %n)")
