"""Which operations of a kernel get the longer form that does not wait for denormal numbers.

It costs a comparison and a branch, too much for each product of elements that lie in memory. Those
are few that meet denormal numbers: f32 products of exponentials, which shrink through these numbers
on their way to 0, and quotients of elements, which take ten times as long as the comparison.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial, reduce

import numpy as np

from rune import dtypes
from rune.lowering.codegen.llvm import functions as llvm_functions
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.codegen.llvm.functions import Written
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.codegen.llvm.underflow import TWO_FORMS
from rune.lowering.kernel.expr import Load
from rune.lowering.scalar import denormals
from rune.lowering.scalar.number import Number
from rune.records import dataclass

POSITIVE = frozenset({"exp", "exp2", "erfc", "logistic"})  # functions that pass through denormal numbers
SHRINKING = POSITIVE | {"pow"}
KEEPING = frozenset({"mul", "div", "neg", "abs", "copysign", "max", "min", "select"})  # tiny if an operand is
FUNCTIONS = denormals.NEAR_IDENTITY | denormals.NEAR_CONSTANT


@dataclass(slots=True)
class UnderflowBody(Body):
    """Writes a kernel whose f32 results do not wait where they are denormal.

    elements: the registers that were read from memory
    conditions: for each register that may be tiny, whether some lane of it is, or of the register
        that it was computed from. Operations share this i1, so that LLVM joins their branches
    """

    elements: set[str] = field(default_factory=set, kw_only=True)
    conditions: dict[str, Value] = field(default_factory=dict, kw_only=True)

    def load(self, load: Load) -> Value:
        # Not `super()`, which a dataclass with slots has made another class of.
        element = Body.load(self, load)
        self.elements.add(element.text)
        return element

    def operation(self, name: str, dtype: np.dtype, args: tuple[Value, ...], operand: np.dtype) -> Value:
        plain = partial(Body.operation, self, name, dtype, args, operand)
        if operand != dtypes.f32:
            return plain()
        condition = self.condition(name, args)
        if condition is None:
            result = plain()
        else:
            result = _without_wait(condition, name, args, plain)
            if name in KEEPING:
                self.conditions[result.text] = condition
        if name in SHRINKING:
            self.conditions[result.text] = some_is_tiny(result, name in POSITIVE)
        return result

    def condition(self, name: str, args: tuple[Value, ...]) -> Value | None:
        """Whether some operand is tiny; None if that is unlikely."""
        conditions = {c.text: c for a in args if (c := self.conditions.get(a.text)) is not None}
        if name == "div" and args[0].text in self.elements:
            conditions[args[0].text] = some_is_tiny(args[0])
        return reduce(lambda a, b: a.apply("or", b), conditions.values()) if conditions else None


def some_is_tiny(x: Value, is_positive: bool = False) -> Value:
    """Whether some lane of an f32 is tiny, as an i1."""
    number = Written(x, dtypes.f32, [])
    bits = number.bits() if is_positive else number.magnitude()
    return x.writer.any_lane(llvm_functions.value_of(denormals.is_tiny(bits, denormals.LIMIT)))


def _without_wait(condition: Value, name: str, args: tuple[Value, ...], plain: Callable[[], Value]) -> Value:
    """An operation with an operand that is tiny if the condition holds."""
    if name in FUNCTIONS:
        return _written(denormals.near_zero, name, args)
    if name not in denormals.IN_F64:
        return plain()
    condition.writer.declarations.add(TWO_FORMS)
    return condition.writer.choose(condition, partial(_written, denormals.in_f64, name, args), plain)


def _written(write: Callable[..., Number], name: str, args: tuple[Value, ...]) -> Value:
    return llvm_functions.value_of(write(name, *(Written(a, dtypes.f32, []) for a in args)))
