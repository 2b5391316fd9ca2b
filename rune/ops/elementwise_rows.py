"""Rows of the table of elementwise functions: what users read of one.

A row says what a function returns and accepts, and has an example that runs in rune.numpy and
rune.lax.
"""

from __future__ import annotations

from rune.core.primitive import Primitive, Rule
from rune.records import dataclass

# Operands that a function accepts without promotion.
FLOATS = "floats"
INEXACT = "floats or complex numbers"
NUMBERS = "numbers"
ORDERED = "any but complex; bool comes out"
ANY = "any; bool comes out"
TRUTHS_OF_FLOATS = "floats; bool comes out"
BITS = "integers or bools"
INTEGERS = "integers"


@dataclass(frozen=True, slots=True)
class Row:
    """A function, a sentence about its result, and an example: arguments, and the result as
    printed.
    """

    name: str
    rule: Rule
    sentence: str
    arguments: str
    result: str
    takes: str

    @property
    def primitive(self) -> Primitive:
        """The rule of a row whose function is a single primitive."""
        assert isinstance(self.rule, Primitive), f"{self.name} is made of several primitives"
        return self.rule


def weak(number: str) -> str:
    """How a result computed from Python floats prints."""
    return f"Array({number}, f32*[], cpu:0)"


def integer(number: str) -> str:
    """How a result computed from Python integers prints."""
    return f"Array({number}, i32*[], cpu:0)"


def truth(value: str) -> str:
    """How a truth value prints."""
    return f"Array({value}, bool[], cpu:0)"


def of_floats(function: Primitive, sentence: str, argument: str, result: str, takes: str = INEXACT) -> Row:
    """The row of a primitive, with an example on Python floats."""
    return Row(function.name, function, sentence, argument, weak(result), takes)
