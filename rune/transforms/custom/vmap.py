"""custom_vmap: a function with its own rule for lanes.

    f(x)                the function itself runs
    vmap(f)             rule(axis_size, in_batched, x) -> (result, out_batched), outside the vmap
    jit(f)              one equation holding the program of f and the rule
    jvp(f)              the derivative of f; under vmap, that of the rule
    grad(f), vmapped    the rule for the values, and the derivative of f for the cotangents
    lowering            the program, inlined

Under several vmaps the innermost calls the rule, and the next one batches the rule's operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rune import tree
from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder
from rune.core.interpreter import is_differentiable, is_evaluating, type_of, use
from rune.core.lists import nonzero_flags, nonzeros, parts, scatter
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Params, Value
from rune.dims import Size
from rune.errors import TransformError
from rune.ops.family import zeros_like
from rune.ops.movement import repeat_lane
from rune.records import dataclass
from rune.transforms.arguments import array_leaves, as_value
from rune.transforms.custom.rules import Arguments, CustomFunction, P, R, Rule, run_rule, transpose_of_program
from rune.transforms.derivatives.held_programs import jvp_program
from rune.transforms.derivatives.jvp import jvp_flat
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs import call_rules
from rune.transforms.tree_difference import results_differ

KIND = "custom_vmap"


class custom_vmap(CustomFunction[P, R]):
    """Give a function its own batch rule: a decorator, then `.def_vmap(rule)`.

    rule(axis_size, in_batched, *args) -> (result, out_batched): in_batched has for each argument a
    tree of bools, whether a leaf has lanes, which then lead; out_batched has the same for the
    result.

    Errors: TransformError without a rule, for a rule whose trees differ from the function's, and
            for lanes of a value that the function closes over.

    >>> import rune, rune.numpy as rnp
    >>> @rune.custom_vmap
    ... def product(a, x):
    ...     return a @ x
    >>> @product.def_vmap
    ... def rule(axis_size, in_batched, a, x):
    ...     if in_batched == [False, True]:
    ...         return x @ a.T, True
    ...     return rune.vmap(rnp.matmul, [0 if b else None for b in in_batched])(a, x), True
    >>> rune.vmap(product, (None, 0))(rnp.eye(2), rnp.ones((3, 2))).shape
    (3, 2)
    """

    kind = KIND
    rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[P, R]):
        super().__init__(fun)

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule; a decorator, which gives the rule back."""
        self.rule = rule
        return rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function; on lanes, its rule."""
        if self.rule is None:
            raise TransformError(f"{KIND}: cannot call {self.name} (it has no rule)", hint="set one with .def_vmap")
        arguments = self.arguments(args, kwargs)
        flat = self.flat(arguments)
        if is_evaluating():
            outs = flat(*map(as_value, arguments.leaves))
            return tree.unflatten(flat.out_tree, outs)
        # Traced under a derivative, too: the equation keeps the rule for a vmap further out.
        closure = stage(flat, [type_of(x) for x in arguments.leaves], self.name)
        program, operands = call_rules.closed_call(closure.program, {}, [*closure.captured, *arguments.leaves])
        rule = _Rule(self, arguments, flat.out_tree, len(operands) - len(arguments.leaves))
        return tree.unflatten(flat.out_tree, custom_vmap_call(*operands, program=program, rule=rule))


# --- the rules, as the interpreters see them ----------------------------------------------------


class _Rule(Rule[custom_vmap]):
    """The user's rule on flat values: (size, batched, values) -> (results, which have lanes)."""

    def __init__(self, custom: custom_vmap, arguments: Arguments, out_tree: tree.TreeDef, hidden_count: int):
        super().__init__(custom, arguments)
        self.out_tree, self.hidden_count = out_tree, hidden_count

    def __call__(self, size: Size, batched: Sequence[bool], values: Sequence[Value]) -> tuple[list[Any], list[bool]]:
        """Flat results, and which of them have lanes."""
        # The rule takes only arguments, so lanes of other values would be lost.
        if any(batched[: self.hidden_count]):
            self.refuse("it closes over a value that has lanes")
        args = self.arguments.trees([*map(as_value, values[self.hidden_count :])])
        in_batched = list(self.arguments.trees(batched[self.hidden_count :]))
        assert self.custom.rule is not None
        answer = run_rule(KIND, self.custom.name, self.custom.rule, size, in_batched, *args)
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            self.refuse("a pair of result and out_batched required")
        outs, out_tree = tree.flatten(answer[0])
        if self.out_tree is not None and out_tree != self.out_tree:
            self.refuse(results_differ(self.out_tree, out_tree))
        out_batched, batched_tree = tree.flatten(answer[1])
        if batched_tree != out_tree:
            self.refuse(f"its result is {out_tree}, and out_batched {batched_tree}")
        outs, out_batched = array_leaves(KIND, outs, out_tree), [bool(b) for b in out_batched]
        for out, is_batched in zip(outs, out_batched, strict=True):
            if is_batched and type_of(out).shape[:1] != (size,):
                self.refuse(f"{size} lanes required of the result {type_of(out)}")
        return outs, out_batched

    def refuse(self, why: str) -> NoReturn:
        """Errors: TransformError, always."""
        raise TransformError(f"{KIND}: cannot use the rule of {self.custom.name} ({why})")


@dataclass(frozen=True, slots=True, repr=False)
class _JvpRule:
    """The derivative of a rule, on primals and their nonzero tangents.

    program: the program of the primals, whose rule is `rule`.
    """

    program: Program
    rule: _Rule | _JvpRule
    nonzero: tuple[bool, ...]

    def __repr__(self) -> str:
        return f"<jvp of {repr(self.rule)[1:-1]}>"

    def __call__(self, size: Size, batched: Sequence[bool], values: Sequence[Value]) -> tuple[list[Any], list[bool]]:
        """Results, tangents of those that have one, and which of all have lanes."""
        count = len(self.nonzero)
        tangents, lanes = iter(values[count:]), iter(batched[count:])
        # A primal and its tangent are one value of the function, so both have lanes or neither has.
        primals, directions, lane_flags = [], [], []
        for primal, is_batched, has_tangent in zip(values[:count], batched[:count], self.nonzero, strict=True):
            tangent, on_lanes = (next(tangents), next(lanes)) if has_tangent else (None, False)
            lane_flags.append(is_batched or on_lanes)
            primals.append(_with_lanes(primal, lane_flags[-1] and not is_batched, size))
            directions.append(None if tangent is None else _with_lanes(tangent, lane_flags[-1] and not on_lanes, size))
        out_batched: list[bool] = []

        def on_primals(*xs: Value) -> list[Value]:
            outs, out_flags = self.rule(size, lane_flags, xs)
            out_batched[:] = out_flags
            return outs

        outs, out_tangents = jvp_flat(on_primals, primals, directions)
        pairs = [(o, t, b) for o, t, b in zip(outs, out_tangents, out_batched, strict=True) if is_differentiable(o)]
        # The equation has a tangent for every differentiable result, zero or not.
        full_tangents = [zeros_like(o) if t is None else t for o, t, _ in pairs]
        return [*outs, *full_tangents], [*out_batched, *(b for *_, b in pairs)]


def _with_lanes(value: Value, needs_lanes: bool, size: Size) -> Any:
    return repeat_lane(value, size) if needs_lanes else value


# --- the primitive ------------------------------------------------------------------------------


def _jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Params) -> Any:
    program: Program = params["program"]
    # Every differentiable result has a tangent, since the rule on lanes returns them all.
    nonzero, active = nonzero_flags(tangents), tuple(map(is_differentiable, program.outputs))
    rewritten, out_nonzero = jvp_program(program, nonzero, active)
    rule = _JvpRule(program, params["rule"], nonzero)
    outs = custom_vmap_call(*primals, *nonzeros(tangents), program=rewritten, rule=rule)
    values, out_tangents = parts(outs, len(program.outputs))
    return values, scatter(out_tangents, out_nonzero)


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    rule = params["rule"]
    with use(partial):
        outs = eval_program(params["program"], args)
    if not isinstance(rule, _JvpRule) or any(unknown[: len(rule.nonzero)]):
        return outs
    # The values are known: the rule computes them on lanes, the function only the tangents.
    values = custom_vmap_call(*args[: len(rule.nonzero)], program=rule.program, rule=rule.rule)
    return [*values, *outs[len(values) :]]


custom_vmap_call = HigherOrder(
    "custom_vmap",
    "program",
    call_rules.type_rule,
    calls=call_rules.calls,
    transpose=transpose_of_program,
    batch=lambda batched, size, *args, program, rule: rule(size, batched, args),
    multiple_results=True,
    run=call_rules.run,
    interpret=call_rules.interpret,
    jvp_equation=_jvp,
    partial_equation=_partial,
    vary=call_rules.vary,
    jax_names={"call": "program"},
)
