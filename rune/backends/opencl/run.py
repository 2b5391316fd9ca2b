"""A plan on an OpenCL device: its kernels keep their arguments, and a call enqueues all of it.

Arguments stay set from call to call; only what changed is set again. A plan without loops and
branches is a script, whose commands are enqueued one after the other. Nothing waits but the reading
of a branch's number, of a while loop's condition, and a callback: a loop of a known number of steps
is enqueued whole. OpenCL 1.2 has no loops of its own on the device, so each step is enqueued.

Invariant: nothing is launched over an empty grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from rune.backends.shared.bounded import Bounded
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, all_concrete, evaluate, run
from rune.backends.shared.parts import Box, boxes
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue, QueuedExecutable, call_python
from rune.backends.shared.timing import Meter, TimedWalker
from rune.dims import Size
from rune.lowering.codegen.cstyle import Rendered, assemble
from rune.lowering.codegen.opencl_c import OPENCL_C
from rune.lowering.kernel.work import counted_work, most_work
from rune.lowering.plan import Call, Launch, Plan, Space, all_steps

_WORKGROUP = 256  # threads, where the kernel leaves the choice
_SCRATCH_BYTES = 1 << 20  # private arrays of a workgroup's threads: on a CPU they share one stack


@dataclass(slots=True)
class _Kernel:
    """The kernel of one launch; it keeps its arguments from call to call.

    It knows their handles, which keeps no memory: the pool may give it to another meanwhile.
    """

    handle: Any
    rendered: Rendered
    most_threads: int
    multiple: int
    handles: list[Any]
    work: Size  # of a launch
    numbers: tuple[int, ...] = ()

    def set_arguments(self, memory: Sequence[Block], numbers: tuple[int, ...]) -> None:
        """Set what differs from the last call: pairs of buffer and offset, then sizes."""
        for position, block in enumerate(memory):
            if self.handles[position] is not block.handle:
                self.handle.set_arg(2 * position, block.handle)
                self.handles[position] = block.handle
        if self.numbers != numbers:
            count = len(memory)
            for position, number in enumerate(numbers):
                argument = 2 * position + 1 if position < count else position + count
                self.handle.set_arg(argument, np.int64(number))
            self.numbers = numbers


@dataclass(frozen=True, slots=True)
class _Command:
    """A step for one choice of sizes, or a part of it, all but its buffers: `held` says which."""

    held: tuple[tuple[Space, int], ...]
    kernel: _Kernel | None = None  # None: a copy
    numbers: tuple[int, ...] = ()  # element offsets, then sizes
    total: tuple[int, ...] = ()
    local: tuple[int, ...] = ()
    start: tuple[int, ...] | None = None  # where in the whole launch the threads begin; None: at 0
    work: int = 0
    copied: tuple[int, int, int] = (0, 0, 0)  # bytes, offset in the target, in the source


_Commands = dict[int, tuple[_Command, ...]]  # by id of the concrete step
_Memory = tuple[Space, int]
_UNKNOWN: Any = object()


@dataclass(slots=True, eq=False)
class _Script:
    """The commands of a plan without loops, branches and calls of Python, in order.

    users:    which kernels take a memory, and at which position
    handles:  of the last call, by memory; None: the kernels' arguments may be another script's
    """

    commands: tuple[_Command, ...]
    users: Mapping[_Memory, tuple[tuple[_Kernel, int], ...]]
    handles: dict[_Memory, Any] | None = None

    def set_arguments(self, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Set what differs from the last call."""
        if self.handles is None:
            for command in self.commands:
                if command.kernel is not None:
                    held = [memory[space][number] for space, number in command.held]
                    command.kernel.set_arguments(held, command.numbers)
            self.handles = {m: memory[m[0]][m[1]].handle for m in self.users}
            return
        handles = self.handles
        for key, users in self.users.items():
            handle = memory[key[0]][key[1]].handle
            if handle is not handles[key]:
                for kernel, position in users:
                    kernel.handle.set_arg(2 * position, handle)
                    kernel.handles[position] = handle
                handles[key] = handle


@dataclass(frozen=True, slots=True)
class Walker:
    """Enqueues the commands of one call, as loops and branches say. Only `read` waits."""

    executable: OpenCLExecutable
    commands: _Commands
    memory: Mapping[Space, Sequence[Block]]

    def step(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy, or call Python."""
        if isinstance(step.step, Call):
            calling_back = self.executable.backend.turns.calling_back()
            call_python(step.step, step.places, self.fetch, self.send, calling_back)
            return
        for command in self.commands[id(step)]:
            self.command(command)

    def command(self, command: _Command) -> None:
        """Enqueue one command."""
        held = [self.memory[space][number] for space, number in command.held]
        self.executable.enqueue(command, held)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        handle, executable = self.handle(place), self.executable
        executable.cl.enqueue_fill_buffer(executable.queue, handle, np.int32(number), place.offset, place.bytes)

    def read(self, place: Place) -> int:
        """Wait for all that was enqueued; the number there."""
        return int(self.fetch(place).view(place.type.dtype)[0])

    def fetch(self, place: Place) -> np.ndarray:
        """Wait for all that was enqueued; the bytes there."""
        host = np.empty(place.bytes, np.uint8)
        self.copy(host, self.handle(place), src_offset=place.offset)
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Put bytes there."""
        self.copy(self.handle(place), host, dst_offset=place.offset)

    def copy(self, target: object, source: object, **offset: int) -> None:
        """Copy from or to the host."""
        executable = self.executable
        executable.cl.enqueue_copy(executable.queue, target, source, is_blocking=True, **offset)

    def handle(self, place: Place) -> Any:
        """The memory that a place is in."""
        return self.memory[place.space][place.number].handle


class OpenCLQueue(Queue, Protocol):
    """The part of an OpenCL device that executables use."""

    cl: Any  # pyopencl
    context: object
    device: Any
    queue: Any
    last: Any  # event of the last command of a call

    @property
    def timing_queue(self) -> Any:
        """A queue that measures how long commands take."""
        ...


class OpenCLExecutable(QueuedExecutable[OpenCLQueue]):
    """A compiled plan; `meter` records the time of each step."""

    def __init__(
        self,
        backend: OpenCLQueue,
        plan: Plan,
        kernels: dict[str, Rendered],
        program: object,
        meter: Meter | None = None,
    ):
        super().__init__(backend, plan)
        self.cl, self.meter = backend.cl, meter
        self.queue = backend.queue if meter is None else backend.timing_queue
        self._rendered = kernels
        self._kernels = {
            id(step): self._kernel(
                program, kernels[step.kernel], counted_work(plan.kernels[step.kernel], backend.target)
            )
            for step in all_steps(plan)
            if isinstance(step, Launch)
        }
        self._commands: Bounded[Concrete, _Commands] = Bounded()
        self._scripts: Bounded[Concrete, _Script | None] = Bounded()
        self._played: _Script | None = None  # whose arguments the kernels have
        self._enqueued_work = 0  # since the queue was last flushed

    def _kernel(self, program: object, rendered: Rendered, work: Size) -> _Kernel:
        cl, device = self.cl, self.backend.device
        handle = cl.Kernel(program, rendered.name)
        info = cl.kernel_work_group_info
        most = handle.get_work_group_info(info.WORK_GROUP_SIZE, device)
        multiple = handle.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
        on_cpu = device.type & cl.device_type.CPU
        unset = [None] * len(rendered.params)
        return _Kernel(handle, rendered, most, 1 if on_cpu else multiple, unset, work)

    def sources(self) -> dict[str, str]:
        """Each kernel as a program of its own, by name."""
        return {name: assemble([r], OPENCL_C) for name, r in self._rendered.items()}

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Enqueue all steps on this memory."""
        if self.meter is not None:
            self._run_timed(self.meter, concrete, memory)
            return
        script = self._scripts.get(concrete, _UNKNOWN)
        if script is _UNKNOWN:
            script = self._scripts.keep(concrete, self._script(concrete))
        if script is None:
            run(concrete.steps, Walker(self, self.prepared(concrete), memory))
        else:
            self._play(script, memory)
        self.queue.flush()

    def _run_timed(self, meter: Meter, concrete: Concrete, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Run one step after the other in a queue that measures: the device's own does not."""
        self.backend.queue.finish()
        walker = Walker(self, self.prepared(concrete), memory)
        run(concrete.steps, TimedWalker(walker, partial(self._seconds, walker), meter, concrete.sizes))
        self.queue.finish()

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; how long its commands took, None where there was none."""
        if isinstance(step.step, Call):
            walker.step(step)
            return None
        backend, events = self.backend, []
        for command in walker.commands[id(step)]:
            backend.last = None
            walker.command(command)
            if backend.last is not None:
                backend.last.wait()
                events.append(backend.last)
        return 1e-9 * sum(e.profile.end - e.profile.start for e in events) if events else None

    def _script(self, concrete: Concrete) -> _Script | None:
        """The steps as a script; None where only a walk finds out what comes next."""
        if any(not isinstance(s, ConcreteStep) or isinstance(s.step, Call) for s in concrete.steps):
            return None
        prepared, users = self.prepared(concrete), {}
        commands = tuple(itertools.chain(*(prepared[id(s)] for s in concrete.steps)))
        for command in commands:
            for position, key in enumerate(command.held if command.kernel else ()):
                users.setdefault(key, []).append((command.kernel, position))
        return _Script(commands, {key: tuple(kernels) for key, kernels in users.items()})

    def _play(self, script: _Script, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Enqueue one command after the other; from where memory runs out on, with care."""
        if self._played is not script:
            script.handles, self._played = None, script
        script.set_arguments(memory)
        cl, queue, event = self.cl, self.queue, self.backend.last
        enqueue, commands = cl.enqueue_nd_range_kernel, iter(script.commands)
        command: Any = None
        try:
            for command in commands:
                if command.kernel is None:
                    self._enqueue(command, [memory[s][n] for s, n in command.held])
                    event = self.backend.last
                else:
                    self._make_room(command.work)
                    event = enqueue(queue, command.kernel.handle, command.total, command.local, command.start)
        except cl.MemoryError:
            self.backend.last = event
            for later in (command, *commands):
                self.enqueue(later, [memory[s][n] for s, n in later.held])
        else:
            self.backend.last = event

    def prepared(self, concrete: Concrete) -> _Commands:
        """The commands of all steps for one choice of sizes."""
        commands = self._commands.get(concrete)
        if commands is None:
            steps = [s for s in all_concrete(concrete.steps) if not isinstance(s.step, Call)]
            commands = self._commands.keep(concrete, {id(s): self.parts(s, concrete) for s in steps})
        return commands

    def parts(self, step: ConcreteStep, concrete: Concrete) -> tuple[_Command, ...]:
        """The step's commands: none where there is nothing to do, several for a long launch."""
        places, kernel = step.places, self._kernels.get(id(step.step))
        held = tuple((p.space, 0 if p.space is Space.ARENA else p.number) for p in places)
        if kernel is None:
            target, source = places
            copied = (target.bytes, target.offset, source.offset)
            # Nothing of no size exists: the arena may not even have been allocated.
            return (_Command(held, copied=copied),) if target.bytes else ()
        grid = [evaluate(x, concrete.sizes) for x in kernel.rendered.grid] or [1]
        if 0 in grid:
            return ()
        sizes = [concrete.sizes[name] for name in kernel.rendered.sizes]
        offsets = [p.offset // p.type.dtype.itemsize for p in places]
        total, local = self._shape(kernel, grid)
        launch = Box((0,) * len(total), tuple(total), most_work(kernel.work, concrete.sizes))
        described = held, kernel, (*offsets, *sizes)
        launches = boxes(launch, local, self.backend.target.submission_work)
        return tuple(
            _Command(*described, b.extents, tuple(local), b.start if any(b.start) else None, b.work) for b in launches
        )

    def _make_room(self, work: int) -> None:
        """Hand over what was enqueued, if it is too much for one submission together with this."""
        limit = self.backend.target.submission_work
        if limit is not None and self._enqueued_work + work > limit:
            self.queue.flush()
            self._enqueued_work = 0
        self._enqueued_work += work

    def enqueue(self, command: _Command, memory: Sequence[Block]) -> None:
        """Enqueue one command; some drivers first notice here that memory has run out."""
        pool = self.backend.pool
        try:
            self._enqueue(command, memory)
        except self.cl.MemoryError:
            pool.trim()
            try:
                self._enqueue(command, memory)
            except self.cl.MemoryError as error:
                raise pool.out_of_memory(sum(m.bytes for m in memory)) from error

    def _enqueue(self, command: _Command, memory: Sequence[Block]) -> None:
        cl, queue, kernel = self.cl, self.queue, command.kernel
        if kernel is not None:
            kernel.set_arguments(memory, command.numbers)
            self._make_room(command.work)
            event = cl.enqueue_nd_range_kernel(queue, kernel.handle, command.total, command.local, command.start)
            self.backend.last = event
            return
        size, to, at = command.copied
        target, source = (m.handle for m in memory)
        if (target, to) != (source, at):  # else donated memory, which is there already
            where = {"byte_count": size, "dst_offset": to, "src_offset": at}
            self.backend.last = cl.enqueue_copy(queue, target, source, **where)

    def _shape(self, kernel: _Kernel, grid: list[int]) -> tuple[list[int], list[int]]:
        """Global and local sizes: the kernel's own workgroup, or one that fills the device."""
        if kernel.rendered.workgroup:
            local = list(kernel.rendered.workgroup)
            dimensions = max(len(local), len(grid))
            local += [1] * (dimensions - len(local))
            groups = grid + [1] * (dimensions - len(grid))
            return [g * t for g, t in zip(groups, local, strict=True)], local
        per_core = math.prod(grid) // (4 * self.backend.target.cores)
        room = _SCRATCH_BYTES // max(1, kernel.rendered.scratch_bytes)
        most = min(_WORKGROUP, _power_of_two_in(per_core), _power_of_two_in(room))
        threads = max(kernel.multiple, most)
        available = min(threads, kernel.most_threads)
        local = []
        for extent in grid:
            local.append(min(available, _power_of_two_in(2 * extent - 1)))
            available //= local[-1]
        return [-(-g // t) * t for g, t in zip(grid, local, strict=True)], local


def _power_of_two_in(x: int) -> int:
    """The largest power of two that is at most x, and at least 1."""
    return 1 << max(0, x.bit_length() - 1)
