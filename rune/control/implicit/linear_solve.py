"""custom_linear_solve: the solution of A x = b by a user's function, with exact derivatives.

The equation holds four programs: x -> A x, b -> x, and the same two for the transpose of A. Its
rules never look into the computation of the solution:

    derivative   A dx = db - dA x, solved by the same function
    transpose    of the map from b to x: the solution of Aᵀ y = x̄

Source: Blondel et al. 2022, Efficient and Modular Implicit Differentiation, arXiv:2105.15183.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import tree
from rune.control.programs import run_equation
from rune.control.tracing import Traced, share_captured, tell_one_of, trace
from rune.core.evaluate import eval_program
from rune.core.higher import Calls, HigherOrder, Runs
from rune.core.interpreter import type_of
from rune.core.lists import nonzero_flags, nonzeros, parts, scatter
from rune.core.program import Program, map_programs
from rune.core.sizes import match_sizes, type_with_sizes
from rune.core.types import ArrayType, Axes, same_layout
from rune.core.values import Params, Value
from rune.core.varying import Variation
from rune.dims import Size
from rune.errors import TransformError
from rune.ops import neg, sub
from rune.ops.family import zeros_of
from rune.ops.movement import repeat_lane
from rune.transforms.arguments import require_callable, value_leaves
from rune.transforms.batching.batch import batch_program
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.derivatives.held_programs import jvp_program
from rune.transforms.derivatives.linear_transpose import linear_transpose
from rune.transforms.programs.interned import interned
from rune.transforms.programs.variation import axes_of, typed


def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: object,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """x with matvec(x) = b, computed by solve(matvec, b).

    matvec:           a linear function of a tree like `b`; it may close over traced values
    solve:            solve(matvec, b) -> x, or (x, auxiliary) with `has_aux`; it need not be
                      differentiable, so it may loop until convergence or call into Python
    transpose_solve:  the same for the transposed function; without it there is no reverse mode
    symmetric:        A is its own transpose, so `solve` serves both

    Shapes: b any -> x of the shapes of b.
    Types:  those of b.
    Errors: TransformError if the solution is not a tree like b, or if reverse mode is used without
            transpose_solve.

    >>> import rune, rune.numpy as rnp
    >>> def root(a):
    ...     by_division = lambda matvec, b: b / matvec(rnp.ones_like(b))
    ...     return rune.lax.custom_linear_solve(lambda x: a * x, 6.0, by_division, symmetric=True)
    >>> float(root(2.0)), float(rune.grad(root)(2.0))
    (3.0, -1.5)
    """
    for function in (matvec, solve):
        require_callable("custom_linear_solve", function)
    solve_back = solve if symmetric else transpose_solve
    leaves, treedef = tree.flatten(b)
    b_values = value_leaves("custom_linear_solve", leaves, treedef)
    # Solutions and cotangents take the place of b in the four programs, whether b is weak or not.
    types = [type_of(x).strong() for x in b_values]
    _, argument_tree = tree.flatten((b,))
    vecmat = matvec if symmetric else _transposed(matvec, tree.unflatten(treedef, types))
    functions = [matvec, lambda v: solve(matvec, v)]
    # The transpose of the transpose is the operator itself, so four programs serve any order.
    functions += [] if solve_back is None else [vecmat, lambda v: solve_back(vecmat, v)]
    flats = [Flat("custom_linear_solve", f, argument_tree) for f in functions]
    traces = share_captured([trace(f, types) for f in flats])
    _check(traces, types, has_aux)
    tell_one_of(traces)
    # In the order of `functions`: A x, the solver, and the same two for the transpose, if given.
    operator, program, *transposed_programs = (interned(t.program) for t in traces)
    outs = linear_solve(
        *traces[0].captured,
        *b_values,
        consts=len(traces[0].captured),
        operator=operator,
        program=program,
        transposed=tuple(transposed_programs),
    )
    return tree.unflatten(traces[1].out_tree, outs)


def _transposed(matvec: Callable[[Any], Any], like: object) -> Callable[[Any], Any]:
    """Aᵀ x from A x, for trees like this one."""
    return lambda v: linear_transpose(matvec, like)(v)[0]


def _check(traces: Sequence[Traced], types: Sequence[ArrayType], has_aux: bool) -> None:
    # Only solvers may return auxiliary results; products with A and Aᵀ have none.
    names = ("matvec(x)", "solve(matvec, b)", "its transpose", "transpose_solve(vecmat, b)")
    for name, function, is_solution in zip(names, traces, (False, True, False, True), strict=False):
        outs = function.out_types[: len(types)] if has_aux and is_solution else function.out_types
        if len(outs) != len(types) or not all(map(same_layout, outs, types)):
            out_types = ", ".join(map(str, outs))
            b_types = ", ".join(map(str, types))
            raise TransformError(f"custom_linear_solve: cannot take {name} ({b_types} required, not {out_types})")


# --- rules ------------------------------------------------------------------------------------


def _type_rule(*types: ArrayType, program: Program, **_: object) -> tuple[ArrayType, ...]:
    sizes = match_sizes(program.input_types, types, f"{program.name}: cannot run")
    return tuple(type_with_sizes(t, sizes) for t in program.output_types)


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Params) -> Any:
    """A dx = db - dA x."""
    # A solution is linear in b but not in A, so its tangent needs the solution itself.
    outs = linear_solve(*primals, **params)
    consts, _ = parts(primals, params["consts"])
    dconsts, db = parts(tangents, params["consts"])
    solution = outs[: len(db)]  # auxiliary results follow it, and have no tangents
    aux_tangents = [None] * (len(outs) - len(db))
    da_x = _operator_tangents(params["operator"], consts, dconsts, solution)
    rhs = [_difference(t, m) for t, m in zip(db, da_x, strict=True)]
    if all(x is None for x in rhs):  # nothing to solve for
        return outs, [None] * len(outs)
    full_rhs = [zeros_of(type_of(x)) if r is None else r for r, x in zip(rhs, solution, strict=True)]
    return outs, [*linear_solve(*consts, *full_rhs, **params)[: len(db)], *aux_tangents]


def _operator_tangents(
    operator: Program, consts: Sequence[Value], dconsts: Sequence[Value | None], x: Sequence[Value]
) -> list[Value | None]:
    """dA x, with None for zero."""
    nonzero = (*nonzero_flags(dconsts), *(False for _ in x))
    if not any(nonzero):
        return [None] * len(x)
    program, nonzero_results = jvp_program(operator, nonzero)
    # The first results are A x, which is b; the tangents follow them.
    _, da_x = parts(eval_program(program, [*consts, *x, *nonzeros(dconsts)]), len(x))
    return scatter(da_x, nonzero_results)


def _difference(a: Value | None, b: Value | None) -> Value | None:
    if b is None:
        return a
    return neg(b) if a is None else sub(a, b)


def _transpose(
    cts: Sequence[Value | None],
    linear: Sequence[bool],
    *inputs: Any,
    consts: int,
    operator: Program,
    program: Program,
    transposed: tuple[Program, ...],
) -> list[Value | None]:
    """Aᵀ b̄ = x̄. Auxiliary results have no cotangents, so `zip` ends before them."""
    known, b = parts(inputs, consts)
    if any(linear[:consts]) or not all(linear[consts:]):
        raise TransformError("custom_linear_solve: cannot transpose (it is linear only in b)")
    if not transposed:
        raise TransformError(
            "custom_linear_solve: cannot transpose (no transpose_solve)",
            hint="pass transpose_solve=, or symmetric=True",
        )
    # Aᵀ y = x̄ is a linear solve again, with both pairs of programs exchanged.
    full_cts = [zeros_of(t) if ct is None else ct for ct, t in zip(cts, b, strict=False)]
    outs = linear_solve(
        *known, *full_cts, consts=consts, operator=transposed[0], program=transposed[1], transposed=(operator, program)
    )
    return [*(None for _ in known), *outs[: len(b)]]


def _batch(
    batched: Sequence[bool],
    size: Size,
    *args: Value,
    consts: int,
    operator: Program,
    program: Program,
    transposed: tuple[Program, ...],
) -> tuple[list[Value], list[bool]]:
    """A system for every lane: all programs run on all lanes, and every vector has lanes."""
    known, b = parts(args, consts)
    flags = (*batched[:consts], *(True for _ in b))

    # A solver passes its vectors to and fro: if A, b or x has lanes, the others get them, too.
    def lanes(p: Program) -> Program:
        return batch_program(p, flags, size, (True,) * len(p.outputs))[0]

    b_lanes = [x if is_b else repeat_lane(x, size) for x, is_b in zip(b, batched[consts:])]
    outs = linear_solve(
        *known,
        *b_lanes,
        consts=consts,
        operator=lanes(operator),
        program=lanes(program),
        transposed=tuple(map(lanes, transposed)),
    )
    return outs, [True] * len(outs)


def _calls(
    *args: object, program: Program, operator: Program, transposed: tuple[Program, ...], **_: object
) -> tuple[Calls, ...]:
    """The solver runs; the operator and the transposed programs only serve derivatives."""
    solver_calls = (Calls(p, args, Runs.NEVER) for p in (operator, *transposed))
    return (Calls(program, args, Runs.ONCE), *solver_calls)


def _vary(axes: Sequence[Axes], params: Params) -> Variation:
    """The solution varies as the operator and the right-hand side do."""
    typed_params = map_programs(params, lambda p: typed(p, tuple(axes)))
    return typed_params, axes_of(typed_params["program"].outputs)


linear_solve = HigherOrder(
    "custom_linear_solve",
    "control",
    _type_rule,
    transpose=_transpose,
    batch=_batch,
    calls=_calls,
    multiple_results=True,
    jvp_equation=_jvp,
    run=lambda *args, **params: run_equation(linear_solve, args, params),
    interpret=lambda evaluate, *args, program, **_: evaluate(program, args),
    expand=lambda *args, program, **_: eval_program(program, args),
    vary=_vary,
)
