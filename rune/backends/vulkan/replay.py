"""A compiled plan on a Vulkan device: recorded once, replayed with one submission.

A call takes memory for its results, writes the table of a recording that is not in use, and submits
it; the host waits only where it has to decide what comes next. Up to IN_FLIGHT calls of a plan are
pending at once; the next one waits for the oldest. Calls that are submitted at once share one
arena, since work runs in order; a call that is submitted in parts has its own arena.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Protocol

import numpy as np

from rune import locks
from rune.backends.shared import shortage
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.callbacks import refuse_routines
from rune.backends.shared.executor import Concrete, Concretes, Place, result_buffers, size_bytes, static_shape
from rune.backends.shared.interrupts import deferred
from rune.backends.shared.native_player import Repeat, ResultMaker, native_player
from rune.backends.shared.pool import Block
from rune.backends.shared.protocol import Played
from rune.backends.shared.queued import call_python, check_dtypes
from rune.backends.shared.stock import Stock
from rune.backends.shared.timing import Meter
from rune.backends.shared.turns import DeviceBuffer
from rune.backends.shared.work import Work
from rune.backends.vulkan.driver import Failure
from rune.backends.vulkan.items import ARENA, GIVEN, Callback, own_kernels
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
from rune.backends.vulkan.session import Session
from rune.backends.vulkan.stamps import Timer
from rune.core.types import ArrayType
from rune.errors import CompileError, OutOfMemory
from rune.lowering.codegen.spirv.render import SpirvKernel, render
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.text import to_text
from rune.lowering.plan import Plan, Space

# The most recordings of a plan for one choice of sizes: a pending call reads a table of its own.
IN_FLIGHT = 32
_BACKLOG = 64  # the most pending submissions of one call


class VulkanQueue(Protocol):
    """The part of a Vulkan device that executables use."""

    target: Target
    work: Work
    check: Callable[[], None]  # Errors: DeviceError in a forked process

    def session(self) -> Session:
        """The current session of the device. Errors: DeviceError in a forked process."""
        ...

    def alloc(self, type: ArrayType, maker: str = "alloc") -> DeviceBuffer:
        """Uninitialised device memory for one array, made by `maker`. Errors: OutOfMemory."""
        ...


class _Kernels(dict[str, SpirvKernel]):
    """The plan's kernels as modules; rune's own kernels are rendered on first use."""

    def __init__(self, plan: Plan, backend: VulkanQueue):
        super().__init__({n: render(c, backend.target) for n, c in plan.kernels.items()})
        self.target = backend.target

    def __missing__(self, name: str) -> SpirvKernel:
        kernel = self[name] = render(own_kernels()[name], self.target)
        return kernel


class _Pipelines(dict[str, Pipeline]):
    """The kernels as pipelines of one session."""

    def __init__(self, kernels: _Kernels, session: Session, plan: Plan):
        super().__init__()
        self.kernels, self.session, self.plan = kernels, session, plan
        # Compiled now and not on first use, so that errors surface when the plan is recorded.
        for name in plan.kernels:
            self[name]

    def __missing__(self, name: str) -> Pipeline:
        kernel = self.kernels[name]
        try:
            pipeline = self[name] = self.session.pipelines(kernel.words, kernel.entry)
        except Failure as failure:
            target = self.kernels.target.name
            code = self.plan.kernels.get(name) or own_kernels()[name]
            raise CompileError(
                f"vulkan: cannot compile {kernel.name} for {target} ({failure})",
                hint="rune wrote this kernel: the fault is rune's own, or the driver's",
                source=to_text(code),
            ) from failure
        return pipeline


class _Variant:
    """A plan for one choice of sizes: its recorder, and its recordings.

    replay: plays any of them; None where the host decides between nodes, and until there is one
    idle:   those that no call uses, the oldest first, where the host decides
    """

    def __init__(self, executable: VulkanExecutable, concrete: Concrete):
        plan, session = executable.plan, executable.session
        for code in plan.kernels.values():
            require_few(code, executable.kernels.target, concrete.sizes)
        bound = executable.kernels.target.submission_work
        work = schedule(plan, concrete, executable.kernels, bound)
        first_result = GIVEN + len(plan.arguments)
        self.concrete, self.session = concrete, session
        self.recorder = Recorder(
            session.memory,
            session.pipelines,
            executable.pipelines,
            work,
            layout(work),
            first_result + len(plan.results),
            # A donated argument and its result are the same memory under two bases.
            {first_result + result: GIVEN + argument for argument, result in plan.donations},
            Timer(executable.meter, concrete.sizes) if executable.meter else None,
            bound,
        )
        self.recordings: list[Recording] = []
        self.replay: Replay | None = None
        self.idle: deque[Recording] = deque()

    def take(self) -> Recording | None:
        """A recording that no call uses; waits for one if there are IN_FLIGHT already. None if they
        are replayed."""
        device = self.recorder.memory.device
        try:
            oldest = self.idle.popleft()
        except IndexError:
            return self._new()
        # A pending call still reads this table; overwriting it would change that call.
        if not device.is_done(oldest.number):
            if len(self.recordings) < IN_FLIGHT:
                self.idle.appendleft(oldest)
                return self._new()
            device.wait(oldest.number)
        return oldest

    def await_entry(self, replay: Replay) -> None:
        """Wait until the next entry of the replay is free, unless there may be another one."""
        device = self.recorder.memory.device
        # A pending call still reads this table; overwriting it would change that call.
        if not device.is_done(replay.entries.next_use):
            if replay.entries.is_full:
                device.wait(replay.entries.next_use)
            else:
                self._new()

    def _new(self) -> Recording | None:
        """A new recording; None if the host decides nothing, and it is the replay's next one."""
        # Not under the device's lock, as those who hold the lock of a pool may wait for that one.
        device = self.recorder.memory.device
        try:
            recording = self.recorder.record()
        except Failure as failure:
            raise device.failure(failure.code, "record commands") from failure
        entry = recording.entry
        with device.lock:
            if entry is not None and self.replay is None:
                self.replay = self.recorder.replay(len(entry), IN_FLIGHT)
            if entry is not None and self.replay is not None:
                if self.replay.entries.is_full:  # other threads have made some meanwhile
                    return None
                self.replay.entries.add(entry)
            self.recordings.append(recording)
        return recording if entry is None else None


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
        self._open(backend.session())

    def _open(self, session: Session) -> None:
        """Compile for this session."""
        self.pipelines = _Pipelines(self.kernels, session, self.plan)
        self._variants: Bounded[Concrete, _Variant] = Bounded()
        self.session = session

    def sources(self) -> dict[str, str]:
        """The kernel code of each kernel, by name."""
        return {name: to_text(code) for name, code in self.plan.kernels.items()}

    def __call__(self, arguments: Sequence[DeviceBuffer], donated: Sequence[int] = ()) -> list[DeviceBuffer]:
        """Submit all steps; returns at once, unless the host decides between them."""
        concrete = self._concretes([a.shape for a in arguments])
        session = self._backend.session()
        if session is not self.session:
            with self._lock:
                # Checked again under the lock: another thread may have reopened it meanwhile.
                if session is not self.session:
                    self._open(session)
        self._check(arguments, session)
        try:
            results = result_buffers(self.plan, concrete, arguments, donated, self._alloc, _reuse)
            variant = self._variants.get(concrete)
            if variant is None:
                variant = self._variants.keep(concrete, _Variant(self, concrete))
            self._run(variant, [b.memory for b in (*arguments, *results)])
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error
        return results

    def _shortage(self, error: OutOfMemory, concrete: Concrete) -> OutOfMemory:
        return shortage.of_plan(error, self.plan, concrete.sizes, self._backend.target.name)

    def player(self, arguments: Sequence[DeviceBuffer]) -> Played | None:
        """Calls with arguments of these shapes and dtypes, which are checked once, here."""
        concrete = self._concretes([a.shape for a in arguments])
        check_dtypes(self.plan, arguments)
        shapes, session = tuple(map(static_shape, concrete.results)), self.session
        pool = session.memory.pool
        requests = [pool.request(size_bytes(t), (t, self.plan.name)) for t in concrete.results]
        stocks = [Stock(pool, request) for request in requests]
        makers = tuple(zip(stocks, concrete.results, shapes, strict=True))
        play, repeat = partial(self._call_again, concrete, session, makers), self._repeat(concrete, session)
        if repeat is not None:
            play = native_player(play, repeat, session, len(arguments), makers)
        return Played(play, shapes)

    def _repeat(self, concrete: Concrete, session: Session) -> Repeat | None:
        """What native code does in a call; None where the host decides between nodes."""
        variant = self._variants.get(concrete)
        if variant is None or variant.replay is None or variant.session is not session:
            return None
        replay, device = variant.replay, session.device
        blocks = len(self.plan.arguments) + len(self.plan.results)
        places = [(replay.bases + GIVEN + number, number) for number in range(blocks)]
        return Repeat(
            replay.calls,
            [*places, (replay.bases + ARENA, -1)] if concrete.arena_bytes else places,
            arena=session.memory.arena,
            nbytes=concrete.arena_bytes,
            unchanged=(),
            zeros=device.hindrances(),
            ring=replay.entries,
            begin=None,
            finish=None,
            answer=device.clock.numbers.last.buffer_info()[0],
            end=None,
            option=None,
            has_ended=device.is_done,
            refuse=partial(self._refused, variant, replay),
            owner=variant,
        )

    def _refused(self, variant: _Variant, replay: Replay, count: int, *_: DeviceBuffer) -> None:
        """Raise the error of a list whose next call the driver refused. Errors: DeviceError,
        OutOfMemory."""
        try:
            variant.session.device.refuse_list(replay.calls, count)
        except OutOfMemory as error:
            raise self._shortage(error, variant.concrete) from error

    def _call_again(
        self, concrete: Concrete, session: Session, makers: tuple[ResultMaker, ...], *arguments: DeviceBuffer
    ) -> tuple[DeviceBuffer, ...] | None:
        """Make a call whose arguments fit. Returns None, having done nothing, where memory is short
        and after the device was opened again."""
        self._backend.check()
        variant = self._variants.get(concrete)
        # A device that was opened again has another session, and the old one is lost.
        if variant is None or variant.session is not session or session.device.loss is not None:
            return None
        blocks, results, pool = list[Block](), list[DeviceBuffer](), session.memory.pool
        for buffer in arguments:
            if buffer.memory.pool is not pool:
                return None
            blocks.append(buffer.memory)
        try:
            for stock, type, shape in makers:
                blocks.append(block := stock.take())
                results.append(DeviceBuffer(block, type, shape))
        except OutOfMemory:
            return None
        try:
            self._run(variant, blocks)
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error
        return tuple(results)

    def _run(self, variant: _Variant, blocks: list[Block]) -> None:
        """Play a recording on the call's memory: blocks of arguments, then of results."""
        device, results = variant.session.device, blocks[len(self.plan.arguments) :]
        recording = variant.take() if variant.replay is None else None
        number = 0
        try:
            if recording is not None:
                self._play(variant, recording, blocks)
            elif variant.replay is not None:
                self._replay(variant, variant.replay, blocks)
        finally:
            # After an error, too: what was submitted before it uses the memory. Other threads may
            # have submitted since: waiting for theirs too is harmless.
            number = device.submissions if recording is None else recording.number
            self._backend.work.follow(partial(device.is_done, number))
            for result in results:
                result.writer = number
            if recording is not None:
                variant.idle.append(recording)

    def _play(self, variant: _Variant, recording: Recording, buffers: Sequence[Block]) -> None:
        """Play a recording in which the host decides what comes next."""
        session, table = variant.session, recording.near
        # A plan without intermediates never uses this base, so any address will do.
        arena = self._arena(variant) or table
        # In the order of the table's bases.
        blocks = [recording.table, table, arena, *buffers]
        variant.recorder.layout.write([0, *[b.number for b in blocks[1:]]], recording.words)
        call = _Call(session, recording, blocks, len(self.plan.arguments))
        try:
            call.play(recording.nodes)
        finally:
            # The host must not write these blocks before that submission has ended.
            session.memory.mark(blocks, call.number)
            recording.number = call.number

    def _replay(self, variant: _Variant, replay: Replay, blocks: list[Block]) -> None:
        """Play a recording in which the host decides nothing: one list of calls."""
        device, entries, nbytes = variant.session.device, replay.entries, variant.concrete.arena_bytes
        # All work is submitted at once, so the next call can use the same arena.
        arena = [variant.session.memory.arena(nbytes)] if nbytes else []
        variant.await_entry(replay)
        # An interrupt after the submission would leave the entry in use, and look free.
        with device.lock, deferred():
            device.begin()
            while not device.is_done(entries.next_use):  # another thread has used it meanwhile
                device.wait(entries.next_use)
            words, first = replay.calls.words, replay.bases + GIVEN
            for word, block in enumerate(blocks, first):
                words[word] = block.number
            for block in arena:
                words[replay.bases + ARENA] = block.number
            entries.begin()
            count = replay.calls.play()
            entries.end()
            for block in (*blocks, *arena):
                block.use(device.submissions)
            if count < replay.calls.count:
                device.refuse_list(replay.calls, count)

    def _arena(self, variant: _Variant) -> Block | None:
        """Memory for the intermediates of this call alone; None if it has none."""
        nbytes, pool = variant.concrete.arena_bytes, variant.session.memory.pool
        return pool.take(nbytes, ("intermediates of", self.plan.name)) if nbytes else None

    def _check(self, arguments: Sequence[DeviceBuffer], session: Session) -> None:
        for buffer in arguments:
            if buffer.memory.pool is not session.memory.pool:
                raise buffer.memory.handle.home.device.lost_error()
        check_dtypes(self.plan, arguments)


def _reuse(buffer: DeviceBuffer, type: ArrayType) -> DeviceBuffer:
    return DeviceBuffer(buffer.memory, type, static_shape(type))


class _Call:
    """A call that is submitted in parts; `number` is its last submission."""

    def __init__(self, session: Session, recording: Recording, blocks: Sequence[Block], arguments: int):
        self.device, self.memory = session.device, session.memory
        self.recording, self.blocks, self.arguments = recording, blocks, arguments
        self.number = 0

    def play(self, nodes: Nodes) -> None:
        """Submit recorded nodes; make decisions and callbacks between them."""
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
                        # Without a limit, a long loop would fill the driver's queue.
                        self.device.wait(self.number - _BACKLOG)
                case PlayWhile():
                    self.play_while(node)
                case PlayChoice(number=number, word=word, branches=branches):
                    self.play(number)
                    branch = min(max(self.read(word), 0), len(branches) - 1)
                    self.play(branches[branch])
                case Callback():
                    call_python(node.step, node.places, self.fetch, self.send, nullcontext())
                    self.number = self.device.submissions

    def play_while(self, loop: PlayWhile) -> None:
        """Alternate between reads of the condition and batches of steps."""
        number = 0
        self.play(loop.first)
        while self.read(loop.holds):
            self.play(loop.batches[number])
            number = number + 1 if number + 1 < len(loop.batches) else loop.cycle
        # After an odd number of steps, alternating carries are in the wrong place.
        if self.word(loop.count) % 2:
            self.play(loop.settle)

    def read(self, word: int) -> int:
        """A number that a kernel writes into the table, after waiting for all earlier work."""
        self.device.wait(self.number)
        return self.word(word)

    def word(self, word: int) -> int:
        """A number in the table now."""
        # Words have 64 bits, and a kernel writes its i32 into the lower half.
        return int(self.recording.words.view(np.int32)[2 * word])

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes at a place, after waiting for all earlier work."""
        host = np.empty(place.bytes, np.uint8)
        self.memory.read(self.block(place), place.offset, host, self.device.submissions)
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Write bytes to a place, after waiting for all earlier uses of its memory."""
        self.device.wait(self.device.submissions)
        self.memory.write(self.block(place), place.offset, host)

    def block(self, place: Place) -> Block:
        """The block in which a place lies."""
        first = {Space.ARENA: ARENA, Space.ARGUMENT: GIVEN, Space.RESULT: GIVEN + self.arguments}
        return self.blocks[first[place.space] + place.number]
