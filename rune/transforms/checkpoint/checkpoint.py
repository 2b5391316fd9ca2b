"""checkpoint: save fewer residuals for the backward pass, and recompute the others.

Partial evaluation of a checkpoint runs the forward pass and writes down one equation that holds
the whole computation again; its operands, the residuals, are the inputs and the values that the
policy saves. Its transpose is a checkpoint too, so derivatives of every order save as little.

    known     known inputs -> known results, saved values                 runs now
    unknown   known inputs, saved values, tangents -> unknown results     recomputes the others

Compiled in one program, forward and recomputed values would be merged, since they are equal; so the
recomputation is a separate step, after the cotangents that it needs (`prevent_cse`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, overload

from rune import config, tree
from rune.core.dead_code import prune
from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder
from rune.core.interpreter import type_of
from rune.core.lists import merge, omit, parts, pick
from rune.core.memo import per_program
from rune.core.program import Atom, Equation, Program, Var, substitute
from rune.core.side_effects import effect_of
from rune.core.staging import stage
from rune.core.values import Params, Value
from rune.errors import TransformError
from rune.ops.branch import apart_as_branch
from rune.records import dataclass
from rune.transforms import references
from rune.transforms.arguments import (
    array_leaves,
    function_name,
    named,
    refuse_other,
    require_callable,
    unshared,
    value_leaves,
)
from rune.transforms.checkpoint.policies import Policy, Saves, as_policy, name_primitive
from rune.transforms.checkpoint.saved_values import split_kept
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.derivatives.held_programs import split_program
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.programs import call_rules

P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")


@overload
def checkpoint(
    fun: Callable[P, R],
    *,
    prevent_cse: bool = ...,
    policy: Saves | None = ...,
    static_argnums: int | Sequence[int] = ...,
    concrete: bool = ...,
) -> Callable[P, R]: ...


@overload
def checkpoint(
    fun: None = None,
    *,
    prevent_cse: bool = ...,
    policy: Saves | None = ...,
    static_argnums: int | Sequence[int] = ...,
    concrete: bool = ...,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def checkpoint(
    fun: Callable[..., object] | None = None,
    *,
    prevent_cse: bool = True,
    policy: Saves | None = None,
    static_argnums: int | Sequence[int] = (),
    concrete: bool = False,
) -> Any:
    """The same function, but its derivative saves only the arguments and recomputes other values.

    policy:          which other values are saved (rune.checkpoint_policies); None for no others.
    prevent_cse:     False if nothing can merge forward and recomputed values, as in a scan.
    static_argnums:  arguments that are Python values.
    Errors:          TransformError if `policy` is not a function, or an argument is out of range.

    >>> import rune, rune.numpy as rnp
    >>> rune.grad(rune.checkpoint(lambda x: rnp.sin(rnp.sin(x))))(0.0)
    Array(1., f32*[], cpu:0)
    """
    refuse_other("checkpoint", concrete=(concrete, False))
    # The forward pass recomputes nothing; `_partial` sets it for the part that does.
    options = {"prevent_cse": prevent_cse, "policy": as_policy(policy), "recomputes": False}
    static = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    if fun is None:
        return lambda f: _checkpointed(f, static, options)
    return _checkpointed(fun, static, options)


def _checkpointed(
    function: Callable[..., object], static: Sequence[int], options: Mapping[str, object]
) -> Callable[..., Any]:
    require_callable("checkpoint", function)

    def checkpointed(*args: object, **kwargs: object) -> Any:
        statics = _statics(static, args)
        dynamic = references.as_nodes([x for i, x in enumerate(args) if i not in statics])

        def call(dynamic_args: list[Value], options: dict[str, object]) -> object:
            full_args = list(dynamic_args)
            # In ascending order, so that each position is the one in the full list.
            for i, value in statics.items():
                full_args.insert(i, value)
            return function(*full_args, **options)

        arguments = (dynamic, references.as_nodes(kwargs))
        return references.threaded(lambda refs: _called(call, arguments, refs, function_name(function), options))

    return named(checkpointed, function, "checkpoint")


def _called(
    call: Callable[..., R], arguments: object, refs: Sequence[references.Ref], name: str, options: Mapping[str, object]
) -> R:
    """The result of a call that carries, and writes, the values of `refs`."""

    def beside(arguments: Sequence[object], values: Sequence[Value]) -> tuple[R, Sequence[Value]]:
        with references.Frame("checkpoint", refs, values) as frame:
            result = call(*arguments)
        references.require_none("checkpoint", result)
        return result, frame.values

    # The values of references are arguments too, so that derivatives pass through them.
    leaves, treedef = tree.flatten((arguments, references.values_of(refs)))
    leaves = [*map(unshared, value_leaves("checkpoint", leaves, treedef))]
    flat = Flat("checkpoint", beside, treedef)
    closure = stage(flat, [type_of(x) for x in leaves], name)
    outs = call_rules.bind_call(checkpoint_primitive, options, closure.program, {}, [*closure.captured, *leaves])
    result, values = tree.unflatten(flat.out_tree, outs)
    references.write_all(refs, values)
    return result


def _statics(numbers: Sequence[int], args: Sequence[object]) -> dict[int, Any]:
    count = len(args)
    # Negative numbers count from the last argument, as in JAX.
    for number in numbers:
        if not -count <= number < count:
            raise TransformError(f"checkpoint: cannot find static argument {number} ({count} positional arguments)")
    return {i: args[i] for i in sorted(n % count for n in numbers)}


def checkpoint_name(x: X, name: str) -> X:
    """The values of `x` under a name, for the policies of checkpoint that select by name.

    Errors: ArgumentError if an argument is not an array.

    >>> import rune, rune.numpy as rnp
    >>> rune.checkpoint_name(rnp.ones(2), "activations")
    Array([1., 1.], f32[2], cpu:0)
    """
    leaves, treedef = tree.flatten(x)
    leaves = array_leaves("checkpoint_name", leaves, treedef)
    return tree.unflatten(treedef, [name_primitive(x, name=name) for x in leaves])


# --- which values are saved ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SplitCheckpoint:
    """A program split by which inputs are known; most of the known part is recomputed.

    known:    known inputs -> known outputs, saved values
    unknown:  known inputs (those of `inputs`), saved values, unknown inputs -> unknown outputs
    """

    known: Program
    unknown: Program
    inputs: tuple[int, ...]
    known_outputs: tuple[bool, ...]
    recomputes: bool  # whether `unknown` recomputes anything


@per_program
def split_known(program: Program, unknown: tuple[bool, ...], policy: Policy) -> SplitCheckpoint:
    """Partial evaluation of a program, saving the known values that the policy selects."""
    split = split_program(program, unknown)
    forward, recomputation, saved_values = split_kept(split.known, lambda e: _is_saved(e, policy))
    count, inputs = sum(split.known_outputs), recomputation.inputs[: len(forward.inputs)]
    # The residuals of the unknown part: known inputs, or values that `recomputation` computes from
    # these and from saved values. Only values that this computation reads become operands.
    residuals = split.residuals(inputs, recomputation.outputs)
    recomputation, read = prune(replace(recomputation, outputs=tuple(residuals)), [True] * len(residuals))
    read_inputs, read_saved = read[: len(inputs)], read[len(inputs) :]
    unknown_part = split.unknown
    unknown_program = replace(
        recomputation,
        inputs=(*recomputation.inputs, *unknown_part.inputs[len(residuals) :]),
        outputs=unknown_part.outputs,
        name=f"{program.name}_again",
    )
    substitutes: dict[Var, Atom] = dict(zip(unknown_part.inputs, residuals, strict=False))
    unknown_program = substitute(unknown_program, substitutes, (*recomputation.equations, *unknown_part.equations))
    outputs = (*forward.outputs[:count], *pick(saved_values, read_saved))
    known = replace(forward, outputs=outputs, name=f"{program.name}_known")
    # Callers pass every known input, so the program has all of them, used or not.
    known = replace(prune(known, [True] * len(outputs))[0], inputs=forward.inputs)
    numbers = tuple(i for i, r in enumerate(read_inputs) if r)
    return SplitCheckpoint(known, unknown_program, numbers, split.known_outputs, bool(recomputation.equations))


def _is_saved(equation: Equation, policy: Policy) -> bool:
    """Whether results are saved: by the policy, or because a side effect must not repeat."""
    types = (a.type for a in equation.operands)
    return effect_of(equation) is not None or policy(equation.primitive, *types, **equation.params)


# --- the primitive --------------------------------------------------------------------------------


def _partial(partial: Partial, args: Sequence[Value], unknown: Sequence[bool], params: Params) -> list[Value]:
    program: Program = params["program"]
    split = split_known(program, tuple(unknown), params["policy"])
    known_args = omit(args, unknown)
    known_outs, saved_values = parts(call_rules.evaluated(split.known, known_args), sum(split.known_outputs))
    sizes = call_rules.sizes_of(program, [type_of(a) for a in args])
    # The residuals are in the operands of the equation; nothing else of the forward pass is saved.
    inputs = [*(known_args[i] for i in split.inputs), *saved_values, *pick(args, unknown)]
    closed_program, operands = call_rules.closed_call(split.unknown, sizes, inputs)
    equation_params = {**params, "program": closed_program, "recomputes": split.recomputes}
    return merge(split.known_outputs, known_outs, partial.write(checkpoint_primitive, operands, equation_params))


def _run(*args: Value, program: Program, recomputes: bool, **_: object) -> list[Value]:
    if not recomputes:
        return call_rules.evaluated(program, args)
    with config.setting(check_keys=False):  # repeating the same draws does not use a key twice
        return call_rules.evaluated(program, args)


def _expand(*args: Value, program: Program, policy: Policy, prevent_cse: bool, recomputes: bool) -> list[Value]:
    if prevent_cse and recomputes:
        return apart(*args, program=program)
    return eval_program(program, args)


# The recomputation as a step separate from the forward pass, which no pass merges with it. Only
# `_expand` writes it, when all derivatives have been taken, so it has no rules for them.
apart = HigherOrder(
    "apart",
    "program",
    call_rules.type_rule,
    calls=call_rules.calls,
    multiple_results=True,
    expand=apart_as_branch,
    run=lambda *args, program: eval_program(program, args),
    interpret=call_rules.interpret,
    series=call_rules.series,
    vary=call_rules.vary,
)


checkpoint_primitive = HigherOrder(
    "checkpoint",
    "program",
    call_rules.type_rule,
    calls=call_rules.calls,
    transpose=call_rules.transpose_rule(lambda: checkpoint_primitive),
    batch=call_rules.batch_rule(lambda: checkpoint_primitive),
    multiple_results=True,
    run=_run,
    interpret=call_rules.interpret,
    series=call_rules.series,
    jvp_equation=call_rules.jvp_rule(lambda: checkpoint_primitive),
    partial_equation=_partial,
    dead_code=call_rules.dead_code,
    expand=_expand,
    vary=call_rules.vary,
    jax_names={"jaxpr": lambda params: params["program"].jaxpr},
)
