"""Index polynomials as arithmetic of i64 or i32, on scalars and on vectors of lanes.

The symbols of a Dim are looked up in a table of values; where one of them is a vector, so is the
result. Floor division and remainder become unsigned ones where bounds show no sign, which LLVM
turns into shifts and multiplications; otherwise they floor as Python does. A divisor that may be 0
is replaced by 1 if it is 0, because processors trap on division by 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from rune import dims
from rune.dims import Factor, FloorDiv, Size, Symbol
from rune.lowering.codegen.index_width import is_short_throughout, may_be_zero
from rune.lowering.codegen.llvm.ir.text import Value, Writer

Symbols = Mapping[str, Value]


def render(writer: Writer, size: Size, symbols: Symbols, type: str = "i64") -> Value:
    """The value of `size`: an integer of `type`, or a vector where a symbol varies by lane."""
    if isinstance(size, int):
        return writer.constant(type, size)
    terms = [_term(writer, t.coefficient, t.factors, symbols, type) for t in size.terms]
    # Indices stay far below 2**63, which `nsw` lets LLVM rely on.
    return reduce(lambda a, b: _join("add nsw" if type == "i64" else "add", a, b), terms)


def of_lanes(writer: Writer, size: Size, symbols: Symbols, var: str, lanes: int) -> Value:
    """The value of `size` in each lane, where `var` counts up from its symbol: a vector of i64.

    It is computed in 32 bits if they suffice, because processors divide lanes of 64 bits by a
    constant in some fifteen instructions, and lanes of 32 bits in five.
    """
    type = "i32" if is_short_throughout(size) else "i64"
    lane_values = writer.splat(symbols[var].cast("trunc", type), lanes) + writer.iota(lanes, type)
    return render(writer, size, {**symbols, var: lane_values}, type).cast("sext", "i64")


def _term(writer: Writer, number: int, factors: tuple[Factor, ...], symbols: Symbols, type: str) -> Value:
    values = [_factor(writer, f, symbols, type) for f in factors]
    # A term without factors is the constant itself.
    if number != 1 or not values:
        values.append(writer.constant(type, number))
    return reduce(lambda a, b: _join("mul nsw" if type == "i64" else "mul", a, b), values)


def _factor(writer: Writer, factor: Factor, symbols: Symbols, type: str) -> Value:
    if isinstance(factor, Symbol):
        return symbols[factor.name].cast("trunc", type)
    x = render(writer, factor.numerator, symbols, type)
    d = render(writer, factor.denominator, symbols, type)
    if may_be_zero(factor.denominator):
        d = writer.select(d.equals(0), 1, d)
    quotient = isinstance(factor, FloorDiv)
    if dims.at_most(0, factor.numerator) and dims.at_most(0, factor.denominator):
        return _join("udiv" if quotient else "urem", x, d)
    return _floor(x, d, quotient)


def _floor(x: Value, d: Value, quotient: bool) -> Value:
    """Python's // and % from the truncating ones; the divisor is not 0."""
    remainder = _join("srem", x, d)
    # Negative where remainder and divisor differ in sign: there truncation went the wrong way.
    signs = _join("xor", remainder, d)
    is_above_floor = remainder.compare("ne", 0) & (signs < 0)
    if not quotient:
        return x.writer.select(is_above_floor, _join("add", remainder, d), remainder)
    down = _join("sdiv", x, d)
    return x.writer.select(is_above_floor, down + -1, down)


def _join(op: str, a: Value, b: Value) -> Value:
    """A binary instruction; a scalar operand of a vector is repeated."""
    lanes = a.lanes or b.lanes
    a, b = a.writer.splat(a, lanes), a.writer.splat(b, lanes)
    return a.binary(op, b)
