"""Decompose: inline nested programs, expand primitives, turn control flow into loops and branches.

Before   %1 = integer_pow %0 {exponent=2}          After   %1 = mul %0, %0
Before   %1 = sort %0                              After   %1 = host_call %0 {call=sort}   (cpu)

A concatenation of many pieces becomes several concatenations of few (joins.py).

Invariant: only primitives with a `lower` remain, and loops and branches over programs
of those; later stages know nothing else.
Cost:      linear in the number of equations after expansion.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rune.core.evaluate import eval_program, written_by
from rune.core.higher import called_once, subprograms
from rune.core.interpreter import Tracer, type_of
from rune.core.lower import ByRoutine, Exchange, Host, Library, Routine, Rule, Scatter
from rune.core.primitive import Primitive
from rune.core.program import Equation, Program, Var, in_scope, map_programs
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.core.values import Params, Value
from rune.errors import HostFallbackWarning, MissingRule, user_frame
from rune.lowering.host_calls import host_call, write_collective, write_constant, write_host_call, write_library_call
from rune.lowering.joins import MOST, join_many
from rune.lowering.source_calls import source_call, write_source_call
from rune.ops.branch import branch
from rune.ops.loop import loop
from rune.ops.movement import concatenate

LIBRARY = "numpy"  # the routine that only a device which is the host has
Scatters = Callable[..., Rule | None]
Expansions = Mapping[Primitive, Rule]
KEPT = (loop, branch, host_call, source_call)  # several results, and no record of a lowering


class _Decompose(Stage):
    """Writes only primitives that lower directly."""

    __slots__ = ("constants", "device", "expansions", "routines", "scatters")

    def __init__(
        self,
        parent: _Decompose | None,
        device: str | None,
        routines: frozenset[str],
        scatters: Scatters,
        expansions: Expansions,
    ):
        super().__init__(parent)
        self.device = device
        self.routines = routines
        self.scatters = scatters
        self.expansions = expansions
        # By the id of the value; each entry refers to its value, so that no other gets that id.
        self.constants: dict[int, tuple[Var, Value]] = {}

    def _capture(self, value: Value) -> Var:
        """The variable of an array that the expansion of a user's primitive closes over."""
        if self.parent is not None or isinstance(value, Tracer):
            return super()._capture(value)
        if id(value) not in self.constants:
            self.constants[id(value)] = write_constant(value), value
        return self.constants[id(value)][0]

    def inner(self) -> _Decompose:
        """The stage for the programs of loops and branches."""
        return _Decompose(self, self.device, self.routines, self.scatters, self.expansions)

    def process(self, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """Write, expand, or inline."""
        if isinstance(primitive.lower, Host):
            return write_host_call(args, **params)
        if isinstance(primitive.lower, Exchange):
            return write_collective(primitive, args, params)
        if isinstance(primitive.lower, Library):
            return self.library(primitive.lower, primitive, args, params)
        if isinstance(primitive.lower, Routine | ByRoutine):
            return self.routine(primitive.lower, primitive, args, params)
        # The replacement is written through this stage, so what it uses is decomposed in turn.
        if isinstance(primitive.lower, Scatter):
            expand = self.scatters(primitive, *map(type_of, args), **params)
            if expand is not None:
                return expand(*args, **params)
        if primitive is concatenate and len(args) > MOST:
            return join_many(args, **params)
        if primitive.lower is not None or primitive in KEPT:
            return self.write(primitive, args, map_programs(params, self.decomposed))
        expand = self.expansions.get(primitive, primitive.expand)
        if expand is not None:
            return expand(*args, **params)
        program = called_once(primitive, args, params)
        if program is not None:
            return eval_program(in_scope(program, user_frame()), args)
        raise MissingRule(f"lower: cannot compile {primitive} (it has no lowering)")

    def decomposed(self, program: Program) -> Program:
        """The program of a loop or branch, decomposed; itself if this stage has written it."""
        if all(map(self.is_written, program.equations)):
            return program
        return written_by(self.inner(), program).program

    def is_written(self, equation: Equation) -> bool:
        """Whether the equation is as this stage would write it."""
        primitive, types = equation.primitive, [a.type for a in equation.operands]
        match primitive.lower:
            case Host() | Library() | ByRoutine() | Exchange():
                return False
            case Routine() as routine if not self.has(routine, types, equation.params):
                return False
            case Scatter() if self.scatters(primitive, *types, **equation.params) is not None:
                return False
            case None if primitive not in KEPT:
                return False
        is_short = primitive is not concatenate or len(types) <= MOST
        return is_short and all(all(map(self.is_written, p.equations)) for p in subprograms(equation))

    def routine(
        self, routine: Routine | ByRoutine, primitive: Primitive, args: Sequence[Value], params: Params
    ) -> object:
        """The routine, or the expansion by a routine, if it applies; else the plain expansion."""
        expand = self.expansions.get(primitive, primitive.expand)
        if self.has(routine, map(type_of, args), params):
            if isinstance(routine, Routine):
                return self.write(primitive, args, params)
            expand = routine.expand
        assert expand is not None
        return expand(*args, **params)

    def has(self, routine: Routine | ByRoutine, types: Iterable[ArrayType], params: Params) -> bool:
        """Whether the device has a routine, and it pays."""
        return routine.name in self.routines and routine.pays(*types, **params)

    def library(self, library: Library, primitive: Primitive, args: Sequence[Value], params: Params) -> Any:
        """A kernel in the device's language, or NumPy's routine if it pays, or the expansion."""
        for source in library.sources:
            if source.routine in self.routines:
                return write_source_call(source, primitive, args, params)
        is_here = LIBRARY in self.routines
        pays = is_here and library.pays(*map(type_of, args), **params)
        # Without an expansion, only the host can compute it.
        expand = self.expansions.get(primitive, primitive.expand)
        if expand is not None and not pays:
            return expand(*args, **params)
        if primitive.reference is None:
            if self.device is None:
                return self.write(primitive, args, params)
            raise _no_source(primitive.name, library, self.device)
        if not is_here:
            _warn_of_host(primitive.name)
        return write_library_call(primitive, args, params)


def _no_source(name: str, library: Library, device: str) -> MissingRule:
    """The error for an operation that has kernels, but none for the device."""
    known = " and ".join(s.language for s in library.sources)
    return MissingRule(
        f"lower: cannot compile {name} for {device} (its kernels are only for {known})",
        hint="say what it means in NumPy (meaning=) or in rune's operations (expand=), or for the CPU by native=",
    )


@functools.cache
def _warn_of_host(name: str) -> None:
    """Warn once for each operation that the host computes."""
    warnings.warn(
        f"{name}: computed by the host (no device has it); operands are copied there and back",
        HostFallbackWarning,
        stacklevel=2,
    )


def decompose(
    program: Program,
    routines: frozenset[str] = frozenset(),
    scatters: Scatters = lambda *_, **__: None,
    expansions: Expansions = MappingProxyType({}),
    device: str | None = None,
) -> Program:
    """The program in primitives that lower directly.

    routines:    the routines that plans may call
    scatters:    (scatter, *types, **params) -> what the device does in its place, or None
    expansions:  rules of primitives, in place of their own expansions
    device:      its name; with None, what only some device can compile stays as it is
    """

    stage = _Decompose(None, device, routines, scatters, expansions)
    if not program.constants and all(map(stage.is_written, program.equations)):
        return program
    trace = written_by(stage, program)
    assert not trace.captured
    return trace.program
