"""The equation of a call with a rule: the function's program, and the rule beside it.

custom_jvp and custom_vjp write the same equation. They differ in what a derivative asks of the
rule, and in how a rule runs on lanes.

Invariant: the first `hidden` operands are values that the function closes over, and witnesses of
its sizes. The rule does not take them, and they have no derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rune.core.axes import LaneAxis, own_axis
from rune.core.higher import HigherOrder
from rune.core.interpreter import is_evaluating, type_of
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.dims import Size
from rune.transforms.batching.batch import batch_program
from rune.transforms.custom.rules import Arguments, Rule, refuse_hidden, require_types
from rune.transforms.programs import call_rules
from rune.transforms.programs.size_witnesses import own_size

# differentiate(rule, primals, tangents) -> (results, their tangents)
Differentiate = Callable[[Any, Sequence[Value], Sequence[Value | None]], tuple[Sequence[Any], Sequence[Any]]]
# on_lanes(rule, which arguments have lanes, how many, their axis) -> a rule on all lanes
OnLanes = Callable[[Any, tuple[bool, ...], Size, LaneAxis | None], object]


def call_with_rule(
    primitive: HigherOrder, rule: Rule[Any], arguments: Arguments, leaves: Sequence[Value]
) -> tuple[list[Any], Any]:
    """Flat results of a call that nothing differentiates, and their tree."""
    custom = rule.custom
    flat = custom.flat(arguments)
    if is_evaluating():  # nothing is traced, so no equation with the rule is needed
        return flat(*leaves), flat.out_tree
    closure = stage(flat, [type_of(x) for x in leaves], custom.name)
    program, operands = call_rules.closed_call(closure.program, {}, [*closure.captured, *leaves])
    rule.out_tree = flat.out_tree
    outs = primitive(*operands, program=program, rule=rule, hidden=len(operands) - len(leaves))
    return outs, flat.out_tree


def primitive_with_rule(kind: str, differentiate: Differentiate, on_lanes: OnLanes, **fields: Any) -> HigherOrder:
    """The primitive of such equations; `fields` are the rules that only one kind has."""

    def jvp(primals: Sequence[Value], tangents: Sequence[Value | None], params: Mapping[str, Any]) -> Any:
        hidden, program = params["hidden"], params["program"]
        for value, tangent in zip(primals[:hidden], tangents):
            if tangent is not None:
                refuse_hidden(kind, program.name, type_of(value))
        outs, out_tangents = differentiate(params["rule"], primals[hidden:], tangents[hidden:])
        # Later equations were traced for the types of the function, so the rule's results must fit.
        expected_types = call_rules.type_rule(*map(type_of, primals), program=program)
        require_types(kind, program.name, expected_types, outs)
        return outs, out_tangents

    def batch(
        batched: Sequence[bool], size: Size, *args: Value, program: Program, rule: object, hidden: int
    ) -> tuple[Any, tuple[bool, ...]]:
        # The rule gives every result lanes, even one that is the same on all; so must the function.
        lanes = (True,) * len(program.outputs)
        rewritten, _ = batch_program(program, tuple(batched), own_size(size, program), lanes)
        closed_program, operands = call_rules.closed_call(rewritten, {}, args)
        lane_rule = on_lanes(rule, tuple(batched[hidden:]), size, own_axis())
        more = hidden + len(operands) - len(args)  # batching may have added witnesses in front
        return primitive(*operands, program=closed_program, rule=lane_rule, hidden=more), lanes

    primitive = HigherOrder(
        kind,
        "program",
        call_rules.type_rule,
        calls=call_rules.calls,
        batch=batch,
        multiple_results=True,
        run=call_rules.run,
        interpret=call_rules.interpret,
        jvp_equation=jvp,
        vary=call_rules.vary,
        jax_names={"call_jaxpr": "program", "num_consts": "hidden"},
        **fields,
    )
    return primitive
