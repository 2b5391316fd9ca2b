"""A plan on an OpenCL device: commands are prepared once, and a call enqueues all of them.

A plan without loops and branches is one list of commands (commands.py), which machine code
enqueues; other plans have such a list for each step. The host waits only to read a branch's index
or a while loop's condition, and for callbacks: a loop with a known number of steps is enqueued
without waiting. OpenCL 1.2 has no loops on the device, so every step of a loop is enqueued.

Invariant: nothing is launched over an empty grid, which OpenCL 1.2 refuses.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from rune.backends.opencl.commands import Command, Commands, Kernel, in_a_row
from rune.backends.opencl.functions import Functions
from rune.backends.opencl.waiting import Abandoned, Event, wait_for
from rune.backends.shared.bounded import Bounded
from rune.backends.shared.call_list import FROM
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import Concrete, ConcreteStep, Place, all_concrete, evaluate, run
from rune.backends.shared.native_player import Repeat
from rune.backends.shared.parts import Box, boxes
from rune.backends.shared.pool import Block
from rune.backends.shared.queued import Queue, QueuedExecutable, QueuedWalker
from rune.backends.shared.sources import Sources, blocks_of
from rune.backends.shared.timing import Meter, TimedWalker
from rune.backends.shared.turns import Arena, DeviceBuffer
from rune.dims import Size
from rune.errors import DeviceError, OutOfMemory
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import Rendered, assemble
from rune.lowering.kernel.work import counted_work, most_work
from rune.lowering.plan import Launch, Plan, Space, all_steps
from rune.lowering.source_calls import is_source
from rune.records import dataclass

_WORKGROUP = 256  # the most threads of a workgroup, where the kernel does not fix them
# CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY
_SHORTAGES = (-4, -5, -6)
_SCRATCH_BYTES = 1 << 20  # private arrays of a workgroup's threads: on a CPU they share one stack


@dataclass(frozen=True, slots=True)
class _Script:
    """All steps of a plan as one list of commands.

    places: words for handles of memory, each with the position of the memory among the blocks of
            arguments, results and the arena
    """

    commands: Commands
    places: Sequence[tuple[int, int]]


_StepCommands = dict[int, tuple[Commands, ...]]  # by id of the concrete step
_UNKNOWN: Any = object()  # not None, which stands for plans without a script


@dataclass(frozen=True, slots=True)
class Walker(QueuedWalker["OpenCLExecutable"]):
    """Enqueues the commands of one call step by step. Only `read` and `fetch` wait."""

    executable: OpenCLExecutable
    commands: _StepCommands
    memory: Mapping[Space, Sequence[Block]]

    def enqueue(self, step: ConcreteStep) -> None:
        """Enqueue a kernel or copy."""
        for commands in self.commands[id(step)]:
            # The argument was donated to this result: there is nothing to copy.
            if not commands.moves_in_place(self.memory):
                self.executable.play(commands, self.memory)

    def write(self, place: Place, number: int) -> None:
        """Enqueue the store of an i32."""
        handle, executable = self.handle(place), self.executable
        executable.cl.enqueue_fill_buffer(executable.queue, handle, np.int32(number), place.offset, place.bytes)

    def fetch(self, place: Place) -> np.ndarray:
        """The bytes at a place, after waiting for all enqueued work."""
        host, executable = np.empty(place.bytes, np.uint8), self.executable
        at = {"src_offset": place.offset, "is_blocking": False}
        event = executable.cl.enqueue_copy(executable.queue, host, self.handle(place), **at)
        executable.queue.flush()
        executable.backend.abandoned_events.wait_for(event)
        return host

    def send(self, place: Place, host: np.ndarray) -> None:
        """Write bytes to a place."""
        cl, queue = self.executable.cl, self.executable.queue
        cl.enqueue_copy(queue, self.handle(place), host, dst_offset=place.offset, is_blocking=True)

    def handle(self, place: Place) -> Any:
        """The buffer in which a place lies."""
        return self.memory[place.space][place.number].handle


class OpenCLQueue(Queue, Protocol):
    """The part of an OpenCL device that executables use."""

    cl: Any  # pyopencl
    context: object
    device: Any
    queue: Any
    functions: Functions
    frees: array[int]  # how often memory was returned to the driver
    abandoned_events: Abandoned

    @property
    def arena(self) -> Arena:
        """The memory that all plans of the device share."""
        ...

    def drain(self) -> None:
        """Wait for all work enqueued until now."""
        ...

    @property
    def timing_queue(self) -> Any:
        """A queue that records times of its commands."""
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
        self._kernel_code = kernels
        self._kernels = {
            id(step): self._kernel(
                program, kernels[step.kernel], counted_work(plan.kernels[step.kernel], backend.target)
            )
            for step in all_steps(plan)
            if isinstance(step, Launch)
        }
        self._sources = sources.kernels
        # Users' kernels are never divided, because their work is not known: hence 0.
        self._kernels |= {
            step: self._kernel(sources.programs[name], sources.kernels[name], 0) for step, name in sources.names.items()
        }
        self._frees = array("q", backend.frees)
        # With False the event belongs to its object, which releases it when it dies.
        self._event = self.cl.Event.from_int_ptr
        self._step_commands: Bounded[Concrete, _StepCommands] = Bounded()
        self._scripts: Bounded[Concrete, _Script | None] = Bounded()

    def _kernel(self, program: object, code: Rendered, work: Size) -> Kernel:
        cl, device = self.cl, self.backend.device
        handle = cl.Kernel(program, code.name)
        info = cl.kernel_work_group_info
        most = handle.get_work_group_info(info.WORK_GROUP_SIZE, device)
        multiple = handle.get_work_group_info(info.PREFERRED_WORK_GROUP_SIZE_MULTIPLE, device)
        # On a CPU a workgroup is a loop, for which any size will do.
        on_cpu = device.type & cl.device_type.CPU
        return Kernel.of(handle, code, most, 1 if on_cpu else multiple, work)

    def sources(self) -> dict[str, str]:
        """The source of each kernel as a separate program, by name."""
        ours = {name: assemble([r], OPENCL_C) for name, r in self._kernel_code.items()}
        return ours | {name: r.text for name, r in self._sources.items()}

    def run_steps(self, concrete: Concrete, memory: dict[Space, list[Block]]) -> None:
        """Enqueue all steps on the call's memory."""
        if self.meter is not None:
            self._run_timed(self.meter, concrete, memory)
            return
        script = self._scripts.get(concrete, _UNKNOWN)
        if script is _UNKNOWN:
            script = self._scripts.keep(concrete, self._script(concrete))
        if script is None or (script.commands.moves and script.commands.moves_in_place(memory)):
            run(concrete.steps, Walker(self, self.step_commands(concrete), memory))
        else:
            self.play(script.commands, memory)

    def run_again(self, concrete: Concrete, blocks: list[Block]) -> Callable[[], bool] | None:
        """As `run_steps`, on blocks of arguments, then of results."""
        script = self._scripts.get(concrete)
        if script is None or script.commands.moves:
            return super().run_again(concrete, blocks)
        if self._uses_arena:
            blocks.append(self.backend.arena(concrete.arena_bytes or 1))
        words = script.commands.calls.words
        for word, position in script.places:
            words[word] = blocks[position].number
        self._enqueue(script.commands, blocks)
        return has_ended(self.backend.turns.last)

    def repeat(self, concrete: Concrete) -> Repeat | None:
        """The script as native code plays it; None without a script, or with copies that may be
        in place."""
        script = self._scripts.get(concrete)
        if script is None or script.commands.moves or script.commands.event is None:
            return None
        return Repeat(
            script.commands.calls,
            script.places,
            arena=self.backend.arena,
            nbytes=concrete.arena_bytes or 1,
            # Kernels remember arguments: after a free, Python's way has all of them set again.
            unchanged=[(self.backend.frees.buffer_info()[0], self._frees.buffer_info()[0])],
            zeros=(),
            ring=None,
            begin=None,
            finish=None,
            answer=script.commands.calls.address(script.commands.event),
            end=self._event,
            option=False,
            has_ended=is_over,
            refuse=partial(self._refused, concrete, script),
            owner=script,
        )

    def _refused(self, concrete: Concrete, script: _Script, count: int, *buffers: DeviceBuffer) -> None:
        """Go on after a call of the script that the driver refused. Errors: OutOfMemory,
        DeviceError."""
        try:
            self._go_on(script.commands, count, [b.memory for b in buffers])
        except OutOfMemory as error:
            raise self._shortage(error, concrete) from error

    def _run_timed(self, meter: Meter, concrete: Concrete, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Run the steps one by one in the queue that records times."""
        self.backend.drain()  # the queues do not wait for each other
        walker = Walker(self, self.step_commands(concrete), memory)
        run(concrete.steps, TimedWalker(walker, partial(self._seconds, walker), meter, concrete.sizes))
        self.queue.finish()

    def _seconds(self, walker: Walker, step: ConcreteStep) -> float | None:
        """Run a step; returns the seconds of its commands, None if it had none."""
        if is_callback(step.step):
            walker.step(step)
            return None
        backend, events = self.backend, []
        for commands in walker.commands[id(step)]:
            if not commands.moves_in_place(walker.memory):
                self.play(commands, walker.memory)
                wait_for(backend.turns.last)
                events.append(backend.turns.last)
        return 1e-9 * sum(e.profile.end - e.profile.start for e in events) if events else None

    def _script(self, concrete: Concrete) -> _Script | None:
        """All steps as one list of commands; None if a step decides what comes next or calls
        Python."""
        if any(not isinstance(s, ConcreteStep) or is_callback(s.step) for s in concrete.steps):
            return None
        steps = (s for s in concrete.steps if isinstance(s, ConcreteStep))
        commands = self.commands([*itertools.chain(*(self.parts(s, concrete) for s in steps))])
        return _Script(
            commands, tuple((word, self.position(space, number)) for word, space, number in commands.handles)
        )

    def commands(self, commands: Sequence[Command]) -> Commands:
        """The commands as one list, ready to be replayed."""
        return in_a_row(commands, self.backend.functions, self.queue, self.backend.target.submission_work)

    def step_commands(self, concrete: Concrete) -> _StepCommands:
        """The commands of each step as lists of their own, for one choice of sizes."""
        step_commands = self._step_commands.get(concrete)
        if step_commands is None:
            steps = [s for s in all_concrete(concrete.steps) if not is_callback(s.step)]
            by_step = {id(s): tuple(self.commands([c]) for c in self.parts(s, concrete)) for s in steps}
            step_commands = self._step_commands.keep(concrete, by_step)
        return step_commands

    def parts(self, step: ConcreteStep, concrete: Concrete) -> tuple[Command, ...]:
        """The step's commands: none if there is nothing to do, several for a divided launch."""
        places, kernel = step.places, self._kernels.get(id(step.step))
        operands = tuple((p.space, 0 if p.space is Space.ARENA else p.number) for p in places)
        if kernel is None:
            target, source = places
            move = (target.bytes, target.offset, source.offset)
            # OpenCL refuses empty copies, and an arena of no bytes is not allocated.
            return (Command(operands, move=move),) if target.bytes else ()
        grid = self._grid(step, kernel.code, concrete)
        if 0 in grid:
            return ()
        sizes = [concrete.sizes[name] for name in kernel.code.sizes]
        offsets = [p.offset // p.type.dtype.itemsize for p in places]
        total, local = self._shape(kernel, grid)
        launch = Box((0,) * len(total), tuple(total), most_work(kernel.work, concrete.sizes))
        arguments = operands, kernel, (*offsets, *sizes)
        launches = boxes(launch, local, self.backend.target.submission_work)
        return tuple(
            Command(*arguments, b.extents, tuple(local), b.start if any(b.start) else None, b.work) for b in launches
        )

    def _grid(self, step: ConcreteStep, code: Rendered, concrete: Concrete) -> list[int]:
        if is_source(step.step):
            return blocks_of(code, step, concrete.sizes)
        return [evaluate(x, concrete.sizes) for x in code.grid] or [1]

    def play(self, commands: Commands, memory: Mapping[Space, Sequence[Block]]) -> None:
        """Enqueue commands on the call's memory. Errors: OutOfMemory, DeviceError."""
        blocks = commands.blocks(memory)
        commands.write(blocks)
        self._enqueue(commands, blocks)

    def _enqueue(self, commands: Commands, blocks: Sequence[Block]) -> None:
        """Enqueue commands whose memory, these blocks, is set. Errors: OutOfMemory, DeviceError."""
        backend, calls = self.backend, commands.calls
        if self._frees[0] != backend.frees[0]:
            self._forget_arguments()
        count = calls.play()
        if count < calls.count:
            self._go_on(commands, count, blocks)
        if commands.event is not None:
            backend.turns.last = self._event(calls.words[commands.event], False)

    def _forget_arguments(self) -> None:
        """Have all arguments set again: a new buffer may have the handle of one that was freed."""
        self._frees[0] = self.backend.frees[0]
        for kernel in self._kernels.values():
            kernel.forget_arguments()

    def _go_on(self, commands: Commands, count: int, blocks: Sequence[Block]) -> None:
        """Make the remaining calls, if memory was short: some drivers allocate only now."""
        calls, pool, status = commands.calls, self.backend.pool, commands.calls.status(count)
        if status in _SHORTAGES:
            pool.trim()
            calls.words[FROM] = count
            count = calls.play()
            if count == calls.count:
                return
            status = calls.status(count)
        if status in _SHORTAGES:
            raise pool.out_of_memory(sum(block.bytes for block in blocks))
        name = self.cl.status_code.to_string(status)
        raise DeviceError(f"{self.plan.name}: cannot run on {self.backend.target.name} (OpenCL says {name})")

    def _shape(self, kernel: Kernel, grid: list[int]) -> tuple[list[int], list[int]]:
        """Global and local sizes: with the kernel's workgroup, or one chosen to fill the device."""
        if kernel.code.workgroup:
            local = list(kernel.code.workgroup)
            dimensions = max(len(local), len(grid))
            local += [1] * (dimensions - len(local))
            groups = grid + [1] * (dimensions - len(grid))
            return [g * t for g, t in zip(groups, local, strict=True)], local
        # At least four groups per core, so that an uneven last round costs little.
        per_core = math.prod(grid) // (4 * self.backend.target.cores)
        room = _SCRATCH_BYTES // max(1, kernel.code.scratch_bytes)
        most = min(_WORKGROUP, _power_of_two_in(per_core), _power_of_two_in(room))
        threads = max(kernel.multiple, most)
        available = min(threads, kernel.most_threads)
        local = []
        for extent in grid:
            # The power of two from the extent on: a group wider than the grid would idle.
            local.append(min(available, _power_of_two_in(2 * extent - 1)))
            available //= local[-1]
        return [-(-g // t) * t for g, t in zip(grid, local, strict=True)], local


def has_ended(event: Event | None) -> Callable[[], bool]:
    """A function that says whether the commands up to an event, if there is one, have ended."""
    return lambda: event is None or is_over(event)


def is_over(event: Event) -> bool:
    """Whether the commands up to an event have ended."""
    return event.command_execution_status <= 0  # negative: an error


def _power_of_two_in(x: int) -> int:
    """The largest power of two that is at most x, and at least 1."""
    return 1 << max(0, x.bit_length() - 1)
