"""Kernelize: from equations to kernels.

Four steps, each a file: dots that pay become calls of a library (routines) and large reductions
two steps (two_step); some values are chosen to be stored (stored), all others are computed where
they are used; every stored value knows the elements that it reads (roots); stored values that fit
share a kernel (groups); each group is written as one kernel (write, emit).

Movement never becomes a kernel: it is index expressions and guards on loads (views).

Invariant: the kernels compute what the program does; reductions may associate differently.
Cost: about linear in the number of equations.
"""

from __future__ import annotations

from dataclasses import replace

from rune import dims
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.dims import Dim
from rune.lowering.codegen.target import Target
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.groups import Fusion, fuse, match
from rune.lowering.kernelize.roots import Kind, Root, find_roots
from rune.lowering.kernelize.routines import parameters, route_dots
from rune.lowering.kernelize.stored import Stored, choose
from rune.lowering.kernelize.two_step import split_reductions
from rune.lowering.kernelize.write import Written, write_kernel
from rune.lowering.kernels import (
    Invoke,
    Kernel,
    KernelProgram,
    KernelStep,
    NotFused,
    Routine,
    Value,
)
from rune.ops.family import broadcast

MAX_NAME = 4  # operations in the name of a kernel


def kernelize(program: Program, target: Target) -> KernelProgram:
    """The kernels of a program whose primitives all have a lowering."""
    rows = cost.parallel_rows(target.cores)
    program = split_reductions(route_dots(_with_variables(program), target), rows)
    stored = choose(program)
    results = frozenset(a for a in stored.outputs if isinstance(a, Var))
    state = fuse(find_roots(program, stored), results, rows)
    return _assemble(program, stored, state, target)


def _with_variables(program: Program) -> Program:
    """The program with literal results computed by equations."""
    made: list[Equation] = []

    def variable(atom: Atom) -> Var:
        if isinstance(atom, Var):
            return atom
        result = Var(atom.type)
        made.append(Equation(broadcast, (atom,), {"shape": (), "axes": ()}, (result,)))
        return result

    outputs = tuple(map(variable, program.outputs))
    return program.with_equations((*program.equations, *made), outputs) if made else program


# --- assembly ---------------------------------------------------------------------------------


def _assemble(program: Program, stored: Stored, state: Fusion, target: Target) -> KernelProgram:
    values = _number(program, stored)
    taken = _size_names(program)
    kernels: dict[Kernel, str] = {}
    steps: list[KernelStep] = []
    made: dict[int, str] = {}
    for number in _order(state):
        step, made[number] = _step(state, number, stored, target, taken, kernels, values)
        steps.append(step)
    named = {name: replace(kernel, name=name) for kernel, name in kernels.items()}
    inputs = tuple(values[v] for v in _arguments(program))
    outputs = tuple(values[a] for a in stored.outputs if isinstance(a, Var))
    return KernelProgram(
        program.name, inputs, tuple(steps), outputs, program.output_types, named,
        _not_fused(state, made, values),
    )  # fmt: skip


def _arguments(program: Program) -> tuple[Var, ...]:
    return (*program.inputs, *(v for v, _ in program.constants))


def _number(program: Program, stored: Stored) -> dict[Var, Value]:
    """A Value for every input and every stored variable, in order."""
    defined = (v for e in stored.equations for v in e.results if v in stored.stored)
    return {v: Value(n, v.type) for n, v in enumerate((*_arguments(program), *defined))}


def _size_names(program: Program) -> frozenset[str]:
    types = {v.type for v in _arguments(program)}
    types |= {v.type for e in program.equations for v in e.results}
    return frozenset(
        s.name for t in types for d in t.shape if isinstance(d, Dim) for s in dims.symbols(d)
    )


def _order(state: Fusion) -> list[int]:
    """Groups so that each comes after those that it reads; else by their last member."""
    return sorted(
        state.groups,
        key=lambda g: (state.above[g].bit_count(), state.groups[g].members[-1]),
    )


def _step(
    state: Fusion, number: int, stored: Stored, target: Target, taken: frozenset[str],
    kernels: dict[Kernel, str], values: dict[Var, Value],
) -> tuple[KernelStep, str]:  # fmt: skip
    """The step of one group, and its name."""
    group = state.groups[number]
    first = state.roots[group.members[0]]
    if first.kind is Kind.ROUTINE:
        call = Routine(
            "dot", (values[first.var],), _values(first.equation.operands, values),
            parameters(first.equation),
        )  # fmt: skip
        return call, "dot"
    written = write_kernel(state, group, stored, target, taken)
    name = kernels.get(written.kernel)
    if name is None:
        members = [state.roots[m] for m in group.members]
        name = kernels[written.kernel] = f"{_base_name(members)}_{len(kernels)}"
    return _invoke(name, written, values), name


def _invoke(name: str, written: Written, values: dict[Var, Value]) -> Invoke:
    return Invoke(name, _values(written.outputs, values), _values(written.inputs, values))


def _values(atoms: tuple[Atom, ...], values: dict[Var, Value]) -> tuple[Value, ...]:
    return tuple(values[a] for a in atoms if not isinstance(a, Literal))


def _base_name(members: list[Root]) -> str:
    names = dict.fromkeys(r.equation.primitive.name.removeprefix("reduce_") for r in members)
    short = [name.removesuffix("_general") for name in names]
    if len(short) > MAX_NAME:
        short = [*short[: MAX_NAME - 1], short[-1]]
    return "_".join(short)


def _not_fused(
    state: Fusion, made: dict[int, str], values: dict[Var, Value]
) -> tuple[NotFused, ...]:
    """For every pair of kernels of which one reads the other, why they are two."""
    found: dict[tuple[int, int], NotFused] = {}
    for q, r in state.aligned:
        a, b = state.owner[q], state.owner[r]
        if a != b and (a, b) not in found:
            why = match(state, a, b)
            assert isinstance(why, str)
            found[a, b] = NotFused(values[state.roots[q].var], made[a], made[b], why)
    return tuple(found.values())
