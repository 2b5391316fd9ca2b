"""Accesses: a body reads before it computes and writes at its end, with neighbours side by side.

Before   store y[4*i] = x[4*i] * t; store y[4*i + 1] = x[4*i + 1] * t
After    a: f32 = x[4*i]; b: f32 = x[4*i + 1]
         c: f32 = a * t;  d: f32 = b * t
         store y[4*i] = c; store y[4*i + 1] = d

Then all reads of a thread wait at the same time, and where the language has wider accesses, those
of neighbours become one (codegen/runs.py).

Invariant: the same values. A read stays in place if its body writes the same array or if it has a
condition, and comes after what its index depends on. That an array may share its memory with a
result does not matter: a point reads only its own elements, and before it writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from rune import dtypes
from rune.dims import Size
from rune.lowering.kernel.expr import Const, Load, Local
from rune.lowering.kernel.nodes import Accumulate, Assign, Let, Stmt, Store, Var
from rune.lowering.kernel.rewrite import (
    bound_name,
    buffers_read,
    buffers_written,
    expressions,
    loads,
    map_bodies,
    map_expr,
    map_parts,
    names_assigned,
    names_in,
    reserve,
    size_names,
)

A = TypeVar("A", Load, Store)
Place = tuple[str, Size]  # array, index
Registers = dict[Load, Local]  # loads whose value is in a register already
_NARROW = frozenset({dtypes.f16, dtypes.bf16})


def apart(body: Sequence[Stmt], names: set[str]) -> tuple[Stmt, ...]:
    """The body, and the bodies within it, with reads of neighbours first and writes last.

    names: the names in use, to which new ones are added
    """
    statements: list[Stmt] = []
    straight: list[Stmt] = []
    for stmt in body:
        # Only straight code is rearranged: nothing moves past a loop, a branch or a barrier.
        if isinstance(stmt, Let | Var | Assign | Accumulate | Store):
            straight.append(stmt)
            continue
        statements += _straight(straight, names)
        straight = []
        statements.append(map_bodies(stmt, lambda inner: apart(inner, names)))
    return (*statements, *_straight(straight, names))


def _straight(body: Sequence[Stmt], names: set[str]) -> tuple[Stmt, ...]:
    runs = [run for run in _neighbours(_reads(body), _read) if len(run) > 1]
    return _in_order(body, names, {}, [load for run in runs for load in run])


def registered(body: Sequence[Stmt], names: set[str], registers: Registers) -> tuple[Stmt, ...]:
    """Statements without bodies that load nothing that is in `registers`; new loads join them."""
    reads = [x for x in _reads(body) if x not in registers]
    return _in_order(body, names, registers, [load for run in _neighbours(reads, _read) for load in run])


def _in_order(body: Sequence[Stmt], names: set[str], registers: Registers, reads: Sequence[Load]) -> tuple[Stmt, ...]:
    """Statements without bodies: `reads` as early as possible, and all writes at the end."""
    places: dict[int, list[Stmt]] = {}
    # Numbered from 1: a name is known after its statement, and 0 stands for the start.
    bound_behind = {bound_name(stmt): number for number, stmt in enumerate(body, 1)}
    for load in reads:
        let = Let(reserve(f"{load.buffer}_element", names), load)
        registers[load] = Local(let.name, load.dtype)
        places.setdefault(_earliest(load, bound_behind), []).append(let)
    statements, stores = list(places.get(0, ())), list[Store]()
    elsewhere, changing = buffers_read(body), names_assigned(body)
    for number, stmt in enumerate(body):
        stmt = map_parts(
            stmt, lambda e: map_expr(lambda x: registers.get(x, x) if isinstance(x, Load) else x, e), _same
        )
        # A store stays in place if something may read its buffer, or if it combines with it.
        if isinstance(stmt, Store) and stmt.combine is None and stmt.buffer not in elsewhere:
            statements += _value(stmt, stores, names, changing)
        else:
            statements.append(stmt)
        statements += places.get(number + 1, ())
    return (*statements, *_side_by_side(stores))


def _side_by_side(stores: Sequence[Store]) -> Sequence[Store]:
    """The stores with neighbours side by side, unless two might be of one element."""
    groups = _neighbours(stores, _written)
    is_known = len(groups) == len({s.buffer for s in stores})
    return [store for group in groups for store in group] if is_known else stores


def _value(store: Store, stores: list[Store], names: set[str], changing: frozenset[str]) -> Iterator[Stmt]:
    """Move a store to the end, and bind its value, so that nothing comes between the stores.

    changing: variables that are assigned again later
    """
    # A local of a half type would be rounded twice.
    is_simple = store.value.dtype in _NARROW or isinstance(store.value, Const | Load | Local)
    if is_simple and not names_in(store.value) & changing:
        stores.append(store)
        return
    name = reserve(f"{store.buffer}_value", names)
    stores.append(replace(store, value=Local(name, store.value.dtype)))
    yield Let(name, store.value)


def _reads(body: Sequence[Stmt]) -> list[Load]:
    """The loads that may come before anything else, in order of appearance."""
    written_buffers = buffers_written(body)
    # A half that is only copied would lose bits of a NaN in a register of f32.
    copies = {s.value for s in body if isinstance(s, Store) and s.value.dtype in _NARROW}
    all_loads = dict.fromkeys(loads(e for s in body for e in expressions(s)))
    return [x for x in all_loads if x.guard is None and x.buffer not in written_buffers and x not in copies]


def _neighbours(accesses: Sequence[A], place: Callable[[A], Place]) -> list[list[A]]:
    """The accesses, in groups of one array at known distances from each other, in order."""
    groups: list[list[A]] = []
    for access in accesses:
        # The first access stands for its group: distances to it give all others.
        group = next((g for g in groups if _distance(place(g[0]), place(access)) is not None), None)
        if group is None:
            groups.append([access])
        else:
            group.append(access)
    return [sorted(g, key=lambda x: _distance(place(g[0]), place(x)) or 0) for g in groups]


def _read(load: Load) -> Place:
    return load.buffer, load.indices[0]


def _written(store: Store) -> Place:
    return store.buffer, store.index


def _distance(a: Place, b: Place) -> int | None:
    """How far the second element is after the first, if that is known."""
    distance = b[1] - a[1] if a[0] == b[0] else None
    return distance if isinstance(distance, int) else None


def _earliest(load: Load, bound_behind: Mapping[str | None, int]) -> int:
    """The number of statements after which everything is known that the index depends on."""
    return max((bound_behind.get(name, 0) for name in size_names(load.indices[0])), default=0)


def _same(x: Size) -> Size:
    return x


__all__ = ["Registers", "apart", "registered"]
