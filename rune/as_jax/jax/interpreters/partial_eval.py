"""`jax.interpreters.partial_eval`: splits a function by known and unknown arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jax.extend.linear_util import WrappedFun

from rune import absent
from rune.core.dead_code import prune
from rune.core.interpreter import current, type_of
from rune.core.program import OpenProgram, Program
from rune.core.staging import Staged, finish, new_input, stage
from rune.core.types import ArrayType
from rune.transforms.arguments import unshared
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.tracers import TracedArray as DynamicJaxprTracer


class JaxprTracer:
    """The tracer of JAX's older partial evaluation, which rune lacks; it has no instances."""


class PartialVal(NamedTuple):
    """A value that is known, (None, value), or only typed, (aval, None)."""

    aval: ArrayType | None
    const: Any

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        """A known value."""
        return cls(None, const)

    @classmethod
    def unknown(cls, aval: ArrayType) -> PartialVal:
        """A value known by its type alone."""
        return cls(aval, None)

    def is_known(self) -> bool:
        """Whether the value is known."""
        return self.aval is None

    def get_known(self) -> Any:
        """The value; None if it is not known."""
        return self.const if self.is_known() else None

    def get_aval(self) -> ArrayType:
        """The type."""
        return type_of(self.const) if self.aval is None else self.aval


def trace_to_jaxpr_nounits(
    function: WrappedFun, values: Sequence[PartialVal], instantiate: bool = False
) -> tuple[Program, list[PartialVal], tuple[Any, ...]]:
    """Evaluate what depends only on known values, and trace the rest.

    Returns the program of the unknown results, whose first inputs are the known values that it
    uses; all results as PartialVals; and those known values.
    """
    partial = Partial(current())
    args = [new_input(partial, v.aval) if v.aval is not None else unshared(v.const) for v in values]

    def run() -> tuple[Staged, list[PartialVal]]:
        outs = list(map(unshared, function.call_wrapped(*args)))
        unknown = [instantiate or partial.owns(o) for o in outs]
        trace = finish(partial, [o for o, u in zip(outs, unknown, strict=True) if u], function.__name__)
        return trace, [
            PartialVal.unknown(type_of(o)) if u else PartialVal.known(o) for o, u in zip(outs, unknown, strict=True)
        ]

    trace, results = partial.trace(run)
    return trace.program, results, trace.captured


def trace_to_jaxpr_dynamic(
    function: WrappedFun, in_avals: Sequence[ArrayType]
) -> tuple[OpenProgram, list[ArrayType], list[Any]]:
    """The program of a flat function for inputs of these types, its output types and constants."""
    trace = stage(lambda *xs: list(map(unshared, function.call_wrapped(*xs))), in_avals, function.__name__)
    program = OpenProgram(trace.program, len(trace.captured))
    return program, list(trace.program.output_types), list(trace.captured)


def dce_jaxpr(
    jaxpr: OpenProgram, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[OpenProgram, list[bool]]:
    """The program of the used outputs alone, and which inputs it still takes.

    instantiate: which inputs to keep even if unused; True keeps all.
    """
    keeps = [instantiate] * len(jaxpr.inputs) if isinstance(instantiate, bool) else instantiate
    live_program, needs = prune(jaxpr.body, used_outputs)
    constants, used_inputs = needs[: jaxpr.count], [n or k for n, k in zip(needs[jaxpr.count :], keeps, strict=True)]
    flags = [*constants, *used_inputs]
    inputs = tuple(v for v, is_used in zip(jaxpr.body.inputs, flags, strict=True) if is_used)
    return OpenProgram(replace(live_program, inputs=inputs), sum(constants)), used_inputs


__getattr__ = absent.of(__name__)
