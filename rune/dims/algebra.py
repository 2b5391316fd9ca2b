"""Polynomials over named sizes, with floor division and remainder: the algebra of dimensions.

A Dim is a sum of Terms, each an integer times factors; a factor is a Symbol, FloorDiv or Mod. Every
operation returns the canonical form, and an int if the result is constant.

Division and bounds call each other: bounds decide whether x//d simplifies, and the bounds of x come
from rewriting x. The recursion ends because it descends to smaller parts or less nested symbols.

Invariant: for all values of the symbols within their bounds, a simplified expression equals the
original under Python's floor semantics. A division assumes that its denominator is not zero.
Not supported: factoring, division by several terms beyond long division, solving for a symbol.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

from rune.dims import corners, quotients
from rune.dims.factors import (
    Dim,
    Factor,
    FloorDiv,
    Mod,
    Size,
    Symbol,
    Term,
    collected,
    common,
    divide_term,
    factors_of,
    join,
    memo,
    nesting,
    no_number,
    symbols,
    symbols_of,
    terms_of,
)
from rune.dims.messages import no_value, undecided
from rune.errors import DimensionError
from rune.records import dataclass

T = TypeVar("T")
_MAX_DIVISION_STEPS = 32
_MAX_TERMS = 1 << 14  # of a product, before like terms merge: parsed text may ask for any number


def _binary(compute: Callable[[Any, Any], T], swap: bool = False) -> Callable[[Any, Any], T]:
    def method(self: Dim, other: object) -> Any:
        if not isinstance(other, (int, Dim)):
            if not isinstance(other, Integral):
                return no_number(self, other)
            other = int(other)
        return compute(other, self) if swap else compute(self, other)

    return method


def _ordered(sign: str, decide: Callable[[Any, Any], bool | None]) -> Callable[[Any, Any], bool]:
    def compare(a: Size, b: Size) -> bool:
        answer = decide(a, b)
        if answer is None:
            raise undecided(*sides(a, sign, b))
        return answer

    return _binary(compare)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Polynomial(Dim):
    """The arithmetic of dimensions.

    `==` compares structure; `<`, `<=`, `>` and `>=` return a bool or raise UndecidedComparison.
    """

    __array_ufunc__ = None  # makes NumPy scalars defer to the methods below

    __add__ = __radd__ = _binary(lambda a, b: add(a, b))
    __mul__ = __rmul__ = _binary(lambda a, b: multiply(a, b))
    __sub__ = _binary(lambda a, b: add(a, multiply(b, -1)))
    __rsub__ = _binary(lambda a, b: add(a, multiply(b, -1)), swap=True)
    __floordiv__ = _binary(lambda a, b: floordiv(a, b))
    __rfloordiv__ = _binary(lambda a, b: floordiv(a, b), swap=True)
    __mod__ = _binary(lambda a, b: mod(a, b))
    __rmod__ = _binary(lambda a, b: mod(a, b), swap=True)
    __divmod__ = _binary(lambda a, b: (floordiv(a, b), mod(a, b)))
    __pow__ = _binary(lambda a, b: power(a, b))
    __lt__ = _ordered("<", lambda a, b: less(a, b))
    __le__ = _ordered("<=", lambda a, b: at_most(a, b))
    __gt__ = _ordered(">", lambda a, b: less(b, a))
    __ge__ = _ordered(">=", lambda a, b: at_most(b, a))

    def __bool__(self) -> bool:
        raise no_value(self, "truth value")

    def __int__(self) -> int:
        raise no_value(self, "integer")

    def __float__(self) -> float:
        raise no_value(self, "float")

    def __index__(self) -> int:
        raise no_value(self, "index")


def sides(a: Size, sign: str, b: Size) -> tuple[Size, str, Size]:
    """The comparison with each term on the side where its coefficient is positive."""
    terms = terms_of(a - b)
    plus = of_terms(t for t in terms if t.coefficient > 0)
    return plus, sign, plus - of_terms(terms)


# --- sums and products ------------------------------------------------------------------------


@memo
def of_factor(factor: Factor) -> Dim:
    """The polynomial that is just this factor."""
    return Polynomial((Term(1, (factor,)),))


def of_terms(terms: Iterable[Term]) -> Size:
    """The canonical sum of terms in any order."""
    canonical = collected(terms)
    if len(canonical) > 1:
        canonical = quotients.shortened(canonical, _quotient_of)
    if not canonical or (len(canonical) == 1 and not canonical[0].factors):
        return canonical[0].coefficient if canonical else 0
    result = Polynomial(tuple(canonical))
    return _recombine(result) if any(type(f) is Mod for t in canonical for f in t[1]) else result


def _quotient_of(terms: Iterable[Term], d: int) -> tuple[Term, ...]:
    return terms_of(floordiv(of_terms(terms), d))


@memo
def add(a: Size, b: Size) -> Size:
    """a + b."""
    return of_terms((*terms_of(a), *terms_of(b)))


@memo
def multiply(a: Size, b: Size) -> Size:
    """a * b. Errors: DimensionError if the product has more terms than a size can have."""
    if len(terms_of(a)) * len(terms_of(b)) > _MAX_TERMS:
        raise DimensionError(f"size: cannot multiply sums of {len(terms_of(a))} and {len(terms_of(b))} terms")
    return of_terms(Term(c * d, join(f, g)) for c, f in terms_of(a) for d, g in terms_of(b))


def power(a: Dim, b: Size) -> Size:
    """a * a * ..., b times."""
    return reduce(multiply, [a] * b, 1) if isinstance(b, int) and b >= 0 else no_number(a, b)


def _recombine(x: Dim) -> Size:
    """c*d*(y//d) + c*(y % d) = c*y,  and  c*d*((y//d) % e) + c*(y % d) = c*(y % (d*e))."""
    for term in x.terms:
        for factor in term.factors:
            if not isinstance(factor, Mod):
                continue
            quotient, cofactor = factor.numerator // factor.denominator, _cofactor(term, factor)
            multiple = cofactor * factor.denominator
            for other in x.terms:
                for partner in other.factors:
                    replacement = _joined_remainder(factor, partner, quotient)
                    if replacement is not None and _cofactor(other, partner) == multiple:
                        return x - Polynomial((term,)) - Polynomial((other,)) + cofactor * replacement
    return x


def _joined_remainder(remainder: Mod, partner: Factor, quotient: Size) -> Size | None:
    if isinstance(partner, Mod) and partner.numerator == quotient:
        positive = _at_least_0(remainder.denominator) and _at_least_0(partner.denominator)
        return None if not positive else remainder.numerator % (remainder.denominator * partner.denominator)
    return remainder.numerator if quotient == of_factor(partner) else None


def _cofactor(term: Term, factor: Factor) -> Size:
    factors = list(term.factors)
    factors.remove(factor)
    return of_terms([Term(term.coefficient, tuple(factors))])


def rewrite(x: Size, known: dict[Factor, Size]) -> Size:
    """x in canonical form with factors replaced; adds each factor that it rewrites to `known`."""
    return of_terms([term for t in terms_of(x) for term in terms_of(_rewrite_term(t, known))])


def _rewrite_term(term: Term, known: dict[Factor, Size]) -> Size:
    product: Size = term.coefficient
    for factor in term.factors:
        if factor not in known:
            known[factor] = _rewrite_factor(factor, known)
        product = multiply(known[factor], product)
    return product


def _rewrite_factor(factor: Factor, known: dict[Factor, Size]) -> Size:
    if isinstance(factor, Symbol):
        return of_factor(factor)
    x, d = rewrite(factor.numerator, known), rewrite(factor.denominator, known)
    return x // d if isinstance(factor, FloorDiv) else x % d


# --- division ---------------------------------------------------------------------------------


class _Reduced(NamedTuple):
    """x//d = quotient + numerator//denominator, x % d = scale*(numerator % denominator) + offset"""

    quotient: Size
    numerator: Size
    denominator: Size
    scale: Size
    offset: Size


@memo
def floordiv(x: Size, d: Size) -> Size:
    """x // d, rounded down."""
    division = _reduce(x, d)
    return division.quotient + _quotient(division.numerator, division.denominator)


@memo
def mod(x: Size, d: Size) -> Size:
    """x % d, with the sign of d."""
    division = _reduce(x, d)
    return division.scale * _remainder(division.numerator, division.denominator) + division.offset


@memo
def _reduce(x: Size, d: Size) -> _Reduced:
    if d == 0:
        raise ZeroDivisionError(f"floordiv: cannot divide {x} by 0")
    if at_most(d, 0):
        negation = _reduce(-x, -d)
        return negation._replace(scale=-negation.scale, offset=-negation.offset)
    quotient, remainder = long_division(x, d)
    window = _window(remainder, d)
    if window is not None:
        return _Reduced(quotient + window, 0, 1, 0, remainder - window * d)
    # (k*a + r)//(k*b) = a//b  and  (k*a + r) % (k*b) = k*(a % b) + r  when 0 <= r < k
    for k in _common_factors(remainder, d):
        a, r = long_division(remainder, k)
        window = _window(r, k)
        if window is not None:
            inner = _reduce(a + window, long_division(d, k)[0])
            scale, remainder = k * inner.scale, k * inner.offset + r - window * k
            quotient += inner.quotient
            return _Reduced(quotient, inner.numerator, inner.denominator, scale, remainder)
    return _Reduced(quotient, remainder, d, 1, 0)


@memo
def long_division(x: Size, d: Size) -> tuple[Size, Size]:
    """(q, r) with x = q*d + r: q sums the truncated quotients of x's terms by d's leading term."""
    leading, *others = terms_of(d)
    if not others:
        steps = [divide_term(term, leading) for term in terms_of(x)]
        remainder = [
            Term(term.coefficient - step.coefficient * leading.coefficient, term.factors)
            for term, step in zip(terms_of(x), steps)
        ]
        return of_terms(steps), of_terms(remainder)
    quotient: Size = 0
    for _ in range(_MAX_DIVISION_STEPS):
        steps = [s for s in (divide_term(t, leading) for t in terms_of(x)) if s.coefficient]
        if not steps:
            break
        step = of_terms(steps[:1])
        quotient, x = quotient + step, x - step * d
    return quotient, x


def _window(x: Size, d: Size) -> int | None:
    """The integer w with w*d <= x < (w + 1)*d for all values; None if the bounds show none."""
    if x == 0:
        return 0
    if isinstance(d, int):
        low, high = interval(x)
        is_bounded = -math.inf < low and high < math.inf
        return int(low // d) if is_bounded and low // d == high // d else None
    if _at_least_0(x):
        return 0 if less(x, d) else None
    return -1 if less(x, 0) and at_most(-d, x) else None


def _common_factors(x: Size, d: Size) -> list[Size]:
    """Factors that d has in common with one, two, ... terms of x, the largest first, without 1."""
    candidates = [reduce(common, terms_of(d))]
    divisors = [common(term, candidates[0]) for term in terms_of(x)]
    for term in sorted(divisors, key=lambda t: (-len(t.factors), -t.coefficient)):
        candidates.append(common(candidates[-1], term))
    return [of_terms([c]) for c in dict.fromkeys(candidates[1:]) if c != Term(1, ())]


def _quotient(x: Size, d: Size) -> Size:
    if isinstance(x, int) and isinstance(d, int):
        return x // d
    if isinstance(d, int) and all(c < 0 for c, factors in terms_of(x) if factors):
        return -((d - 1 - x) // d)  # (-y)//d = -((y + d - 1)//d)
    for coefficient, factors in terms_of(x):
        if coefficient != 1 or len(factors) != 1 or not _at_least_0(d):
            continue
        (inner,) = factors
        if isinstance(inner, Symbol) or not _at_least_0(inner.denominator):
            continue
        if isinstance(inner, FloorDiv):
            # (q + y//a)//d = (a*q + y)//(a*d)
            q = x - of_factor(inner)
            return (inner.denominator * q + inner.numerator) // (inner.denominator * d)
        if x == of_factor(inner) and inner.denominator % d == 0:
            # (y % (d*e))//d = (y//d) % e
            return (inner.numerator // d) % (inner.denominator // d)
    return of_factor(FloorDiv(x, d))


def _remainder(x: Size, d: Size) -> Size:
    if isinstance(x, int) and isinstance(d, int):
        return x % d
    for term in terms_of(x):
        for inner in term.factors:
            if isinstance(inner, Mod):
                # (c*(y % m) + r) % d = (c*y + r) % d  when d divides c*m
                cofactor = _cofactor(term, inner)
                if long_division(cofactor * inner.denominator, d)[1] == 0:
                    return (x - Polynomial((term,)) + cofactor * inner.numerator) % d
    return of_factor(Mod(x, d))


# --- bounds -----------------------------------------------------------------------------------


def _at_least_0(x: Size) -> bool:
    return interval(x)[0] >= 0


@memo
def interval(x: Size) -> tuple[float, float]:
    """Inclusive bounds, infinite if there is none; always sound, and tight in common cases."""
    if isinstance(x, int):
        return x, x
    parts = factors_of(x)
    if len(parts) == len(set(parts)) and all(type(f) is Symbol and f.depth == 0 for f in parts):
        return _term_by_term(x)  # exact, as independent symbols occur once each
    return -_upper(-x), _upper(x)


def less(a: Size, b: Size) -> bool | None:
    """Whether a < b: True or False if that holds for all values, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    low, high = interval(b - a)
    return True if low > 0 else False if high <= 0 else None


def at_most(a: Size, b: Size) -> bool | None:
    """Whether a <= b: True or False if that holds for all values, else None."""
    if isinstance(a, int) and isinstance(b, int):
        return a <= b
    low, high = interval(b - a)
    return True if low >= 0 else False if high < 0 else None


def _upper(x: Size) -> float:
    content, scale = math.gcd(*(term.coefficient for term in terms_of(x))), 1
    bound: Size | float = of_terms(Term(c // content, factors) for c, factors in terms_of(x))
    while isinstance(bound, Dim):
        relaxation = _relax_remainder(bound) or _relax_symbol(bound) or _relax_quotient(bound)
        bound, by = relaxation or (_term_by_term(bound)[1], 1)
        scale *= by
    return bound if math.isinf(bound) else content * (bound // scale)


# Each of the next three returns a simpler expression that is >= by*x, and by; or None.


def _relax_remainder(x: Dim) -> tuple[Size, int] | None:
    """c*(y % d) <= c*(d - 1) for c >= 0, else 0."""
    for term in x.terms:
        for factor in term.factors:
            if isinstance(factor, Mod) and _at_least_0(factor.denominator):
                cofactor = _cofactor(term, factor)
                sign = _sign(cofactor)
                if sign:
                    end = factor.denominator - 1 if sign > 0 else 0
                    return x - Polynomial((term,)) + cofactor * end, 1
    return None


def _relax_symbol(x: Dim) -> tuple[Size | float, int] | None:
    """Replace a symbol in which x is monotone by its bound, the innermost loop first."""
    for symbol in sorted(symbols(x), key=lambda s: (-s.depth, s.key)):
        direction = _direction(x, symbol)
        if direction:
            end = symbol.high if direction > 0 else symbol.low
            return math.inf if end is None else rewrite(x, {symbol: end}), 1
    return None


def _relax_quotient(x: Dim) -> tuple[Size, int] | None:
    """c*d*(y//d) <= c*y for c >= 0, else c*(y - d + 1); takes the outermost division first."""
    divisions = [(t, f) for t in x.terms for f in t.factors if isinstance(f, FloorDiv)]
    for term, factor in sorted(divisions, key=lambda division: -nesting(division[1])):
        d, slope = factor.denominator, _cofactor(term, factor)
        if _at_least_0(d):
            by = d // math.gcd(d, slope) if isinstance(d, int) and isinstance(slope, int) else 1
            c, remainder = long_division(by * slope, d)
            sign = _sign(c)
            if remainder == 0 and sign:
                end = factor.numerator - (0 if sign > 0 else d - 1)
                return by * (x - Polynomial((term,))) + c * end, by
    return None


def _sign(x: Size) -> int:
    """1 when x >= 0, -1 when x <= 0, 0 when unknown."""
    low, high = interval(x)
    return 1 if low >= 0 else -1 if high <= 0 else 0


@memo
def _direction(x: Size, symbol: Symbol) -> int:
    """1 when x grows with the symbol, -1 when it falls, 0 when unknown or neither."""
    directions = {
        _term_direction(term, symbol)
        for term in terms_of(x)
        if any(symbol in symbols_of(factor) for factor in term.factors)
    }
    return directions.pop() if len(directions) == 1 else 0


def _term_direction(term: Term, symbol: Symbol) -> int:
    moving = [f for f in term.factors if symbol in symbols_of(f)]
    directions = {_factor_direction(f, symbol) for f in moving}
    # A product of several growing factors grows only while none of them is negative.
    if len(directions) > 1 or (len(moving) > 1 and any(_ends(f)[0] < 0 for f in moving)):
        return 0
    constants = tuple(f for f in term.factors if f not in moving)
    return directions.pop() * _sign(of_terms([Term(term.coefficient, constants)]))


def _factor_direction(factor: Factor, symbol: Symbol) -> int:
    if isinstance(factor, FloorDiv) and symbol not in symbols(factor.denominator):
        return _direction(factor.numerator, symbol) * _sign(factor.denominator)
    return 1 if factor is symbol else 0


def _term_by_term(x: Dim) -> tuple[float, float]:
    low, high = 0, 0
    for coefficient, factors in x.terms:
        ends: tuple[float, float] = coefficient, coefficient
        for factor in factors:
            ends = corners.times(ends, _ends(factor))
        low, high = low + ends[0], high + ends[1]
    return low, high


def _ends(factor: Factor) -> tuple[float, float]:
    if isinstance(factor, Symbol):
        high = math.inf if factor.high is None else interval(factor.high)[1]
        return interval(factor.low)[0], high
    top, bottom = interval(factor.numerator), interval(factor.denominator)
    if bottom[0] < 0:
        return -math.inf, math.inf
    if isinstance(factor, Mod):
        return 0, min(bottom[1] - 1, top[1]) if top[0] >= 0 else bottom[1] - 1
    return corners.floor_over(top, bottom)
