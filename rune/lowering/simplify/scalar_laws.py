"""Laws of scalar arithmetic that hold bit for bit.

A law looks at one equation and answers with something equal to its result: an operand, a literal,
or another equation. Floats keep NaN, infinity and the sign of zero, so x + 0.0 and x * 0.0 stay;
integers and booleans may use every law of their ring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rune import dtypes
from rune.core.primitive import Primitive
from rune.core.program import Atom, Definitions, Equation, Literal
from rune.core.types import ArrayType
from rune.ops import arithmetic as ops
from rune.ops.family import broadcast
from rune.records import dataclass, replace

EXACT = dtypes.INTEGER | {dtypes.bool_}


@dataclass(frozen=True, slots=True)
class Site:
    """An equation, and the equations that define its operands."""

    equation: Equation
    definitions: Definitions

    @property
    def operands(self) -> tuple[Atom, ...]:
        """Operands of the equation."""
        return self.equation.operands

    @property
    def type(self) -> ArrayType:
        """Type of the result."""
        return self.equation.results[0].type

    def inner(self, number: int, primitive: Primitive) -> Equation | None:
        """The equation behind an operand, if it applies this primitive."""
        atom = self.operands[number]
        definition = self.definitions.get(atom)
        return definition if definition is not None and definition.primitive is primitive else None


Answer = Atom | Equation | None
Law = Callable[[Site], Answer]


def literal(atom: Atom) -> np.ndarray | None:
    """The value of a literal."""
    return atom.value if isinstance(atom, Literal) else None


def is_value(atom: Atom, value: float) -> bool:
    """Whether an atom is the literal `value`, the sign of zero included."""
    number = literal(atom)
    if number is None or number.dtype in dtypes.COMPLEX:
        return False
    # Equality alone would not tell 0.0 from -0.0, and `x + 0.0 = x` is wrong for x = -0.0.
    same = number == np.asarray(value).astype(number.dtype)
    return bool(same) and (number.dtype in EXACT or np.signbit(number) == np.signbit(value))


def is_exact(site: Site) -> bool:
    """Whether the operands are integers or booleans."""
    return site.operands[0].type.dtype in EXACT


def constant(site: Site, value: float) -> Equation:
    """The result as the same number everywhere."""
    type = site.type
    number = Literal(np.asarray(value).astype(type.dtype), type.with_shape(()))
    params = {"shape": type.shape, "axes": ()}
    return replace(site.equation, primitive=broadcast, operands=(number,), params=params)


# --- arithmetic -------------------------------------------------------------------------------


def add_zero(site: Site) -> Answer:
    """x + -0.0 = x;  x + 0 = x for integers."""
    a, b = site.operands
    # -0.0 + 0.0 is 0.0, but x + -0.0 is x for every x.
    neutral = 0.0 if is_exact(site) else -0.0
    return a if is_value(b, neutral) else b if is_value(a, neutral) else None


def subtract_zero(site: Site) -> Answer:
    """x - 0.0 = x;  x - x = 0 for integers."""
    a, b = site.operands
    if is_value(b, 0.0):
        return a
    return constant(site, 0) if a is b and is_exact(site) else None


def multiply_one(site: Site) -> Answer:
    """x * 1 = x;  x * 0 = 0 for integers."""
    a, b = site.operands
    if is_value(b, 1.0) or is_value(a, 1.0):
        return a if is_value(b, 1.0) else b
    # For floats, NaN * 0 and infinity * 0 are NaN.
    zero = is_exact(site) and (is_value(a, 0) or is_value(b, 0))
    return constant(site, 0) if zero else None


def divide_one(site: Site) -> Answer:
    """x / 1 = x."""
    a, b = site.operands
    return a if is_value(b, 1.0) else None


def remainder_one(site: Site) -> Answer:
    """x rem 1 = 0 for integers."""
    return constant(site, 0) if is_exact(site) and is_value(site.operands[1], 1) else None


def twice(site: Site) -> Answer:
    """neg neg x = x;  not not x = x."""
    inner = site.inner(0, site.equation.primitive)
    return inner.operands[0] if inner is not None else None


def idempotent(site: Site) -> Answer:
    """max(x, x) = min(x, x) = (x and x) = (x or x) = x."""
    a, b = site.operands
    return a if a is b else None


def neutral_bits(neutral: int, absorbing: int | None) -> Law:
    """x or 0 = x, x and -1 = x;  x and 0 = 0, x or -1 = -1."""

    def law(site: Site) -> Answer:
        a, b = site.operands
        for x, y in ((a, b), (b, a)):
            if _is_bits(y, neutral):
                return x
            if absorbing is not None and _is_bits(y, absorbing):
                return constant(site, absorbing)
        return None

    return law


def _is_bits(atom: Atom, bits: int) -> bool:
    """Whether an atom is a literal with all bits set (-1), or with no bit set (0)."""
    value = literal(atom)
    return value is not None and bool(np.invert(value) == 0 if bits else value == 0)


def xor_self(site: Site) -> Answer:
    """x xor x = 0."""
    a, b = site.operands
    return constant(site, 0) if a is b else None


def shift_none(site: Site) -> Answer:
    """x shl 0 = x shr 0 = x."""
    a, b = site.operands
    return a if is_value(b, 0) else None


def compare_self(answer: bool) -> Law:
    """x == x is true for integers; likewise for the other comparisons."""

    def law(site: Site) -> Answer:
        a, b = site.operands
        # A float may be NaN, which is not equal to itself.
        return constant(site, answer) if a is b and is_exact(site) else None

    return law


def select_known(site: Site) -> Answer:
    """select(c, x, x) = x;  select(true, x, y) = x."""
    condition, x, y = site.operands
    known = literal(condition)
    if x is y:
        return x
    return None if known is None else x if known else y


# --- conversion -------------------------------------------------------------------------------


def is_lossless(source: np.dtype, target: np.dtype) -> bool:
    """Whether `target` can represent every value of `source`."""
    # 0 and 1 exist in every number format.
    if source == target or source == dtypes.bool_:
        return source == target or target in dtypes.NUMERIC
    floats = source in dtypes.FLOATING and target in dtypes.FLOATING
    integers = source in dtypes.INTEGER and target in dtypes.INTEGER
    return (floats or integers) and bool(np.can_cast(source, target, "safe"))


def convert_same(site: Site) -> Answer:
    """A conversion to the same dtype."""
    return site.operands[0] if site.operands[0].type.dtype == site.type.dtype else None


def convert_twice(site: Site) -> Answer:
    """A conversion there and back, or through a dtype that holds every value."""
    inner = site.inner(0, ops.convert)
    if inner is None or not is_lossless(inner.operands[0].type.dtype, inner.results[0].type.dtype):
        return None
    if inner.operands[0].type is site.type:
        return inner.operands[0]
    return replace(site.equation, operands=inner.operands)


SCALAR_LAWS: Mapping[Primitive, tuple[Law, ...]] = {
    ops.add: (add_zero,),
    ops.sub: (subtract_zero,),
    ops.mul: (multiply_one,),
    ops.div: (divide_one,),
    ops.rem: (remainder_one,),
    ops.neg: (twice,),
    ops.logical_not: (twice,),
    ops.max: (idempotent,),
    ops.min: (idempotent,),
    ops.logical_and: (idempotent, neutral_bits(-1, 0)),
    ops.logical_or: (idempotent, neutral_bits(0, -1)),
    ops.logical_xor: (neutral_bits(0, None), xor_self),
    ops.shl: (shift_none,),
    ops.shr: (shift_none,),
    ops.eq: (compare_self(True),),
    ops.le: (compare_self(True),),
    ops.ge: (compare_self(True),),
    ops.ne: (compare_self(False),),
    ops.lt: (compare_self(False),),
    ops.gt: (compare_self(False),),
    ops.select: (select_known,),
    ops.convert: (convert_same, convert_twice),
}
