"""How wide the index arithmetic of a kernel has to be.

    x[60*a + 5*c + d]   with a in 0..1, c in 0..3, d in 0..4       at most 60 + 15 + 4: 32 bits

Every index, extent and size is bounded term by term, so that no intermediate sum or product
overflows either; a symbol without bounds needs 64 bits. On a GPU, 64-bit integer arithmetic costs
two to four times as much as 32-bit, and a division ten times.
"""

from __future__ import annotations

import math

from rune import dims
from rune.dims import Dim, Factor, Mod, Size, Symbol, product
from rune.lowering.kernel.nodes import For, KernelCode, Kind
from rune.lowering.kernel.rewrite import sizes_in, walk

# The last workgroup of a launch may reach beyond the grid.
_MOST = 2**31 - 1 - 1024


def lifted(x: Size, d: Size) -> tuple[Size, int, bool]:
    """(numerator, up, is_plain) for the division of x by d, where numerator = x + up * d.

    If x may be negative, the numerator is raised by the smallest multiple of d that makes it
    non-negative; x // d is then the quotient minus `up`. is_plain: truncating division gives the
    floor. The caller handles a divisor that may be 0 (`may_be_zero`).

    >>> lifted(dims.symbol("i", 0, 9) - 1, 4)[1:], lifted(dims.symbol("i", 0, 9), 4)[1:]
    ((1, True), (0, True))
    """
    low = dims.bounds(x)[0]
    up = -(low // d) if isinstance(d, int) and low is not None and low < 0 < d else 0
    # (x + up * d) // d is x // d + up, with the same remainder.
    numerator = x + up * d
    return numerator, up, bool(dims.at_most(0, numerator) and dims.at_most(0, d))


def may_be_zero(d: Size) -> bool:
    """Whether code has to divide by 1 in place of `d`, which may be a size of 0.

    Only the index of an element that does not exist is divided by a size of 0, but code may compute
    that index before it tests the guard of the read, and a processor may trap.

    >>> n = dims.symbol("n", 1, 9)
    >>> may_be_zero(n), may_be_zero(n // 2), may_be_zero(3)
    (False, True, False)
    """
    return not dims.less(0, d)


def is_short(size: Size) -> bool:
    """Whether 32-bit signed integers hold the value.

    >>> is_short(dims.symbol("i", 0, 9)), is_short(dims.symbol("n")), is_short(1 << 31)
    (True, False, False)
    """
    low, high = dims.bounds(size)
    return low is not None and high is not None and -(1 << 31) <= low and high < 1 << 31


def is_short_throughout(size: Size) -> bool:
    """Whether 32-bit signed integers hold the value, and every partial sum, product and quotient.

    >>> i = dims.symbol("i", 0, 1 << 16)
    >>> is_short_throughout(i // 3), is_short_throughout(i * i % 7)
    (True, False)
    """
    return _magnitude(size) <= _MOST


def fits_32_bits(code: KernelCode) -> bool:
    """Whether 32-bit signed integers hold every index, and every intermediate value.

    >>> from rune.lowering.kernel.text import parse
    >>> text = "code f(y: write u8[{0}]) {{ for i in {0} grid {{ store y[i] = 1_u8 }} }}"
    >>> fits_32_bits(parse(text.format(1 << 20))), fits_32_bits(parse(text.format(1 << 31)))
    (True, False)
    """
    grid = (s.extent for s in walk(code.body) if isinstance(s, For) and s.kind is Kind.GRID)
    # The product too: a language with few launch dimensions folds the grid into one number.
    sizes = (*(p.size for p in code.params), *sizes_in(code.body), product(grid))
    return all(map(is_short_throughout, sizes))


def _magnitude(x: Size) -> float:
    """An upper bound of the magnitude of every partial sum and product."""
    if not isinstance(x, Dim):
        return abs(x)
    return sum(abs(t.coefficient) * math.prod(max(1, _of_factor(f)) for f in t.factors) for t in x.terms)


def _of_factor(factor: Factor) -> float:
    if isinstance(factor, Symbol):
        ends = dims.bounds(dims.symbol(factor.name, factor.low, factor.high))
        return math.inf if None in ends else max(abs(end or 0) for end in ends)
    top, below = _magnitude(factor.numerator), _magnitude(factor.denominator)
    # A numerator that may be negative is first raised by a multiple of the denominator.
    if 2 * top + below > _MOST:
        return math.inf
    if isinstance(factor, Mod):
        return below
    # Plus one, because flooring a negative quotient rounds away from zero; an unknown denominator
    # may be 1.
    return top // factor.denominator + 1 if isinstance(factor.denominator, int) else top + 1
