"""The tables that libraries fill with the rules of their primitives, as JAX names them.

    ad.primitive_jvps[p]          rule(primals, tangents, **params) -> (outputs, tangents)
    ad.primitive_transposes[p]    rule(cotangents, *inputs, **params) -> cotangents of the inputs
    batching.fancy_primitive_batchers[p]    rule(axis, values, dims, **params) -> (outputs, dims)
    batching.primitive_batchers[p]          the same without the axis
    batching.axis_primitive_batchers[p]     rule(size, name, None, values, dims, **params)
    mlir.register_lowering(p, rule)         rule(context, *values, **params) -> list of values

Each primitive stores its own rules, so they live as long as it does. They are looked up on use, so
a library may add them at any time. The rules of rune's own primitives are fixed: replacing one is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any
from weakref import WeakSet

from rune.as_jax.primitive import BATCH, JVP, LOWERING, TRANSPOSE, AxisData, Primitive
from rune.errors import ArgumentError
from rune.ops import stop_gradient

Rule = Callable[..., Any]
# Rules of rune's primitives that libraries set again, to the same effect: Lineax for an identity.
SETTLED = {(TRANSPOSE, stop_gradient)}


class Rules(MutableMapping[Primitive, Rule]):
    """A table of one kind of rule, by primitive."""

    def __init__(self, kind: str):
        self.kind = kind
        self.primitives: WeakSet[Primitive] = WeakSet()

    def adapted(self, primitive: Primitive, rule: Rule) -> Rule:
        """The rule in the form that the primitive stores."""
        return rule

    def __setitem__(self, primitive: Primitive, rule: Rule) -> None:
        if (self.kind, primitive) in SETTLED:
            return
        if not issubclass(type(primitive), Primitive):
            raise ArgumentError(
                f"{self.kind}: cannot set the rule of {primitive} (it is not a primitive of jax.extend.core)",
                hint="rules of rune's own operations are fixed; rune.extend defines new operations",
            )
        primitive.rules[self.kind] = self.adapted(primitive, rule)
        self.primitives.add(primitive)

    def __getitem__(self, primitive: Primitive) -> Rule:
        if not issubclass(type(primitive), Primitive):
            raise KeyError(primitive)
        return primitive.rules[self.kind]

    def __delitem__(self, primitive: Primitive) -> None:
        del primitive.rules[self.kind]
        self.primitives.discard(primitive)

    def __iter__(self) -> Iterator[Primitive]:
        return iter(self.primitives)

    def __len__(self) -> int:
        return len(self.primitives)


class BatchRules(Rules):
    """Batch rules that take no axis. Without a batched operand the primitive itself is bound."""

    def adapted(self, primitive: Primitive, rule: Rule) -> Rule:
        """The rule, adapted to the signature with the axis."""

        def with_axis(axis: AxisData, values: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
            return rule(values, dims, **params)

        return with_axis


class AxisBatchRules(Rules):
    """Batch rules that take the size and the name of the axis."""

    def adapted(self, primitive: Primitive, rule: Rule) -> Rule:
        """The rule, adapted to the signature with the axis."""

        def with_axis(axis: AxisData, values: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
            return rule(axis.size, axis.name, None, values, dims, **params)

        return with_axis


primitive_jvps = Rules(JVP)
primitive_transposes = Rules(TRANSPOSE)
fancy_primitive_batchers = Rules(BATCH)
primitive_batchers = BatchRules(BATCH)
axis_primitive_batchers = AxisBatchRules(BATCH)
lowerings = Rules(LOWERING)
