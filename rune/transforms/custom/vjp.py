"""custom_vjp: a function with its own reverse rule.

    f(x)             the function itself runs
    vjp(f)           fwd(x) -> (result, residuals) runs in its place, and `custom_lin` represents
                     the linear map from tangents; its transpose calls bwd(residuals, cotangent)
    jvp(f)           refused: the rules do not define the linear map on tangents
    jit(f), vmap(f)  one equation holding the program of f and both rules, batched if need be
    lowering         the program, inlined

Both rules run in the context where the derivative is taken, so an outer derivative differentiates
fwd and bwd.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from rune import dtypes, tree
from rune.array import Array
from rune.core.axes import LaneAxis
from rune.core.interpreter import Tracer, is_differentiable, type_of
from rune.core.lists import nonzero_flags, nonzeros, parts, pick, scatter
from rune.core.primitive import Direct
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.dims import Size
from rune.errors import TransformError
from rune.ops.family import reduce_sum
from rune.ops.movement import repeat_lane
from rune.ops.promote import opened
from rune.records import dataclass
from rune.transforms import references
from rune.transforms.arguments import array_leaves, key_path
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
)
from rune.transforms.derivatives.tangents import host_as
from rune.transforms.tree_difference import kind_of, mismatch, results_differ

KIND = "custom_vjp"


class custom_vjp(CustomFunction[P, R]):
    """Give a function its own vjp rule: a decorator, then `.defvjp(fwd, bwd)`.

    nondiff_argnums, nondiff_argnames: arguments that are not differentiated; fwd takes them in
        their places, bwd takes them first. They may be any objects except traced values.
    Errors: TransformError for forward mode; if the trees, shapes or dtypes from the rules do not
        match the function's, with the path; if the function closes over a value that is being
        differentiated.

    >>> import rune, rune.numpy as rnp
    >>> @rune.custom_vjp
    ... def clip_gradient(x):
    ...     return x
    >>> clip_gradient.defvjp(lambda x: (x, None), lambda _, ct: (rnp.clip(ct, -1.0, 1.0),))
    >>> rune.grad(lambda x: 5.0 * clip_gradient(x))(2.0)
    Array(1., f32*[], cpu:0)
    """

    kind = KIND
    fwd: Callable[..., object] | None = None
    bwd: Callable[..., object] | None = None
    symbolic_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., object],
        bwd: Callable[..., object],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set fwd(*args) -> (result, residuals) and bwd(residuals, cotangent) -> cotangents.

        bwd returns a tuple with a cotangent for every differentiated argument; None, for an
        argument or a part of its tree, means zero.

        symbolic_zeros: fwd takes CustomVJPPrimal objects, which say whether the value is
            differentiated, and bwd takes SymbolicZero objects for cotangents that are zero.
        optimize_remat: without effect. In JAX it lets a checkpoint drop unneeded parts of fwd; here
            a checkpoint always recomputes only values that are needed.
        """
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function or, while a derivative is taken, its rules."""
        if self.fwd is None:
            raise TransformError(f"{KIND}: cannot call {self.name} (it has no rule)", hint="set one with .defvjp")
        arguments = self.arguments(args, kwargs)
        check_closure(self, arguments)
        self._refuse_traced(arguments)
        rule = _Rule(self, arguments)

        def differentiate(primals: Sequence[Value], tangents: Sequence[Value]) -> Any:
            outs, out_tangents = linearized(rule, primals, tangents)
            return outs, out_tangents, rule.out_tree

        outs, out_tree = on_level(
            arguments.leaves, differentiate, lambda xs: call_with_rule(custom_vjp_call, rule, arguments, xs)
        )
        return tree.unflatten(out_tree, outs)

    def _refuse_traced(self, arguments: Arguments) -> None:
        # The rule outlives the trace of this call, and bwd takes these arguments as they are; a
        # traced value reaches it as a residual.
        for position, value in arguments.statics:
            if any(isinstance(opened(x), Tracer) for x in tree.leaves(value)):
                raise TransformError(
                    f"{KIND}: cannot take a traced value as argument {position} of {self.name} "
                    "(nondiff_argnums says that it is not differentiated)",
                    hint="let it be differentiated, and give None as its cotangent",
                )


@dataclass(frozen=True, slots=True)
class CustomVJPPrimal:
    """An argument of fwd with `symbolic_zeros`: its value, and whether it is differentiated."""

    value: Any
    perturbed: bool


_NUMBERS = (bool, int, float, complex, references.Ref)


# --- the rules, as the interpreters see them ----------------------------------------------------

# A rule, of one call or on lanes, has two parts, both on flat values; None is a zero cotangent:
#     forward(primals, perturbed) -> (results, residuals, pullback)
#     pullback(residuals, cotangents of the results) -> cotangents of the primals


class _Rule(Rule[custom_vjp[..., Any]]):
    """The user's fwd on flat values."""

    def forward(
        self, primals: Sequence[Value], perturbed: Sequence[bool]
    ) -> tuple[list[Value], list[Value], _Pullback]:
        """Flat results, flat residuals, and the pullback from these and cotangents."""
        leaves = as_arrays(primals)
        if self.custom.symbolic_zeros:
            leaves = list(map(CustomVJPPrimal, leaves, perturbed))
        assert self.custom.fwd is not None
        args = self.arguments.all(self.arguments.trees(leaves))
        fwd_result = run_rule(KIND, self.custom.name, self.custom.fwd, *args)
        if not isinstance(fwd_result, tuple | list) or len(fwd_result) != 2:
            kind = kind_of(fwd_result)
            self.refuse("fwd", f"a pair of result and residuals required, not {kind}")
        outs, out_tree = tree.flatten(fwd_result[0])
        if self.out_tree is not None and out_tree != self.out_tree:
            self.refuse("fwd", results_differ(self.out_tree, out_tree))
        # bwd takes trees, but between the rules there are only flat values of the interpreters.
        self.out_tree = out_tree
        leaves, residual_tree = tree.flatten(fwd_result[1])
        # As traced values Python numbers would be of no use to a bwd that branches on them.
        numbers = {i: leaf for i, leaf in enumerate(leaves) if type(leaf) in _NUMBERS}
        outs = array_leaves(KIND, outs, out_tree)
        arrays = array_leaves(KIND, [0 if i in numbers else x for i, x in enumerate(leaves)], residual_tree)
        residuals = [x for i, x in enumerate(arrays) if i not in numbers]
        out_types, in_types = tuple(map(type_of, outs)), tuple(map(type_of, primals))
        return outs, residuals, _Pullback(self, residual_tree, numbers, out_tree, out_types, in_types)

    def refuse(self, which: str, why: str) -> NoReturn:
        """Errors: TransformError, always."""
        raise TransformError(f"{KIND}: cannot use the {which} rule of {self.custom.name} ({why})")


@dataclass(frozen=True, slots=True, repr=False)
class _Pullback:
    """The user's bwd on flat values."""

    rule: _Rule
    residual_tree: tree.TreeDef
    numbers: Mapping[int, object]  # leaves of that tree that are Python numbers or references
    out_tree: tree.TreeDef
    out_types: tuple[ArrayType, ...]
    in_types: tuple[ArrayType, ...]

    def __repr__(self) -> str:
        return f"<bwd of {self.rule.custom.name}>"

    def __call__(self, residuals: Sequence[Value], cts: Sequence[Value | None]) -> list[Value | None]:
        """Cotangents of the arguments, None for zero."""
        custom, arguments = self.rule.custom, self.rule.arguments
        full_cts = [
            symbolic_or_zeros(custom.symbolic_zeros, t.to_tangent()) if ct is None else ct
            for t, ct in zip(self.out_types, cts, strict=True)
        ]
        assert custom.bwd is not None
        ct = tree.unflatten(self.out_tree, as_arrays(full_cts))
        bwd_args = (*arguments.static_values, self._residuals(as_arrays(residuals)), ct)
        bwd_result = run_rule(KIND, custom.name, custom.bwd, *bwd_args)
        # As in JAX, a list is accepted for the tuple.
        leaves = self._leaves(tuple(bwd_result) if isinstance(bwd_result, list) else bwd_result)
        return [self._checked(i, t, ct) for i, (t, ct) in enumerate(zip(self.in_types, leaves))]

    def _residuals(self, arrays: Sequence[Array]) -> object:
        """The tree that fwd returned."""
        leaves = iter(arrays)
        count = self.residual_tree.num_leaves
        return tree.unflatten(
            self.residual_tree, [self.numbers[i] if i in self.numbers else next(leaves) for i in range(count)]
        )

    def _leaves(self, bwd_result: object) -> list[Array]:
        """One cotangent per leaf of the arguments; None may replace a whole part of the tree."""
        arguments = self.rule.arguments.trees(self.in_types)
        try:
            if isinstance(bwd_result, tuple) and len(bwd_result) == len(arguments):
                cts = tree.broadcast_prefix(bwd_result, arguments, is_leaf=lambda x: x is None)
                types = tree.leaves(arguments)
                return [ct for ct, t in zip(cts, types, strict=True) if not isinstance(t, references.Ref)]
        # The tree does not fit; the message below says where.
        except ValueError:
            pass
        difference = mismatch(
            tree.structure(arguments),
            tree.structure(bwd_result),
            "argument{} has no cotangent".format,
            "cotangent{} belongs to no argument".format,
            "a tuple like {} required, not {}",
        )
        return self.rule.refuse("bwd", difference)

    def _checked(self, number: int, type: ArrayType, ct: Value) -> Any:
        """The cotangent of an argument of this type; None for zero."""
        # An integer has no cotangent, whatever bwd returns for it.
        if ct is None or isinstance(ct, SymbolicZero) or type.dtype not in dtypes.INEXACT:
            return None
        ct = host_as(ct, type)
        actual = type_of(ct)
        if not same_layout(actual, type):
            path = key_path(number, self.rule.arguments.treedef)
            self.rule.refuse("bwd", f"argument{path} is {type}, its cotangent {actual}")
        excess = actual.varying - type.varying
        if excess:
            path, axes = key_path(number, self.rule.arguments.treedef), ", ".join(sorted(map(repr, excess)))
            self.rule.refuse("bwd", f"argument{path} is the same along {axes}, its cotangent is not; psum it there")
        return ct


@dataclass(frozen=True, slots=True, repr=False)
class _OnLanes:
    """A rule on all lanes; every result has lanes, even if it does not depend on them."""

    rule: _Rule | _OnLanes
    batched: tuple[bool, ...]
    size: Size
    axis: LaneAxis | None

    def __repr__(self) -> str:
        return on_lanes(self.rule)

    def forward(
        self, primals: Sequence[Value], perturbed: Sequence[bool]
    ) -> tuple[list[Value], list[Value], _PullbackOnLanes]:
        """Results and residuals, lanes leading, and the pullback of all lanes."""
        one_lane: list[Any] = []  # the number of results, and the pullback of one lane
        # A symbolic size has another name in each program; the arguments have the current one.
        sizes = (type_of(p).shape[0] for p, b in zip(primals, self.batched) if b)
        size = next(sizes, self.size)

        def one(*values: Value) -> list[Value]:
            outs, residuals, pullback = self.rule.forward(values, perturbed)
            one_lane.extend((len(outs), pullback))
            return [*outs, *residuals]

        results, lanes = batch_flat(one, size, primals, self.batched, self.axis)
        count, pullback = one_lane
        outs = [_with_lanes(o, b, size) for o, b in zip(results[:count], lanes)]
        return (
            outs,
            results[count:],
            _PullbackOnLanes(pullback, self.batched, tuple(lanes[count:]), self.size, self.axis),
        )


@dataclass(frozen=True, slots=True, repr=False)
class _PullbackOnLanes:
    """A pullback on all lanes; an argument without lanes gets the sum over all."""

    pullback: _Pullback | _PullbackOnLanes
    batched: tuple[bool, ...]  # which arguments have lanes
    residuals: tuple[bool, ...]  # which residuals have lanes
    size: Size
    axis: LaneAxis | None

    def __repr__(self) -> str:
        return on_lanes(self.pullback)

    def __call__(self, residuals: Sequence[Value], cts: Sequence[Value | None]) -> list[Value | None]:
        """Cotangents of the arguments, None for zero."""
        nonzero: list[bool] = []
        # A symbolic size has another name in each program; the cotangents have the current one.
        size = next((type_of(ct).shape[0] for ct in cts if ct is not None), self.size)

        def one(*values: Value) -> list[Value]:
            lane_residuals, lane_cts = parts(values, len(residuals))
            lane_in_cts = self.pullback(lane_residuals, scatter(lane_cts, nonzero_flags(cts)))
            nonzero.extend(nonzero_flags(lane_in_cts))
            return nonzeros(lane_in_cts)

        nonzero_cts = nonzeros(cts)
        lanes = [*self.residuals, *(True for _ in nonzero_cts)]
        results, batched = batch_flat(one, size, [*residuals, *nonzero_cts], lanes, self.axis)
        nonzero_in_cts = iter(zip(results, batched, strict=True))
        return [
            _of_argument(has_lanes, *next(nonzero_in_cts), size) if n else None
            for n, has_lanes in zip(nonzero, self.batched, strict=True)
        ]


def _of_argument(is_batched: bool, ct: Value, has_lanes: bool, size: Size) -> Value:
    """The cotangent of an argument that has lanes, or that all lanes share."""
    if is_batched:
        return _with_lanes(ct, has_lanes, size)
    # The cotangents of results have lanes, and so do all values that are linear in them. A value
    # without lanes is not a derivative but a new value, such as the next scale of an 8-bit product:
    # it counts once, as in JAX.
    return reduce_sum(ct, axes=(0,)) if has_lanes else ct


def _with_lanes(value: Value, is_batched: bool, size: Size) -> Value:
    return value if is_batched else repeat_lane(value, size)


# --- the linear map -----------------------------------------------------------------------------


def linearized(
    rule: _Rule | _OnLanes, primals: Sequence[Value], tangents: Sequence[Value | None]
) -> tuple[list[Value], list[Value | None]]:
    """Results, and their tangents: an unknown linear map of the nonzero tangents."""
    perturbed = nonzero_flags(tangents)
    outs, residuals, pullback = rule.forward(primals, perturbed)
    active = tuple(map(is_differentiable, outs))
    # A linear operation whose only rule is its transpose, which calls bwd. Zero tangents are left
    # out, so that nothing is computed for them.
    linear_results = custom_lin(
        *residuals,
        *nonzeros(tangents),
        pullback=pullback,
        residuals=len(residuals),
        perturbed=perturbed,
        types=tuple(type_of(o).strong() for o in pick(outs, active)),
        active=active,
    )
    return outs, scatter(linear_results, active)


def _refuse_forward(*_: object, pullback: object, **__: object) -> NoReturn:
    raise TransformError(
        f"{KIND}: cannot apply forward-mode differentiation (jvp) to a custom_vjp function "
        f"({pullback!r} is a rule for cotangents only)",
        hint="use reverse mode (grad, vjp, jacrev), or give the function a custom_jvp rule",
    )


def _lin_transpose(
    cts: Sequence[Value],
    linear: Sequence[bool],
    *inputs: Any,
    pullback: _Pullback | _PullbackOnLanes,
    residuals: int,
    perturbed: tuple[bool, ...],
    active: tuple[bool, ...],
    **_: object,
) -> list[Value | None]:
    in_cts = pullback(inputs[:residuals], scatter(cts, active))
    return [None] * residuals + pick(in_cts, perturbed)


custom_lin = Direct(
    "custom_lin",
    "program",
    lambda *inputs, types, **_: types,
    transpose=_lin_transpose,
    transposes_zeros=True,  # a bwd may return something other than a derivative, such as a new scale
    multiple_results=True,
    run=_refuse_forward,
    batch=lambda batched, size, *args, **params: _refuse_forward(**params),
    jvp_equation=lambda primals, tangents, params: _refuse_forward(**params),
    expand=_refuse_forward,
    vary=lambda axes, params: (params, [t.varying for t in params["types"]]),
)


# --- the primitive ------------------------------------------------------------------------------


custom_vjp_call = primitive_with_rule(KIND, linearized, _OnLanes)
