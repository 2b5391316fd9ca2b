"""The carry of a loop keeps its type: the rule, and the messages when it is broken.

A weak value, such as a Python number, takes the type that the body returns: `0` becomes f32 if the
body adds floats to it, and the body is traced again for f32. If the body only makes a weak value
strong, it is traced once, as in JAX: it sees a weak value, converted from the strong carry.
If the body returns a weak value for a strong one, the loop's result is weak.
Everything else must come out as it went in: the same tree, and at every leaf the same shape and
dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import dtypes, tree
from rune.control.tracing import Traced
from rune.core.interpreter import type_of
from rune.core.types import ArrayType, same_layout
from rune.core.values import Value
from rune.errors import TransformError
from rune.ops import convert
from rune.records import dataclass
from rune.transforms.tree_difference import mismatch, paths


def settle(trace_body: Callable[[Sequence[ArrayType]], Traced], init: Sequence[Value]) -> tuple[list[Any], Traced]:
    """The first values, weak ones with the body's types, and the body traced for their dtypes."""
    values = list(init)
    # Ends: a leaf that was promoted is strong, and strong leaves are not promoted again.
    while True:
        body = trace_body([type_of(v) for v in values])
        promoted_values = [_promoted(v, t) for v, t in zip(values, body.out_types)]
        if all(a is b for a, b in zip(promoted_values, values)):
            return [_strengthened(v, t) for v, t in zip(values, body.out_types)], body
        values = promoted_values  # the dtype of one leaf may change what the body returns for others


def _promoted(value: Value, body_type: ArrayType) -> Value:
    """A weak value, converted to the dtype that it and the body's result promote to."""
    value_type = type_of(value)
    # Only weak values give way: a strong one that changes is the user's mistake.
    if not value_type.weak or value_type.dtype == body_type.dtype:
        return value
    dtype, _ = dtypes.promote((value_type.dtype, True), (body_type.dtype, body_type.weak))
    return value if dtype == value_type.dtype else convert(value, dtype=dtype, weak=False)


def _strengthened(value: Value, body_type: ArrayType) -> Value:
    """A weak value made strong, if the body's result is."""
    value_type = type_of(value)
    if not value_type.weak or body_type.weak or value_type.dtype != body_type.dtype:
        return value
    return convert(value, dtype=value_type.dtype, weak=False)


def weakened(outs: Sequence[Value], body: Traced) -> list[Value]:
    """The results of a loop, weak where those of the body are."""
    return [_as_weak(v, t) for v, t in zip(outs, body.out_types, strict=True)]


def _as_weak(value: Value, body_type: ArrayType) -> Value:
    value_type = type_of(value)
    # `settle` made the carry strong wherever the body's result is: only weakness may be missing.
    is_same = value_type.dtype == body_type.dtype and (value_type.weak or not body_type.weak)
    return value if is_same else convert(value, dtype=body_type.dtype, weak=body_type.weak)


@dataclass(frozen=True, slots=True)
class Carry:
    """How messages name a carry: the function it belongs to, and the names of its leaves."""

    name: str
    treedef: tree.TreeDef
    prefix: str = ""  # of key paths: "[1]" if a counter stands before the user's carry

    def place(self, path: str) -> str:
        """`carry['h']`."""
        return f"carry{path.removeprefix(self.prefix)}"

    def check(self, init_types: Sequence[ArrayType], body: Traced) -> None:
        """Raise unless every leaf comes out as it went in.

        Errors: TransformError "scan: cannot keep the type of carry['h'] (f32[3] goes in, ...)".
        """
        for number, (went_in, came_out) in enumerate(zip(init_types, body.out_types)):
            if not same_layout(went_in, came_out):
                # Only now: a class may refuse the numbers that stand for its leaves in a path.
                place = self.place(paths(self.treedef)[number])
                raise TransformError(
                    f"{self.name}: cannot keep the type of {place} ({went_in} goes in, {came_out} comes out)",
                    hint=_hint(went_in, came_out),
                )

    def check_tree(self, out_tree: tree.TreeDef) -> None:
        """Raise unless the carry comes out with the structure that it went in with."""
        if self.treedef != out_tree:
            raise TransformError(
                f"{self.name}: cannot keep the structure of the carry ({self._difference(out_tree)})",
                hint="return the carry with the same containers and keys as the first value",
            )

    def _difference(self, out_tree: tree.TreeDef) -> str:
        return mismatch(
            self.treedef,
            out_tree,
            lambda path: f"{self.place(path)} goes in but does not come out",
            lambda path: f"{self.place(path)} comes out but does not go in",
            "{} goes in, {} comes out",
        )


def _hint(went_in: ArrayType, came_out: ArrayType) -> str:
    if went_in.shape != came_out.shape:
        return "a carry keeps its shape: give the first value the shape that the body returns"
    carry_dtype, body_dtype = dtypes.short(went_in.dtype), dtypes.short(came_out.dtype)
    return (
        f"a carry keeps its dtype: convert in the body with .astype('{carry_dtype}'), "
        f"or start from a value of {body_dtype}"
    )
