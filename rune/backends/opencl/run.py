"""A plan on an OpenCL device: its commands are prepared, and a call enqueues all of them.

A plan without loops and branches is one list of commands (commands.py), which machine code
enqueues; others have such a list for each step. Nothing waits but the reading of a branch's number,
of a while loop's condition, and a callback: a loop of a known number of steps is enqueued whole.
OpenCL 1.2 has no loops of its own on the device, so each step is enqueued.

Invariant: nothing is launched over an empty grid.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from rune.backends.opencl.commands import Command, Commands, Kernel, in_a_row
from rune.backends.opencl.functions import Functions
from rune.backends.opencl.waiting import Abandoned, wait_for
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.call_list import FROM
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, all_concrete, evaluate, run
from rune.backends.shared.parts import Box, boxes
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue, QueuedExecutable, call_python
from rune.backends.shared.sources import Sources, blocks_of
from rune.backends.shared.timing import Meter, TimedWalker
from rune.dims import Size
from rune.errors import DeviceError
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import Rendered, assemble
from rune.lowering.kernel.work import counted_work, most_work
from rune.lowering.plan import Launch, Plan, Space, all_steps
from rune.lowering.source_calls import is_source
from rune.records import dataclass

_WORKGROUP = 256  # threads, where the kernel leaves the choice
_SHORTAGES = (-4, -5, -6)  # CL_MEM_OBJECT_ALLOCATION_FAILURE, of resources, of the host's memory
_SCRATCH_BYTES = 1 << 20  # private arrays of a workgroup's threads: on a CPU they share one stack


_Prepared = dict[int, tuple[Commands, ...]]  # by id of the concrete step
_UNKNOWN: Any = object()


@dataclass(frozen=True, slots=True)
class Walker:
    """Enqueues the commands of one call, as loops and branches say. Only `read` waits."""

    executable: OpenCLExecutable
    commands: _Prepared
    memory: Mapping[Space, Sequence[Block]]

    def step(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy, or call Python."""
        if is_callback(step.step):
            calling_back = self.executable.backend.turns.calling_back()
            call_python(step.step, step.places, self.fetch, self.send, calling_back)
            return
        for commands in self.commands[id(step)]:
            # Donated memory is there already.
            if not commands.moves_in_place(self.memory):
                self.executable.play(commands, self.memory)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        handle, executable = self.handle(place), self.executable
        executable.cl.enqueue_fill_buffer(executable.queue, handle, np.int32(number), place.offset, place.bytes)

    def read(self, place: Place) -> int:
        """Wait for all that was enqueued; the number there."""
        return int(self.fetch(place).view(place.type.dtype)[0])

    def fetch(self, place: Place) -> np.ndarray:
        """Wait for all that was enqueued; the bytes there."""
        host, executable = np.empty(place.bytes, np.uint8), self.executable
        at = {"src_offset": place.offset, "is_blocking": False}
        event = executable.cl.enqueue_copy(executable.queue, host, self.handle(place), **at)
        executable.queue.flush()
        executable.backend.abandoned.wait_for(event)
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Put bytes there."""
        cl, queue = self.executable.cl, self.executable.queue
        cl.enqueue_copy(queue, self.handle(place), host, dst_offset=place.offset, is_blocking=True)

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
    functions: Functions
    freed: int  # how often memory was given back to the driver
    abandoned: Abandoned

    def drain(self) -> None:
        """Wait for all that was enqueued until now."""
        ...

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
        sources: Sources[object],
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
        self._sources = sources.rendered
        # What users wrote is launched whole: how long it runs is not known.
        self._kernels |= {
            step: self._kernel(sources.programs[name], sources.rendered[name], 0)
            for step, name in sources.names.items()
        }
        self._freed = backend.freed
        self._event = self.cl.Event.from_int_ptr
        self._prepared: Bounded[Concrete, _Prepared] = Bounded()
        self._scripts: Bounded[Concrete, Commands | None] = Bounded()

    def _kernel(self, program: object, rendered: Rendered, work: Size) -> Kernel:
        cl, device = self.cl, self.backend.device
        handle = cl.Kernel(program, rendered.name)
        info = cl.kernel_work_group_info
        most = handle.get_work_group_info(info.WORK_GROUP_SIZE, device)
        multiple = handle.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
        on_cpu = device.type & cl.device_type.CPU
        return Kernel.of(handle, rendered, most, 1 if on_cpu else multiple, work)

    def sources(self) -> dict[str, str]:
        """Each kernel as a program of its own, by name."""
        ours = {name: assemble([r], OPENCL_C) for name, r in self._rendered.items()}
        return ours | {name: r.text for name, r in self._sources.items()}

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Enqueue all steps on this memory."""
        if self.meter is not None:
            self._run_timed(self.meter, concrete, memory)
            return
        script = self._scripts.get(concrete, _UNKNOWN)
        if script is _UNKNOWN:
            script = self._scripts.keep(concrete, self._script(concrete))
        if script is None or (script.moves and script.moves_in_place(memory)):
            run(concrete.steps, Walker(self, self.prepared(concrete), memory))
        else:
            self.play(script, memory)

    def _run_timed(self, meter: Meter, concrete: Concrete, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Run one step after the other in a queue that measures: the device's own does not."""
        self.backend.drain()
        walker = Walker(self, self.prepared(concrete), memory)
        run(concrete.steps, TimedWalker(walker, partial(self._seconds, walker), meter, concrete.sizes))
        self.queue.finish()

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; how long its commands took, None where there was none."""
        if is_callback(step.step):
            walker.step(step)
            return None
        backend, events = self.backend, []
        for commands in walker.commands[id(step)]:
            if not commands.moves_in_place(walker.memory):
                self.play(commands, walker.memory)
                wait_for(backend.last)
                events.append(backend.last)
        return 1e-9 * sum(e.profile.end - e.profile.start for e in events) if events else None

    def _script(self, concrete: Concrete) -> Commands | None:
        """The steps as a script; None where only a walk finds out what comes next."""
        if any(not isinstance(s, ConcreteStep) or is_callback(s.step) for s in concrete.steps):
            return None
        steps = (s for s in concrete.steps if isinstance(s, ConcreteStep))
        return self.commands([*itertools.chain(*(self.parts(s, concrete) for s in steps))])

    def commands(self, listed: Sequence[Command]) -> Commands:
        """Commands in a row, ready to be played."""
        return in_a_row(listed, self.backend.functions, self.queue, self.backend.target.submission_work)

    def prepared(self, concrete: Concrete) -> _Prepared:
        """The commands of each step by itself, for one choice of sizes."""
        prepared = self._prepared.get(concrete)
        if prepared is None:
            steps = [s for s in all_concrete(concrete.steps) if not is_callback(s.step)]
            each = {id(s): tuple(self.commands([c]) for c in self.parts(s, concrete)) for s in steps}
            prepared = self._prepared.keep(concrete, each)
        return prepared

    def parts(self, step: ConcreteStep, concrete: Concrete) -> tuple[Command, ...]:
        """The step's commands: none where there is nothing to do, several for a long launch."""
        places, kernel = step.places, self._kernels.get(id(step.step))
        held = tuple((p.space, 0 if p.space is Space.ARENA else p.number) for p in places)
        if kernel is None:
            target, source = places
            copied = (target.bytes, target.offset, source.offset)
            # Nothing of no size exists: the arena may not even have been allocated.
            return (Command(held, copied=copied),) if target.bytes else ()
        grid = self._grid(step, kernel.rendered, concrete)
        if 0 in grid:
            return ()
        sizes = [concrete.sizes[name] for name in kernel.rendered.sizes]
        offsets = [p.offset // p.type.dtype.itemsize for p in places]
        total, local = self._shape(kernel, grid)
        launch = Box((0,) * len(total), tuple(total), most_work(kernel.work, concrete.sizes))
        described = held, kernel, (*offsets, *sizes)
        launches = boxes(launch, local, self.backend.target.submission_work)
        return tuple(
            Command(*described, b.extents, tuple(local), b.start if any(b.start) else None, b.work) for b in launches
        )

    def _grid(self, step: ConcreteStep, rendered: Rendered, concrete: Concrete) -> list[int]:
        if is_source(step.step):
            return blocks_of(rendered, step, concrete.sizes)
        return [evaluate(x, concrete.sizes) for x in rendered.grid] or [1]

    def play(self, commands: Commands, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Enqueue commands on this memory. Errors: OutOfMemory, DeviceError."""
        if self._freed != self.backend.freed:
            self._forget_arguments()
        commands.write(memory)
        calls = commands.calls
        count = calls.play()
        if count < calls.count:
            self._go_on(commands, count, memory)
        if commands.event is not None:
            self.backend.last = self._event(calls.words[commands.event], False)

    def _forget_arguments(self) -> None:
        """Set all arguments again: what has been freed may be there under the same handle."""
        self._freed = self.backend.freed
        for kernel in self._kernels.values():
            kernel.forget_arguments()

    def _go_on(self, commands: Commands, count: int, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Make the other calls, if only memory was short: some drivers first notice here."""
        calls, pool, status = commands.calls, self.backend.pool, commands.calls.status(count)
        if status in _SHORTAGES:
            pool.trim()
            calls.words[FROM] = count
            count = calls.play()
            if count == calls.count:
                return
            status = calls.status(count)
        if status in _SHORTAGES:
            raise pool.out_of_memory(sum(memory[space][number].bytes for _, space, number in commands.handles))
        name = self.cl.status_code.to_string(status)
        raise DeviceError(f"{self.plan.name}: cannot run on {self.backend.target.name} (OpenCL says {name})")

    def _shape(self, kernel: Kernel, grid: list[int]) -> tuple[list[int], list[int]]:
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
