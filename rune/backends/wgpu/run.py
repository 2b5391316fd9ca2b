"""A plan on a WebGPU device: a call is one command encoder, submitted once.

Entire buffers are bound, and a kernel reads from its uniform block where its parameters begin in
them. No buffer may be bound twice. Which parameters share a buffer (the arena, an argument that is
passed twice or donated) is known when a step is encoded, and the kernel is compiled for each such
arrangement. If a step has more buffers than may be bound, some are copied into one, and back.

The host waits only to read a branch's index or a while loop's condition, and for callbacks: it then
submits the commands encoded so far, and begins another encoder.
Invariant: nothing is dispatched over an empty grid.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from rune.backends.shared.bounded import Bounded
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, evaluate, run
from rune.backends.shared.interrupts import deferred
from rune.backends.shared.lists import ARENA, Lists
from rune.backends.shared.native_player import Repeat
from rune.backends.shared.parts import parts
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import QueuedExecutable, QueuedWalker
from rune.backends.shared.timing import Meter, TimedWalker
from rune.backends.wgpu.queue import WgpuQueue
from rune.backends.wgpu.script import KEPT, Commands, Cut, Move, Native, Script
from rune.backends.wgpu.script import Launch as Launched
from rune.backends.wgpu.stamps import STAMPS, Stamps
from rune.errors import DeviceError
from rune.lowering.codegen.wgsl.render import Rendered, render
from rune.lowering.kernel.nodes import Access
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernel.work import counted_work, most_work
from rune.lowering.plan import Call, Copy, Launch, Plan, Space, all_steps
from rune.records import dataclass

_INDICES = 1 << 31  # indices are i32
POSITIONS = 1 << 32  # positions in a buffer [bytes] are u32
_COMMANDS = 1 << 10  # the most in one encoder: a long loop is submitted in parts
_GROUPS_KEPT = 4  # bind groups of one step, by the buffers of the last calls
_ALIGNED = 256  # [B]: the distance of packed parameters, as of blocks of the pool

_Memories = tuple[int, ...]  # the memory of each parameter


def padded(nbytes: int) -> int:
    """The bytes rounded up to whole words, at least one.

    >>> padded(0), padded(5)
    (4, 8)
    """
    return max(4, -(-nbytes // 4) * 4)


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel, compiled for one arrangement of its parameters in memories."""

    code: Rendered
    pipeline: Native


@dataclass(slots=True)
class _Dispatch:
    """A launch or a part of it, for one choice of sizes and one arrangement in memories."""

    pipeline: Native
    layout: Any
    block: object  # the uniform block
    groups: tuple[int, int]
    work: int
    bound: list[tuple[tuple[Any, ...], Any]] = field(default_factory=list)  # handles, bind group

    def group(self, device: Any, handles: tuple[object, ...]) -> Any:
        """The bind group for these buffers."""
        # Creating one costs more than the dispatch, and calls alternate between few buffers.
        for known, group in self.bound:
            if all(a is b for a, b in zip(known, handles, strict=True)):
                return group
        resources = [{"buffer": b} for b in (self.block, *handles)]
        entries = [{"binding": k, "resource": r} for k, r in enumerate(resources)]
        group = device.create_bind_group(layout=self.layout, entries=entries)
        self.bound = [(handles, group), *self.bound[: _GROUPS_KEPT - 1]]
        return group


@dataclass(slots=True)
class Encoder:
    """The commands of one call until they are submitted. Consecutive dispatches share a pass."""

    backend: WgpuQueue
    notes: Commands = field(default_factory=Commands)
    stamps: Stamps | None = None  # each pass writes them
    is_stamped: bool = False  # whether a pass has written them since the last submission
    seconds: float | None = None  # of the passes since this was last set, by the stamps
    commands: Any = None
    computing: Any = None
    count: int = 0
    work: int = 0
    scratch: list[Block] = field(default_factory=list)  # scratch of this call

    def begin(self) -> Any:
        """The encoder, with no pass open."""
        if self.commands is None:
            self.commands = self.backend.device.create_command_encoder()
        if self.computing is not None:
            self.computing.end()
            self.computing = None
        self.count += 1
        return self.commands

    def dispatch(self, dispatch: _Dispatch, handles: tuple[object, ...]) -> None:
        """Encode a kernel."""
        limit = self.backend.target.submission_work
        if self.count >= _COMMANDS or (limit is not None and self.work and self.work + dispatch.work > limit):
            self.submit()
            self.notes.note(Cut())
        self.work += dispatch.work
        if self.computing is None:
            self.computing = self.open_pass(self.begin())
        self.count += 1
        group = dispatch.group(self.backend.device, handles)
        self.computing.set_pipeline(dispatch.pipeline)
        self.computing.set_bind_group(0, group)
        self.computing.dispatch_workgroups(*dispatch.groups)
        if self.notes.fits:
            self.notes.note(Launched(dispatch.pipeline, group, dispatch.groups))

    def open_pass(self, commands: Any) -> Any:
        """Begin a pass."""
        if self.stamps is None:
            return commands.begin_compute_pass()
        self.is_stamped = True
        return commands.begin_compute_pass(timestamp_writes=self.stamps.writes)

    def copy(self, target: Native, to: int, source: Native, at: int, nbytes: int) -> None:
        """Encode a copy of whole words; within one buffer, through another one."""
        commands, size = self.begin(), padded(nbytes)
        if target is source:
            # WebGPU refuses a copy between two ranges of one buffer.
            block = self.backend.pool.take(size, ("copy",))
            self.hold(block)
            commands.copy_buffer_to_buffer(source, at, block.handle, 0, size)
            source, at = block.handle, 0
        commands.copy_buffer_to_buffer(source, at, target, to, size)
        if self.notes.fits:
            self.notes.note(Move(target, to, source, at, size))

    def hold(self, block: Block) -> None:
        """Keep scratch memory of this call. The commands then cannot be replayed on other
        memory."""
        self.scratch.append(block)
        self.notes.fits = False

    def submit(self) -> None:
        """Submit the encoded commands; returns at once."""
        with deferred():  # an interrupt inside wgpu-py would leave an encoder half finished
            self._submit()

    def _submit(self) -> None:
        if self.commands is not None:
            commands = self.begin()
            if self.stamps is not None and self.is_stamped:
                self.stamps.resolve(commands)
            self.backend.queue.submit([commands.finish()])
            if self.stamps is not None and self.is_stamped:
                self.seconds = (self.seconds or 0.0) + self.stamps.seconds()
        self.commands, self.count, self.work, self.is_stamped = None, 0, 0, False
        self.scratch.clear()


@dataclass(frozen=True, slots=True)
class Walker(QueuedWalker["WgpuExecutable"]):
    """Encodes the steps of one call one by one. Only `read` and `fetch` wait."""

    executable: WgpuExecutable
    concrete: Concrete
    memory: Mapping[Space, Sequence[Block]]
    encoder: Encoder

    def block(self, place: Place) -> Block:
        """The block in which a place lies."""
        return self.memory[place.space][0 if place.space is Space.ARENA else place.number]

    def enqueue(self, step: ConcreteStep) -> None:
        """Encode a kernel or copy."""
        if isinstance(step.step, Launch):
            self.launch(step)
        else:
            with deferred():
                self.copy(*step.places)

    def copy(self, target: Place, source: Place) -> None:
        """Encode a copy, unless the argument was donated to this result."""
        to, at = self.block(target).handle, self.block(source).handle
        if target.bytes and (to is not at or target.offset != source.offset):
            self.encoder.copy(to, target.offset, at, source.offset, target.bytes)

    def launch(self, step: ConcreteStep) -> None:
        """Encode a kernel. Signal handlers run between its parts."""
        with deferred():  # an exception from a handler in here would make wgpu-native end the process
            parts = self.first_part(step)
        for dispatch, handles in parts:
            with deferred():
                self.encoder.dispatch(dispatch, handles)

    def first_part(self, step: ConcreteStep) -> list[tuple[_Dispatch, tuple[object, ...]]]:
        """Encode the first part of a kernel, and return the others.

        Buffers beyond the device's limit are packed into one, for all parts together.
        """
        handles: list[object] = []
        for place in step.places:
            handle = self.block(place).handle
            if not any(handle is h for h in handles):
                handles.append(handle)
        # The last binding is needed for the packed buffer.
        if len(handles) > self.executable.backend.most_memories:
            self.launch_packed(step, handles[: self.executable.backend.most_memories - 1])
            return []
        memories = tuple(_index(handles, self.block(p).handle) for p in step.places)
        dispatches = self.executable.dispatches(step, self.concrete, memories)
        for dispatch in dispatches[:1]:
            self.encoder.dispatch(dispatch, tuple(handles))
        return [(dispatch, tuple(handles)) for dispatch in dispatches[1:]]

    def launch_packed(self, step: ConcreteStep, handles: list[object]) -> None:
        """Encode a kernel with some of its places copied into one buffer, and back."""
        params = self.executable.params(step)
        packed_params = [k for k, p in enumerate(step.places) if self.block(p).handle not in handles]
        offsets, end = [p.offset for p in step.places], 0
        for k in packed_params:
            offsets[k], end = end, end + -(-step.places[k].bytes // _ALIGNED) * _ALIGNED
        block = self.executable.backend.pool.take(padded(end), ("packed buffers",))
        self.encoder.hold(block)
        memories = tuple(
            len(handles) if k in packed_params else _index(handles, self.block(p).handle)
            for k, p in enumerate(step.places)
        )
        dispatches = self.executable.dispatches(step, self.concrete, memories, tuple(offsets))
        if not dispatches:
            return
        pairs = [(self.block(step.places[k]).handle, step.places[k], k) for k in packed_params]
        for handle, place, k in pairs:
            # A place that is only written need not be copied in, one only read not back.
            if place.bytes and params[k].access is not Access.WRITE:
                self.encoder.copy(block.handle, offsets[k], handle, place.offset, place.bytes)
        for dispatch in dispatches:
            self.encoder.dispatch(dispatch, (*handles, block.handle))
        for handle, place, k in pairs:
            if place.bytes and params[k].access is not Access.READ:
                self.encoder.copy(handle, place.offset, block.handle, offsets[k], place.bytes)

    def write(self, place: Place, number: int) -> None:
        """Encode the store of an i32."""
        with deferred():
            numbers = self.executable.backend.numbers(number + 1)
            self.encoder.copy(self.block(place).handle, place.offset, numbers, 4 * number, 4)

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes at a place, after waiting for all encoded work."""
        self.encoder.submit()
        return self.executable.backend.fetch(self.block(place).handle, place.offset, place.bytes)

    def send(self, place: Place, host: np.ndarray) -> None:
        """Write bytes to a place, after all encoded work."""
        self.encoder.submit()
        self.executable.backend.send(self.block(place), place.offset, host)


def _index(handles: Sequence[object], handle: object) -> int:
    return next(k for k, h in enumerate(handles) if h is handle)


class WgpuExecutable(QueuedExecutable[WgpuQueue]):
    """A compiled plan; `meter` records the time of each step."""

    def __init__(self, backend: WgpuQueue, plan: Plan, meter: Meter | None = None):
        super().__init__(backend, plan)
        self.meter = meter
        has_stamps = meter is not None and STAMPS in backend.device.features
        self.stamps = Stamps(backend) if has_stamps else None
        self._kernels: dict[tuple[str, _Memories], _Kernel] = {}
        self._dispatches: Bounded[Concrete, dict[Any, tuple[_Dispatch, ...]]] = Bounded()
        self._sources: dict[str, str] = {}
        self._scripts: Bounded[tuple[object, ...], Script] = Bounded(KEPT)
        self._lists: Bounded[Concrete, Lists] = Bounded()
        self._is_straight = all(isinstance(s, Launch | Copy) for s in plan.steps)
        for step in all_steps(plan):
            if isinstance(step, Launch):
                kernel = self._kernel(step.kernel, _memories(step, backend.most_memories))
                self._sources.setdefault(step.kernel, kernel.code.text)

    def sources(self) -> dict[str, str]:
        """The module of each kernel, by name."""
        return dict(self._sources)

    def params(self, step: ConcreteStep) -> Sequence[Any]:
        """The parameters of the kernel that a step launches."""
        assert isinstance(step.step, Launch)
        return self.plan.kernels[step.step.kernel].params

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Encode all steps on the call's memory, and submit them."""
        # Bind groups refer to buffers, so a script is valid only for the same memory.
        key = (concrete, *[block.handle for blocks in memory.values() for block in blocks])
        script = self._scripts.get(key)
        with self.backend.failing(self.plan.name):
            if script is not None:
                script.play(self.backend.guard)
            elif self.meter is not None:
                self._run_timed(self.meter, concrete, memory)
            else:
                self._encode(key, concrete, memory)

    def run_again(self, concrete: Concrete, blocks: list[Block]) -> Callable[[], bool] | None:
        """As `run_steps`, on blocks of arguments, then of results."""
        # In the order of the memory of `run_steps`, where the arena is last.
        arena, lists = self.arena(concrete), self._lists.get(concrete)
        script = self._scripts.get((concrete, *[block.handle for block in (*blocks, *arena)]))
        if script is None:
            return super().run_again(concrete, blocks)
        with self.backend.failing(self.plan.name):
            script.play(self.backend.guard)
        if lists is not None and len(script.lists) == 1:
            # Not the blocks: their memory would never be free again.
            memory = [*blocks, *arena]
            key = (*[block.number for block in blocks], arena[0].number if arena else 0)
            lists.keep(key, script.lists[0], (script, [block.handle for block in memory]))
        return None

    def repeat(self, concrete: Concrete) -> Repeat | None:
        """The scripts as native code plays them; None where the host has to walk."""
        if self.meter is not None or not self._is_straight:
            return None
        blocks = len(self.plan.arguments) + len(self.plan.results)
        lists, backend = self._lists.keep(concrete, Lists(blocks, KEPT)), self.backend
        return Repeat(
            lists,
            [(ARENA, -1)] if self._uses_arena else [],
            arena=backend.shared_arena,
            nbytes=padded(concrete.arena_bytes),
            unchanged=(),
            zeros=(),
            ring=None,
            begin=backend.guard.enter,
            finish=backend.guard.leave,
            answer=lists.address(0),  # any word: the end of a call is that of all
            end=None,
            option=None,
            has_ended=backend.is_idle,
            refuse=self._refused,
            owner=self,
        )

    def _refused(self, *_: object) -> None:
        """Raise the error of a script that native code has played. Errors: DeviceError,
        MemoryError."""
        with self.backend.failing(self.plan.name):
            self.backend.guard.raise_error()

    def _encode(self, key: tuple[object, ...], concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Encode all steps, submit them, and keep the commands as a script if that is possible."""
        encoder = Encoder(self.backend, Commands(self._is_straight))
        run(concrete.steps, Walker(self, concrete, memory, encoder))
        encoder.submit()
        if encoder.notes.fits:
            commands = tuple(encoder.notes.commands)
            self._scripts.keep(key, Script(commands, self.backend.device, self.backend.queue))

    def _run_timed(self, meter: Meter, concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Submit each step separately, and wait for it."""
        encoder = Encoder(self.backend, Commands(fits=False), self.stamps)
        walker = Walker(self, concrete, memory, encoder)
        run(concrete.steps, TimedWalker(walker, partial(self._seconds, walker), meter, concrete.sizes))
        encoder.submit()

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; returns its seconds, by the host's clock where no pass wrote stamps."""
        encoder, start = walker.encoder, time.perf_counter()
        encoder.submit()  # the condition or count of a loop, which is not part of the step
        encoder.seconds = None
        walker.step(step)
        if isinstance(step.step, Call):
            return None
        encoder.submit()
        if encoder.seconds is not None:
            return encoder.seconds
        self.backend.synchronize()
        return time.perf_counter() - start

    # --- kernels -----------------------------------------------------------------------------

    def _kernel(self, name: str, memories: _Memories) -> _Kernel:
        """A kernel for parameters in these memories."""
        key = name, memories
        if key not in self._kernels:
            code = render(self.plan.kernels[name], memories, self.backend.target.loose)
            self._kernels[key] = _Kernel(code, self.backend.pipeline(code))
        return self._kernels[key]

    def dispatches(
        self, step: ConcreteStep, concrete: Concrete, memories: _Memories, offsets: tuple[int, ...] | None = None
    ) -> tuple[_Dispatch, ...]:
        """The dispatches of a launch: none over an empty grid, several for a long one.

        offsets: of the parameters in their memories, in place of the places' own
        """
        known = self._dispatches.get(concrete)
        if known is None:
            known = self._dispatches.keep(concrete, {})
        key = id(step), memories, offsets  # the step lives as long as the concrete plan
        if key not in known:
            known[key] = tuple(self._new_dispatches(step, concrete, memories, offsets))
        return known[key]

    def _new_dispatches(
        self, step: ConcreteStep, concrete: Concrete, memories: _Memories, offsets: tuple[int, ...] | None
    ) -> Iterator[_Dispatch]:
        assert isinstance(step.step, Launch)
        kernel, backend = self._kernel(step.step.kernel, memories), self.backend
        code = kernel.code
        self._check_extents(code, concrete)
        kernel_code = self.plan.kernels[step.step.kernel]
        require_few(kernel_code, backend.target, concrete.sizes)
        points = evaluate(code.points, concrete.sizes)
        if not points:
            return
        items = [p.type.dtype.itemsize for p in step.places]
        places = [p.offset for p in step.places] if offsets is None else offsets
        starts = [offset // item for offset, item in zip(places, items, strict=True)]
        sizes = [concrete.sizes[name] for name in code.sizes]
        groups = points if code.is_point_per_group else -(-points // code.threads)
        layout, _ = backend.layout(len(set(memories)))
        work, row = most_work(counted_work(kernel_code, backend.target), concrete.sizes), backend.most_groups
        for part in parts(groups, work, backend.target.submission_work, row):
            # The layout of the renderer's uniform block (codegen/wgsl).
            words = np.array([0, points, part.first, *starts, *sizes], np.uint32)
            block = backend.device.create_buffer_with_data(
                data=np.pad(words, (0, -words.size % 4)), usage=backend.wgpu.BufferUsage.UNIFORM
            )
            # Each dimension is limited, so the groups are folded into two, which the kernel
            # unfolds.
            yield _Dispatch(kernel.pipeline, layout, block, part.folded(row), part.work)

    def _check_extents(self, code: Rendered, concrete: Concrete) -> None:
        most = max(evaluate(x, concrete.sizes) for x in code.extents)
        if most >= _INDICES:
            raise DeviceError(
                f"{self.plan.name}: cannot run on {self.backend.target.name} "
                f"({most} elements or steps in {code.name}; indices are 32-bit there)",
                hint="work on smaller pieces, or on another device",
            )


def _memories(step: Launch, most: int) -> _Memories:
    """The memory of each slot of a launch, as far as the plan tells; in a call more may coincide.

    Memories beyond the limit share the last one, as in `launch_packed`.
    """
    slot_memories = [(s.space, 0 if s.space is Space.ARENA else s.number) for s in step.slots]
    order = list(dict.fromkeys(slot_memories))
    bound = len(order) if len(order) <= most else most - 1
    return tuple(min(order.index(h), bound) for h in slot_memories)
