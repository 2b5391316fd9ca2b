"""Records a schedule as command buffers, with the table of their kernels' arguments.

A recording is made once and submitted for many calls. It contains the address of each launch's part
of the table; a call rewrites the table, by one addition of arrays for any number of launches. So a
recording serves one call at a time, and each call in flight has its own. The table is in the
device's memory if the host can write there. If not, each call begins with a copy of the table to
the device, unless the host reads numbers that kernels write into it.

A barrier is recorded before a kernel that accesses bytes that an earlier one wrote, or writes bytes
that an earlier one read.
"""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from rune.backends.shared.call_list import CallList, Notes, helpers
from rune.backends.shared.pool import Block
from rune.backends.shared.ring import Ring
from rune.backends.vulkan.clock import number_of
from rune.backends.vulkan.commands import Commands
from rune.backends.vulkan.device import VulkanDevice
from rune.backends.vulkan.driver import api, c_array
from rune.backends.vulkan.items import (
    ARENA,
    TABLE,
    ZERO,
    Callback,
    Choice,
    Item,
    Items,
    Repeat,
    Run,
    Where,
    While,
    is_recordable,
    runs_of,
)
from rune.backends.vulkan.memory import VulkanMemory, bytes_of
from rune.backends.vulkan.pipeline import Pipeline, Pipelines
from rune.backends.vulkan.schedule import Schedule
from rune.backends.vulkan.stamps import PlayTimed, Stamps, Timer
from rune.records import dataclass

SUBMITTED = 1024  # the most command buffers in one submission
EXPANDED = 1 << 14  # the most command buffers of an unrolled repetition; longer ones the host repeats
_GATE_BYTES = 12  # three u32, a VkDispatchIndirectCommand
_COMPARED = 32  # the most kernels between two barriers
_TABLE_WORDS = 1 + ARENA  # of a recording's entry: where its table is, and the bases before the arena


# --- tables -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The words that a call writes into its table: for each the number of a base, and an offset.

    starts: the first word of each launch
    """

    bases: np.ndarray  # intp[words]
    offsets: np.ndarray  # i64[words]
    starts: Mapping[Run, int]

    def write(self, addresses: Sequence[int], table: np.ndarray) -> None:
        """Fill a table, i64[words], for these addresses of the bases."""
        np.add(np.array(addresses, np.int64)[self.bases], self.offsets, out=table)


def layout(schedule: Schedule) -> Layout:
    """The layout of a schedule's table."""
    starts: dict[Run, int] = {}
    words = [(ZERO, word) for word in schedule.header]
    for run in runs_of(schedule.items):
        # Equal launches, as those of a loop, share one part of the table.
        if run not in starts:
            starts[run] = len(words)
            words += [(w.base, w.offset) for w in run.places]
            words += [(ZERO, size) for size in run.sizes]
    bases, offsets = np.array(words, np.int64).reshape(-1, 2).T
    # Columns of `words` are strided; machine code reads these arrays as contiguous (record.Replay).
    return Layout(bases.astype(np.intp), offsets.copy(), starts)


# --- nodes ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Play:
    """Submissions of command buffers."""

    submissions: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """Nodes to play `count` times."""

    nodes: Nodes
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class PlayWhile:
    """See schedule.While."""

    first: Nodes
    batches: tuple[Nodes, ...]
    cycle: int
    settle: Nodes
    holds: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class PlayChoice:
    """See schedule.Choice."""

    number: Nodes
    word: int
    branches: tuple[Nodes, ...]


Node = Play | Again | PlayWhile | PlayChoice | PlayTimed | Callback
Nodes = tuple[Node, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Replay:
    """Calls that fill a table and submit all work, for any recording of a schedule.

    entries: the words that recordings have of their own
    bases:   the first of the words for the addresses of bases
    """

    calls: CallList
    entries: Ring
    bases: int


class Recording:
    """Command buffers, and the table that they use; `number` is their last submission.

    near:   the table's copy in the device's memory, or the table itself
    """

    __slots__ = ("__weakref__", "buffers", "near", "nodes", "number", "table", "words")

    def __init__(self, device: VulkanDevice, table: Block, near: Block):
        self.table, self.near = table, near
        self.words: np.ndarray = bytes_of(table).view(np.int64)
        self.nodes: Nodes = ()
        self.buffers: list[Any] = []  # to be freed with it
        self.number = 0
        weakref.finalize(self, _retire, device, self.buffers, (table, near)).atexit = False

    @property
    def entry(self) -> list[int] | None:
        """The words of this recording in a list of calls: its submissions, its table, and the
        addresses of the first two bases. None where the host decides between nodes."""
        plays = [node for node in self.nodes if isinstance(node, Play)]
        if len(plays) < len(self.nodes):
            return None
        infos = [number_of(info) for node in plays for info in node.submissions]
        return [*infos, self.words.ctypes.data, 0, self.near.number]


@dataclass(frozen=True, slots=True, eq=False)
class Recorder:
    """Records one schedule, any number of times.

    bases:   the number of bases
    aliases: a donated argument's base by the base of the result in its memory
    timer:   times every launch; each launch is then submitted separately
    submitted_work: the most work of one submission; None: any
    """

    memory: VulkanMemory
    pipelines: Pipelines
    kernels: Mapping[str, Pipeline]
    schedule: Schedule
    layout: Layout
    bases: int
    aliases: Mapping[int, int]
    timer: Timer | None = None
    submitted_work: int | None = None

    def record(self) -> Recording:
        """New command buffers with a new table. Errors: OutOfMemory, Failure."""
        device = self.memory.device
        words = len(self.layout.offsets)
        about = ("arguments of a plan",)
        table = self.memory.take_idle(self.memory.tables, 8 * words, about)
        near = self.memory.pool.take(8 * words, about) if self.copies_table else table
        recording = Recording(device, table, near)
        with device.lock:
            recording.nodes = _Work(self, table, near, recording.buffers).nodes(self.schedule.items, 0)
        return recording

    def replay(self, width: int, most: int) -> Replay:
        """The list of calls for at most `most` recordings of `width` words each."""
        notes, device, layout = Notes(), self.memory.device, self.layout
        use, infos = notes.row([0] * (1 + width)), width - _TABLE_WORDS
        first = use + 1
        bases = first + width - ARENA
        notes.row([0] * (self.bases - ARENA))  # a plan without an arena never uses its base
        arrays = [layout.bases.ctypes.data, layout.offsets.ctypes.data]
        numbers = map(notes.constant, (len(layout.offsets), *arrays))
        notes.call(helpers().fill, first + infos, *numbers, notes.address_of(bases))
        queue, one, null = map(notes.constant, (number_of(device.queue), 1, 0))
        count = notes.constant(device.clock.numbers.last.buffer_info()[0])
        for info in range(first, first + infos):
            notes.call(device.submit_address, queue, one, info, null, checked=True)
            # Together with the submission, so that no interrupt can come between them.
            notes.call(helpers().number, count)
        notes.hold(layout, device)
        calls = notes.list()
        return Replay(calls, Ring(calls, use, width, most, device.clock.numbers), bases)

    @property
    def copies_table(self) -> bool:
        """Whether kernels use a copy of the table: not if the host reads numbers from the table."""
        is_read = self.timer is not None or not all(map(is_recordable, self.schedule.items))
        return not self.memory.choice.has_near_tables and not is_read


def _retire(device: VulkanDevice, buffers: list[Any], tables: Sequence[Block]) -> None:
    """Free command buffers later, since a finaliser calls no driver. Tables may still be in use."""
    for block in tables:
        block.use(device.submissions)
    if buffers:
        device.destructions.append((device.submissions, lambda: _free(device, buffers)))


def _free(device: VulkanDevice, buffers: list[Any]) -> None:
    for allocation in buffers:
        device.free_command_buffers(allocation)


@dataclass(frozen=True, slots=True, eq=False)
class _Buffer:
    """A command buffer, and the work in it."""

    handle: object
    work: int


_Entry = _Buffer | Again | PlayTimed


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """One recording being made, under the device's lock."""

    recorder: Recorder
    table: Block
    near: Block
    command_buffers: list[Any]

    @property
    def device(self) -> VulkanDevice:
        return self.recorder.memory.device

    def nodes(self, items: Items, flags: int) -> Nodes:
        """The nodes of items: consecutive recordable items become submissions."""
        nodes: list[Node] = []
        for recordable, group in itertools.groupby(items, is_recordable):
            if recordable:
                nodes += self.flushed([*self.head(flags), *self.entries(tuple(group), flags)])
            else:
                nodes += map(self.node, group)
        return tuple(nodes)

    def head(self, flags: int) -> list[_Entry]:
        """The copy of the table, if kernels use a copy: then a call is one list of entries."""
        if self.near is self.table:
            return []
        buffer, nbytes = self.buffer(), 8 * len(self.recorder.layout.offsets)
        with Commands(self.device).recording(buffer, flags):
            self.recorder.memory.record_copy(buffer, self.table, 0, self.near, 0, nbytes)
        return [_Buffer(buffer, 0)]

    def node(self, item: Item) -> Node:
        """The node of an item in which the host takes part."""
        # A repeated buffer is submitted again while its last submission is pending.
        reusable = api().VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT

        def nodes(items: Items) -> Nodes:
            return self.nodes(items, reusable)

        match item:
            case While(first=first, batches=batches, settle=settle):
                parts = nodes(first), tuple(map(nodes, batches)), item.cycle, nodes(settle)
                return PlayWhile(*parts, item.holds, item.count)
            case Choice(number=number, word=word, branches=branches):
                return PlayChoice(nodes(number), word, tuple(map(nodes, branches)))
            case Repeat(items=items, count=count):
                return Again(nodes(items), count)
            case Callback():
                return item
            case Run():
                raise AssertionError(item)

    def entries(self, items: Items, flags: int) -> list[_Entry]:
        """Command buffers in the order of submission, and repetitions that are left to the host."""
        # An unrolled repetition submits one buffer many times at once.
        reusable = api().VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
        entries: list[_Entry] = []
        for kind, group in itertools.groupby(items, type):
            if kind is Run:
                runs = [item for item in group if isinstance(item, Run)]
                entries += self.launches(runs, flags)
                continue
            for repeat in group:
                assert isinstance(repeat, Repeat)
                inner = self.entries(repeat.items, reusable)
                # Unrolled, a repetition costs one pointer per buffer, and the host takes no part.
                if len(inner) * repeat.count <= EXPANDED:
                    entries += inner * repeat.count
                else:
                    entries.append(Again(self.flushed(inner), repeat.count))
        return entries

    def launches(self, runs: list[Run], flags: int) -> list[_Entry]:
        """The command buffers of consecutive launches."""
        timer = self.recorder.timer
        if timer is not None:
            reusable = api().VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
            return [self.timed(run, timer, reusable) for run in runs]
        chunks = _chunks(runs, lambda run: run.work, self.most_work)
        return [_Buffer(self.commands(chunk, flags), sum(r.work for r in chunk)) for chunk in chunks]

    def flushed(self, entries: list[_Entry]) -> Nodes:
        """Submissions of the command buffers."""
        nodes: list[Node] = []
        for is_buffer, group in itertools.groupby(entries, lambda x: isinstance(x, _Buffer)):
            if not is_buffer:
                nodes += [x for x in group if not isinstance(x, _Buffer)]
                continue
            buffers = [x for x in group if isinstance(x, _Buffer)]
            chunks = _chunks(buffers, lambda buffer: buffer.work, self.most_work, SUBMITTED)
            arrays = [c_array("VkCommandBuffer", [b.handle for b in chunk]) for chunk in chunks]
            nodes.append(Play(tuple(map(self.device.submission, arrays))))
        return tuple(nodes)

    def timed(self, run: Run, timer: Timer, flags: int) -> PlayTimed:
        """One launch between time stamps, as a submission of its own."""
        buffer, stamps = self.buffer(), Stamps(self.device)
        launch = self.launcher(buffer)
        with Commands(self.device).recording(buffer, flags):
            stamps.around(buffer, lambda: launch(run))
        submission = self.device.submission(c_array("VkCommandBuffer", [buffer]))
        return PlayTimed(run, submission, stamps, timer)

    @property
    def most_work(self) -> float:
        limit = self.recorder.submitted_work
        return math.inf if limit is None else limit

    def buffer(self) -> Any:
        """A new command buffer."""
        buffers = self.device.command_buffers(1)
        self.command_buffers.append(buffers)
        return buffers[0]

    def commands(self, runs: list[Run], flags: int) -> Any:
        """A command buffer with launches, and barriers where they are needed."""
        buffer = self.buffer()
        commands, hazards = Commands(self.device), Hazards(self.recorder.aliases)
        launch = self.launcher(buffer)
        with commands.recording(buffer, flags):
            for run in runs:
                if hazards.meets(run):
                    commands.barrier(buffer)
                launch(run)
        return buffer

    def launcher(self, buffer: Any) -> Callable[[Run], None]:
        """A function that records one launch. A pipeline stays bound until another one is
        needed."""
        vk, ffi, kernels = api(), api().ffi, self.recorder.kernels
        point, stage = vk.VK_PIPELINE_BIND_POINT_COMPUTE, vk.VK_SHADER_STAGE_COMPUTE_BIT
        driver, pipelines = self.device.vk, self.recorder.pipelines
        pipe_layout, pushed_bytes = pipelines.layout, pipelines.pushed_bytes
        constants = ffi.new("uint64_t[]", (0, 0, *pipelines.digits))
        starts = self.recorder.layout.starts
        bound: list[Pipeline | None] = [None]
        table, address = self.near, self.near.number

        def launch(run: Run) -> None:
            pipeline = kernels[run.kernel]
            if pipeline is not bound[0]:
                driver.vkCmdBindPipeline(buffer, point, pipeline.handle)
                bound[0] = pipeline
            constants[0], constants[1] = address + 8 * starts[run], run.first
            driver.vkCmdPushConstants(buffer, pipe_layout, stage, 0, pushed_bytes, constants)
            if run.gate is None:
                driver.vkCmdDispatch(buffer, *run.groups)
            else:
                at = table.offset + run.gate
                driver.vkCmdDispatchIndirect(buffer, table.handle.buffer, at)

        return launch


T = TypeVar("T")


def _chunks(items: Iterable[T], work: Callable[[T], int], limit: float, most: float = math.inf) -> Iterator[list[T]]:
    """Consecutive items in chunks of limited number and work; an item above the limit is alone."""
    chunk: list[T] = []
    total = 0
    for item in items:
        if chunk and (total + work(item) > limit or len(chunk) == most):
            yield chunk
            chunk, total = [], 0
        chunk.append(item)
        total += work(item)
    if chunk:
        yield chunk


class Hazards:
    """The places read and written since the last barrier."""

    def __init__(self, aliases: Mapping[int, int]):
        self.aliases = aliases
        self.since: list[tuple[Where, bool]] = []
        self.launches = 0

    def meets(self, run: Run) -> bool:
        """Whether the launch needs a barrier before it. Adds the launch's places."""
        places = [(self._memory_of(w), is_written) for w, is_written in zip(run.places, run.writes)]
        if run.gate is not None:
            places.append((Where(TABLE, run.gate, _GATE_BYTES), False))
        # A barrier at regular intervals bounds the comparisons, which grow with the square.
        needs_barrier = self.launches >= _COMPARED or any(
            (is_written or before) and _overlap(place, other)
            for place, is_written in places
            for other, before in self.since
        )
        if needs_barrier:
            self.since, self.launches = [], 0
        self.since += places
        self.launches += 1
        return needs_barrier

    def _memory_of(self, where: Where) -> Where:
        base = self.aliases.get(where.base)
        return where if base is None else Where(base, where.offset, where.bytes)


def _overlap(a: Where, b: Where) -> bool:
    return a.base == b.base and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes
