"""The items of a Vulkan call: launches, repetitions of launches, and decisions of the host.

All work on the device is done by kernels, copies too: addresses of arguments change from call to
call, and only a kernel can read them from its table. A launch may have a gate: the device then
reads its numbers of groups from the table when it runs, where a kernel has written them, or zeros.

Words of the table are (base, offset). A base is ZERO, TABLE, ARENA, or the address of an argument
or a result, which is known when a call is made.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping

from rune.backends.shared.executor import Place
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Call
from rune.records import dataclass

ZERO, TABLE, ARENA, GIVEN = range(4)  # bases; from GIVEN on the arguments, then the results

# Rune's own kernels. The last two open a gate: they copy the numbers of groups from `full` if the
# outer gate is open and the number is the wanted one, or the condition holds; else they write
# zeros. They are kernel code, so that the same renderer compiles them.
_TEXTS = {
    "%copy1": """
code copy1(x: read u8[n], y: write u8[n]) sizes n in 1..1099511627776 {
  for i in n grid { store y[i] = x[i] }
}""",
    "%copy4": """
code copy4(x: read u32[n], y: write u32[n]) sizes n in 1..1099511627776 {
  for i in n grid { store y[i] = x[i] }
}""",
    "%advance": """
code advance(x: readwrite i32[1]) {
  store x[0] = x[0] + 1_i32
}""",
    "%choose": """
code choose(number: read i32[1], wanted: read i32[1], last: read i32[1], around: read u32[1],
            full: read u32[n], live: write u32[n]) sizes n in 1..1048576 {
  for i in n grid {
    chosen: i32 = min(max(number[0], 0_i32), last[0])
    open: u32 = around[0] * full[i]
    store live[i] = select(chosen == wanted[0], open, 0_u32)
  }
}""",
    "%hold": """
code hold(holds: read bool[1], around: read u32[1],
          full: read u32[n], live: write u32[n]) sizes n in 1..1048576 {
  for i in n grid {
    open: u32 = around[0] * full[i]
    store live[i] = select(holds[0], open, 0_u32)
  }
}""",
}


@functools.cache
def own_kernels() -> Mapping[str, KernelCode]:
    """The kernels for loops and copies, by names that no kernel of a plan can have."""
    return {name: parse(text) for name, text in _TEXTS.items()}


@dataclass(frozen=True, slots=True)
class Where:
    """A range of bytes in a call's memory."""

    base: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """One launch of a kernel.

    writes: for each place, whether it is written
    groups: along three dimensions, from number `first` on: a long launch is divided
    gate:   the offset in the table of its numbers of groups; None: always `groups`
    work:   see kernel/work.py; 0 where nothing bounds it
    """

    # A kernel of the plan, or one of rune's own, whose names begin with %.
    kernel: str
    places: tuple[Where, ...]
    writes: tuple[bool, ...]
    sizes: tuple[int, ...]
    groups: tuple[int, int, int]
    gate: int | None = None
    first: int = 0
    work: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same items `count` times."""

    items: Items
    count: int


@dataclass(frozen=True, slots=True)
class While:
    """Items that repeat while a condition holds. The host reads the condition from the word
    `holds`.

    first:    the start, and the condition
    batches:  the items between two reads of the host: some steps, each with the condition. Once the
              condition fails, the remaining steps of a batch do nothing
    cycle:    the number of the batch that follows the last one
    count:    the word with the number of steps, after the loop
    settle:   the copies after an odd number of steps, if they are needed
    """

    first: Items
    batches: tuple[Items, ...]
    cycle: int
    settle: Items
    holds: int
    count: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several branches, chosen by the host: the one with the number in `word`, clamped."""

    number: Items
    word: int
    branches: tuple[Items, ...]


@dataclass(frozen=True, slots=True)
class Callback:
    """A call of Python."""

    step: Call
    places: tuple[Place, ...]


Item = Run | Repeat | While | Choice | Callback
Items = tuple[Item, ...]


def is_recordable(item: Item) -> bool:
    """Whether the device can run the item without the host."""
    match item:
        case Run():
            return True
        case Repeat(items=items):
            return all(map(is_recordable, items))
        case _:
            return False


def runs_of(items: Iterable[Item]) -> Iterable[Run]:
    """The launches of the items and their inner items, in order."""
    for item in items:
        match item:
            case Run():
                yield item
            case Repeat(items=inner):
                yield from runs_of(inner)
            case While(first=first, batches=batches, settle=settle):
                yield from runs_of(itertools.chain(first, *batches, settle))
            case Choice(number=number, branches=branches):
                yield from runs_of(itertools.chain(number, *branches))
            case Callback():
                pass


def replace_runs(items: Items, gated_runs: Mapping[Run, Run]) -> Items:
    """Recordable items, with some launches replaced."""
    return tuple(_replaced(item, gated_runs) for item in items)


def _replaced(item: Item, gated_runs: Mapping[Run, Run]) -> Item:
    match item:
        case Run():
            return gated_runs.get(item, item)
        case Repeat(items=inner, count=count):
            return Repeat(replace_runs(inner, gated_runs), count)
        case _:
            raise AssertionError(item)
