"""custom_jvp: a function with its own forward rule, from which reverse mode follows by transposing.

    f(x)                      the function itself runs
    jvp(f)                    rule(primals, tangents) -> (results, tangents), linear in tangents
    jit(f), vmap(f)           one equation holding the program of f and the rule, batched if need be
    lowering                  the program, inlined

The rule runs where the derivative is taken, so it may call the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeVar, cast

from rune import dtypes, tree
from rune.core.axes import LaneAxis
from rune.core.evaluate import eval_program
from rune.core.interpreter import Tracer, type_of, use
from rune.core.lists import nonzero_flags, nonzeros, parts, pick, scatter
from rune.core.types import ArrayType, same_layout
from rune.core.values import Params, Value
from rune.dims import Size
from rune.errors import TransformError
from rune.ops.movement import repeat_lane
from rune.ops.promote import opened
from rune.records import dataclass
from rune.transforms.arguments import array_leaves, key_path, unshared
from rune.transforms.batching.batch import batch_flat
from rune.transforms.custom.equations import call_with_rule, primitive_with_rule
from rune.transforms.custom.rules import (
    Arguments,
    CustomFunction,
    P,
    R,
    Rule,
    SymbolicZero,
    as_arrays,
    check_closure,
    on_lanes,
    on_level,
    run_rule,
    symbolic_or_zeros,
    transpose_of_program,
)
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.tree_difference import kind_of, mismatch, results_differ

J = TypeVar("J", bound=Callable[..., object])

KIND = "custom_jvp"


class custom_jvp(CustomFunction[P, R]):
    """Give a function its own jvp rule: a decorator, then `.defjvp` or `.defjvps`.

    nondiff_argnums, nondiff_argnames: arguments that are not differentiated; the rule takes them
        first. They may be any objects, functions included.
    Errors: TransformError if the rule's results do not match the function's, with the path, or if
        the function closes over a value that is being differentiated.

    >>> import rune, rune.numpy as rnp
    >>> @rune.custom_jvp
    ... def log1pexp(x):
    ...     return rnp.log(1.0 + rnp.exp(x))
    >>> log1pexp.defjvps(lambda t, y, x: t * (1.0 - 1.0 / (1.0 + rnp.exp(x))))
    >>> rune.grad(log1pexp)(0.0)
    Array(0.5, f32*[], cpu:0)
    """

    kind = KIND
    rule: Callable[..., object] | None = None
    symbolic_zeros = False

    def defjvp(self, jvp: J, symbolic_zeros: bool = False) -> J:
        """Set the rule, jvp(primals, tangents) -> (results, tangents of the results).

        symbolic_zeros: zero tangents are passed as SymbolicZero objects instead of arrays.
        """
        self.rule, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *rules: Callable[..., object] | None) -> None:
        """Set one rule(tangent, result, *primals) per argument; None if its derivative is 0."""
        # rule(tangent, result, *primals) has no place for arguments that are not differentiated.
        if self.nondiff:
            raise TransformError("custom_jvp: cannot use defjvps with nondiff_argnums (use defjvp)")

        def rule(primals: Sequence[object], tangents: Sequence[object]) -> tuple[Any, Any]:
            result = cast(Callable[..., object], self)(*primals)
            terms = [
                f(t, result, *primals)
                for f, t in zip(rules, tangents, strict=True)
                # Rules whose tangent is zero are not called at all.
                if f is not None and not isinstance(t, SymbolicZero)
            ]
            return result, _sum_of(terms, result)

        self.defjvp(rule, symbolic_zeros=True)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function or, while a derivative is taken, its rule."""
        if self.rule is None:
            raise TransformError(f"{KIND}: cannot call {self.name} (it has no rule)", hint="set one with .defjvp")
        arguments = self.arguments(args, kwargs)
        check_closure(self, arguments)
        if any(map(_is_traced, tree.leaves(arguments.static_values))):
            return _by_operands(self, arguments)
        rule = _Rule(self, arguments)
        outs, out_tree = on_level(
            arguments.leaves, rule.with_tree, lambda xs: call_with_rule(custom_jvp_call, rule, arguments, xs)
        )
        return tree.unflatten(out_tree, outs)


def _sum_of(terms: Sequence[object], result: object) -> Any:
    if not terms:
        return tree.map(lambda y: SymbolicZero(type_of(y).to_tangent()), result)
    total = terms[0]
    for term in terms[1:]:
        total = tree.map(lambda a, b: a + b, total, term)
    return total


# --- traced arguments that are not differentiated -----------------------------------------------


def _is_traced(leaf: object) -> bool:
    return isinstance(opened(leaf), Tracer)


def _by_operands(custom: custom_jvp[..., Any], arguments: Arguments) -> Any:
    """A call in which arguments that are not differentiated contain traced values.

    A rule outlives the trace of its call, so the traced values cannot be part of it: they become
    operands of the equation, where every transformation handles them, and their tangents must be
    zero.
    """
    leaves, treedef = tree.flatten(arguments.static_values)
    is_traced = [_is_traced(x) for x in leaves]
    constants = [None if t else x for x, t in zip(leaves, is_traced)]

    def statics(operands: Sequence[object]) -> tuple[object, ...]:
        values = iter(operands)
        return tree.unflatten(treedef, [next(values) if t else x for x, t in zip(constants, is_traced)])

    places, form = [place for place, _ in arguments.statics], arguments.form()

    def function(operands: Sequence[object], *active: object) -> object:
        return custom.function(*replace(form, statics=tuple(zip(places, statics(operands)))).all(active))

    def rule(primals: Sequence[Sequence[Value]], tangents: Sequence[Sequence[object]]) -> object:
        assert custom.rule is not None
        for value, tangent in zip(primals[0], tangents[0], strict=True):
            if not isinstance(tangent, SymbolicZero):
                _refuse_nondiff(custom.name, type_of(value))
        directions = tangents[1:] if custom.symbolic_zeros else tree.map(_instantiated, tangents[1:])
        return custom.rule(*statics(primals[0]), primals[1:], directions)

    call = custom_jvp(function)
    call.name = custom.name
    call.defjvp(rule, symbolic_zeros=True)
    return call([x for x, t in zip(leaves, is_traced) if t], *arguments.trees(arguments.leaves))


def _instantiated(tangent: object) -> object:
    return tangent.instantiate() if isinstance(tangent, SymbolicZero) else tangent


def _refuse_nondiff(name: str, type: ArrayType) -> NoReturn:
    raise TransformError(
        f"{KIND}: cannot differentiate {name} with respect to {type} "
        "(nondiff_argnums says that this argument is not differentiated)",
        hint="let it be differentiated, or hide its derivative with rune.lax.stop_gradient",
    )


# --- the rule, as the interpreters see it -------------------------------------------------------


class _Rule(Rule[custom_jvp[..., Any]]):
    """The user's rule on flat values: (primals, tangents) -> (results, tangents); None is zero."""

    def __call__(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[list, list]:
        """Flat results and tangents."""
        outs, out_tangents, out_tree = self.with_tree(primals, tangents)
        if self.out_tree is not None and out_tree != self.out_tree:
            self._refuse(results_differ(self.out_tree, out_tree))
        return outs, out_tangents

    def with_tree(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[list, list, tree.TreeDef]:
        """The same, and the tree of the results."""
        custom, arguments = self.custom, self.arguments
        types = [type_of(p).to_tangent() for p in primals]
        full_tangents = [
            symbolic_or_zeros(custom.symbolic_zeros, type) if t is None else t
            for t, type in zip(tangents, types, strict=True)
        ]
        assert custom.rule is not None
        trees = arguments.trees(as_arrays(primals)), arguments.trees(as_arrays(full_tangents))
        rule_result = run_rule(KIND, custom.name, custom.rule, *arguments.static_values, *trees)
        if not isinstance(rule_result, tuple | list) or len(rule_result) != 2:
            self._refuse(f"a pair of results and tangents required, not {kind_of(rule_result)}")
        outs, out_tree = tree.flatten(rule_result[0])
        out_tangents, tangent_tree = tree.flatten(rule_result[1])
        if out_tree != tangent_tree:
            difference = mismatch(
                out_tree,
                tangent_tree,
                "result{} has no tangent".format,
                "tangent{} belongs to no result".format,
                "results {}, and tangents {}",
            )
            self._refuse(difference)
        outs = array_leaves(KIND, outs, out_tree)
        tangent_leaves = [self._checked(o, t, i, out_tree) for i, (o, t) in enumerate(zip(outs, out_tangents))]
        return outs, tangent_leaves, out_tree

    def _checked(self, out: object, tangent: object, number: int, out_tree: tree.TreeDef) -> Any:
        expected_type, tangent = type_of(out).to_tangent(), unshared(opened(tangent))
        actual = type_of(tangent)
        if not same_layout(actual, expected_type):
            path = key_path(number, out_tree)
            self._refuse(f"result{path} is {type_of(out)}, its tangent {actual}")
        is_zero = isinstance(tangent, SymbolicZero) or expected_type.dtype == dtypes.float0
        return None if is_zero else tangent

    def _refuse(self, why: str) -> NoReturn:
        raise TransformError(f"{KIND}: cannot use the rule of {self.custom.name} ({why})")


@dataclass(frozen=True, slots=True, repr=False)
class _OnLanes:
    """A rule on all lanes; every result has lanes, even if it does not depend on them."""

    rule: Callable[..., tuple[list, list]]
    batched: tuple[bool, ...]
    size: Size
    axis: LaneAxis | None

    def __repr__(self) -> str:
        return on_lanes(self.rule)

    def __call__(self, primals: Sequence[Value], tangents: Sequence[Value | None]) -> tuple[list, list]:
        """Flat results and tangents, lanes leading."""
        nonzero: list[bool] = []
        # A symbolic size has another name in each program; the arguments have the current one.
        sizes = (type_of(p).shape[0] for p, b in zip(primals, self.batched) if b)
        size = next(sizes, self.size)

        def one(*values: Value) -> list[Value]:
            lane_primals, lane_tangents = parts(values, len(primals))
            outs, out_tangents = self.rule(lane_primals, scatter(lane_tangents, nonzero_flags(tangents)))
            nonzero.extend(nonzero_flags(out_tangents))
            return [*outs, *nonzeros(out_tangents)]

        lanes = [*self.batched, *pick(self.batched, nonzero_flags(tangents))]
        results, batched = batch_flat(one, size, [*primals, *nonzeros(tangents)], lanes, self.axis)
        results = [x if b else repeat_lane(x, size) for x, b in zip(results, batched, strict=True)]
        # `nonzero` has one entry per result; the tangents that follow the results are fewer.
        outs, out_tangents = parts(results, len(nonzero))
        return outs, scatter(out_tangents, nonzero)


# --- the primitive ------------------------------------------------------------------------------


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    # Partial evaluation comes after jvp, so the rule is no longer needed.
    with use(partial):
        return eval_program(params["program"], args)


custom_jvp_call = primitive_with_rule(
    KIND,
    lambda rule, primals, tangents: rule(primals, tangents),
    _OnLanes,
    transpose=transpose_of_program,
    partial_equation=_partial,
)
