"""Programs whose compiled code has the bits of their eager evaluation, whatever the operands.

IEEE 754 rounds sums of two, products, quotients and roots in one way, and integers leave no choice.
Sums of many depend on their order, and functions such as exp on who wrote them. Halves are rounded
where code stores them, so arithmetic on them is not counted here; nor is that of complex numbers,
nor a search, which answers alike in sorted rows alone.
"""

from __future__ import annotations

from rune import dtypes
from rune.core.higher import HigherOrder, subprograms
from rune.core.program import Equation, Program
from rune.ops import LIBRARY, PRIMITIVES

_MOVES = frozenset({"movement", "creation", "selection", "comparison", "bits", "conversion", "identity"})
_ROUNDS_ONCE = frozenset({"arithmetic", "rounding", "sorting"})
_BY_NAME = frozenset("sqrt argmax argmin reduce_and reduce_or reduce_max reduce_min cummax cummin".split())
_PLACES = frozenset("gather dynamic_slice dynamic_update_slice real imag complex conj".split())
_INTEGERS_ALONE = frozenset("reduce_sum reduce_prod cumsum cumprod integer_pow scatter_add dot_general".split())
_PLAIN = {p for p in (*PRIMITIVES, *LIBRARY) if p.effect is None}
_REAL = frozenset({dtypes.f32, dtypes.f64, dtypes.bool_}) | dtypes.INTEGER


def is_exact(program: Program) -> bool:
    """Whether compiled code gives the bits that NumPy's functions give, one after the other."""
    return all(map(is_exact_equation, program.equations))


def is_exact_equation(equation: Equation) -> bool:
    """The same of one equation."""
    primitive, types = equation.primitive, [a.type.dtype for a in (*equation.operands, *equation.results)]
    if isinstance(primitive, HigherOrder):
        inner_programs = subprograms(equation)
        return bool(inner_programs) and all(map(is_exact, inner_programs))
    if primitive not in _PLAIN:
        return False
    if primitive.family in _MOVES or primitive.name in _PLACES:
        return True
    if primitive.family in _ROUNDS_ONCE or primitive.name in _BY_NAME:
        return _REAL.issuperset(types)
    # In integers every order of a sum has the same bits.
    return primitive.name in _INTEGERS_ALONE and dtypes.INTEGER.issuperset(types)
