"""Index polynomials as SPIR-V arithmetic: 32 bits wide where their bounds allow it, else 64.

Sums, differences and products wrap, so a result that fits 32 bits is right even where an
intermediate value does not fit; only the operands of quotients and remainders must fit. Division is
unsigned where the bounds show that the numerator is not negative, or where adding a multiple of the
divisor makes it so; otherwise it floors as Python does. A divisor that may be 0 is replaced by 1 if
it is 0, and no remainder instruction gets a negative operand: Vulkan defines neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from rune import dims, dtypes
from rune.dims import FloorDiv, Mod, Size, Symbol, Term
from rune.dims.algebra import of_factor
from rune.dims.factors import terms_of
from rune.lowering.codegen.index_width import is_short, lifted, may_be_zero
from rune.lowering.codegen.spirv.binary.words import Op
from rune.lowering.codegen.spirv.binary.writer import Writer
from rune.lowering.codegen.spirv.scalar import Value, constant, resized
from rune.lowering.kernel.scalar import unsigned_of

# Only a value of a signed dtype may be negative.
Symbols = Mapping[str, Value]
SIGNED = {"i32": dtypes.i32, "i64": dtypes.i64}
UNSIGNED = {"i32": dtypes.u32, "i64": dtypes.u64}


def index_kind(*sizes: Size) -> str:
    """The narrowest type that holds all of them."""
    return "i32" if all(map(is_short, sizes)) else "i64"


def render(writer: Writer, size: Size, symbols: Symbols, kind: str | None = None) -> Value:
    """The value of `size`, of type `kind` or of the narrowest type that holds it."""
    kind = kind or index_kind(size)
    terms = [_term(writer, term, symbols, kind) for term in terms_of(size)]
    total = reduce(lambda a, b: a + b, terms) if terms else constant(writer, SIGNED[kind], 0)
    return total.as_dtype(SIGNED[kind])


def _term(writer: Writer, term: Term, symbols: Symbols, kind: str) -> Value:
    values = [_factor(writer, f, symbols, kind) for f in term.factors]
    if term.coefficient != 1 or not values:
        values.append(constant(writer, SIGNED[kind], term.coefficient))
    return reduce(lambda a, b: a * b, values)


def _factor(writer: Writer, factor: Symbol | FloorDiv | Mod, symbols: Symbols, kind: str) -> Value:
    if isinstance(factor, Symbol):
        value = symbols[factor.name]
    else:
        value = _division(writer, factor.numerator, factor.denominator, isinstance(factor, FloorDiv), symbols)
    low = dims.bounds(of_factor(factor))[0]
    return resized(value if low is None or low < 0 else value.as_dtype(unsigned_of(value.dtype)), kind)


def _division(writer: Writer, x: Size, d: Size, quotient: bool, symbols: Symbols) -> Value:
    """x // d or x % d."""
    numerator, up, is_plain = lifted(x, d)
    kind = index_kind(numerator, d)
    a, b = (render(writer, size, symbols, kind) for size in (numerator, d))
    if may_be_zero(d):
        b = b.equals(0).choose(1, b)
    if not is_plain:
        return _floor(a, b, quotient)
    if not quotient:
        return a.emit(Op.UMod, b)
    return a.emit(Op.UDiv, b) - up if up else a.emit(Op.UDiv, b)


def _floor(x: Value, d: Value, quotient: bool) -> Value:
    """Python's // and % from the truncating division; the divisor is not 0."""
    down = x.apply("quotient", d)
    remainder = x - down * d
    is_above_floor = remainder.apply("ne", 0) & ((remainder ^ d) < 0)
    return is_above_floor.choose(down - 1, down) if quotient else is_above_floor.choose(remainder + d, remainder)
