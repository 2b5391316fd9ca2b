"""Kernelize: from equations to kernels.

Four steps, each a file: dots that pay become calls of a library (routines) or read rows of whole
pieces (align_rows), large reductions two steps (two_step) and long scans parts (split_scans); some
values are chosen to be stored (stored), all others are computed where they are used; every stored
value knows the elements that it reads (roots); stored values that fit share a kernel (groups),
which is written at last (write, emit).

Movement never becomes a kernel: it is index expressions and guards on loads (views). Loops and
branches are steps whose programs are kernelized by themselves; all share one table of kernels.

Invariant: the kernels compute what the program does; reductions may associate differently.
Cost: about linear in the number of equations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rune import dims
from rune.core.higher import subprograms
from rune.core.lower import Written
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.dims import Dim
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.align_rows import align_rows
from rune.lowering.kernelize.feed_products import feed_products
from rune.lowering.kernelize.groups import Fusion, Group, fuse, in_order, match
from rune.lowering.kernelize.roots import Kind, Root, find_roots
from rune.lowering.kernelize.routines import call_of, is_call, route_dots
from rune.lowering.kernelize.split_dots import split_dots
from rune.lowering.kernelize.split_peaks import split_peaks
from rune.lowering.kernelize.split_scans import split_scans
from rune.lowering.kernelize.stored import Stored, choose, memory_operands
from rune.lowering.kernelize.streams import find_streams
from rune.lowering.kernelize.two_step import Parallelism, split_reductions
from rune.lowering.kernelize.write import write_kernel
from rune.lowering.kernelize.write_loops import write_loops
from rune.lowering.kernels import (
    Choose,
    Invoke,
    Kernel,
    KernelProgram,
    KernelStep,
    NotFused,
    Repeat,
    Routine,
    Value,
    kernel_names,
)
from rune.ops.branch import branch, is_control
from rune.ops.family import broadcast
from rune.ops.loop import LoopParams
from rune.records import dataclass

MAX_NAME = 4  # operations in the name of a kernel


Names = dict[Kernel, str]  # every kernel so far, without its name, and that name


def kernelize(program: Program, target: Target) -> KernelProgram:
    """The kernels of a program whose primitives all have a lowering."""
    return _kernelize(program, target, {})


def _kernelize(program: Program, target: Target, names: Names) -> KernelProgram:
    program, streams = find_streams(split_peaks(_with_variables(program), target), target)
    program = feed_products(route_dots(program, target), target, {*streams.members, *streams.again})
    program = align_rows(program, target, streams.members)
    program = split_dots(program, target, streams.members)
    program = split_reductions(program, Parallelism.of(target), streams.members)
    program = split_scans(program, target)
    stored = replace(choose(program, streams.again), sinks=streams.members, degrees=streams.degrees)
    results = frozenset(a for a in stored.outputs if isinstance(a, Var))
    state = fuse(find_roots(program, stored), results, cost.Granularity.of(target), streams.groups)
    return _assemble(program, stored, state, target, names)


def _with_variables(program: Program) -> Program:
    """The program with literal results, and those that loops and branches take, computed."""
    equations: list[Equation] = []

    def variable(atom: Atom) -> Var:
        if isinstance(atom, Var):
            return atom
        result = Var(atom.type)
        equations.append(Equation(broadcast, (atom,), {"shape": (), "axes": ()}, (result,)))
        return result

    for equation in program.equations:
        if is_control(equation) or is_call(equation):
            equation = replace(equation, operands=tuple(map(variable, equation.operands)))
        equations.append(equation)
    outputs = tuple(map(variable, program.outputs))
    return program.with_equations(equations, outputs)


# --- assembly ---------------------------------------------------------------------------------


def _assemble(program: Program, stored: Stored, state: Fusion, target: Target, names: Names) -> KernelProgram:
    values = _number(program, stored)
    writer = _Steps(stored, state, target, names, values, _size_names(program))
    steps, callees = writer.all()
    used = {name for step in steps for name in kernel_names(step)}
    named = {name: replace(kernel, name=name) for kernel, name in names.items() if name in used}
    inputs = tuple(values[v] for v in _arguments(program))
    outputs = tuple(values[a] for a in stored.outputs if isinstance(a, Var))
    return KernelProgram(
        program.name, inputs, steps, outputs, program.output_types, named, _not_fused(state, callees, values)
    )


def _arguments(program: Program) -> tuple[Var, ...]:
    return (*program.inputs, *(v for v, _ in program.constants))


def _number(program: Program, stored: Stored) -> dict[Var, Value]:
    """A Value for every input and every stored variable, in order."""
    defined = (v for e in stored.equations for v in e.results if v in stored.stored)
    return {v: Value(n, v.type) for n, v in enumerate((*_arguments(program), *defined))}


def _size_names(program: Program) -> frozenset[str]:
    types = {v.type for v in _arguments(program)}
    types |= {v.type for e in program.equations for v in e.results}
    return frozenset(s.name for t in types for d in t.shape if isinstance(d, Dim) for s in dims.symbols(d))


@dataclass(slots=True)
class _Steps:
    """Writes the step of each group."""

    stored: Stored
    state: Fusion
    target: Target
    names: Names
    values: dict[Var, Value]
    reserved: frozenset[str]  # names that kernels cannot give to axes

    def all(self) -> tuple[tuple[KernelStep, ...], dict[int, str]]:
        """The steps in order, and what each group is called."""
        steps: list[KernelStep] = []
        callees: dict[int, str] = {}
        written: set[Equation] = set()  # of several results: every one of them is a group
        calls: dict[Equation, Invoke | Routine] = {}
        for number in in_order(self.state):
            first = self.state.roots[self.state.groups[number].members[0]]
            if first.kind is Kind.CONTROL:
                callees[number] = first.equation.primitive.name
                if first.equation not in written:
                    written.add(first.equation)
                    steps.append(self.control(first.equation))
            elif first.kind in (Kind.ROUTINE, Kind.WRITTEN):
                if first.equation not in calls:
                    calls[first.equation] = self.call(first.equation)
                    steps.append(calls[first.equation])
                callees[number] = _callee(calls[first.equation])
            else:
                step = self.invoke(self.state.groups[number])
                callees[number] = step.kernel
                steps.append(step)
        return tuple(steps), callees

    def call(self, equation: Equation) -> Invoke | Routine:
        """A call of a library, or of a kernel that is written."""
        if isinstance(equation.primitive.lower, Written):
            written = write_loops(equation, self.stored, self.reserved)
            name = self.names.setdefault(written.kernel, f"{equation.primitive.name}_{len(self.names)}")
            return Invoke(name, self.results(equation), _values(written.inputs, self.values), equation.frame)
        operands = _values(equation.operands, self.values)
        name, parameters = call_of(equation)
        return Routine(name, self.results(equation), operands, parameters, equation.frame)

    def control(self, equation: Equation) -> Repeat | Choose:
        """A loop or a branch, with the kernels of its programs."""
        operands = _values(memory_operands(equation, self.stored.definitions), self.values)
        results = self.results(equation)
        if equation.primitive is branch:
            return Choose(results, operands, tuple(map(self.within, subprograms(equation))))
        form = LoopParams.of(equation)
        return Repeat(
            results,
            operands,
            form.consts,
            self.within(form.body),
            None if form.condition is None else self.within(form.condition),
            form.count,
        )

    def within(self, program: Program) -> KernelProgram:
        """A program that a step runs."""
        return _kernelize(program, self.target, self.names)

    def results(self, equation: Equation) -> tuple[Value, ...]:
        """The values that an equation makes."""
        return tuple(self.values[v] for v in equation.results)

    def invoke(self, group: Group) -> Invoke:
        """The kernel of one group: a new one, or one that was written before."""
        written = write_kernel(self.state, group, self.stored, self.target, self.reserved)
        name = self.names.get(written.kernel)
        members = [self.state.roots[m] for m in group.members]
        if name is None:
            name = self.names[written.kernel] = f"{_base_name(members)}_{len(self.names)}"
        operands = _values(written.inputs, self.values)
        return Invoke(name, _values(written.outputs, self.values), operands, members[-1].equation.frame)


def _callee(step: Invoke | Routine) -> str:
    return step.kernel if isinstance(step, Invoke) else step.routine


def _values(atoms: Iterable[Atom], values: dict[Var, Value]) -> tuple[Value, ...]:
    return tuple(values[a] for a in atoms if not isinstance(a, Literal))


def _base_name(members: list[Root]) -> str:
    names = dict.fromkeys(r.equation.primitive.name.removeprefix("reduce_") for r in members)
    short = [name.removesuffix("_general") for name in names]
    if len(short) > MAX_NAME:
        short = [*short[: MAX_NAME - 1], short[-1]]
    return "_".join(short)


def _not_fused(state: Fusion, callees: dict[int, str], values: dict[Var, Value]) -> tuple[NotFused, ...]:
    """Why two kernels were not fused, for every pair where one reads the other."""
    reasons: dict[tuple[int, int], NotFused] = {}
    for q, r in state.aligned:
        a, b = state.owner[q], state.owner[r]
        if a != b and (a, b) not in reasons:
            why = match(state, a, b)
            assert isinstance(why, str)
            reasons[a, b] = NotFused(values[state.roots[q].var], callees[a], callees[b], why)
    return tuple(dict.fromkeys(reasons.values()))  # results of one loop are groups of their own
