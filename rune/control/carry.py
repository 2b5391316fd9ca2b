"""What goes round a loop keeps its type: the rule, and the messages where it does not hold.

A weak value, as a Python number is, takes the type that comes out of the body: `0` becomes f32
where the body adds floats to it. Everything else must come out as it went in: the same tree, and
at every leaf the same shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rune import dtypes, tree
from rune.control.programs import is_layout
from rune.control.tracing import Traced
from rune.core.interpreter import type_of
from rune.core.types import ArrayType
from rune.errors import TransformError
from rune.ops import convert


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


def check_carry(name: str, treedef: Any, given: Sequence[ArrayType], found: Traced) -> None:
    """Raise unless every leaf of the carry comes out as it went in.

    Errors: TransformError "scan: cannot keep the type of carry['h'] (f32[3] goes in, f32[4] comes out)".
    """
    for path, went_in, came_out in zip(paths(treedef), given, found.out_types):
        if not is_layout(went_in, came_out):
            raise TransformError(
                f"{name}: cannot keep the type of carry{path} ({went_in} goes in, {came_out} comes out)",
                hint=_hint(went_in, came_out),
            )


def _hint(went_in: ArrayType, came_out: ArrayType) -> str:
    if went_in.shape != came_out.shape:
        return "a carry keeps its shape: give the first value the shape that the body returns"
    kept, other = dtypes.short(went_in.dtype), dtypes.short(came_out.dtype)
    return (
        f"a carry keeps its dtype: convert in the body with .astype('{kept}'), "
        f"or start from a value of {other}"
    )


def check_carry_tree(name: str, treedef: Any, found: Any) -> None:
    """Raise unless the carry comes out with the structure with which it went in."""
    if treedef != found:
        refuse_trees(
            f"{name}: cannot keep the structure of the carry",
            "carry", treedef, found, "goes in", "comes out",
            "return the carry with the same containers and keys as the first value",
        )  # fmt: skip


def refuse_trees(
    what: str, label: str, a: Any, b: Any, of_a: str, of_b: str, hint: str
) -> NoReturn:
    """Raise TransformError that says where two structures differ."""
    for path in paths(a):
        if path not in paths(b):
            place = f"{label}{path} {of_a}, and not {of_b}"
            break
    else:
        extra = [path for path in paths(b) if path not in paths(a)]
        place = f"{label}{extra[0]} {of_b}, and not {of_a}" if extra else f"{label}"
    raise TransformError(f"{what} ({place}: {shown(a)} {of_a}, {shown(b)} {of_b})", hint=hint)


def paths(treedef: Any) -> list[str]:
    """The key path of every leaf, as `['a'][0]`."""
    marked = tree.unflatten(treedef, range(treedef.num_leaves))
    return [tree.keystr(path) for path, _ in tree.leaves_with_path(marked)]


def shown(treedef: Any) -> str:
    """A structure for messages: `{'a': *}`."""
    return str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
