"""From a concrete plan to a CUDA graph, as data: kernels, their arguments, and conditions.

    launch @f                                kernel f (words 0..2)
    loop while @holds { launch @g }    ->    store 0 to the counter; @holds; goes_on sets handle 0
                                             while handle 0 { g, advance, @holds, goes_on }

A node is a kernel or contains nodes. A kernel takes the address of its words in one table in device
memory: addresses of buffers, then numbers. So a graph is built once for each choice of sizes and
never updated. A call rewrites the table, with one copy of a few kilobytes for any number of
kernels; updating nodes instead would cost a driver call each, and nodes in conditional bodies
cannot be updated. Copies and counters are kernels too (kernels.py), because their addresses change
as well.

A loop of few steps is unrolled; other loops, and branches, are conditional nodes, which drivers
have since CUDA 12.4. Without them, or where a plan calls Python, the host walks the steps instead,
with the same words and kernels. Nodes know which bytes they touch, and edges.py decides which of
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

UNROLLED = 128  # the most kernels of an unrolled loop
MOST_BLOCKS = 2**31 - 1  # along x: CUDA C++ Programming Guide, "Compute Capabilities"
_COPIED_BYTES = 16  # per thread, the widest load and store

Extents = tuple[int, int, int]  # along x, y and z


def extents(along: Sequence[int]) -> Extents:
    """Blocks or threads along x, y and z, with one along each dimension that is not given."""
    x, y, z = (*along, 1, 1)[:3]
    return x, y, z


def line(extent: int) -> Extents:
    """Blocks or threads along x alone: rune's kernels derive their indices from one number."""
    return extent, 1, 1


@dataclass(frozen=True, slots=True)
class Kernel:
    """One launch, whose arguments begin at `word` in the table.

    handle:       the condition that it sets, passed as the last argument
    first:        the number of its first block in the divided launch, passed as the second
                  argument; None if the launch is not divided
    shared_bytes: of each block, beyond those that the kernel declares
    touches:      the bytes that it reads or writes; None: unknown, so it is a barrier
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
        """The launch's arguments, with the table at this address of the device."""
        first = () if self.first is None else (self.first,)
        sets = () if self.handle is None else (int(handles[self.handle]),)
        return table + 8 * self.word, *first, *sets


@dataclass(frozen=True, slots=True)
class Conditional:
    """Nodes that run if a condition holds; with `repeats`, again and again while it holds."""

    handle: int
    body: Nodes
    repeats: bool


Node = Kernel | Conditional
Nodes = tuple[Node, ...]
Memory = tuple[Space, int]  # an argument, a result, or the arena
Word = tuple[Memory | None, int]  # a number, added to the address of some memory


@dataclass(frozen=True, slots=True)
class Table:
    """The words that kernels take: `numbers`, with the addresses of `memory` added."""

    memory: tuple[Memory, ...]
    which: np.ndarray  # by word: 0, or 1 + the number of its memory
    numbers: np.ndarray

    def words(self, address: Callable[[Memory], int]) -> np.ndarray:
        """The table for memory at these addresses, u64."""
        # One gather and one addition, however many words: this runs in every call.
        bases = np.array([0, *map(address, self.memory)], np.uint64)
        return bases[self.which] + self.numbers


def geometry(code: Rendered, sizes: Mapping[str, int], cores: int, warp: int = 32) -> tuple[int, int]:
    """Blocks and threads of a launch; no blocks for an empty domain.

    Errors: DeviceError for more blocks than a launch may have.
    """
    total = evaluate(product(code.grid), sizes)
    if code.workgroup:
        blocks, threads = total, code.workgroup[0]
    elif not code.grid:
        blocks, threads = 1, 1  # a kernel without grid axes has no bound to check
    else:
        threads = threads_of_group(total, cores, warp)
        blocks = -(-total // threads)
    if blocks > MOST_BLOCKS:
        raise DeviceError(
            f"cuda: cannot launch {code.name} over {total} points (at most {MOST_BLOCKS} blocks in a launch)",
            hint="work on smaller pieces",
        )
    return blocks, threads


def needs_host(steps: Steps, has_conditionals: bool) -> bool:
    """Whether only the host can run the steps: one calls Python, or decides without
    conditionals."""
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
    """Whether a loop's steps become nodes one after the other, without a condition."""
    if loop.holds is not None or loop.count is None:
        return False
    return loop.count * max(map(_length, loop.bodies)) <= UNROLLED


def _length(steps: Steps) -> int:
    """The most kernels that the steps become, and one more for a counter."""
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
class Division:
    """How to divide launches: the work of each kernel by its name, and the limit for one launch."""

    work: Mapping[str, Size]
    limit: int


class Recorder:
    """Converts concrete steps to kernels and nodes, and assigns words of one table.

    code:     the plan's kernels by name
    cores:    of the device, over which a small grid is spread
    warp:     the least threads of a block
    aliases:  memory that may be other memory: a result in the memory of a donated argument
    division: how to divide long launches, on a device with a watchdog
    sources:  kernels that users wrote
    """

    def __init__(
        self,
        code: Mapping[str, Rendered],
        sizes: Mapping[str, int],
        cores: int,
        warp: int = 32,
        aliases: Mapping[Memory, Memory] = MappingProxyType({}),
        division: Division | None = None,
        sources: Sources[object] | None = None,
    ):
        self._aliases, self._division, self._sources = aliases, division, sources
        self._code_by_name, self._sizes, self._shape = code, sizes, (cores, warp)
        self._words: list[Word] = []
        # An id belongs to one step as long as the recording holds the concrete plan.
        self._known: dict[int, tuple[Kernel, ...]] = {}  # by id of the concrete step
        self.handles = 0

    # --- words ------------------------------------------------------------------------------

    def table(self) -> Table:
        """The words assigned so far."""
        memory = dict.fromkeys(m for m, _ in self._words if m is not None)
        number = {None: 0, **{m: k for k, m in enumerate(memory, 1)}}
        which = np.array([number[m] for m, _ in self._words], np.intp)
        return Table(tuple(memory), which, np.array([n for _, n in self._words], np.uint64))

    def _take(self, words: Sequence[Word]) -> int:
        self._words += words
        return len(self._words) - len(words)

    def _kernel(self, name: str, *words: Word, handle: int | None = None) -> Kernel:
        """One of rune's own kernels, run by one thread."""
        return Kernel(name, line(1), line(1), self._take(words), handle)

    # --- single steps -----------------------------------------------------------------------

    def kernels(self, step: ConcreteStep) -> tuple[Kernel, ...]:
        """The kernels of a launch or a copy: none, one, or the parts of a divided launch."""
        # Remembered, since a loop that the host walks asks again in every step.
        if id(step) not in self._known:
            kernel = self._copy(step) if isinstance(step.step, Copy) else self._launch(step)
            self._known[id(step)] = () if kernel is None else self._parts(kernel, step)
        return self._known[id(step)]

    def _parts(self, kernel: Kernel, step: ConcreteStep) -> tuple[Kernel, ...]:
        division = self._division
        # How long a user's kernel runs is unknown, and copies are short.
        if division is None or not isinstance(step.step, Launch):
            return (kernel,)
        work = most_work(division.work[step.step.kernel], self._sizes)
        launches = parts(kernel.blocks[0], work, division.limit, MOST_BLOCKS)
        return tuple(replace(kernel, blocks=line(part.count), first=part.first) for part in launches)

    def _launch(self, step: ConcreteStep) -> Kernel | None:
        name, code = self._callee(step.step)
        blocks, threads = self._extents(step, code)
        if 0 in blocks:
            return None
        sizes = [(None, self._sizes[name]) for name in code.sizes]
        at = self._take([*map(word, step.places), *sizes])
        pairs = zip(step.places, code.params, strict=True)
        touches = tuple(self._touch(place, param.access is not Access.READ) for place, param in pairs)
        return Kernel(name, blocks, threads, at, shared_bytes=code.shared_bytes, touches=touches)

    def _callee(self, step: Step) -> tuple[str, Rendered]:
        """The code that a step launches, and the name of its program."""
        if isinstance(step, Launch):
            code = self._code_by_name[step.kernel]
            return code.name, code
        assert self._sources is not None
        name = self._sources.names[id(step)]
        return name, self._sources.kernels[name]

    def _extents(self, step: ConcreteStep, code: Rendered) -> tuple[Extents, Extents]:
        """Blocks of a launch, and threads of a block."""
        if isinstance(step.step, Launch):
            blocks, threads = geometry(code, self._sizes, *self._shape)
            return line(blocks), line(threads)
        return extents(blocks_of(code, step, self._sizes)), extents(code.workgroup)

    def _touch(self, place: Place, is_written: bool) -> Touch:
        memory, offset = word(place)
        assert memory is not None
        # As if every donation took place: one edge too many is harmless, one too few a race.
        return Touch(self._aliases.get(memory, memory), offset, offset + place.bytes, is_written)

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
        """The nodes of all steps. Each step needs its own: a condition belongs to one node."""
        count, turns = loop.count or 0, len(loop.bodies)
        nodes: list[Node] = []
        for t in range(count):
            nodes += [self._store(loop.counter, t), *self.nodes(loop.bodies[t % turns])]
        return nodes + list(self.nodes(loop.settle) if count % turns else ())

    def _while(self, loop: ConcreteLoop) -> list[Node]:
        """A while node. Its condition is set before the loop and at the end of the node's body.

        Where carries alternate, the body has two turns, and the second runs only if the condition
        holds after the first. If it does not, nothing changes it before the body's end, where it is
        evaluated again: so the loop ends.
        """
        bodies = [self.nodes(body) for body in loop.bodies]
        loop_handle = self._handle()
        advance = self._kernel("rune_advance", word(loop.counter))
        start = [self._store(loop.counter, 0), *self._look(loop, 0), self._goes_on(loop, loop_handle)]
        body: list[Node] = [*bodies[0], advance, *self._look(loop, -1)]
        if len(bodies) == 2:
            second = self._handle()
            odd = Conditional(second, (*bodies[1], advance, *self._look(loop, 0)), repeats=False)
            body += [self._goes_on(loop, second), odd]
        body.append(self._goes_on(loop, loop_handle))
        nodes = [*start, Conditional(loop_handle, tuple(body), repeats=True)]
        return nodes + (self._settle(loop) if loop.settle else [])

    def _look(self, loop: ConcreteLoop, turn: int) -> Nodes:
        """The nodes that compute the loop's condition, if it has one besides the counter."""
        return self.nodes(loop.conditions[turn]) if loop.conditions else ()

    def _settle(self, loop: ConcreteLoop) -> list[Node]:
        """The copies after an odd number of steps; the counter tells whether it is odd."""
        handle = self._handle()
        is_odd = self._kernel("rune_is_odd", word(loop.counter), handle=handle)
        return [is_odd, Conditional(handle, self.nodes(loop.settle), repeats=False)]

    def _goes_on(self, loop: ConcreteLoop, handle: int) -> Kernel:
        """Sets the handle: the counter is below the count, if there is one, and the condition
        holds."""
        # Words are unsigned 64-bit numbers; the kernel reads the count as signed.
        count = -1 if loop.count is None else loop.count
        holds = (None, 0) if loop.holds is None else word(loop.holds)
        words = word(loop.counter), (None, count % 2**64), holds
        return self._kernel("rune_goes_on", *words, handle=handle)

    def _branch(self, branch: ConcreteBranch) -> list[Node]:
        """All conditions are set before any branch runs, since a branch may overwrite the index."""
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
    """The address of a place, as a word. The entire arena is one memory."""
    number = 0 if place.space is Space.ARENA else place.number
    return (place.space, number), place.offset
