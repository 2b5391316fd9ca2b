"""Split sums: many additions to one sum in a row become several sums, added up at the end.

Before   var s = 0; s add= a; s add= b; s add= c; s add= d; ...
After    var s = 0; var s_2 = 0; s add= a; s_2 add= b; s add= c; s_2 add= d; ...; s add= s_2

An addition waits for the one before it, and compilers keep the order of floats. In a loop, the
threads of other subgroups hide the wait. This is for devices on which one thread at a time runs on
a processor, where loops are written out (share_choice.py).

Invariant: the same values are combined, each once, in one fixed order.
Cost:      linear in the code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rune.lowering.build.heuristics import choices
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.check import COMBINE
from rune.lowering.kernel.expr import Local
from rune.lowering.kernel.nodes import Accumulate, KernelCode, Stmt, Var
from rune.lowering.kernel.rewrite import Body, all_names, map_bodies, names_assigned, names_used, reserve, unique_names
from rune.lowering.passes import Pass
from rune.records import dataclass, replace

LEAST_ADDITIONS = 4  # to each of the sums


@dataclass(frozen=True, slots=True)
class _Sum:
    """Additions to one variable: the places of the statements in their body, and the variables."""

    places: Sequence[int]
    names: Sequence[str]


def split_sums(target: Target) -> Pass[KernelCode]:
    """The pass for a target, which does nothing where sums need not be split."""
    count = choices(target).sums

    def split(code: KernelCode) -> KernelCode:
        if count < 2:
            return code
        unique = unique_names(code)
        names = all_names(unique)
        body = _split(unique.body, count, names)
        return code if body == unique.body else replace(unique, body=body)

    return Pass("split-sums", "add up long sums in several parts", split)


def _split(body: Body, count: int, names: set[str]) -> Body:
    """The body, and those within it, with every long sum split."""
    body = tuple(map_bodies(stmt, lambda inner: _split(inner, count, names)) for stmt in body)
    sums = {
        name: _Sum(places, [name, *(reserve(name, names) for _ in range(count - 1))])
        for name, places in _places(body).items()
        if len(places) >= LEAST_ADDITIONS * count and _is_unread(name, body[places[0] : places[-1] + 1])
    }
    return tuple(s for place, stmt in enumerate(body) for s in _parts(stmt, place, sums)) if sums else body


def _places(body: Body) -> Mapping[str, Sequence[int]]:
    """The places of the additions to each variable."""
    places: dict[str, list[int]] = {}
    for place, stmt in enumerate(body):
        if isinstance(stmt, Accumulate):
            places.setdefault(stmt.name, []).append(place)
    return places


def _is_unread(name: str, body: Sequence[Stmt]) -> bool:
    """Whether the statements do nothing with a variable but add to it."""
    others = [s for s in body if not isinstance(s, Accumulate) or s.name != name]
    additions = [s for s in body if isinstance(s, Accumulate) and s.name == name]
    return name not in names_used(body) | names_assigned(others) and len({s.combine for s in additions}) == 1


def _parts(stmt: Stmt, place: int, sums: Mapping[str, _Sum]) -> Iterator[Stmt]:
    """An addition to one of several variables, their declarations before, their total behind."""
    split_sum = sums.get(stmt.name) if isinstance(stmt, Accumulate) else None
    if split_sum is None or not isinstance(stmt, Accumulate):
        yield stmt
        return
    number, parts = split_sum.places.index(place), split_sum.names
    dtype = stmt.value.dtype
    if number == 0:
        yield from (Var(name, COMBINE[stmt.combine].identity(dtype)) for name in parts[1:])
    yield replace(stmt, name=parts[number % len(parts)])
    if number == len(split_sum.places) - 1:
        yield from _total(parts, stmt)


def _total(names: Sequence[str], like: Accumulate) -> Iterator[Stmt]:
    """Add up the variables in the first one; their number is a power of two."""
    half = len(names) // 2
    while half:
        for first, second in zip(names[:half], names[half : 2 * half], strict=True):
            yield Accumulate(first, like.combine, Local(second, like.value.dtype))
        half //= 2
