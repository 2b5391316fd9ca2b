"""What goes round a loop keeps its type: the rule, and the messages where it does not hold.

A weak value, as a Python number is, takes the type that comes out of the body: `0` becomes f32
where the body adds floats to it. Everything else must come out as it went in: the same tree, and
at every leaf the same shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rune import dtypes
from rune.control.tracing import Traced
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops import convert
from rune.transforms.derivatives.flat_functions import is_layout
from rune.transforms.tree_difference import mismatch, paths


def settle(
    trace_body: Callable[[Sequence[ArrayType]], Traced], init: Sequence[Any]
) -> tuple[list[Any], Traced]:
    """The first values, and the body traced for them, after weak ones took the types found."""
    values = list(init)
    while True:
        traced = trace_body([type_of(v) for v in values])
        settled = [_promoted(v, t) for v, t in zip(values, traced.out_types)]
        if all(a is b for a, b in zip(settled, values)):
            return values, traced
        values = settled


def _promoted(value: Any, out: ArrayType) -> Any:
    """A weak value in the type that it has together with what comes out."""
    found = type_of(value)
    if not found.weak or found == out:
        return value
    dtype, weak = dtypes.promote((found.dtype, True), (out.dtype, out.weak))
    if (dtype, weak) == (found.dtype, True):
        return value
    return convert(value, dtype=dtype, weak=weak)


@dataclass(frozen=True, slots=True)
class Carry:
    """How messages speak of a carry: who carries it, and what hides the user's own part of it."""

    name: str
    treedef: Any
    prefix: str = ""  # of key paths: "[1]" where a counter goes before

    def place(self, path: str) -> str:
        """`carry['h']`."""
        return f"carry{path.removeprefix(self.prefix)}"

    def check(self, given: Sequence[ArrayType], found: Traced) -> None:
        """Raise unless every leaf comes out as it went in.

        Errors: TransformError "scan: cannot keep the type of carry['h'] (f32[3] goes in, ...)".
        """
        for path, went_in, came_out in zip(paths(self.treedef), given, found.out_types):
            if not is_layout(went_in, came_out):
                place, both = self.place(path), f"{went_in} goes in, {came_out} comes out"
                raise TransformError(
                    f"{self.name}: cannot keep the type of {place} ({both})",
                    hint=_hint(went_in, came_out),
                )

    def check_tree(self, found: Any) -> None:
        """Raise unless the carry comes out with the structure with which it went in."""
        if self.treedef != found:
            raise TransformError(
                f"{self.name}: cannot keep the structure of the carry ({self._difference(found)})",
                hint="return the carry with the same containers and keys as the first value",
            )

    def _difference(self, found: Any) -> str:
        return mismatch(
            self.treedef, found,
            lambda path: f"{self.place(path)} goes in but does not come out",
            lambda path: f"{self.place(path)} comes out but does not go in",
            "{} goes in, {} comes out",
        )  # fmt: skip


def _hint(went_in: ArrayType, came_out: ArrayType) -> str:
    if went_in.shape != came_out.shape:
        return "a carry keeps its shape: give the first value the shape that the body returns"
    kept, other = dtypes.short(went_in.dtype), dtypes.short(came_out.dtype)
    return (
        f"a carry keeps its dtype: convert in the body with .astype('{kept}'), "
        f"or start from a value of {other}"
    )
