"""`jax.interpreters.partial_eval`: what of a function depends on unknown arguments."""

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
    """A value of JAX's older partial evaluation, which rune does not have: nothing is one."""


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
        """A value that is known by its type alone."""
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
    """Compute what depends on known values alone, and write down the rest.

    Gives the program of the unknown results, its known inputs leading; all results as PartialVals;
    and the values of those inputs.
    """
    partial = Partial(current())
    args = [new_input(partial, v.aval) if v.aval is not None else unshared(v.const) for v in values]

    def run() -> tuple[Staged, list[PartialVal]]:
        outs = list(map(unshared, function.call_wrapped(*args)))
        unknown = [instantiate or partial.owns(o) for o in outs]
        staged = finish(partial, [o for o, u in zip(outs, unknown, strict=True) if u], function.__name__)
        return staged, [
            PartialVal.unknown(type_of(o)) if u else PartialVal.known(o) for o, u in zip(outs, unknown, strict=True)
        ]

    staged, results = partial.trace(run)
    return staged.program, results, staged.captured


def trace_to_jaxpr_dynamic(
    function: WrappedFun, in_avals: Sequence[ArrayType]
) -> tuple[OpenProgram, list[ArrayType], list[Any]]:
    """The program of a flat function on such inputs, its results' types, and its constants."""
    staged = stage(lambda *xs: list(map(unshared, function.call_wrapped(*xs))), in_avals, function.__name__)
    program = OpenProgram(staged.program, len(staged.captured))
    return program, list(staged.program.output_types), list(staged.captured)


def dce_jaxpr(
    jaxpr: OpenProgram, used_outputs: Sequence[bool], instantiate: bool | Sequence[bool] = False
) -> tuple[OpenProgram, list[bool]]:
    """The program of the used outputs alone, and which inputs it takes.

    instantiate: inputs that stay, used or not; True keeps all.
    """
    keeps = [instantiate] * len(jaxpr.inputs) if isinstance(instantiate, bool) else instantiate
    pruned, needed = prune(jaxpr.body, used_outputs)
    constants, used = needed[: jaxpr.count], [n or k for n, k in zip(needed[jaxpr.count :], keeps, strict=True)]
    flags = [*constants, *used]
    inputs = tuple(v for v, is_used in zip(jaxpr.body.inputs, flags, strict=True) if is_used)
    return OpenProgram(replace(pruned, inputs=inputs), sum(constants)), used


__getattr__ = absent.of(__name__)
