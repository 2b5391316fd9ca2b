"""transpose: run a linear program backwards, from cotangents of outputs to those of inputs.

⟨ȳ, J ẋ⟩ = ⟨Jᵀ ȳ, ẋ⟩. A cotangent of None is a symbolic zero. Equations that do not depend on a
linear input are computed first, forwards; the others are transposed by their primitives' rules,
or skipped if all cotangents are zero. A user's rule (`transposes_zeros`) is called even then, if an
output with a cotangent depends on its results. contributions.py adds up the parts of a cotangent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from rune.array import Array
from rune.core.interpreter import bind, current
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.values import Value, Values
from rune.errors import MissingRule, in_copied_context, set_line
from rune.ops.family import not_linear, types_text
from rune.sharding import Mesh
from rune.sharding.context import leave_unchecked
from rune.transforms.derivatives.contributions import Contributions, Shares

NOT_LINEAR = "the rule of a custom_jvp function must be linear in the tangents"


def backward(program: Program, known: Mapping[Var, Value], cotangents: Values) -> list[Array | None]:
    """Cotangents of the linear inputs (None: zero).

    known: the values of the inputs that are not linear; there is one cotangent for each output
    Errors: MissingRule if a primitive that has to be transposed has no rule.
    """
    # `_backward` sets the line of each equation, which must not stay set if it is interrupted.
    return in_copied_context(_backward, program, known, cotangents)


def _backward(program: Program, known: Mapping[Var, Value], cotangents: Values) -> list[Array | None]:
    if Mesh.has_explicit:
        leave_unchecked()  # a cotangent has the layout of its primal, which the transposes do not know
    env = dict(known)
    linear_equations = _run_forward(program, env)
    sums = Shares() if current().is_typed else Contributions()
    for atom, ct in zip(program.outputs, cotangents, strict=True):
        _contribute(sums, atom, ct, env)
    # Only a user's rule needs the live values, so most programs are not walked for them.
    has_user_rules = any(e.primitive.transposes_zeros for e in linear_equations)
    alive = _alive(program.outputs, cotangents, linear_equations) if has_user_rules else frozenset()
    for equation in reversed(linear_equations):
        is_forced = equation.primitive.transposes_zeros and not alive.isdisjoint(equation.results)
        _transpose_equation(equation, env, sums, is_forced)
    # Each equation took the cotangents of its results; those of the inputs remain.
    return [sums.take(v) for v in program.inputs if v not in known]


def _run_forward(program: Program, env: dict[Var, Any]) -> list[Equation]:
    """Compute the values that depend only on known ones; return the other equations, in order."""
    linear: list[Equation] = []
    for equation in program.equations:
        if any(_is_linear(a, env) for a in equation.operands):
            linear.append(equation)
            continue
        args = [_read(env, a) for a in equation.operands]
        set_line(equation.frame)
        out = bind(equation.primitive, *args, **equation.params)
        outs = out if equation.primitive.multiple_results else (out,)
        env.update(zip(equation.results, outs, strict=True))
    return linear


def _is_linear(atom: Atom, env: Mapping[Var, object]) -> TypeGuard[Var]:
    return isinstance(atom, Var) and atom not in env


def _alive(outputs: Sequence[Atom], cotangents: Values, equations: Sequence[Equation]) -> set[Atom]:
    """All values on which the outputs with a cotangent depend."""
    alive = {atom for atom, ct in zip(outputs, cotangents, strict=True) if ct is not None}
    for equation in reversed(equations):
        if not alive.isdisjoint(equation.results):
            alive.update(equation.operands)
    return alive


def _read(env: Mapping[Var, Any], atom: Atom) -> Value:
    return atom.value if isinstance(atom, Literal) else env[atom]


def _contribute(sums: Contributions, atom: Atom, ct: Value | None, env: Mapping[Var, object]) -> None:
    # A literal or a known value is a constant of the linear map: its cotangent is not needed.
    if ct is not None and _is_linear(atom, env):
        sums.add(atom, ct)


def _transpose_equation(equation: Equation, env: Mapping[Var, Any], sums: Contributions, is_forced: bool) -> None:
    # All readers of the results come later in the program, so these cotangents are complete.
    linear = [_is_linear(a, env) for a in equation.operands]
    cts = sums.of_results(equation, linear)
    if all(ct is None for ct in cts) and not is_forced:
        return
    primitive = equation.primitive
    if primitive.transpose is None:
        raise MissingRule(
            f"transpose: cannot transpose {primitive} (it has no transpose rule)", hint=NOT_LINEAR, frame=equation.frame
        )
    set_line(equation.frame)
    if primitive.linear_in:
        _check_linear(equation, linear)
    inputs = [a.type if is_linear else _read(env, a) for a, is_linear in zip(equation.operands, linear, strict=True)]
    ct = cts if primitive.multiple_results else cts[0]
    out = primitive.transpose(ct, linear, *inputs, **equation.params)
    for atom, value in zip(equation.operands, out, strict=True):
        _contribute(sums, atom, value, env)


def _check_linear(equation: Equation, linear: Sequence[bool]) -> None:
    """Raise TransformError unless the equation is jointly linear in these operands."""
    groups = equation.primitive.linear_in
    dependent = [number for number, is_linear in enumerate(linear) if is_linear]
    if any(set(dependent) <= set(group) for group in groups):
        return
    operation = f"{equation.primitive} of {types_text([a.type for a in equation.operands])}"
    allowed_operands = " or ".join(_operands(group) for group in groups)
    together = " together" * (len(dependent) > 1)
    raise not_linear(operation, f"it is linear in {allowed_operands}, not in {_operands(dependent)}{together}")


def _operands(numbers: Sequence[int]) -> str:
    """`operand 1`, `operands 0 and 2`, counted from 0."""
    return f"operand{'s' * (len(numbers) > 1)} {' and '.join(map(str, numbers))}"
