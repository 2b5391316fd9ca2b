"""What a Vulkan call consists of: launches, how often they run, and what the host decides.

Everything on the device is a kernel, a copy too, since addresses of arguments change from call to
call, and only a kernel takes them from its table. A launch may have a gate: the numbers of its
groups are then read from the table when it runs, where a kernel has put them, or zeros.

Words of the table are (base, offset): the base is ZERO, TABLE, ARENA, or an argument's or result's
address, known when a call is made.
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

ZERO, TABLE, ARENA, GIVEN = range(4)  # bases; from GIVEN on arguments, then results

# Rune's own kernels. The last two open a gate: they copy the numbers of groups from `full` where
# the gate around it is open and a number is the wanted one, or a condition holds; else zeros.
# Written as kernel code, so that the same renderer compiles them.
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
    """The kernels that loops and copies need, by a name that no kernel of a plan has."""
    return {name: parse(text) for name, text in _TEXTS.items()}


@dataclass(frozen=True, slots=True)
class Where:
    """Some bytes of a call's memory."""

    base: int
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Run:
    """One launch of a kernel.

    written: which of the places it writes
    groups:  along three dimensions, from the `first` one on: a long launch is several
    gate:    where in the table the numbers of its groups are then; None: always `groups`
    work:    see kernel/work.py; 0 where nothing bounds it
    """

    # A kernel of the plan, or one of rune's own, whose names begin with %.
    kernel: str
    places: tuple[Where, ...]
    written: tuple[bool, ...]
    sizes: tuple[int, ...]
    groups: tuple[int, int, int]
    gate: int | None = None
    first: int = 0
    work: int = 0


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same work `count` times."""

    items: Items
    count: int


@dataclass(frozen=True, slots=True)
class While:
    """Work as long as a condition holds. The host looks at it, in `holds` of the table's words.

    first:    the start, and the condition
    batches:  work between two looks, one after the other: some steps, and the condition. What is
              left of a batch once the condition fails does nothing
    cycle:    the batch that follows the last one
    count:    the word that then has the number of steps
    settle:   follows an odd number of steps, if that matters
    """

    first: Items
    batches: tuple[Items, ...]
    cycle: int
    settle: Items
    holds: int
    count: int


@dataclass(frozen=True, slots=True)
class Choice:
    """One of some branches, by the host: the one with the number in `word`, or the nearest."""

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
    """Whether the device needs no host for it."""
    match item:
        case Run():
            return True
        case Repeat(items=items):
            return all(map(is_recordable, items))
        case _:
            return False


def runs_of(items: Iterable[Item]) -> Iterable[Run]:
    """The launches of some items and within them, in order."""
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


def replace_runs(items: Items, gated: Mapping[Run, Run]) -> Items:
    """Recordable items with other launches."""
    return tuple(_replaced(item, gated) for item in items)


def _replaced(item: Item, gated: Mapping[Run, Run]) -> Item:
    match item:
        case Run():
            return gated.get(item, item)
        case Repeat(items=inner, count=count):
            return Repeat(replace_runs(inner, gated), count)
        case _:
            raise AssertionError(item)
