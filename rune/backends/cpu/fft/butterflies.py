"""Transforms of 2, 3, 4, 5, 8 and 16 elements, in registers.

Source: Van Loan 1992, "Computational Frameworks for the Fast Fourier Transform", §2.2 (4 and 8);
Nussbaumer 1982, "Fast Fourier Transform and Convolution Algorithms", §4.2 (odd numbers).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from rune import dtypes
from rune.backends.cpu.fft.tables import wide_roots
from rune.lowering.codegen.llvm.ir.text import Value

Pair = tuple[Value, Value]


def add(x: Pair, y: Pair) -> Pair:
    """x + y."""
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Pair, y: Pair) -> Pair:
    """x - y."""
    return x[0] - y[0], x[1] - y[1]


def over_i(x: Pair) -> Pair:
    """-i x."""
    return x[1], -x[0]


def times(x: Pair, y: Pair) -> Pair:
    """x y, with one rounding fewer than by four products."""
    return x[0].fma(y[0], -(x[1] * y[1])), x[0].fma(y[1], x[1] * y[0])


def transformed(x: Sequence[Pair]) -> list[Pair]:
    """The transform of these elements. Their number must be in `lengths.WRITTEN_OUT`."""
    match len(x):
        case 2:
            return [add(*x), subtract(*x)]
        case 4:
            return _four(x)
        case 8:
            return _eight(x)
        case 16:
            return _sixteen(x)
        case _:
            return _odd(x)


def _four(x: Sequence[Pair]) -> list[Pair]:
    even, odd = transformed(x[::2]), transformed(x[1::2])
    # Adds -i times the odd difference by its parts, without an instruction that changes a sign.
    (a, b), (c, d) = even[1], odd[1]
    return [add(even[0], odd[0]), (a + d, b - c), subtract(even[0], odd[0]), (a - d, b + c)]


def _eight(x: Sequence[Pair]) -> list[Pair]:
    even, (first, second, third, fourth) = transformed(x[::2]), transformed(x[1::2])
    half = math.sqrt(0.5)
    # times exp(-2πi k/8): roots of 1 and -i need no product, the others one factor for both parts
    products = [
        first,
        ((second[0] + second[1]) * half, (second[1] - second[0]) * half),
        over_i(third),
        ((fourth[1] - fourth[0]) * half, (fourth[0] + fourth[1]) * -half),
    ]
    return _joined(even, products)


def _sixteen(x: Sequence[Pair]) -> list[Pair]:
    even, odd = transformed(x[::2]), transformed(x[1::2])
    products = [_turned(value, k) for k, value in enumerate(odd)]
    return _joined(even, products)


def _joined(even: Sequence[Pair], odd: Sequence[Pair]) -> list[Pair]:
    """The transform, from those of even and odd elements; the latter are multiplied by roots."""
    sums = [add(a, b) for a, b in zip(even, odd, strict=True)]
    return sums + [subtract(a, b) for a, b in zip(even, odd, strict=True)]


def _turned(x: Pair, k: int) -> Pair:
    """x exp(-2πi k/16), for k up to 7."""
    real, imag = x
    half = math.sqrt(0.5)
    match k:
        case 0:
            return x
        case 2:
            # Cosine and sine are equally large: one factor for both parts, as in `_eight`.
            return (real + imag) * half, (imag - real) * half
        case 4:
            return over_i(x)
        case 6:
            return (imag - real) * half, (real + imag) * -half
        case _:
            root = _roots(16)[k]
            return real.fma(root.real, imag * -root.imag), imag.fma(root.real, real * root.imag)


def _odd(x: Sequence[Pair]) -> list[Pair]:
    """An odd number of elements. The roots of k and n - k are conjugate, so pairs share
    products."""
    n, half = len(x), range(1, len(x) // 2 + 1)
    sums = [add(x[k], x[n - k]) for k in half]
    differences = [subtract(x[k], x[n - k]) for k in half]
    total = x[0]
    for term in sums:
        total = add(total, term)
    frequencies = {0: total}
    for q in half:
        # y[q] = even - i odd, y[n-q] = even + i odd, by the cosines and the sines of q's turns.
        even, odd = x[0], None
        for k, term, difference in zip(half, sums, differences, strict=True):
            root = _roots(n)[q * k % n]
            even = _plus(even, term, root.real)
            odd = _plus(odd, difference, -root.imag)
        assert odd is not None
        frequencies[q] = even[0] + odd[1], even[1] - odd[0]
        frequencies[n - q] = even[0] - odd[1], even[1] + odd[0]
    return [frequencies[q] for q in range(n)]


def half_transformed(x: Sequence[Value]) -> list[Pair]:
    """The first frequencies of an odd number of real elements; the others are conjugates."""
    n, half = len(x), range(1, len(x) // 2 + 1)
    sums, differences = [x[k] + x[n - k] for k in half], [x[k] - x[n - k] for k in half]
    zero = x[0] * 0.0
    total = x[0]
    for term in sums:
        total = total + term
    return [(total, zero), *(_half(x[0], sums, differences, q, n) for q in half)]


def _half(first: Value, sums: Sequence[Value], differences: Sequence[Value], q: int, n: int) -> Pair:
    """first + sum of sums[k] cos(2πqk/n), and -sum of differences[k] sin(2πqk/n)."""
    real, imag = first, None
    for k, (total, difference) in enumerate(zip(sums, differences, strict=True), 1):
        root = _roots(n)[q * k % n]
        real = total.fma(root.real, real)
        imag = difference * root.imag if imag is None else difference.fma(root.imag, imag)
    assert imag is not None
    return real, imag


def from_half(y: Sequence[Pair], n: int) -> list[Value]:
    """n real elements, times n, from their first frequencies; n is odd."""
    doubled = [(real + real, imag + imag) for real, imag in y[1:]]
    reals, imags = [real for real, _ in doubled], [imag for _, imag in doubled]
    elements = {0: y[0][0]}
    for real in reals:
        elements[0] = elements[0] + real
    for q in range(1, n // 2 + 1):
        even, odd = _half(y[0][0], reals, imags, q, n)
        elements[q], elements[n - q] = even + odd, even - odd
    return [elements[q] for q in range(n)]


@functools.cache
def _roots(n: int) -> list[complex]:
    """exp(-2πi k/n), rounded once: an angle that is rounded first would add an error of its own."""
    return [complex(root) for root in wide_roots(np.arange(n), n, dtypes.f64)]


def _plus(total: Pair | None, x: Pair, weight: float) -> Pair:
    """total + weight x."""
    if total is None:
        return x[0] * weight, x[1] * weight
    return x[0].fma(weight, total[0]), x[1].fma(weight, total[1])
