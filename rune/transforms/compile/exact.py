"""Programs whose compiled code gives the bits of eager evaluation, whatever the operands.

IEEE 754 determines the rounding of two-term sums, products, quotients and roots, and integer
arithmetic is exact. Sums of many terms depend on their order, and functions such as exp on their
implementation. Half types are rounded when they are stored, so arithmetic on them is not included
here; nor is complex arithmetic, nor searching, which agrees only for sorted rows. Small symmetric
matrices are decomposed by the same code in eager and in compiled calls.
"""

from __future__ import annotations

from rune import dtypes
from rune.backends.cpu.meanings import has_compiled_bits
from rune.core.higher import HigherOrder, subprograms
from rune.core.program import Equation, Program
from rune.ops import LIBRARY, PRIMITIVES

_MOVES = frozenset({"movement", "creation", "selection", "comparison", "bits", "conversion", "identity"})
_ROUNDS_ONCE = frozenset({"arithmetic", "rounding", "sorting"})
# IEEE 754 rounds a root once; the others select an element, the same in any order.
_BY_NAME = frozenset("sqrt argmax argmin reduce_and reduce_or reduce_max reduce_min cummax cummin".split())
# These move elements, or their real and imaginary parts; conj flips a sign bit.
_PLACES = frozenset("gather dynamic_slice dynamic_update_slice real imag complex conj".split())
_INTEGERS_ALONE = frozenset("reduce_sum reduce_prod cumsum cumprod integer_pow scatter_add dot_general".split())
# No operations of users: whether their two meanings agree to the bit is not known.
_PLAIN = {p for p in (*PRIMITIVES, *LIBRARY) if p.effect is None}
_REAL = frozenset({dtypes.f32, dtypes.f64, dtypes.bool_}) | dtypes.INTEGER


def is_exact(program: Program) -> bool:
    """Whether compiled code gives the same bits as NumPy's functions, called one after another."""
    return all(map(is_exact_equation, program.equations))


def is_exact_equation(equation: Equation) -> bool:
    """The same for one equation."""
    primitive, types = equation.primitive, [a.type.dtype for a in (*equation.operands, *equation.results)]
    # A loop or call adds nothing of its own to its programs; without a program it is unknown.
    if isinstance(primitive, HigherOrder):
        inner_programs = subprograms(equation)
        return bool(inner_programs) and all(map(is_exact, inner_programs))
    if primitive not in _PLAIN:
        return False
    if primitive.family in _MOVES or primitive.name in _PLACES:
        return True
    if primitive.family in _ROUNDS_ONCE or primitive.name in _BY_NAME:
        return _REAL.issuperset(types)
    if primitive.name == "integer_pow" and equation.params["exponent"] == 2 and types[0] == dtypes.f32:
        return True  # NumPy's square in f64 is exact, so it is rounded once, as a product is
    if primitive.family == "linalg":
        return has_compiled_bits(primitive, equation.operands[0].type)
    # Integers wrap around, so every order of a sum gives the same bits.
    return primitive.name in _INTEGERS_ALONE and dtypes.INTEGER.issuperset(types)
