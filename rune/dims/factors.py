"""The parts of polynomials: symbols, divisions and terms, interned, and how they print.

Equal fields give the same object (hash consing), so equality is identity, hashing costs nothing
and every memo of the algebra is one dictionary look-up. The objects live as long as their users.

Each factor carries a sort key made from its text and bounds, so that the order of a sum depends
neither on the history of the process nor on memory addresses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import field, fields
from functools import lru_cache
from numbers import Number
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

from rune import locks
from rune.dims.guards import Guarded
from rune.errors import ArgumentError
from rune.records import dataclass

T = TypeVar("T")
P = ParamSpec("P")
_forget: list[Callable[[], None]] = []  # clears the cache of each memoized function
_live: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()
_live_lock = locks.reentrant()


def memo(function: Callable[P, T]) -> Callable[P, T]:
    """Cache the last 32,768 results of a function, until `forget` clears them."""
    cache = lru_cache(maxsize=1 << 15)(function)
    _forget.append(cache.cache_clear)
    return cast("Callable[P, T]", cache)


def forget() -> None:
    """Clear all caches of the algebra, which frees the sizes that nothing else refers to."""
    for forget_one in _forget:
        forget_one()


class _Once(type):
    """Equal fields give the same object: equality is identity, and hashing costs nothing."""

    def __call__(cls: type[T], *values: object) -> T:
        return _once(cls, *values)


# In front of the table of live objects, whose look-ups are Python: most are of recent ones.
@memo
def _once(cls: type[T], *values: object) -> T:
    key = (cls, *values)
    with _live_lock:  # two threads that make equal objects get the same one
        instance = _live.get(key)
        if instance is None:
            instance = _live[key] = type.__call__(cls, *values)
    return instance


class Interned(metaclass=_Once):
    """The base of interned frozen dataclasses: equal fields give the same object."""

    __slots__ = ("__weakref__",)

    def __reduce__(self) -> tuple[object, ...]:
        # Copying and unpickling call the class, so that they return the interned object.
        record: Any = self
        return type(self), tuple(getattr(self, f.name) for f in fields(record) if f.init)


@dataclass(frozen=True, slots=True, eq=False)
class Symbol(Interned):
    """A named integer within inclusive bounds; a bound may mention other symbols."""

    name: str
    low: Size
    high: Size | None
    key: str = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)  # 0 when the bounds mention no symbol

    def __post_init__(self) -> None:
        bound_symbols = symbols(self.low) | symbols(0 if self.high is None else self.high)
        key = f"{self.name}\0{_key(self.low)}\0{_key(self.high)}"
        object.__setattr__(self, "key", key if len(key) < 200 else _shortened(key))
        object.__setattr__(self, "depth", 1 + max((s.depth for s in bound_symbols), default=-1))

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class _Division(Interned):
    numerator: Size
    denominator: Size
    key: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = f"{_key(self.numerator)}{self._sign}{_key(self.denominator)}"
        object.__setattr__(self, "key", key if len(key) < 200 else _shortened(key))

    @property
    def _sign(self) -> str:
        return "//" if isinstance(self, FloorDiv) else " % "

    def __str__(self) -> str:
        return f"{_operand_text(self.numerator)}{self._sign}{_operand_text(self.denominator)}"


class FloorDiv(_Division):
    """numerator // denominator, where no rule simplifies it."""

    __slots__ = ()


class Mod(_Division):
    """numerator % denominator, where no rule simplifies it."""

    __slots__ = ()


def _shortened(key: str) -> str:
    """A key of bounded length: without the bound, nesting could double it at every level.

    hashlib is imported here because loading OpenSSL takes 10 ms, and few keys are so long.
    """
    from hashlib import blake2b

    return key[:100] + blake2b(key.encode(), digest_size=16).hexdigest()


Factor = Symbol | FloorDiv | Mod


class Term(NamedTuple):
    """coefficient * product(factors); the factors are sorted, and a constant has none."""

    coefficient: int
    factors: tuple[Factor, ...]


def no_number(size: object, other: object) -> Any:
    """The result of an operator with a non-integer operand. Errors: ArgumentError for a number."""
    if not isinstance(other, Number):
        return NotImplemented  # lets the operand's own operator run, as an array's
    message = f"dimension: cannot compute with {size} and {other} (sizes are whole numbers)"
    raise ArgumentError(message, hint="divide by //, or use rune.numpy.asarray(size) as a value")


def _sized(a: Dim, b: object) -> Size:
    """An operator that returns a size, as type checkers see it; algebra.py defines it."""
    raise NotImplementedError


def _divided(a: Dim, b: object) -> tuple[Size, Size]:
    """Likewise a quotient and its remainder."""
    raise NotImplementedError


def _valued(a: Dim) -> int:
    """Likewise a conversion to a number."""
    raise NotImplementedError


def _decided(a: Dim, b: object) -> bool:
    """Likewise a comparison."""
    raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dim(Interned, Guarded):
    """A canonical polynomial with integer coefficients that is not constant.

    Its terms and text are here, since factors contain sizes; algebra.py defines the operators.
    """

    terms: tuple[Term, ...]

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = _sized
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _sized
    __divmod__ = _divided
    __lt__ = __le__ = __gt__ = __ge__ = _decided
    __truediv__ = __rtruediv__ = __rpow__ = __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = no_number
    __int__ = __index__ = _valued

    def __neg__(self) -> Size:
        return self * -1

    def __str__(self) -> str:
        first, *others = (term_text(term) for term in self.terms)
        return first + "".join(f" - {t[1:]}" if t[0] == "-" else f" + {t}" for t in others)

    __repr__ = __str__


Size = int | Dim


def terms_of(x: Size) -> tuple[Term, ...]:
    """The terms of x; an integer is one term without factors."""
    return (Term(x, ()),) if isinstance(x, int) else x.terms


@memo
def _order(term: Term) -> tuple[int, list[str]]:
    return -len(term.factors), [factor.key for factor in term.factors]


def collected(terms: Iterable[Term]) -> list[Term]:
    """One term for each product of factors, in canonical order."""
    sums: dict[tuple[Factor, ...], int] = {}
    for coefficient, factors in terms:
        sums[factors] = sums.get(factors, 0) + coefficient
    nonzero = [Term(coefficient, factors) for factors, coefficient in sums.items() if coefficient]
    return sorted(nonzero, key=_order) if len(nonzero) > 1 else nonzero


def factors_of(x: Size) -> list[Factor]:
    """The factors of all terms of x, with repetitions."""
    return [factor for term in terms_of(x) for factor in term.factors]


@memo
def symbols(x: Size) -> frozenset[Symbol]:
    """All symbols of x, also those inside divisions, but not those in bounds."""
    return frozenset().union(*map(symbols_of, factors_of(x)))


@memo
def symbols_of(factor: Factor) -> frozenset[Symbol]:
    """All symbols of one factor."""
    if isinstance(factor, Symbol):
        return frozenset((factor,))
    return symbols(factor.numerator) | symbols(factor.denominator)


@memo
def nesting(factor: Factor) -> int:
    """How deep divisions are nested: 0 for a symbol, 2 for (n//2 + 1)//3."""
    if isinstance(factor, Symbol):
        return 0
    inner = (*factors_of(factor.numerator), *factors_of(factor.denominator))
    return 1 + max(map(nesting, inner), default=0)


def term_text(term: Term) -> str:
    """The term in Python's syntax, including a leading minus."""
    coefficient, factors = term
    if not factors:
        return str(coefficient)
    if coefficient == 1 and len(factors) == 1:
        return str(factors[0])
    product = "*".join(str(f) if isinstance(f, Symbol) else f"({f})" for f in factors)
    return {1: "", -1: "-"}.get(coefficient, f"{coefficient}*") + product


def _operand_text(x: Size) -> str:
    text = str(x)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _key(x: Size | None) -> str:
    if x is None or isinstance(x, int):
        return str(x)
    # The coefficient comes last, so that i//2 sorts next to i.
    return "+".join("*".join([*(f.key for f in t.factors), str(t[0])]) for t in x.terms)


def join(a: tuple[Factor, ...], b: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The factors of a product, sorted."""
    return tuple(sorted(a + b, key=lambda factor: factor.key)) if a and b else a or b


def divide_term(term: Term, by: Term) -> Term:
    """The truncated quotient, or 0 if `by` has a factor that the term lacks."""
    factors = list(term.factors)
    for factor in by.factors:
        if factor not in factors:
            return Term(0, ())
        factors.remove(factor)
    if not term.factors:
        return Term(term.coefficient // by.coefficient, ())
    size = abs(term.coefficient) // abs(by.coefficient)
    return Term(size if term.coefficient * by.coefficient > 0 else -size, tuple(factors))


def common(a: Term, b: Term) -> Term:
    """The largest term that divides both."""
    candidates = list(b.factors)
    factors: list[Factor] = []
    for factor in a.factors:
        if factor in candidates:
            candidates.remove(factor)
            factors.append(factor)
    return Term(math.gcd(a.coefficient, b.coefficient), tuple(factors))
