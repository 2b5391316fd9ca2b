"""Program: the array language, in A-normal form. Frozen values; nothing is rewritten in place.

    program   := "program" name "(" [binding {"," binding}] ")" [where] "{" body "}"
    body      := {constant} {equation} return
    where     := "where" size {"," size}                 size := name "in" dim ".." (dim | "inf")
    constant  := "const" binding "=" array
    array     := number | "[" [array {"," array}] "]"    "..." in it: too long to be shown
    equation  := [binding {"," binding}] "=" primitive [atom {"," atom}] [params] ["#" place]
    binding   := var ":" type
    params    := "{" name "=" value {"," name "=" value} "}"
    value     := "true" | "false" | "None" | "ordered" | "unordered" | dtype | type | dim | float
               | string | tuple | record | program | function
    function  := "<" text ">"                            a Python function, which text only names
    record    := name "(" [name "=" value {"," name "=" value}] ")"
    return    := "return" [atom {"," atom}]
    atom      := var | number ":" type                   var := "%" int
    type      := dtype ["*"] "[" [dim {"," dim}] "]"     "*" marks a weak type

Every variable is bound once, before its uses. `check.py` verifies that and the type of every
result; `printer.py` prints, `parse.py` reads. A parameter may be a Program (jit): so programs nest.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from rune import dtypes
from rune.core.graph import Graph, program_graph
from rune.core.jax_names import AtomNames, EquationNames, ProgramNames, named
from rune.core.memo import per_program
from rune.core.printer import program_text
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import Frame
from rune.records import dataclass, replace

if TYPE_CHECKING:
    from rune.core.primitive import Primitive

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, eq=False)
class Var(AtomNames):
    """A variable, equal only to itself. `number` orders variables by creation."""

    type: ArrayType
    number: int = field(default_factory=_numbers.__next__)


@dataclass(frozen=True, slots=True, eq=False)
class Literal(AtomNames):
    """A scalar constant written into the program: a 0-d NumPy array of the type's dtype."""

    value: np.ndarray
    type: ArrayType

    @property
    def operand(self) -> Value:
        """The value as an operand: a Python number if only that shows that it is weak.

        Not for an operation that passes its operands to a user's function, which expects arrays.
        """
        if not self.type.weak:
            return self.value
        number = self.value.item()
        return number if dtypes.scalar_type(number) == (self.type.dtype, True) else self.value

    @property
    def val(self) -> np.ndarray | float:
        """The value; a Python number, if the type is weak."""
        return self.value.item() if self.type.weak else self.value

    @property
    def key(self) -> tuple[bytes, ArrayType]:
        """Bits and type, which identical literals have in common."""
        return self.value.tobytes(), self.type


Atom = Var | Literal


@dataclass(frozen=True, slots=True, eq=False)
class Equation(EquationNames):
    """results = primitive operands {params}; `frame` is the user's line it came from."""

    primitive: Primitive
    operands: tuple[Atom, ...]
    params: Mapping[str, Any]
    results: tuple[Var, ...]
    frame: Frame | None = None


Definitions = Mapping[Atom, Equation]  # the equation that computes a variable; a literal has none


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Program(ProgramNames):
    """inputs -> outputs. `constants` are the closed-over arrays, explicit and in order.

    `derived` memoises programs and code derived from the program. It is an ordinary attribute, so
    that the collector can free the cycle when a derived value refers back to the program.
    """

    inputs: tuple[Var, ...]  # type: ignore[override]  # a property of OpenProgram
    equations: tuple[Equation, ...]  # type: ignore[override]  # a property of OpenProgram
    outputs: tuple[Atom, ...]  # type: ignore[override]  # a property of OpenProgram
    constants: tuple[tuple[Var, Any], ...] = ()
    name: str = "f"  # type: ignore[override]  # a property of OpenProgram
    derived: dict[Hashable, dict[Hashable, Any]] = field(default_factory=dict, init=False)

    @property
    def input_types(self) -> tuple[ArrayType, ...]:
        """Types of the inputs, without the constants."""
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[ArrayType, ...]:
        """Types of the outputs."""
        return tuple(a.type for a in self.outputs)

    @property
    def constvars(self) -> tuple[Var, ...]:
        """The variables of the constants."""
        return tuple(v for v, _ in self.constants)

    @property
    def consts(self) -> list[Value]:
        """The values of the constants."""
        return [value for _, value in self.constants]

    literals = consts  # another name in JAX, which Distrax reads

    @property
    @per_program
    def jaxpr(self) -> OpenProgram:
        """The program without the values of its constants; the same object each time."""
        count = len(self.constants)
        body = replace(self, inputs=(*self.constvars, *self.inputs), constants=()) if count else self
        return OpenProgram(body, count)

    @property
    @per_program
    def eqns(self) -> tuple[Equation, ...]:
        """The equations as JAX's programs name their parameters; the same objects each time."""
        return named(self.equations)

    @property
    @per_program
    def definitions(self) -> Definitions:
        """The equation that computes each variable; inputs and constants have none."""
        return {v: e for e in self.equations for v in e.results}

    def text(self, *, frames: bool = False) -> str:
        """The printed form; with `frames`, the user's line of each equation as a comment."""
        return program_text(self, frames=frames)

    def __str__(self) -> str:
        return program_text(self)

    __repr__ = __str__

    def graph(self) -> Graph:
        """The equations as a graph: `.to_dot()` is graphviz's text, and a notebook draws it."""
        return program_graph(self)

    def replace(self, *, jaxpr: OpenProgram | None = None, consts: Iterable[Value] | None = None) -> Program:
        """The program with another body, or other values of its constants, by JAX's names of both.

        Errors: ValueError for another number of constants than the body has.
        """
        return (jaxpr or self.jaxpr).with_constants(self.consts if consts is None else consts)

    def with_equations(self, equations: Iterable[Equation], outputs: Iterable[Atom]) -> Program:
        """The same inputs and constants with another body."""
        return replace(self, equations=tuple(equations), outputs=tuple(outputs))


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class OpenProgram(ProgramNames):
    """A program whose constants, the first `count` inputs of `body`, are passed at evaluation.

    `program.jaxpr` returns it, and `program.consts` the constants.
    """

    body: Program
    count: int

    @property
    def constvars(self) -> tuple[Var, ...]:
        """The variables of the constants."""
        return self.body.inputs[: self.count]

    @property
    def inputs(self) -> tuple[Var, ...]:
        """The inputs after the constants."""
        return self.body.inputs[self.count :]

    @property
    def equations(self) -> tuple[Equation, ...]:
        """The equations."""
        return self.body.equations

    @property
    def outputs(self) -> tuple[Atom, ...]:
        """The outputs."""
        return self.body.outputs

    @property
    def eqns(self) -> tuple[Equation, ...]:
        """The equations as JAX's programs name their parameters."""
        return self.body.eqns

    @property
    def name(self) -> str:
        """The name of the traced function."""
        return self.body.name

    def replace(
        self,
        *,
        constvars: Iterable[Var] | None = None,
        invars: Iterable[Var] | None = None,
        outvars: Iterable[Atom] | None = None,
        eqns: Iterable[Equation] | None = None,
        effects: object = None,
        debug_info: object = None,
    ) -> OpenProgram:
        """The program with other parts, by JAX's names; None leaves a part as it is.

        effects, debug_info: without effect: the first follow from the equations, messages show the
                             lines of the equations
        """
        constants = self.constvars if constvars is None else tuple(constvars)
        inputs = self.inputs if invars is None else tuple(invars)
        outputs = self.outputs if outvars is None else tuple(outvars)
        equations = self.equations if eqns is None else tuple(eqns)
        body = replace(self.body, inputs=(*constants, *inputs), equations=equations, outputs=outputs)
        return OpenProgram(body, len(constants))

    def with_constants(self, values: Iterable[Value]) -> Program:
        """The program with these constants. Errors: ValueError for too few or too many."""
        constants = tuple(zip(self.constvars, values, strict=True))
        return replace(self.body, inputs=self.inputs, constants=constants) if constants else self.body

    def text(self, *, frames: bool = False) -> str:
        """The printed form, the constants as the first inputs."""
        return program_text(self.body, frames=frames)

    def __str__(self) -> str:
        return program_text(self.body)

    __repr__ = __str__


def map_programs(params: Mapping[str, object], change: Callable[[Program], Program]) -> Mapping[str, Any]:
    """The parameters with `change` applied to the programs among them; themselves if none differs.

    Programs are values of parameters, alone or in tuples.
    """
    if not any(map(_holds_programs, params.values())):
        return params
    new = {name: _changed(value, change) for name, value in params.items()}
    return params if all(new[name] is value for name, value in params.items()) else new


def _changed(value: Any, change: Callable[[Program], Program]) -> Any:
    """The value of a parameter with `change` applied to the programs in it."""
    if isinstance(value, Program):
        return change(value)
    if not _holds_programs(value):
        return value
    items = tuple(_changed(item, change) for item in value)
    return value if all(a is b for a, b in zip(items, value)) else items


def _holds_programs(value: object) -> bool:
    """Whether the value of a parameter is a program, or a tuple with one."""
    return type(value) is Program or (isinstance(value, tuple) and Program in map(type, value))


def substitute(program: Program, replacements: Mapping[Var, Atom], equations: Iterable[Equation]) -> Program:
    """`program` with `equations` as its body and every replaced variable renamed everywhere.

    All passes rewrite by this function: chains of replacements are followed, so that no pass leaves
    a stale use behind.
    """

    def resolve(atom: Atom) -> Atom:
        while isinstance(atom, Var) and atom in replacements:
            atom = replacements[atom]
        return atom

    body = tuple(
        e if replacements.keys().isdisjoint(e.operands) else replace(e, operands=tuple(map(resolve, e.operands)))
        for e in equations
    )
    return program.with_equations(body, map(resolve, program.outputs))


def replace_equations(program: Program, replacement: Callable[[Equation], Sequence[Equation]]) -> Program:
    """`program` with each equation replaced by those that `replacement` gives, or kept if it gives
    none.

    The last of them has the equation's results. The program itself if every equation stays.
    """
    body = [new for e in program.equations for new in replacement(e) or (e,)]
    same = len(body) == len(program.equations) and all(map(operator.is_, body, program.equations))
    return program if same else program.with_equations(body, program.outputs)


def in_scope(program: Program, around: Frame | None) -> Program:
    """The program as part of a computation at a line: inside the scope of that line, if any."""
    if around is None or not around.scope:
        return program

    def within(frame: Frame | None) -> Frame | None:
        return frame and replace(frame, scope="/".join(filter(None, (around.scope, frame.scope))))

    body = (replace(e, frame=within(e.frame)) for e in program.equations)
    return program.with_equations(body, program.outputs)
