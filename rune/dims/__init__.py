"""Dimensions: integers, or polynomials over named sizes, with floor division and remainder.

One algebra serves the shapes of arrays and the index expressions of kernels: a loop variable is a
symbol whose bounds may mention other symbols, as i in 0..n-1. A Size is an int or a Dim.
Python's operators work on both, and simplify the result as far as the bounds allow.

    4*i + j  with i in 0..5, j in 0..3       (4*i + j)//4 = i       (4*i + j)//12 = i//3

Comparisons have three values: `less`, `at_most`, `equal` and `divides` return True or False if
that holds for all values of the symbols, else None. The operators `<`, `<=`, … raise
UndecidedComparison instead of None, and `==` compares structure.

factors.py: sizes and their interned parts. algebra.py: sums, division, bounds. messages.py: error
messages. guards.py: what `==` could not decide. Here: the public names.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeGuard

from rune.dims.algebra import at_most, interval, less, of_factor, of_terms, rewrite, sides
from rune.dims.factors import (
    Dim,
    Factor,
    FloorDiv,
    Mod,
    Size,
    Symbol,
    Term,
    factors_of,
    memo,
    symbols,
    symbols_of,
    terms_of,
)
from rune.dims.messages import UndecidedComparison, as_symbol, ranges, undecided
from rune.errors import DimensionError

__all__ = ["Dim", "Factor", "FloorDiv", "Mod", "Size", "Symbol", "Term", "UndecidedComparison", "as_symbol"]
__all__ += ["at_most", "bounds", "coefficient", "divides", "equal", "evaluate", "exact_div", "flat_index"]
__all__ += ["is_static", "less", "maximum", "minimum", "parse", "product", "ranges", "substitute", "symbol"]
__all__ += ["symbol_names", "symbols", "symbols_within"]


def symbol(name: str, low: Size = 0, high: Size | None = None) -> Dim:
    """A named size within inclusive bounds, which may be symbolic; high None means unbounded.

    Errors: DimensionError when `name` is not an identifier.

    >>> n = symbol("n", 1, 4096)
    >>> i, j = symbol("i", 0, n - 1), symbol("j", 0, n - 1)
    >>> i < n, (i * n + j) // n, (i * n + j) % n
    (True, i, j)
    """
    if not name.isidentifier():
        raise DimensionError(f"symbol: cannot name a dimension {name!r} (not an identifier)")
    return of_factor(Symbol(name, low, high))


def is_static(x: Size) -> TypeGuard[int]:
    """Whether x is a plain integer."""
    return isinstance(x, int)


def bounds(x: Size) -> tuple[int | None, int | None]:
    """Inclusive integer bounds, None for a missing one; always sound, and tight in common cases.

    If x is monotone in a loop variable, its symbolic bound replaces it, the innermost first.

    >>> n = symbol("n", 1, 8)
    >>> bounds(3 * n - symbol("i", 0, n - 1))
    (3, 24)
    """
    low, high = interval(x)
    return None if math.isinf(low) else int(low), None if math.isinf(high) else int(high)


def equal(a: Size, b: Size) -> bool | None:
    """Whether a == b: True or False if that holds for all values, else None.

    >>> n = symbol("n", 1, 8)
    >>> equal(n + n, 2 * n), equal(n, 9), equal(2 * n, 5), equal(n, 4)
    (True, False, False, None)
    """
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    low, high = interval(difference)
    if low > 0 or high < 0:
        return False
    *moving, last = difference.terms
    content = math.gcd(*(term.coefficient for term in moving))
    return False if not last.factors and last.coefficient % content else None


def minimum(d1: Size, d2: Size) -> Size:
    """The smaller of two sizes; UndecidedComparison if that depends on the symbols' values."""
    return d1 if _first_is_less(d1, d2) else d2


def maximum(d1: Size, d2: Size) -> Size:
    """The larger of two sizes; UndecidedComparison if that depends on the symbols' values."""
    return d2 if _first_is_less(d1, d2) else d1


def _first_is_less(a: Size, b: Size) -> bool:
    if at_most(a, b):
        return True
    if at_most(b, a):
        return False
    raise undecided(*sides(a, "<=", b))


def divides(d: Size, x: Size) -> bool | None:
    """Whether x is a multiple of d: True or False if that holds for all values, else None.

    >>> n = symbol("n")
    >>> divides(4, 8 * n), divides(2, 4 * n + 1), divides(2, n)
    (True, False, None)
    """
    return equal(x % d, 0)


def exact_div(x: Size, d: Size) -> Size:
    """x / d, where d has to divide x for all values of the symbols.

    Errors: DimensionError if a remainder is left, or cannot be excluded.

    >>> n, m = symbol("n"), symbol("m")
    >>> exact_div(6 * n * m, 2 * n)
    3*m
    """
    if x % d == 0:
        return x // d
    raise DimensionError(
        f"exact_div: cannot divide {x} by {d} (remainder {x % d}; {ranges(x, d)})",
        hint="declare the size as a multiple of another symbol, such as 4*m instead of n",
    )


def product(sizes: Iterable[Size]) -> Size:
    """The product of sizes: the number of elements of a shape.

    >>> product((2, symbol("n"), 3))
    6*n
    """
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


def flat_index(indices: Iterable[Size], shape: Iterable[Size]) -> Size:
    """The row-major position of an element.

    >>> flat_index((1, 2), (5, 10))
    12
    """
    flat: Size = 0
    for index, size in zip(indices, shape, strict=True):
        flat = flat * size + index if flat != 0 else index
    return flat


def symbols_within(*sizes: Size) -> dict[str, Dim]:
    """The symbols of the sizes and of their bounds, by name.

    >>> symbols_within(3 * symbol("i", 0, symbol("n") - 1))
    {'i': i, 'n': n}
    """
    by_name: dict[str, Dim] = {}
    for size in sizes:
        for name, s in _within(size):
            by_name.setdefault(name, s)
    return by_name


@memo
def _within(size: Size) -> tuple[tuple[str, Dim], ...]:
    by_name: dict[str, Dim] = {}
    pending = [size]
    while pending:
        for s in symbols(pending.pop()):
            if s.name not in by_name:
                by_name[s.name] = of_factor(s)
                pending += [s.low, 0 if s.high is None else s.high]
    return tuple(by_name.items())


@memo
def coefficient(x: Size, name: str) -> Size | None:
    """c in x = c*name + rest, with a rest free of name; None if x does not have that form.

    >>> i, n = symbol("i"), symbol("n")
    >>> coefficient(i * n + 3 * i + 7, "i"), coefficient(n, "i"), coefficient(i // 2, "i")
    (n + 3, 0, None)
    """
    terms: list[Term] = []
    for number, factors in terms_of(x):
        others = tuple(f for f in factors if not (isinstance(f, Symbol) and f.name == name))
        if len(others) < len(factors) - 1 or any(_mentions(f, name) for f in others):
            return None
        if len(others) < len(factors):
            terms.append(Term(number, others))
    return of_terms(terms)


@memo
def symbol_names(x: Size) -> frozenset[str]:
    """The names of all symbols of x.

    >>> sorted(symbol_names(symbol("i") // 2 + symbol("n")))
    ['i', 'n']
    """
    return frozenset(s.name for s in symbols(x))


def _mentions(factor: Factor, name: str) -> bool:
    return any(s.name == name for s in symbols_of(factor))


def substitute(x: Size, values: Mapping[str, Size]) -> Size:
    """x with symbols replaced by name, all at once, and simplified again.

    The bounds of the remaining symbols are substituted, too: n := 4 turns i in 0..n-1 into
    i in 0..3, which is a different symbol.

    >>> n = symbol("n", 1)
    >>> substitute((n + 3) // 4, {"n": 8 * symbol("m")})
    2*m
    """
    # Most sizes are numbers, or sums without any of the symbols.
    if isinstance(x, int):
        return x
    names = _names_in_sum(x)
    if names is not None and names.isdisjoint(values):
        return x
    terms = None if names is None else _with_numbers(x, values)
    if terms is not None:
        return of_terms(terms)
    known: dict[Factor, Size] = {}
    pending: list[Symbol] = []
    for s in symbols(x):
        if s.depth and s.name not in values:
            pending.append(s)
        else:  # most symbols have numbers as bounds, and stay what they are
            known[s] = values[s.name] if s.name in values else of_factor(s)
    while pending:
        s = pending[-1]
        inner = symbols(s.low) | symbols(0 if s.high is None else s.high)
        missing = [] if s.name in values else [b for b in inner if b not in known]
        if missing:
            pending += missing
            continue
        pending.pop()
        known[s] = values[s.name] if s.name in values else _rebound(s, known)
    return rewrite(x, known)


def _with_numbers(x: Dim, values: Mapping[str, Size]) -> list[Term] | None:
    """The terms of a sum with numbers for some symbols; None if anything else changes."""
    terms: list[Term] = []
    for number, factors in x.terms:
        others: list[Factor] = []
        for factor in factors:
            if not isinstance(factor, Symbol):
                return None
            value = values.get(factor.name)
            if isinstance(value, int):
                number *= value
            elif value is not None or factor.depth:  # bounds that mention symbols may change, too
                return None
            else:
                others.append(factor)
        terms.append(Term(number, tuple(others)))
    return terms


@memo
def _names_in_sum(x: Size) -> frozenset[str] | None:
    """The names of the symbols of x and of their bounds; None if there is a division in them."""
    within: set[Symbol] = set()
    pending = [x]
    while pending:
        for factor in factors_of(pending.pop()):
            if not isinstance(factor, Symbol):
                return None
            if factor not in within:
                within.add(factor)
                pending += [factor.low, 0 if factor.high is None else factor.high]
    return frozenset(s.name for s in within)


def _rebound(s: Symbol, known: dict[Factor, Size]) -> Dim:
    high = None if s.high is None else rewrite(s.high, known)
    return of_factor(Symbol(s.name, rewrite(s.low, known), high))


def evaluate(x: Size, values: Mapping[str, int]) -> int:
    """The value of x. The declared bounds of the symbols are not checked.

    Errors: DimensionError when a symbol has no value.

    >>> n = symbol("n")
    >>> evaluate((n + 3) // 4, {"n": 6})
    2
    """
    if isinstance(x, int):
        return x
    missing = symbol_names(x) - values.keys()
    if missing:
        known = ", ".join(values) or "none"
        names = ", ".join(sorted(missing))
        raise DimensionError(f"evaluate: cannot find a value for {names} (given: {known})")
    result = rewrite(x, {s: values[s.name] for s in symbols(x)})
    assert isinstance(result, int)
    return result


_GLUED = re.compile(r"(?<!\w)\d+[^\W\d]")
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def parse(text: str, symbols: Mapping[str, Dim]) -> Size:
    """Read what `str` prints, with Python's precedence: parse(str(x), its symbols) == x.

    Errors: DimensionError for an unknown name, or if the text is not an expression.

    >>> parse("(4*n + 3)//4 + n % 2", {"n": symbol("n")})
    n + n % 2
    """
    try:
        return _read(_expression(text), symbols)
    except (MemoryError, RecursionError) as error:
        raise DimensionError(f"parse: cannot read {text[:40]!r}... (too deep)") from error


def _expression(text: str) -> ast.expr:
    """The syntax tree of an expression in Python's grammar."""
    if _GLUED.search(text):  # Python reads "3n" as 3, with a warning, on its way to an error
        raise DimensionError(f"parse: cannot read {text[:40]!r} (a name begins with a digit)")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise DimensionError(f"parse: cannot read {text!r} ({error.msg})") from error
    except ValueError as error:  # a NUL
        raise DimensionError(f"parse: cannot read {text[:40]!r}... ({error})") from error


def _read(node: ast.expr, symbols: Mapping[str, Dim]) -> Size:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name in symbols:
            return symbols[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read(operand, symbols)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_read(a, symbols), _read(b, symbols))
    known = ", ".join(sorted(symbols)) or "none"
    raise DimensionError(f"parse: cannot read {ast.unparse(node)!r} (symbols: {known})")
