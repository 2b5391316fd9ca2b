"""`jax.interpreters.partial_eval`: what of a function depends on unknown arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from jax.extend.linear_util import WrappedFun

from rune import absent
from rune.core.interpreter import current, type_of
from rune.core.program import Program
from rune.core.staging import Staged
from rune.core.types import ArrayType
from rune.transforms.arguments import unshared
from rune.transforms.derivatives.linearize import Partial
from rune.transforms.tracers import TracedArray as DynamicJaxprTracer
from rune.transforms.tracers import TracedArray as JaxprTracer


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
        """A value of which only the type is known."""
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
    args = [partial.new_input(v.aval) if v.aval is not None else unshared(v.const) for v in values]

    def run() -> tuple[Staged, list[PartialVal]]:
        outs = list(map(unshared, function.call_wrapped(*args)))
        unknown = [instantiate or partial.owns(o) for o in outs]
        staged = partial.program([o for o, u in zip(outs, unknown, strict=True) if u], function.__name__)
        return staged, [
            PartialVal.unknown(type_of(o)) if u else PartialVal.known(o)
            for o, u in zip(outs, unknown, strict=True)
        ]

    staged, results = partial.trace(run)
    return staged.program, results, staged.captured


__getattr__ = absent.of("jax.interpreters.partial_eval")
