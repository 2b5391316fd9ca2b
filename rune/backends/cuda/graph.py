"""From a concrete plan to a CUDA graph, as data: kernels, what they take, and conditions.

    launch @f                                kernel f (words 0..2)
    loop while @holds { launch @g }    ->    store 0 to the counter; @holds; goes_on sets handle 0
                                             while handle 0 { g, advance, @holds, goes_on }

Every node is a kernel or holds nodes. A kernel takes the address of its words in one table in
device memory: addresses of buffers, then numbers. So a graph is built once for each choice of
sizes and never updated. A call rewrites the table, one copy of a few kilobytes whatever the number
of kernels; updating each node instead would cost a driver call for each, and conditional bodies
could not be reached. Copies and counters are kernels too (kernels.py): their addresses change
like any other.

A loop of few steps is unrolled; others, and branches, are conditional nodes, which drivers have
from CUDA 12.4 on. Without them, or where a plan calls Python, the host walks the steps instead,
with the same words and kernels. Nodes know which bytes they touch, and edges.py finds out which of
them have to run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import SupportsInt

import numpy as np

from rune.backends.cuda.edges import Touch, Touches
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import (
    ConcreteBranch,
    ConcreteLoop,
    ConcreteStep,
    Place,
    Steps,
    all_concrete,
    evaluate,
)
from rune.backends.shared.parts import parts
from rune.backends.shared.sources import Sources, blocks_of
from rune.dims import Size, product
from rune.errors import DeviceError
from rune.lowering.codegen.c.render import Rendered
from rune.lowering.codegen.groups import THREADS, threads_of_group
from rune.lowering.kernel.nodes import Access
from rune.lowering.kernel.work import most_work
from rune.lowering.plan import Copy, Launch, Space, Step
from rune.records import dataclass

UNROLLED = 128  # kernels that a loop may become
MOST_BLOCKS = 2**31 - 1
_COPIED_BYTES = 16  # by each thread

Extents = tuple[int, int, int]  # along x, y and z


def extents(along: Sequence[int]) -> Extents:
    """So many blocks or threads along the first dimensions, and one along the others."""
    x, y, z = (*along, 1, 1)[:3]
    return x, y, z


def line(extent: int) -> Extents:
    """So many in a row: rune's own kernels take their grid apart themselves."""
    return extent, 1, 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch; `word` is where in the table its arguments begin.

    handle:       the condition that it sets, which it takes as a second argument
    first:        where in the whole launch its blocks begin, likewise; None: it is never in parts
    shared_bytes: what each block has, beyond what the kernel declares
    touches:      the bytes that it reads or writes; None: all may wait for it
    """

    name: str
    blocks: Extents
    threads: Extents
    word: int
    handle: int | None = None
    shared_bytes: int = 0
    touches: Touches = None
    first: int | None = None

    def arguments(self, table: int, handles: Mapping[int, SupportsInt]) -> tuple[int, ...]:
        """What it takes, with its table at this address of the device."""
        first = () if self.first is None else (self.first,)
        sets = () if self.handle is None else (int(handles[self.handle]),)
        return table + 8 * self.word, *first, *sets


@dataclass(frozen=True, slots=True)
class Conditional:
    """Nodes that run if a condition holds, or, with `repeats`, as long as it does."""

    handle: int
    body: Nodes
    repeats: bool


Node = Kernel | Conditional
Nodes = tuple[Node, ...]
Memory = tuple[Space, int]  # an argument, a result, or the arena
Word = tuple[Memory | None, int]  # a number, added to the address of some memory


@dataclass(frozen=True, slots=True)
class Table:
    """The words that kernels take: `numbers`, plus the addresses of what `memory` names."""

    memory: tuple[Memory, ...]
    which: np.ndarray  # by word: 0, or 1 + the number of its memory
    numbers: np.ndarray

    def words(self, address: Callable[[Memory], int]) -> np.ndarray:
        """The table for memory at these addresses, u64."""
        bases = np.array([0, *map(address, self.memory)], np.uint64)
        return bases[self.which] + self.numbers


def geometry(rendered: Rendered, sizes: Mapping[str, int], cores: int, warp: int = 32) -> tuple[int, int]:
    """Blocks and threads of a launch; no blocks where there is nothing to do.

    Errors: DeviceError for more blocks than a launch may have.
    """
    total = evaluate(product(rendered.grid), sizes)
    if rendered.workgroup:
        blocks, threads = total, rendered.workgroup[0]
    elif not rendered.grid:
        blocks, threads = 1, 1  # a kernel without grid axes has no bound to check
    else:
        threads = threads_of_group(total, cores, warp)
        blocks = -(-total // threads)
    if blocks > MOST_BLOCKS:
        raise DeviceError(
            f"cuda: cannot launch {rendered.name} over {total} points (at most {MOST_BLOCKS} blocks in a launch)",
            hint="work on smaller pieces",
        )
    return blocks, threads


def needs_host(steps: Steps, has_conditionals: bool) -> bool:
    """Whether only the host can run these: a call of Python, or a decision without conditionals."""
    if any(is_callback(s.step) for s in all_concrete(steps)):
        return True
    return not has_conditionals and _decides(steps)


def _decides(steps: Steps) -> bool:
    for step in steps:
        match step:
            case ConcreteStep():
                continue
            case ConcreteBranch(branches=branches):
                if len(branches) != 1 or any(map(_decides, branches)):
                    return True
            case ConcreteLoop(bodies=bodies):
                if not is_unrolled(step) or any(map(_decides, bodies)):
                    return True
    return False


def is_unrolled(loop: ConcreteLoop) -> bool:
    """Whether the steps of a loop are written out one after the other."""
    if loop.holds is not None or loop.count is None:
        return False
    return loop.count * max(map(_length, loop.bodies)) <= UNROLLED


def _length(steps: Steps) -> int:
    """Kernels that some steps become, at most; one more for a counter."""
    length = 1
    for step in steps:
        match step:
            case ConcreteStep():
                length += 1
            case ConcreteBranch(branches=branches):
                length += 1 + sum(map(_length, branches))
            case ConcreteLoop(bodies=bodies, count=count):
                times = count if count is not None and is_unrolled(step) else 1
                length += 1 + times * sum(map(_length, bodies))
    return length


@dataclass(frozen=True, slots=True)
class Divided:
    """The work of each kernel's launch by its name, and how much of it a launch may have."""

    work: Mapping[str, Size]
    limit: int


class Recorder:
    """Makes kernels and nodes of concrete steps, and gives out words of one table.

    rendered: the plan's kernels by name
    cores:    of the device: how far a small grid is spread
    warp:     threads of a block at least
    merged:   memory that may be other memory: a result that is a donated argument
    divided:  how long launches are divided, on a device that is watched
    sources:  kernels that users wrote
    """

    def __init__(
        self,
        rendered: Mapping[str, Rendered],
        sizes: Mapping[str, int],
        cores: int,
        warp: int = 32,
        merged: Mapping[Memory, Memory] = MappingProxyType({}),
        divided: Divided | None = None,
        sources: Sources[object] | None = None,
    ):
        self._merged, self._divided, self._sources = merged, divided, sources
        self._rendered, self._sizes, self._shape = rendered, sizes, (cores, warp)
        self._words: list[Word] = []
        self._known: dict[int, tuple[Kernel, ...]] = {}  # by id of the concrete step
        self.handles = 0

    # --- words ------------------------------------------------------------------------------

    def table(self) -> Table:
        """The words given out so far."""
        memory = dict.fromkeys(m for m, _ in self._words if m is not None)
        number = {None: 0, **{m: k for k, m in enumerate(memory, 1)}}
        which = np.array([number[m] for m, _ in self._words], np.intp)
        return Table(tuple(memory), which, np.array([n for _, n in self._words], np.uint64))

    def _take(self, words: Sequence[Word]) -> int:
        self._words += words
        return len(self._words) - len(words)

    def _kernel(self, name: str, *words: Word, handle: int | None = None) -> Kernel:
        """One of rune's own kernels, by one thread."""
        return Kernel(name, line(1), line(1), self._take(words), handle)

    # --- single steps -----------------------------------------------------------------------

    def kernels(self, step: ConcreteStep) -> tuple[Kernel, ...]:
        """What a launch or a copy becomes: nothing, one kernel, or the parts of a long launch."""
        if id(step) not in self._known:
            kernel = self._copy(step) if isinstance(step.step, Copy) else self._launch(step)
            self._known[id(step)] = () if kernel is None else self._parts(kernel, step)
        return self._known[id(step)]

    def _parts(self, kernel: Kernel, step: ConcreteStep) -> tuple[Kernel, ...]:
        divided = self._divided
        if divided is None or not isinstance(step.step, Launch):
            return (kernel,)
        work = most_work(divided.work[step.step.kernel], self._sizes)
        launches = parts(kernel.blocks[0], work, divided.limit, MOST_BLOCKS)
        return tuple(replace(kernel, blocks=line(part.count), first=part.first) for part in launches)

    def _launch(self, step: ConcreteStep) -> Kernel | None:
        name, rendered = self._callee(step.step)
        blocks, threads = self._extents(step, rendered)
        if 0 in blocks:
            return None
        sizes = [(None, self._sizes[name]) for name in rendered.sizes]
        at = self._take([*map(word, step.places), *sizes])
        pairs = zip(step.places, rendered.params, strict=True)
        touches = tuple(self._touch(place, param.access is not Access.READ) for place, param in pairs)
        return Kernel(name, blocks, threads, at, shared_bytes=rendered.shared_bytes, touches=touches)

    def _callee(self, step: Step) -> tuple[str, Rendered]:
        """What a step launches, and the name by which its program is found."""
        if isinstance(step, Launch):
            rendered = self._rendered[step.kernel]
            return rendered.name, rendered
        assert self._sources is not None
        name = self._sources.names[id(step)]
        return name, self._sources.rendered[name]

    def _extents(self, step: ConcreteStep, rendered: Rendered) -> tuple[Extents, Extents]:
        """Blocks, and threads of a block."""
        if isinstance(step.step, Launch):
            blocks, threads = geometry(rendered, self._sizes, *self._shape)
            return line(blocks), line(threads)
        return extents(blocks_of(rendered, step, self._sizes)), extents(rendered.workgroup)

    def _touch(self, place: Place, is_written: bool) -> Touch:
        memory, offset = word(place)
        assert memory is not None
        return Touch(self._merged.get(memory, memory), offset, offset + place.bytes, is_written)

    def _copy(self, step: ConcreteStep) -> Kernel | None:
        target, source = step.places
        if not target.bytes:
            return None
        blocks = -(-target.bytes // (_COPIED_BYTES * THREADS))
        words = (word(target), word(source), (None, target.bytes))
        touches = self._touch(target, True), self._touch(source, False)
        return Kernel("rune_copy", line(blocks), line(THREADS), self._take(words), touches=touches)

    # --- graphs -----------------------------------------------------------------------------

    def nodes(self, steps: Steps) -> Nodes:
        """The nodes of steps that do not need the host."""
        nodes: list[Node] = []
        for step in steps:
            match step:
                case ConcreteStep():
                    nodes += self.kernels(step)
                case ConcreteBranch():
                    nodes += self._branch(step)
                case ConcreteLoop():
                    nodes += self._unrolled(step) if is_unrolled(step) else self._while(step)
        return tuple(nodes)

    def _handle(self) -> int:
        self.handles += 1
        return self.handles - 1

    def _store(self, place: Place, number: int) -> Kernel:
        return self._kernel("rune_store", word(place), (None, number))

    def _unrolled(self, loop: ConcreteLoop) -> list[Node]:
        """Every turn has nodes of its own: a condition belongs to one conditional node."""
        count, turns = loop.count or 0, len(loop.bodies)
        nodes: list[Node] = []
        for t in range(count):
            nodes += [self._store(loop.counter, t), *self.nodes(loop.bodies[t % turns])]
        return nodes + list(self.nodes(loop.settle) if count % turns else ())

    def _while(self, loop: ConcreteLoop) -> list[Node]:
        """A condition is set before the loop and at the end of its body; see below for two turns.

        The body's second turn runs if the condition holds after the first. If it does not, it
        still does not at the body's end, where nothing has changed it: the loop ends.
        """
        bodies = [self.nodes(body) for body in loop.bodies]
        again = self._handle()
        advance = self._kernel("rune_advance", word(loop.counter))
        start = [self._store(loop.counter, 0), *self._look(loop, 0), self._goes_on(loop, again)]
        body: list[Node] = [*bodies[0], advance, *self._look(loop, -1)]
        if len(bodies) == 2:
            second = self._handle()
            odd = Conditional(second, (*bodies[1], advance, *self._look(loop, 0)), repeats=False)
            body += [self._goes_on(loop, second), odd]
        body.append(self._goes_on(loop, again))
        nodes = [*start, Conditional(again, tuple(body), repeats=True)]
        return nodes + (self._settle(loop) if loop.settle else [])

    def _look(self, loop: ConcreteLoop, turn: int) -> Nodes:
        """What computes whether the loop goes on, if that is not the counter alone."""
        return self.nodes(loop.conditions[turn]) if loop.conditions else ()

    def _settle(self, loop: ConcreteLoop) -> list[Node]:
        """After an odd number of steps, which the counter has."""
        handle = self._handle()
        is_odd = self._kernel("rune_is_odd", word(loop.counter), handle=handle)
        return [is_odd, Conditional(handle, self.nodes(loop.settle), repeats=False)]

    def _goes_on(self, loop: ConcreteLoop, handle: int) -> Kernel:
        """Whether the counter is below the loop's count, if it has one, and the condition holds."""
        count = -1 if loop.count is None else loop.count
        holds = (None, 0) if loop.holds is None else word(loop.holds)
        words = word(loop.counter), (None, count % 2**64), holds
        return self._kernel("rune_goes_on", *words, handle=handle)

    def _branch(self, branch: ConcreteBranch) -> list[Node]:
        """All conditions are set before a branch runs, which may change the number."""
        last = len(branch.branches) - 1
        if not last:
            return list(self.nodes(branch.branches[0]))
        nodes: list[Node] = []
        handles = [self._handle() for _ in branch.branches]
        for case, handle in enumerate(handles):
            words = word(branch.number), (None, case), (None, last)
            nodes.append(self._kernel("rune_chosen", *words, handle=handle))
        bodies = map(self.nodes, branch.branches)
        nodes += [Conditional(h, b, repeats=False) for h, b in zip(handles, bodies, strict=True)]
        return nodes


def word(place: Place) -> Word:
    """The address of a place. All of the arena is one memory."""
    number = 0 if place.space is Space.ARENA else place.number
    return (place.space, number), place.offset
