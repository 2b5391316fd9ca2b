"""Index polynomials as SPIR-V arithmetic: 32 bits wide where their bounds allow it, else 64.

Sums, differences and products wrap, so that a result which fits 32 bits is right even if a part of
it does not; only quotients and remainders need operands that fit. Division is unsigned where the
bounds show, or an added multiple of the divisor gives, a number that is not negative; else it
floors as Python does. A divisor that may be 0 is 1 then, and no remainder instruction sees a
negative number: Vulkan leaves both open.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from rune import dims, dtypes
from rune.dims import FloorDiv, Mod, Size, Symbol, Term
from rune.dims.algebra import of_factor
from rune.dims.factors import terms_of
from rune.lowering.codegen.index_width import lifted, may_be_zero
from rune.lowering.codegen.spirv.scalar import resized
from rune.lowering.codegen.spirv.words import Op
from rune.lowering.codegen.spirv.writer import Value, Writer

Symbols = Mapping[str, tuple[Value, np.dtype]]  # the values of symbols, and what they are


def index_kind(*sizes: Size) -> str:
    """The narrowest type that holds all of them."""
    return "i32" if all(map(_is_narrow, sizes)) else "i64"


def _is_narrow(size: Size) -> bool:
    low, high = dims.bounds(size)
    return low is not None and high is not None and -(1 << 31) <= low and high < 1 << 31


def render(writer: Writer, size: Size, symbols: Symbols, kind: str | None = None) -> Value:
    """The value of `size`, of the type that holds it unless `kind` says another."""
    kind = kind or index_kind(size)
    terms = [_term(writer, term, symbols, kind) for term in terms_of(size)]
    return reduce(lambda a, b: a + b, terms) if terms else writer.constant(kind, 0)


def _term(writer: Writer, term: Term, symbols: Symbols, kind: str) -> Value:
    values = [_factor(writer, f, symbols, kind) for f in term.factors]
    if term.coefficient != 1 or not values:
        values.append(writer.constant(kind, term.coefficient))
    return reduce(lambda a, b: a * b, values)


def _factor(writer: Writer, factor: Symbol | FloorDiv | Mod, symbols: Symbols, kind: str) -> Value:
    if isinstance(factor, Symbol):
        value, dtype = symbols[factor.name]
    else:
        quotient = isinstance(factor, FloorDiv)
        value = _division(writer, factor.numerator, factor.denominator, quotient, symbols)
        dtype = dtypes.i64
    low = dims.bounds(of_factor(factor))[0]
    return resized(value, dtype if low is None or low < 0 else dtypes.u64, kind)


def _division(writer: Writer, x: Size, d: Size, quotient: bool, symbols: Symbols) -> Value:
    """x // d or x % d."""
    numerator, up, is_plain = lifted(x, d)
    kind = index_kind(numerator, d)
    a, b = (render(writer, size, symbols, kind) for size in (numerator, d))
    if may_be_zero(d):
        b = writer.select(b.binary(Op.IEqual, 0, "bool"), 1, b)
    if not is_plain:
        return _floor(a, b, quotient)
    if not quotient:
        return a.binary(Op.UMod, b)
    return a.binary(Op.UDiv, b) - up if up else a.binary(Op.UDiv, b)


def _floor(x: Value, d: Value, quotient: bool) -> Value:
    """Python's // and % from the truncating division; the divisor is not 0."""
    down = x.binary(Op.SDiv, d)
    remainder = x - down * d
    away = remainder.binary(Op.INotEqual, 0, "bool") & ((remainder ^ d) < 0)
    if quotient:
        return x.writer.select(away, down - 1, down)
    return x.writer.select(away, remainder + d, remainder)
