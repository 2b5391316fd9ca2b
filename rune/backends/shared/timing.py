"""Executables for profiling: each call waits, and reports where its time went.

A backend that can time steps has `record_timed(plan, meter)`, and its executables report the time
of each step, measured by the device, to the meter; for other backends only entire calls are timed.
Where the host walks the steps, `TimedWalker` measures. Only plans compiled inside
`rune.debug.profile()` become such executables, so profiling costs nothing otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from rune import profiling
from rune.backends.shared import allocations
from rune.backends.shared.executor import ConcreteStep, Place, Walker, evaluate, size_values
from rune.backends.shared.protocol import Backend, Buffer, Executable
from rune.errors import Frame
from rune.lowering.explain import Lowered
from rune.lowering.host_calls import HostFunction
from rune.lowering.meetings import CollectiveCall
from rune.lowering.plan import Call, Copy, Launch, Plan, Step, all_steps
from rune.lowering.steps import StepCost, step_cost, step_name
from rune.profiling import Kind, StepProfile, Workers
from rune.records import dataclass

Sizes = Mapping[str, int]


class Meter(Protocol):
    """Receives the times of steps from an executor."""

    def add(self, step: Step, sizes: Sizes, seconds: float, calls: int = 1) -> None:
        """A step ran `calls` times at these sizes, in `seconds` altogether."""
        ...

    def add_kernel(self, name: str, sizes: Sizes, seconds: float, nbytes: int, calls: int = 1) -> None:
        """A kernel ran: of the plan, or of the executor and moving `nbytes` bytes."""
        ...


class Stopwatch:
    """A meter that adds up all times. Units: s."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def add(self, step: Step, sizes: Sizes, seconds: float, calls: int = 1) -> None:
        """Count the time of a step."""
        self.seconds += seconds

    def add_kernel(self, name: str, sizes: Sizes, seconds: float, nbytes: int, calls: int = 1) -> None:
        """Count the time of a kernel."""
        self.seconds += seconds


class StepMeter:
    """Reports the steps of one plan to the profile in force, with their costs and lines."""

    def __init__(self, compiled: Lowered, device: str):
        self.plan, self.device = compiled.plan, device
        self._kernels = compiled.kernels
        self._frames = _frames(self.plan)
        # By the step's id; the step is kept, so that its id stays its own.
        self._costs: dict[int, tuple[Step, StepCost]] = {}
        # Vulkan's recordings know kernels by name only, not the steps that launch them.
        self._launches = {s.kernel: s for s in all_steps(self.plan) if isinstance(s, Launch)}

    def add(self, step: Step, sizes: Sizes, seconds: float, calls: int = 1) -> None:
        """Record that a step ran `calls` times at these sizes, in `seconds` altogether."""
        cost = self._cost(step)
        flops, nbytes = evaluate(cost.flops, sizes), evaluate(cost.bytes_moved, sizes)
        frames = self._frames.get(_row(step), {})
        lines = ", ".join(dict.fromkeys(f.short for f in frames))
        scope = next((f.scope for f in frames if f.scope), "")
        name, kind = _label(step, cost.name)
        self._tell(StepProfile(name, lines, calls, seconds, calls * flops, calls * nbytes, scope, kind))

    def add_kernel(self, name: str, sizes: Sizes, seconds: float, nbytes: int, calls: int = 1) -> None:
        """Record that a kernel ran: of the plan, or of the executor and moving `nbytes` bytes."""
        if name in self._launches:
            self.add(self._launches[name], sizes, seconds, calls)
        else:
            self._tell(StepProfile(name, "", calls, seconds, 0, calls * nbytes))

    def _tell(self, row: StepProfile) -> None:
        profile = profiling.current()
        if profile is not None:
            profile.add_step(self.plan, self.plan.name, self.device, row)

    def _cost(self, step: Step) -> StepCost:
        # By identity: hashing a step that holds a loop's plan would walk all of it.
        if id(step) not in self._costs:
            self._costs[id(step)] = step, step_cost(self._kernels, self.plan, step)
        return self._costs[id(step)][1]


def _row(step: Step) -> object:
    """The key of a row in the profile: a kernel, or a call with its line."""
    match step:
        case Call(frame=frame):
            return step_name(step), frame
        case _:
            return step_name(step)


def _label(step: Step, name: str) -> tuple[str, Kind]:
    """The name of a step, `psum over 'd'` where devices meet, and its kind."""
    function = dict(step.parameters).get("function") if isinstance(step, Call) else None
    call = function.call if isinstance(function, HostFunction) else None
    return (str(call), Kind.COLLECTIVE) if isinstance(call, CollectiveCall) else (name, Kind.STEP)


def _frames(plan: Plan) -> dict[object, dict[Frame, None]]:
    """The user's lines of each row."""
    frames: dict[object, dict[Frame, None]] = {}
    for step in all_steps(plan):
        # Copies are inserted by the planner and belong to no line of the user's code.
        frame: Frame | None = None if isinstance(step, Copy) else getattr(step, "frame", None)
        if frame is not None:
            frames.setdefault(_row(step), {})[frame] = None
    return frames


@dataclass(frozen=True, slots=True)
class TimedWalker:
    """Walks as `walker` does, and reports to the meter how long each step took.

    measure: runs one step, waits for it and returns its seconds; None where the device ran nothing
    """

    walker: Walker
    measure: Callable[[ConcreteStep], float | None]
    meter: Meter
    sizes: Sizes

    def step(self, step: ConcreteStep) -> None:
        """Run one step, and report its time."""
        seconds = self.measure(step)
        if seconds is not None:
            self.meter.add(step.step, self.sizes, seconds)

    def write(self, place: Place, number: int) -> None:
        """Store an i32."""
        self.walker.write(place, number)

    def read(self, place: Place) -> int:
        """An i32 or bool, after all earlier steps have finished."""
        return self.walker.read(place)


@runtime_checkable
class TimesSteps(Protocol):
    """A backend that times the steps of a plan."""

    @property
    def has_clock(self) -> bool:
        """Whether the device's own clock measures, so that the host's work is not included."""
        ...

    def record_timed(self, plan: Plan, meter: Meter) -> Executable:
        """Compile a plan whose calls wait for their steps, and report them to the meter."""
        ...


@runtime_checkable
class HasWorkers(Protocol):
    """A backend that divides its kernels among threads of the host."""

    @property
    def workers(self) -> Workers | None:
        """Those threads; None if they cannot be observed."""
        ...


class Profiled:
    """An executable whose calls wait for their work, and are timed."""

    def __init__(self, executable: Executable, backend: Backend, device: str):
        self.executable, self.backend, self.device = executable, backend, device
        self.plan = executable.plan
        self.workers = backend.workers if isinstance(backend, HasWorkers) else None

    def __call__(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> list[Buffer]:
        """Run the plan and wait."""
        shapes = [tuple(a.shape) for a in arguments]
        profile = profiling.current()
        if profile is not None and self.workers is not None:
            profile.add_workers(self.device, self.workers)
        begin = profiling.moment()
        results = self.executable(arguments, donated)
        # Calls return once the work is enqueued; without waiting, only enqueueing would be timed.
        self.backend.synchronize()
        if profile is not None:
            call = profiling.ended(Kind.PROGRAM, self.plan.name, begin, profiling.current_row(self.device))
            profile.add_call(self.plan, call, evaluate(self.plan.arena_bytes, size_values(self.plan, shapes)))
            known = {id(allocations.root(a)) for a in arguments}
            for buffer, type in zip(results, self.plan.results, strict=True):
                allocations.note(buffer, type, self.device, known)
        return results

    def sources(self) -> dict[str, str]:
        """The rendered source of each kernel, by name."""
        return self.executable.sources()

    def player(self, arguments: Sequence[Buffer]) -> None:
        """None: every call is timed."""

    # Backends look for methods beyond the protocol on their own executables.
    def __getattr__(self, name: str) -> Any:
        return getattr(self.executable, name)


def record(compiled: Lowered, device: str, backend: Backend) -> Profiled:
    """Compile a plan for profiling. Errors: CompileError."""
    meter = StepMeter(compiled, device)
    has_step_times = isinstance(backend, TimesSteps)
    executable = backend.record_timed(meter.plan, meter) if has_step_times else backend.record(meter.plan)
    return Profiled(executable, backend, device)
