"""Programs of the typed body of a shard_map: for operands that vary along axes, and untyped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rune.core.dead_code import prune
from rune.core.memo import per_program
from rune.core.program import Atom, Equation, Program, Var, map_programs
from rune.core.types import NONE, Axes
from rune.core.varying import Params, typed_equation
from rune.ops.collectives import psum, pvary


def axes_of(atoms: Sequence[Atom]) -> tuple[Axes, ...]:
    """The axes along which each atom varies."""
    return tuple(a.type.varying for a in atoms)


@per_program
def typed(program: Program, inputs: tuple[Axes, ...], outputs: tuple[Axes, ...] = ()) -> Program:
    """The program for inputs that vary along these axes; itself if they already do.

    outputs: axes along which the results must vary; none by default.
    """
    variables = {v: _along(v, axes) for v, axes in zip(program.inputs, inputs, strict=True)}

    def resolve(atom: Atom) -> Atom:
        return variables.get(atom, atom) if isinstance(atom, Var) else atom

    equations = []
    for equation in program.equations:
        operands = tuple(map(resolve, equation.operands))
        # Variation of operands changes that of results, so types are computed anew from the inputs
        # on.
        params, types = typed_equation(equation.primitive, [a.type for a in operands], equation.params)
        variables.update({v: _along(v, t.varying) for v, t in zip(equation.results, types, strict=True)})
        equations.append(_changed(equation, operands, params, tuple(map(resolve, equation.results))))
    results = tuple(map(resolve, program.outputs))
    outputs_along_axes = _raised(results, outputs or axes_of(results), equations)
    # The same program if nothing differs, since memos of rewrites belong to a program object.
    same = all(map(_is, equations, program.equations)) and all(map(_is, outputs_along_axes, program.outputs))
    if same and len(equations) == len(program.equations) and all(variables[v] is v for v in program.inputs):
        return program
    return replace(program, inputs=tuple(variables[v] for v in program.inputs)).with_equations(
        equations, outputs_along_axes
    )


def _is(a: object, b: object) -> bool:
    return a is b


def _along(variable: Var, axes: Axes) -> Var:
    return variable if variable.type.varying == axes else Var(variable.type.along(axes))


def _changed(equation: Equation, operands: tuple[Atom, ...], params: Params, results: Any) -> Equation:
    """The equation, unchanged if nothing differs."""
    same_params = params is equation.params or all(params[k] is v for k, v in equation.params.items())
    if same_params and all(map(_is, operands, equation.operands)) and all(map(_is, results, equation.results)):
        return equation
    return replace(equation, operands=operands, params=params, results=results)


def _raised(atoms: Sequence[Atom], target_axes: Sequence[Axes], equations: list[Equation]) -> tuple[Atom, ...]:
    """The atoms, with equations appended so that each also varies along its target axes."""
    outputs = []
    for atom, axes in zip(atoms, target_axes, strict=True):
        # Sorted, since the order of a set of names is another in each process, and processes that
        # exchange data must have the same program (decision 0052).
        for name in sorted(axes - atom.type.varying, key=str):
            result = Var(atom.type.strong().along(atom.type.varying | {name}))
            equations.append(Equation(pvary, (atom,), {"axis_name": name}, (result,)))
            atom = result
        outputs.append(atom)
    return tuple(outputs)


def loop_of(body: Program, consts: Sequence[Axes], carry: Sequence[Axes], rows: Sequence[Axes] = ()) -> Program:
    """The body of a loop whose carry varies along all axes of its first value and its results."""
    carry, count = tuple(carry), len(carry)
    while True:
        program = typed(body, (*consts, *carry, *rows))
        results = axes_of(program.outputs)
        # Axes are only ever added, so this ends after as many rounds as there are axes.
        joint = tuple(a | b for a, b in zip(carry, results, strict=False))
        if joint == carry:
            return typed(body, (*consts, *carry, *rows), (*carry, *results[count:]))
        carry = joint


@per_program
def without_sums(program: Program, count: int) -> Program:
    """The program without sums over devices in its first results: each device returns its own."""
    sums = {e.results[0]: e.operands[0] for e in program.equations if _sums_devices(e)}
    outputs = list(program.outputs)
    for number, atom in enumerate(outputs[:count]):
        # A value may be summed over several axes of the mesh, one after another.
        while isinstance(atom, Var) and atom in sums:
            atom = sums[atom]
        outputs[number] = atom
    local = program.with_equations(program.equations, outputs)
    return prune(local, [True] * len(outputs))[0] if sums else program


def _sums_devices(equation: Equation) -> bool:
    return equation.primitive is psum and equation.results[0].type.varying < equation.operands[0].type.varying


@per_program
def untyped(program: Program) -> Program:
    """The program as devices run it, with types that do not mention variation."""
    atoms: dict[Var, Atom] = {v: _along(v, NONE) for v in program.inputs}

    def resolve(atom: Atom) -> Atom:
        return atoms.get(atom, atom) if isinstance(atom, Var) else atom

    equations = []
    for equation in program.equations:
        operands = tuple(map(resolve, equation.operands))
        # pvary changes only the type of a value, so without variation it does nothing.
        if equation.primitive is pvary:
            atoms[equation.results[0]] = operands[0]
            continue
        results = tuple(_along(v, NONE) for v in equation.results)
        atoms.update(zip(equation.results, results, strict=True))
        equations.append(_changed(equation, operands, map_programs(equation.params, untyped), results))
    inputs = tuple(map(resolve, program.inputs))
    return replace(program, inputs=inputs).with_equations(equations, map(resolve, program.outputs))
