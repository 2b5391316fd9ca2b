"""Transforms by stages: a mixed-radix Fourier transform without reordering.

With n = r·m·l, where transforms of length l are complete, one stage reads r chunks of length m·l,
multiplies the j-th element of each run of l by a root of unity, and combines the chunks by a
transform of length r; the r results of a run are written one after another:

    [r, m, l]  ->  [m, r, l]        so that runs are r times as long, and m times fewer

Chunks are read and runs are written in order, and after the last stage (m = 1) everything is in its
place. A stage is one kernel and reads the array once; there are as many stages as factors.

Source: Stockham's self-sorting transform, as in Van Loan 1992, "Computational Frameworks for the
Fast Fourier Transform", §1.7; odd radices by pairs of opposite roots, Rader & Brenner's symmetry
in Nussbaumer 1982, "Fast Fourier Transform and Convolution Algorithms", §4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from rune.core.interpreter import literal_like, type_of
from rune.ops import arithmetic as a
from rune.ops import pairs
from rune.ops.complex_numbers import complex, imag, real
from rune.ops.contraction import dot_general
from rune.ops.family import broadcast, reshape
from rune.ops.fourier.along import cut, join, shape_of, split_axis, spread, times
from rune.ops.fourier.roots import indices, unit_roots
from rune.ops.memory import in_memory
from rune.ops.movement import transpose
from rune.ops.pairs import Pair

WRITTEN_OUT = 7  # a larger radix is a product with a matrix


def transform_by_stages(x: Pair, axis: int, radices: Sequence[int]) -> Pair:
    """The transform along `axis`, whose length is the product of the radices."""
    n, run_length = math.prod(radices), 1
    for radix in radices:
        x = _stage(x, axis, radix, n // (radix * run_length), run_length)
        run_length *= radix
    return x


def _stage(x: Pair, axis: int, radix: int, runs: int, run_length: int) -> Pair:
    """[r, m, l] -> [m, r, l] along `axis`, with r, m, l = radix, runs, run_length."""
    if radix > WRITTEN_OUT:
        return _stage_by_matrix(x, axis, radix, runs, run_length)
    size = runs * run_length
    chunks = [cut(x, axis, k * size, (k + 1) * size) for k in range(radix)]
    if runs > 1:
        chunks = [split_axis(chunk, axis, (runs, run_length)) for chunk in chunks]
    inner = axis + (runs > 1)  # the axis of the runs' elements
    if run_length > 1:
        chunks = _turned(chunks, inner, radix, run_length)
    outputs = {2: _two, 4: _four}.get(radix, _odd)(chunks)
    if runs == 1:
        return join(outputs, axis)
    apart = [split_axis(y, axis, (runs, 1, run_length), 2) for y in outputs]
    real, imag = join(apart, axis + 1)
    return split_axis((in_memory(real), in_memory(imag)), axis, (radix * size,), 3)


def _turned(chunks: Sequence[Pair], axis: int, radix: int, run_length: int) -> list[Pair]:
    """Chunk k times exp(-2πi jk / (radix·run_length)), for each j along `axis`."""
    turns = _table(radix, run_length, radix * run_length, type_of(chunks[0][0]).dtype)
    rows = (split_axis(cut(turns, 0, k, k + 1), 0, (run_length,), 2) for k in range(1, radix))
    return [chunks[0], *(times(x, row, axis) for x, row in zip(chunks[1:], rows, strict=True))]


# --- transforms of a few elements ---------------------------------------------------------------


def _two(x: Sequence[Pair]) -> list[Pair]:
    return [pairs.add(*x), pairs.sub(*x)]


def _four(x: Sequence[Pair]) -> list[Pair]:
    even, odd = _two((x[0], x[2])), _two((x[1], x[3]))
    over_i = pairs.over_i(odd[1])
    return [
        pairs.add(even[0], odd[0]),
        pairs.add(even[1], over_i),
        pairs.sub(even[0], odd[0]),
        pairs.sub(even[1], over_i),
    ]


def _odd(x: Sequence[Pair]) -> list[Pair]:
    """For an odd radix: elements k and n-k multiply roots that are each other's conjugates."""
    n, half = len(x), range(1, len(x) // 2 + 1)
    sums = [pairs.add(x[k], x[n - k]) for k in half]
    differences = [pairs.over_i(pairs.sub(x[k], x[n - k])) for k in half]
    frequencies: dict[int, Pair] = {0: _total([x[0], *sums])}
    for q in half:
        cosines, sines = (_weights(f, q, n, x[0]) for f in (math.cos, math.sin))
        even = _total([x[0], *map(pairs.times, sums, cosines)])
        odd = _total(list(map(pairs.times, differences, sines)))
        frequencies[q], frequencies[n - q] = pairs.add(even, odd), pairs.sub(even, odd)
    return [frequencies[q] for q in range(n)]


def _weights(function: Callable[[float], float], q: int, n: int, like: Pair) -> list[np.ndarray]:
    turns = (function(2 * math.pi * (q * k % n) / n) for k in range(1, n // 2 + 1))
    return [literal_like(w, like[0]) for w in turns]


def _total(terms: Sequence[Pair]) -> Pair:
    total = terms[0]
    for term in terms[1:]:
        total = pairs.add(total, term)
    return total


# --- large radices ------------------------------------------------------------------------------


def _stage_by_matrix(x: Pair, axis: int, radix: int, runs: int, run_length: int) -> Pair:
    """The same stage as a product with the matrix of all roots."""
    shape, dtype = shape_of(x), type_of(x[0]).dtype
    x = split_axis(x, axis, (radix, runs, run_length))
    if run_length > 1:
        turns = _table(radix, run_length, radix * run_length, dtype)
        x = pairs.mul(x, spread(turns, (axis, axis + 2), shape_of(x)))
    roots = complex(*_table(radix, radix, radix, dtype))
    product = dot_general(roots, complex(*x), dimension_numbers=(((1,), (axis,)), ((), ())))
    order = (*range(1, axis + 2), 0, *range(axis + 2, len(shape) + 2))
    product = reshape(transpose(product, permutation=order), shape=shape)
    return real(product), imag(product)


def _table(rows: int, columns: int, n: int, dtype: np.dtype) -> Pair:
    """exp(-2πi jk/n) for j in rows, k in columns."""
    j, k = (
        broadcast(indices(size, n), shape=(rows, columns), axes=(axis,)) for axis, size in enumerate((rows, columns))
    )
    real, imag = unit_roots(a.rem(a.mul(j, k), literal_like(n, j)), n, dtype)
    return in_memory(real), in_memory(imag)
