"""Sums of quotients of one number: y//k + (y + 1)//k + … + (y + k - 1)//k = y.

For example, the (n + 1)//2 even and n//2 odd positions add up to n, and n - n//2 is (n + 1)//2. The
identity is applied as long as it makes a sum shorter: fewer of the deepest divisions, then fewer
of the others, then fewer terms, then smaller coefficients. This order makes rewriting end, also
together with the rule that replaces a quotient inside a numerator by what it divides.

Denominators have to be numbers. A sum of few terms over a large k stays as it is: the identity has
k + 1 parts, and each part that the sum lacks would become a new term.
Source: Hermite's identity; Graham, Knuth, Patashnik, "Concrete Mathematics", (3.26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from rune.dims.factors import Factor, FloorDiv, Size, Term, collected, divide_term, join, nesting, symbols_of, terms_of

Divide = Callable[[Iterable[Term], int], Iterable[Term]]


class _Family(NamedTuple):
    """The quotients cofactor*((y + j)//k) for all j; y has no constant term."""

    cofactor: tuple[Factor, ...]
    y: tuple[Term, ...]
    k: int


class _Parts(NamedTuple):
    """cofactor*((y + c)//d), the sum of cofactor*((y + c + d*i)//k) for i below `ways`; k = d*ways.

    This is the identity for z = (y + c)//d, because (z + i)//ways = (y + c + d*i)//k.
    """

    family: _Family
    ways: int
    c: int

    @property
    def d(self) -> int:
        return self.family.k // self.ways


def shortened(terms: list[Term], divide: Divide) -> list[Term]:
    """The terms of an equal sum, after applying the identity as long as it shortens the sum.

    divide: returns the quotient of a sum by a number.
    """
    while True:
        best = min(_equal_sums(terms, divide), key=_length, default=None)
        if best is None or _length(best) >= _length(terms):
            return terms
        terms = best


def _equal_sums(terms: list[Term], divide: Divide) -> Iterator[list[Term]]:
    """Equal sums that the identity yields by removing one of its parts."""
    for parts, counts in _identities(terms):
        # Asked before the division, which costs most: hardly any sum contains the quotient.
        if 2 * (len(counts) + _may_contain_quotient(terms, parts.family)) <= parts.ways:
            continue
        quotient = list(divide((*parts.family.y, Term(parts.c, ())), parts.d))
        times = [*counts, -_times(terms, parts.family.cofactor, quotient)]
        if 2 * sum(map(bool, times)) > parts.ways:
            zero = [*quotient, *_negative_parts(parts, divide)]
            zero = [Term(c, join(parts.family.cofactor, factors)) for c, factors in zero]
            for by in dict.fromkeys(filter(None, times)):
                yield collected((*terms, *(Term(by * c, factors) for c, factors in zero)))


def _identities(terms: Sequence[Term]) -> Iterator[tuple[_Parts, list[int]]]:
    """Identities that might shorten a sum, and the coefficients of their parts in it."""
    for family, members in _families(terms).items():
        most = min(family.k, 2 * len(members) + 1)
        for count in (n for n in range(2, most + 1) if family.k % n == 0):
            d = family.k // count
            for c in dict.fromkeys(j % d for j in members):
                yield _Parts(family, count, c), [n for j, n in members.items() if j % d == c]


def _may_contain_quotient(terms: Iterable[Term], family: _Family) -> bool:
    """Whether a term outside the family has its cofactor, and otherwise only symbols of y."""
    cofactor, inside = Term(1, family.cofactor), {s for t in family.y for f in t.factors for s in symbols_of(f)}
    for term in terms:
        share = divide_term(Term(1, term.factors), cofactor)
        if share.coefficient and all(symbols_of(f) <= inside for f in share.factors):
            if not any(_is_member(f, family) for f in share.factors):
                return True
    return False


def _is_member(factor: Factor, family: _Family) -> bool:
    return type(factor) is FloorDiv and factor.denominator == family.k and _linear(factor.numerator)[0] == family.y


def _families(terms: Sequence[Term]) -> dict[_Family, dict[int, int]]:
    """The coefficients of the quotients in a sum, by family and j."""
    families: dict[_Family, dict[int, int]] = {}
    for coefficient, factors in terms:
        for place, factor in enumerate(factors):
            if type(factor) is FloorDiv and isinstance(factor.denominator, int):
                y, j = _linear(factor.numerator)
                family = _Family((*factors[:place], *factors[place + 1 :]), y, factor.denominator)
                families.setdefault(family, {})[j] = coefficient
    return families


def _linear(numerator: Size) -> tuple[tuple[Term, ...], int]:
    """y and j of a numerator y + j."""
    terms = terms_of(numerator)
    return tuple(t for t in terms if t.factors), sum(t.coefficient for t in terms if not t.factors)


def _times(terms: Sequence[Term], cofactor: tuple[Factor, ...], quotient: Sequence[Term]) -> int:
    """How many times a sum contains cofactor*quotient, judged by its leading term."""
    leading = quotient[0]
    factors = join(cofactor, leading.factors)
    total = sum(t.coefficient for t in terms if t.factors == factors)
    return total // leading.coefficient if leading.coefficient else 0


def _negative_parts(parts: _Parts, divide: Divide) -> Iterator[Term]:
    for i in range(parts.ways):
        shift = Term(parts.c + parts.d * i, ())
        for c, factors in divide((*parts.family.y, shift), parts.family.k):
            yield Term(-c, factors)


def _length(terms: Sequence[Term]) -> tuple[list[int], int, int]:
    """The sort key of a sum: nesting of its divisions, deepest first; terms; coefficients."""
    depths = sorted((nesting(f) for t in terms for f in t.factors), reverse=True)
    positive = [depth for depth in depths if depth]
    return positive, len(terms), sum(abs(t.coefficient) for t in terms)
