"""Kernelize: from equations to kernels.

First the program is rewritten: dots that pay become calls of a library (routines) or read padded
rows (align_rows), large reductions take two steps (two_step), long scans are cut into parts
(split_scans). Then some values are chosen to be stored (stored); all others are computed where they
are used. For every stored value, the elements that it reads are derived (roots). Stored values that
fit share a kernel (groups), and each kernel is written (write, emit).

Movement never becomes a kernel: it becomes index expressions and guards on loads (views). Loops and
branches are steps whose programs are kernelized separately; all share one table of kernels.

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
from rune.lowering.kernelize.group import Group
from rune.lowering.kernelize.groups import Fusion, fuse, in_order, match
from rune.lowering.kernelize.roots import Kind, Root, find_roots
from rune.lowering.kernelize.routines import call_of, is_call, route_dots
from rune.lowering.kernelize.split_dots import split_dots
from rune.lowering.kernelize.split_peaks import split_peaks
from rune.lowering.kernelize.split_scans import split_scans
from rune.lowering.kernelize.stored import Storage, choose, memory_operands
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


Names = dict[Kernel, str]  # for every kernel so far, with an empty name, the name that it will get


def kernelize(program: Program, target: Target) -> KernelProgram:
    """The kernels of a program whose primitives all have a lowering."""
    return _kernelize(program, target, {})


def _kernelize(program: Program, target: Target, names: Names) -> KernelProgram:
    # Long peaks are split before streams are formed, so that each part becomes a stream. The passes
    # after that leave the members of streams alone, as a stream computes them as they are.
    program, streams = find_streams(split_peaks(_with_variables(program), target), target)
    # Library calls come first: what remains of the dots are products for generated kernels.
    program = feed_products(route_dots(program, target), target, {*streams.members, *streams.recomputed_values})
    program = align_rows(program, target, streams.members)
    program = split_dots(program, target, streams.members)
    program = split_reductions(program, Parallelism.of(target), streams.members)
    program = split_scans(program, target)
    storage = replace(choose(program, streams.recomputed_values), sinks=streams.members, degrees=streams.degrees)
    results = frozenset(a for a in storage.outputs if isinstance(a, Var))
    state = fuse(find_roots(program, storage), results, cost.Granularity.of(target), streams.groups)
    return _assemble(program, storage, state, target, names)


def _with_variables(program: Program) -> Program:
    """The program with a variable for each literal that it returns or passes to a step.

    Results, and operands of calls, loops and branches, lie in memory, which a literal does not.
    """
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


def _assemble(program: Program, storage: Storage, state: Fusion, target: Target, names: Names) -> KernelProgram:
    values = _number(program, storage)
    writer = _Steps(storage, state, target, names, values, _size_names(program))
    steps, callees = writer.all()
    called_names = {name for step in steps for name in kernel_names(step)}
    kernels = {name: replace(kernel, name=name) for kernel, name in names.items() if name in called_names}
    inputs = tuple(values[v] for v in _arguments(program))
    outputs = tuple(values[a] for a in storage.outputs if isinstance(a, Var))
    return KernelProgram(
        program.name, inputs, steps, outputs, program.output_types, kernels, _not_fused(state, callees, values)
    )


def _arguments(program: Program) -> tuple[Var, ...]:
    return (*program.inputs, *(v for v, _ in program.constants))


def _number(program: Program, storage: Storage) -> dict[Var, Value]:
    """A Value for every input and every stored variable, in order."""
    variables = (v for e in storage.equations for v in e.results if v in storage.values)
    return {v: Value(n, v.type) for n, v in enumerate((*_arguments(program), *variables))}


def _size_names(program: Program) -> frozenset[str]:
    types = {v.type for v in _arguments(program)}
    types |= {v.type for e in program.equations for v in e.results}
    return frozenset(s.name for t in types for d in t.shape if isinstance(d, Dim) for s in dims.symbols(d))


@dataclass(slots=True)
class _Steps:
    """Writes the step of each group: a kernel, a call, a loop or a branch."""

    storage: Storage
    state: Fusion
    target: Target
    names: Names
    values: dict[Var, Value]
    reserved_names: frozenset[str]  # of symbolic sizes, which no axis of a kernel may have

    def all(self) -> tuple[tuple[KernelStep, ...], dict[int, str]]:
        """The steps in order, and for each group the name of what it calls."""
        steps: list[KernelStep] = []
        callees: dict[int, str] = {}
        # An equation with several results has a group for each of them, but one step.
        emitted: set[Equation] = set()
        calls: dict[Equation, Invoke | Routine] = {}
        for number in in_order(self.state):
            first = self.state.roots[self.state.groups[number].members[0]]
            if first.kind is Kind.CONTROL:
                callees[number] = first.equation.primitive.name
                if first.equation not in emitted:
                    emitted.add(first.equation)
                    steps.append(self.control(first.equation))
            elif first.kind in (Kind.ROUTINE, Kind.WRITTEN):
                if first.equation not in calls:
                    calls[first.equation] = self.call(first.equation)
                    steps.append(calls[first.equation])
                step = calls[first.equation]
                callees[number] = step.kernel if isinstance(step, Invoke) else step.routine
            else:
                step = self.invoke(self.state.groups[number])
                callees[number] = step.kernel
                steps.append(step)
        return tuple(steps), callees

    def call(self, equation: Equation) -> Invoke | Routine:
        """A call of a library, or of a kernel whose loops are given."""
        if isinstance(equation.primitive.lower, Written):
            kernel_call = write_loops(equation, self.storage, self.reserved_names)
            name = self.names.setdefault(kernel_call.kernel, f"{equation.primitive.name}_{len(self.names)}")
            return Invoke(name, self.results(equation), _values(kernel_call.inputs, self.values), equation.frame)
        operands = _values(equation.operands, self.values)
        name, parameters = call_of(equation)
        return Routine(name, self.results(equation), operands, parameters, equation.frame)

    def control(self, equation: Equation) -> Repeat | Choose:
        """A loop or a branch, with the kernels of its programs."""
        operands = _values(memory_operands(equation, self.storage.definitions), self.values)
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
        """The kernels of a program that a step runs."""
        # With the same names: a loop whose body has a kernel of the outer program shares that one.
        return _kernelize(program, self.target, self.names)

    def results(self, equation: Equation) -> tuple[Value, ...]:
        """The values of an equation's results."""
        return tuple(self.values[v] for v in equation.results)

    def invoke(self, group: Group) -> Invoke:
        """The kernel of one group: a new one, or an equal one from before."""
        kernel_call = write_kernel(self.state, group, self.storage, self.target, self.reserved_names)
        members = [self.state.roots[m] for m in group.members]
        # One look-up, because it hashes all of the kernel.
        name = self.names.setdefault(kernel_call.kernel, f"{_base_name(members)}_{len(self.names)}")
        operands = _values(kernel_call.inputs, self.values)
        return Invoke(name, _values(kernel_call.outputs, self.values), operands, members[-1].equation.frame)


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
    for q, r in state.alignments:
        a, b = state.owner[q], state.owner[r]
        if a != b and (a, b) not in reasons:
            why = match(state, a, b)
            assert isinstance(why, str)
            reasons[a, b] = NotFused(values[state.roots[q].var], callees[a], callees[b], why)
    # A loop with several results is several groups, which would repeat one reason.
    return tuple(dict.fromkeys(reasons.values()))
