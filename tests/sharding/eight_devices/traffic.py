"""The traffic of a program: the messages of one device, and the bytes of their operands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import rune
from rune.core.higher import Runs, equation_calls
from rune.core.program import Program
from rune.sharding import Mesh, P
from rune.transforms.programs.variation import untyped
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.exchanges import Exchange, exchanges
from rune.transforms.sharding.localize import localized


def traffic(function: Callable[..., Any], *args: Any) -> dict[str, tuple[int, int]]:
    """The number of messages of a device, and their bytes, for each kind of collective."""
    return total(of_bodies(rune.make_program(function)(*args)))


def partitioned_traffic(
    function: Callable[..., Any], mesh: Mesh, in_specs: Iterable[P], out_specs: Iterable[P], *args: Any
) -> dict[str, tuple[int, int]]:
    """The messages of a sharded jit of a function for one device; a spec for each leaf."""
    program = rune.make_program(function)(*args)
    local, _ = localized(program, Region(mesh, mesh.axis_names), tuple(in_specs), tuple(out_specs))
    return total(exchanges(local, mesh))


def of_bodies(program: Program) -> Iterator[Exchange]:
    """The messages of the bodies of shard_map in a program."""
    for equation in program.equations:
        for call in equation_calls(equation):
            if call.runs is Runs.EACH:
                yield from exchanges(untyped(call.program), equation.params["region"].mesh)
            else:
                yield from of_bodies(call.program)


def total(exchanges: Iterable[Exchange]) -> dict[str, tuple[int, int]]:
    """The number of messages, and their bytes, for each kind of collective."""
    totals: dict[str, tuple[int, int]] = {}
    for exchange in exchanges:
        count, size = totals.get(exchange.kind, (0, 0))
        totals[exchange.kind] = count + 1, size + int(exchange.bytes_in)
    return totals
