"""Products of complex numbers over axes, and running products: the two parts depend on each other.

For a static size, halves are multiplied with each other until one element is left, and running
products take log2 n steps of doubling length (Hillis & Steele 1986): every step is parallel. For a
symbolic size, a loop multiplies row by row.
"""

from __future__ import annotations

from rune.core.interpreter import literal, type_of
from rune.dims import Size, product
from rune.ops.family import fit, reshape
from rune.ops.movement import concatenate, inverse, slice_, transpose
from rune.ops.pairs import Pair, mul
from rune.ops.repeat import repeat_rows

Axes = tuple[int, ...]


def product_over(x: Pair, axes: Axes) -> Pair:
    """The product over `axes` of a pair of arrays of one shape."""
    shape = type_of(x[0]).shape
    row_axes = tuple(i for i in range(len(shape)) if i not in axes)
    rows, count = tuple(shape[i] for i in row_axes), product(shape[i] for i in axes)
    # The loop takes rows from the first axis; halves are cut from the last one, which is
    # contiguous.
    leading, trailing = (*axes, *row_axes), (*row_axes, *axes)
    if not isinstance(count, int):
        return _by_rows(_arranged(x, leading, (count, *rows)), rows, count, False, False)
    return _by_halves(_arranged(x, trailing, (*rows, count)), rows, count)


def running_product(x: Pair, axis: int, reverse: bool) -> Pair:
    """The products of all elements up to each one along `axis`, or from each one on."""
    shape = type_of(x[0]).shape
    size, row_axes = shape[axis], tuple(i for i in range(len(shape)) if i != axis)
    if isinstance(size, int):
        order = (*row_axes, axis)
        products = _by_doubling(_transposed(x, order), size, reverse)
    else:
        order = (axis, *row_axes)
        rows = tuple(shape[i] for i in row_axes)
        products = _by_rows(_transposed(x, order), rows, size, reverse, True)
    return _transposed(products, inverse(order))


def _transposed(x: Pair, order: Axes) -> Pair:
    real, imag = (transpose(v, permutation=order) for v in x)
    return real, imag


def _arranged(x: Pair, order: Axes, shape: tuple[Size, ...]) -> Pair:
    real, imag = (reshape(v, shape=shape) for v in _transposed(x, order))
    return real, imag


# --- of a known size --------------------------------------------------------------------------


def _by_halves(x: Pair, rows: tuple[Size, ...], count: int) -> Pair:
    """The product over the last axis."""
    factors = x if count else _ones(x, rows)
    while count > 1:
        half = count // 2
        halves = mul(_cut(factors, 0, half), _cut(factors, half, 2 * half))
        factors = _joined(halves, _cut(factors, 2 * half, count)) if count % 2 else halves
        count -= half
    real, imag = (reshape(v, shape=rows) for v in factors)
    return real, imag


def _by_doubling(x: Pair, size: int, reverse: bool) -> Pair:
    """Running products along the last axis."""
    by = 1
    while by < size:
        low, high = _cut(x, 0, size - by), _cut(x, by, size)
        # Ends stay as they are: a product with 1 + 0j makes NaN of an infinity.
        ends = _cut(x, size - by, size) if reverse else _cut(x, 0, by)
        x = _joined(mul(low, high), ends) if reverse else _joined(ends, mul(low, high))
        by *= 2
    return x


def _cut(x: Pair, start: int, limit: int) -> Pair:
    """x[..., start:limit]."""
    shape = type_of(x[0]).shape
    params = {"start": (*(0,) * (len(shape) - 1), start), "limit": (*shape[:-1], limit), "stride": (1,) * len(shape)}
    real, imag = (slice_(v, **params) for v in x)
    return real, imag


def _joined(x: Pair, y: Pair) -> Pair:
    """Two pairs side by side along the last axis."""
    axis = type_of(x[0]).ndim - 1
    real, imag = (concatenate(v, w, axis=axis) for v, w in zip(x, y, strict=True))
    return real, imag


def _ones(x: Pair, rows: tuple[Size, ...]) -> Pair:
    """The product over no elements: 1 + 0j everywhere."""
    real, imag = (fit(literal(1 - k, type_of(v).dtype), rows) for k, v in enumerate(x))
    return real, imag


# --- of a symbolic size -----------------------------------------------------------------------


def _by_rows(x: Pair, rows: tuple[Size, ...], count: Size, reverse: bool, running: bool) -> Pair:
    """A loop over the first axis: the last product, or all of them."""
    one = _ones(x, rows)

    def step(carry: Pair, row: Pair) -> tuple[Pair, Pair | tuple[()]]:
        product = mul(carry, row)
        return product, product if running else ()

    last, products = repeat_rows(step, one, x, reverse=reverse)
    real, imag = products if running else last
    return real, imag
