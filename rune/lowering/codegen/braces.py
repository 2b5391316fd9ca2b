"""Kernel code as text between braces: the statements and expressions that C and WGSL share.

    for j in 8 serial {        for (long j = 0; j < 8; j++) {       for (var j = 0i; j < 8; j++) {
      s add= x[j]         ->     s = s + x[j];                 or     s = s + x[args.at_x + j];
    }                          }                                    }

This module writes what follows from a language's `Spelling`. Each language (c/, wgsl/) adds how it
represents dtypes, accesses memory, and writes literals, operations and a kernel's function. Every
rendered expression can be an operand: it is a name, a call, a literal, or in parentheses.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Container, Sequence
from dataclasses import field
from typing import ClassVar, Generic, TypeVar

import numpy as np

from rune.dims import Size
from rune.lowering.codegen.accesses import AccessWalk
from rune.lowering.codegen.infix import ascii_name, bare, index_text, unfolded
from rune.lowering.codegen.walk import ExpressionWalk
from rune.lowering.kernel.expr import Const, Expr, Load
from rune.lowering.kernel.nodes import For, Function, If, KernelCode, Kind
from rune.lowering.kernel.rewrite import Body, perfect_nest
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Spelling:
    """Templates for what every language has, filled with a {type}, a {name} and a {value}.

    loop: counts from 0 up to {value};  function: has the parameters {value}
    """

    constant: str
    variable: str
    loop: str
    parameter: str
    function: str


# --- expressions --------------------------------------------------------------------------------


@dataclass(slots=True)
class Expressions(ExpressionWalk[str]):
    """Renders expressions. `names`: the identifiers of locals, loop variables and sizes."""

    names: dict[str, str]
    spelling: ClassVar[Spelling]

    @abstractmethod
    def register(self, dtype: np.dtype) -> str:
        """The type of a value. Errors: DtypeError if the language has none."""

    @abstractmethod
    def symbol(self, name: str) -> str:
        """The text of a symbol in an index expression."""

    @abstractmethod
    def element(self, buffer: str, index: Size, dtype: np.dtype) -> str:
        """The value of an element."""

    @abstractmethod
    def choice(self, condition: str, a: str, b: str) -> str:
        """`a` if the condition holds, else `b`."""

    @abstractmethod
    def converted(self, text: str, type_: str) -> str:
        """The language's own conversion."""

    def local(self, name: str) -> str:
        return self.names[name]

    def integer_part(self, arg: Expr, target: np.dtype) -> str:
        return self.converted(self.expr(arg), self.register(target))

    def size(self, x: Size) -> str:
        """An index expression, without parentheses around a sum."""
        return index_text(x, self.symbol)

    def load(self, load: Load) -> str:
        value = self.element(load.buffer, load.indices[0], load.dtype)
        if load.guard is None:
            return value
        zero = self.const(Const(bytes(load.dtype.itemsize), load.dtype))
        return self.choice(self.expr(load.guard), value, zero)


# --- statements ---------------------------------------------------------------------------------

E = TypeVar("E", bound=Expressions)


@dataclass(slots=True)
class Statements(AccessWalk, Generic[E]):
    """Collects the lines of a kernel. A language adds how each statement is written.

    reserved_words, prefixes: identifiers that a kernel's names must not be, or begin with
    """

    code: KernelCode
    reserved_words: frozenset[str] = field(init=False, default=frozenset())
    prefixes: tuple[str, ...] = field(init=False, default=("rune_", "run_", "_"))
    lines: list[str] = field(init=False, default_factory=list)
    depth: int = field(init=False, default=1)
    names: dict[str, str] = field(init=False, default_factory=dict)
    identifiers: set[str] = field(init=False, default_factory=set)
    expressions: E = field(init=False)

    @property
    @abstractmethod
    def index_type(self) -> str:
        """The type of index arithmetic."""

    @abstractmethod
    def threads(self, nest: Sequence[For]) -> None:
        """Bind the variables of a WORKGROUP nest."""

    def let(self, name: str, value: Expr) -> None:
        self.declare(self.expressions.spelling.constant, name, value)

    def var(self, name: str, init: Expr) -> None:
        self.declare(self.expressions.spelling.variable, name, init)

    def assign(self, name: str, value: Expr) -> None:
        self.emit(f"{self.name(name)} = {self.expr(value)};")

    def declare(self, spelling: str, name: str, value: Expr) -> None:
        """Declare a scalar."""
        text, type_ = self.text(name, value), self.expressions.register(value.dtype)
        self.emit(spelling.format(type=type_, name=self.name(name), value=text))

    def text(self, name: str, value: Expr) -> str:
        """The initial value in the declaration of this scalar."""
        return self.expr(value)

    def branch(self, stmt: If) -> None:
        orelse = stmt.orelse
        self.block(f"if ({self.expr(stmt.condition)}) {{", stmt.body, "" if orelse else "}")
        if orelse:
            self.block("} else {", orelse)

    def loop(self, loop: For) -> None:
        # Each thread of a group runs one iteration of a WORKGROUP loop: no loop is written.
        if loop.kind is Kind.WORKGROUP:
            nest, inside = perfect_nest((loop,), Kind.WORKGROUP)
            self.threads(nest)
            self.body(inside)
            return
        var, extent = self.name(loop.var), self.expressions.size(loop.extent)
        self.block(self.expressions.spelling.loop.format(type=self.index_type, name=var, value=extent), loop.body)

    # --- lines -------------------------------------------------------------------------------

    def expr(self, expr: Expr) -> str:
        """The text of an expression that stands alone, without outer parentheses."""
        return bare(self.expressions.expr(expr))

    def emit(self, line: str) -> None:
        """Write a line."""
        self.lines.append("  " * self.depth + line)

    def name(self, name: str) -> str:
        """The identifier for a name of the kernel; the same name always gets the same one."""
        if name not in self.names:
            identifier = ascii_name(name)
            # rune_ is for helpers, run_ for kernels, and the languages reserve leading underscores.
            if identifier in self.reserved_words or identifier.startswith(self.prefixes):
                identifier = f"v_{identifier}"
            # Different names may be escaped to the same identifier: "%0" and "_u250".
            while identifier in self.identifiers:
                identifier += "_"
            self.names[name] = identifier
            self.identifiers.add(identifier)
        return self.names[name]

    def block(self, head: str, body: Body, tail: str = "}") -> None:
        """Write statements between `head` and `tail`, indented by one more level."""
        self.emit(head)
        self.depth += 1
        self.body(body)
        self.depth -= 1
        if tail:
            self.emit(tail)

    def declare_index(self, name: str, value: str) -> None:
        """Declare an index."""
        self.emit(self.expressions.spelling.constant.format(type=self.index_type, name=name, value=value))

    def unfold(self, loops: Sequence[For], number: str) -> None:
        """Declare the loop variables of a nest from one number; the last varies fastest."""
        for name, value in unfolded(loops, number, self.expressions.size):
            self.declare_index(self.name(name), value)

    def function(self, function: Function) -> str:
        """The text of a function of scalars."""
        spelling, register = self.expressions.spelling, self.expressions.register
        params = [spelling.parameter.format(type=register(p.dtype), name=self.name(p.name)) for p in function.params]
        self.body(function.body)
        self.emit(f"return {self.expr(function.result)};")
        result, name = register(function.result.dtype), f"rune_{function.name}"
        head = spelling.function.format(type=result, name=name, value=", ".join(params))
        return "\n".join([head, *self.lines, "}"])


# --- helper functions ---------------------------------------------------------------------------


def helpers(text: str, known: Container[str], text_of: Callable[[str], str]) -> dict[str, str]:
    """The helper functions that a text mentions, except those `known`, each after those it uses.

    text_of: gives the text of a helper function by its name
    """
    functions: dict[str, str] = {}
    pending = [(name, False) for name in reversed(_mentioned(text)) if name not in known]
    while pending:
        name, ready = pending.pop()
        if name in functions:
            continue
        source = text_of(name)
        if ready:
            functions[name] = source
            continue
        inner = [n for n in _mentioned(source) if n != name and n not in functions]
        pending += [(name, True), *((n, False) for n in inner)]
    return functions


def _mentioned(text: str) -> list[str]:
    return list(dict.fromkeys(re.findall(r"\brune_\w+", text)))
