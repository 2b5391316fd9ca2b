"""A compiled plan on a Vulkan device: recorded once, replayed with one submission.

A call finds memory for its results, writes the table of a recording that is not in use, and
submits it; nothing waits but a call whose way the host must decide. Up to IN_FLIGHT calls of a plan
are pending at once; the next waits for the oldest. Calls that are submitted as a whole share one
arena, since work runs in order; one that is submitted bit by bit has an arena of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import Protocol

import numpy as np

from rune import locks
from rune.backends.shared import shortage
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.shared.executor import Concrete, Concretes, Place, result_buffers, size_bytes, static_shape
from rune.backends.shared.pool import Block, Request
from rune.backends.shared.protocol import Played
from rune.backends.shared.queued import call_python, check_dtypes
from rune.backends.shared.timing import Meter
from rune.backends.shared.work import Work
from rune.backends.vulkan.driver import Failure
from rune.backends.vulkan.items import ARENA, GIVEN, Callback, own_kernels
from rune.backends.vulkan.memory import address_of
from rune.backends.vulkan.opened import Opened
from rune.backends.vulkan.pipeline import Pipeline
from rune.backends.vulkan.record import (
    Again,
    Nodes,
    Play,
    PlayChoice,
    PlayTimed,
    PlayWhile,
    Recorder,
    Recording,
    Replay,
    layout,
)
from rune.backends.vulkan.schedule import schedule
from rune.backends.vulkan.stamps import Timer
from rune.core.types import ArrayType
from rune.errors import CompileError, OutOfMemory
from rune.lowering.codegen.spirv.render import SpirvKernel, render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.text import to_text
from rune.lowering.plan import Plan, Space
from rune.records import dataclass

IN_FLIGHT = 32
_BACKLOG = 64  # submissions of one call that may be pending


@dataclass(slots=True, eq=False, weakref_slot=True)
class VulkanBuffer:
    """An array in device memory; the memory is free with the last buffer that holds it."""

    memory: Block
    type: ArrayType
    shape: tuple[int, ...]
    opened: Opened  # of this opening of the device
    address: int
    written: int = 0  # the submission that writes it


class VulkanQueue(Protocol):
    """The part of a Vulkan device that executables use."""

    target: Target
    work: Work

    def opened(self) -> Opened:
        """The device, open. Errors: DeviceError in a forked process."""
        ...

    def alloc(self, type: ArrayType, maker: str = "alloc") -> VulkanBuffer:
        """Uninitialised device memory for one array, made by `maker`. Errors: OutOfMemory."""
        ...


class _Kernels(dict[str, SpirvKernel]):
    """The plan's kernels as modules; rune's own are rendered when first asked for."""

    def __init__(self, plan: Plan, backend: VulkanQueue):
        super().__init__({n: render(c, backend.target) for n, c in plan.kernels.items()})
        self.target = backend.target

    def __missing__(self, name: str) -> SpirvKernel:
        kernel = self[name] = render(own_kernels()[name], self.target)
        return kernel


class _Pipelines(dict[str, Pipeline]):
    """The kernels as one opening of the device has compiled them, each when first asked for."""

    def __init__(self, kernels: _Kernels, opened: Opened, plan: Plan):
        super().__init__()
        self.kernels, self.opened, self.plan = kernels, opened, plan
        # Compiled now rather than at the first call, so that errors surface when the plan is
        # recorded.
        for name in plan.kernels:
            self[name]

    def __missing__(self, name: str) -> Pipeline:
        kernel = self.kernels[name]
        try:
            pipeline = self[name] = self.opened.pipelines(kernel.words, kernel.entry)
        except Failure as failure:
            target = self.kernels.target.name
            code = self.plan.kernels.get(name) or own_kernels()[name]
            raise CompileError(
                f"vulkan: cannot compile {kernel.name} for {target} ({failure})",
                hint="rune wrote this kernel: the fault is rune's own, or the driver's",
                source=to_text(code),
            ) from failure
        return pipeline


class _Prepared:
    """A plan for one choice of sizes: how to record it, and its recordings, the oldest first."""

    def __init__(self, executable: VulkanExecutable, concrete: Concrete):
        plan, opened = executable.plan, executable.opened
        for code in plan.kernels.values():
            require_few(code, executable.kernels.target, concrete.sizes)
        bound = executable.kernels.target.submission_work
        work = schedule(plan, concrete, executable.kernels, bound)
        first_result = GIVEN + len(plan.arguments)
        self.concrete, self.opened = concrete, opened
        self.recorder = Recorder(
            opened.memory,
            opened.pipelines,
            executable.pipelines,
            work,
            layout(work),
            first_result + len(plan.results),
            # A donated argument and its result are one memory, whichever name a kernel uses.
            {first_result + result: GIVEN + argument for argument, result in plan.donations},
            Timer(executable.meter, concrete.sizes) if executable.meter else None,
            bound,
        )
        self._idle: deque[Recording] = deque()
        self._count = 0

    def take(self) -> Recording:
        """A recording that is not in use."""
        device = self.recorder.memory.device
        try:
            oldest = self._idle.popleft()
        except IndexError:
            return self._new()
        # A pending call still reads this table; overwriting it would change that call.
        if not device.is_done(oldest.number):
            if self._count < IN_FLIGHT:
                self._idle.appendleft(oldest)
                return self._new()
            device.wait(oldest.number)
        return oldest

    def _new(self) -> Recording:
        try:
            recording = self.recorder.record()
        except Failure as failure:
            device = self.recorder.memory.device
            raise device.failure(failure.code, "record commands") from failure
        self._count += 1
        return recording

    def give_back(self, recording: Recording) -> None:
        """It serves again once its last submission is done."""
        self._idle.append(recording)


class VulkanExecutable:
    """A compiled plan; `meter` records the time of each step."""

    def __init__(self, backend: VulkanQueue, plan: Plan, meter: Meter | None = None):
        refuse_routines(plan, backend.target)
        self.plan, self.meter = plan, meter
        self._backend = backend
        self._alloc = partial(backend.alloc, maker=plan.name)
        self._concretes = Concretes(plan)
        self._lock = locks.lock()  # of `_open`
        self.kernels = _Kernels(plan, backend)
        self._open(backend.opened())

    def _open(self, opened: Opened) -> None:
        """Compile for this opening of the device."""
        self.pipelines = _Pipelines(self.kernels, opened, self.plan)
        self._prepared: Bounded[Concrete, _Prepared] = Bounded()
        self.opened = opened

    def sources(self) -> dict[str, str]:
        """Each kernel as rune's kernel code, by name."""
        return {name: to_text(code) for name, code in self.plan.kernels.items()}

    def __call__(self, arguments: Sequence[VulkanBuffer], donated: Sequence[int] = ()) -> list[VulkanBuffer]:
        """Submit all steps; returns at once, unless the host decides between them."""
        concrete = self._concretes([a.shape for a in arguments])
        opened = self._backend.opened()
        if opened is not self.opened:
            with self._lock:
                # Checked again under the lock: another thread may have reopened it meanwhile.
                if opened is not self.opened:
                    self._open(opened)
        self._check(arguments, opened)
        try:
            results = result_buffers(self.plan, concrete, arguments, donated, self._alloc, _reuse)
            prepared = self._prepared.get(concrete)
            if prepared is None:
                prepared = self._prepared.keep(concrete, _Prepared(self, concrete))
            self._run(prepared, arguments, results)
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error
        return results

    def _shortage(self, error: OutOfMemory, concrete: Concrete) -> OutOfMemory:
        return shortage.of_plan(error, self.plan, concrete.sizes, self._backend.target.name)

    def player(self, arguments: Sequence[VulkanBuffer]) -> Played | None:
        """Calls with arguments of these shapes and dtypes, which are checked here, once."""
        concrete = self._concretes([a.shape for a in arguments])
        check_dtypes(self.plan, arguments)
        shapes, pool = tuple(map(static_shape, concrete.results)), self.opened.memory.pool
        requests = [pool.request(size_bytes(t), (t, self.plan.name)) for t in concrete.results]
        asked = tuple(zip(requests, concrete.results, shapes, strict=True))
        return Played(partial(self._call_again, concrete, asked), shapes)

    def _call_again(
        self,
        concrete: Concrete,
        asked: tuple[tuple[Request, ArrayType, tuple[int, ...]], ...],
        *arguments: VulkanBuffer,
    ) -> tuple[VulkanBuffer, ...] | None:
        """A call whose arguments fit; None, with nothing done, where memory is short, and on a
        device that was opened again."""
        opened, prepared = self._backend.opened(), self._prepared.get(concrete)
        if prepared is None or prepared.opened is not opened:
            return None
        for buffer in arguments:
            if buffer.opened is not opened:
                return None
        serve, results = opened.memory.pool.serve, []
        try:
            for request, type, shape in asked:
                block = serve(request)
                results.append(VulkanBuffer(block, type, shape, opened, block.handle.address + block.offset))
        except OutOfMemory:
            return None
        try:
            self._run(prepared, arguments, results)
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error
        return tuple(results)

    def _run(self, prepared: _Prepared, arguments: Sequence[VulkanBuffer], results: Sequence[VulkanBuffer]) -> None:
        """Play a recording on this memory. The order of blocks is that of the table's bases."""
        opened = prepared.opened
        recording = prepared.take()
        if recording.replay is not None:
            self._replay(prepared, recording, recording.replay, (*arguments, *results))
            for result in results:
                result.written = recording.number
            return
        table, buffers = recording.near, (*arguments, *results)
        # A plan without intermediates never uses this base, so any address will do.
        arena = self._arena(prepared) or table
        blocks = [recording.table, table, arena, *[x.memory for x in buffers]]
        addresses = [0, address_of(table), address_of(arena), *[x.address for x in buffers]]
        prepared.recorder.layout.write(addresses, recording.words)
        call, work = _Call(opened, recording, blocks, len(arguments)), self._backend.work
        try:
            call.play(recording.nodes)
        finally:
            work.follow(partial(opened.device.is_done, call.number))
            # The pool must not hand these blocks to the host before that submission has ended.
            opened.memory.mark(blocks, call.number)
            for result in results:
                result.written = call.number
            recording.number = call.number
            prepared.give_back(recording)

    def _replay(
        self, prepared: _Prepared, recording: Recording, replay: Replay, buffers: Sequence[VulkanBuffer]
    ) -> None:
        """Play a recording whose way is known: one list of calls."""
        device, work, words = prepared.opened.device, self._backend.work, replay.calls.words
        blocks = [buffer.memory for buffer in buffers]
        word = replay.bases + GIVEN
        for buffer in buffers:
            words[word] = buffer.address
            word += 1
        if prepared.concrete.arena_bytes:
            # All of it is submitted at once, so the next call may have the same.
            arena = prepared.opened.memory.arena(prepared.concrete.arena_bytes)
            words[replay.bases + ARENA] = address_of(arena)
            blocks.append(arena)
        try:
            device.submit_list(replay.calls, replay.numbers, blocks)
        finally:
            # What other threads have submitted since then ends later, and is waited for as well.
            recording.number = number = device.submitted
            work.follow(partial(device.is_done, number))
            prepared.give_back(recording)

    def _arena(self, prepared: _Prepared) -> Block | None:
        """Memory for intermediates; it serves the next call once all of this one is submitted."""
        nbytes, pool = prepared.concrete.arena_bytes, prepared.opened.memory.pool
        return pool.take(nbytes, ("intermediates of", self.plan.name)) if nbytes else None

    def _check(self, arguments: Sequence[VulkanBuffer], opened: Opened) -> None:
        for buffer in arguments:
            if buffer.opened is not opened:
                raise buffer.opened.device.lost_error()
        check_dtypes(self.plan, arguments)


def _reuse(buffer: VulkanBuffer, type: ArrayType) -> VulkanBuffer:
    shape = static_shape(type)
    return VulkanBuffer(buffer.memory, type, shape, buffer.opened, buffer.address, buffer.written)


class _Call:
    """One call under way; `number` is its last submission."""

    def __init__(self, opened: Opened, recording: Recording, blocks: Sequence[Block], arguments: int):
        self.device, self.memory = opened.device, opened.memory
        self.recording, self.blocks, self.arguments = recording, blocks, arguments
        self.number = 0

    def play(self, nodes: Nodes) -> None:
        """Submit what is recorded; decide and call what is not."""
        for node in nodes:
            match node:
                case Play(submissions=submissions):
                    for submission in submissions:
                        self.number = self.device.submit(submission)
                case PlayTimed():
                    self.number = node.play(self.recording.words.view(np.uint32))
                case Again(nodes=inner, count=count):
                    for _ in range(count):
                        self.play(inner)
                        # Without a limit, a long loop would fill the driver's queue with
                        # submissions.
                        self.device.wait(self.number - _BACKLOG)
                case PlayWhile():
                    self.play_while(node)
                case PlayChoice(number=shown, word=word, branches=branches):
                    self.play(shown)
                    chosen = min(max(self.read(word), 0), len(branches) - 1)
                    self.play(branches[chosen])
                case Callback():
                    call_python(node.step, node.places, self.fetch, self.send, nullcontext())
                    self.number = self.device.submitted

    def play_while(self, loop: PlayWhile) -> None:
        """A look, a batch of steps, a look, the next batch."""
        number = 0
        self.play(loop.first)
        while self.read(loop.holds):
            self.play(loop.batches[number])
            number = number + 1 if number + 1 < len(loop.batches) else loop.cycle
        # Carries took turns an odd number of times.
        if self.word(loop.count) % 2:
            self.play(loop.settle)

    def read(self, word: int) -> int:
        """A number that a kernel has put into the table, when all before is done."""
        self.device.wait(self.number)
        return self.word(word)

    def word(self, word: int) -> int:
        """A number in the table now."""
        # Words have 64 bits, and a kernel writes its i32 into the lower half.
        return int(self.recording.words.view(np.int32)[2 * word])

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes there, when all before is done."""
        host = np.empty(place.bytes, np.uint8)
        self.memory.read(self.block(place), place.offset, host, self.device.submitted)
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Put bytes there, once what had this memory before is done."""
        self.device.wait(self.device.submitted)
        self.memory.write(self.block(place), place.offset, host)

    def block(self, place: Place) -> Block:
        """The memory that a place is in."""
        first = {Space.ARENA: ARENA, Space.ARGUMENT: GIVEN, Space.RESULT: GIVEN + self.arguments}
        return self.blocks[first[place.space] + place.number]
