"""Trials: runs of a kernel by one schedule after another, on its device, on the same arguments.

A schedule runs as a user's program does: compiled by the backend as a plan of this one kernel, on
arrays in the device's memory, warm. The first schedule, the default, defines the values; every
other has to agree, integers bit by bit, floats within the square root of their precision, because
the order of sums differs. A short kernel is run several times per measurement, and small arguments
are placed at several addresses in turn: where arrays begin decides which parts of them share cache
sets, a third of some kernels' time. A device with its own clock reports how long its kernels took;
otherwise the host's clock measures a run until it has been waited for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from time import perf_counter

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.backends import Device
from rune.backends.shared.protocol import Backend, Buffer, Executable
from rune.backends.shared.timing import Stopwatch, TimesSteps
from rune.errors import RuneError
from rune.lowering.build import build
from rune.lowering.build.schedule import Schedule
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.rewrite import walk
from rune.lowering.kernels import Kernel
from rune.lowering.plan import Plan
from rune.lowering.stages import optimised
from rune.records import dataclass
from rune.transforms.tuning.one_kernel import arguments, plan_of, types_at
from rune.transforms.tuning.search import Dropped, Run

BURST_S = 5e-4  # the least time of a measurement; a shorter kernel runs several times
MOST_RUNS = 200  # the most runs per measurement
PLACES, SMALL_BYTES = 4, 1 << 22  # addresses of arguments that have at most SMALL_BYTES in all
WARM = 2  # runs before the times
# A schedule that takes longer than DEADLINE times the default's warm run, plus DEADLINE_S, is
# dropped after its first runs.
DEADLINE = 10
DEADLINE_S = 0.005
MOST_STATEMENTS = 3_000  # code with more statements takes long to compile


@dataclass(frozen=True, slots=True)
class Timed:
    """An executable, and the clock for it. Units: s."""

    executable: Executable
    clock: Callable[[], float]

    @classmethod
    def of(cls, plan: Plan, backend: Backend) -> Timed:
        """A plan on a device. Errors: CompileError."""
        if isinstance(backend, TimesSteps) and backend.has_clock:
            watch = Stopwatch()
            return cls(backend.record_timed(plan, watch), lambda: watch.seconds)
        return cls(backend.record(plan), perf_counter)


@dataclass(frozen=True, slots=True)
class Sample:
    """The default's results on the arguments of all trials, the seconds of its warm run, and the
    runs per measurement, for all schedules alike, since each measurement includes a start and an
    end.
    """

    results: tuple[np.ndarray, ...]
    seconds: float
    runs: int


class Trials:
    """The trials of one kernel. Errors: OutOfMemory for arguments that do not fit the device."""

    def __init__(self, kernel: Kernel, device: Device, sizes: Mapping[str, int], seed: int):
        self.kernel, self.device, self.seed = kernel, device, seed
        self.result_types = types_at(kernel.outputs, sizes)
        values = list(arguments(kernel, types_at(kernel.inputs, sizes), seed))
        small = sum(v.nbytes for v in values) <= SMALL_BYTES
        self.places = [[device.backend.copy_in(v) for v in values] for _ in range(PLACES if small else 1)]
        self.sample: Sample | None = None

    def prepare(self, schedule: Schedule) -> Run:
        """A timer of the kernel with a schedule. Errors: Dropped with the reason."""
        try:
            return self._prepared(schedule)
        except MemoryError as error:
            raise Dropped(f"out of memory, {first_line(error)}") from error
        except RuneError as error:
            raise Dropped(f"fails, {type(error).__name__}: {first_line(error)}") from error

    def _prepared(self, schedule: Schedule) -> Run:
        target = self.device.target
        code = optimised(build(self.kernel, schedule, target), target)
        # The default is exempt: without it there is nothing to compare with.
        if self.sample is not None and _statements(code) > MOST_STATEMENTS:
            raise Dropped(f"too long to compile, {_statements(code)} statements")
        timed_run = Timed.of(plan_of(self.kernel, code, target.name), self.device.backend)
        results = self._results(timed_run.executable(self.places[0]))
        start = perf_counter()
        seconds = min(self._run(timed_run, self.places[0], 1) for _ in range(WARM))
        if self.sample is None:
            runs = math.ceil(BURST_S * WARM / (perf_counter() - start))
            self.sample = Sample(results, seconds, max(1, min(MOST_RUNS, runs)))
        self._require_fit(self.sample, schedule, results, seconds)
        return self._timer(timed_run, self.sample.runs)

    def _require_fit(self, sample: Sample, schedule: Schedule, results: Sequence[np.ndarray], seconds: float) -> None:
        for name, target, actual in zip(self.kernel.outputs, sample.results, results, strict=True):
            if not agrees(target, actual):
                raise Dropped(f"disagrees, {name.name} by {schedule} on arguments of seed {self.seed}")
        if seconds > DEADLINE * sample.seconds + DEADLINE_S:
            raise Dropped(f"beyond its deadline, {seconds / sample.seconds:.0f} times the default")

    def _timer(self, timed_run: Timed, runs: int) -> Run:
        """Times runs on the arguments at one place after another."""
        places = cycle(self.places)

        def run() -> float:
            buffers = next(places)
            # The arguments at another address are cold: one run warms them.
            if len(self.places) > 1:
                timed_run.executable(buffers)
            return self._run(timed_run, buffers, runs)

        return run

    def _run(self, timed_run: Timed, buffers: Sequence[Buffer], runs: int) -> float:
        backend = self.device.backend
        backend.synchronize()
        start = timed_run.clock()
        for _ in range(runs):
            timed_run.executable(buffers)
        backend.synchronize()
        return (timed_run.clock() - start) / runs

    def _results(self, buffers: Sequence[Buffer]) -> tuple[np.ndarray, ...]:
        copies = zip(buffers, self.result_types, strict=True)
        return tuple(np.array(self.device.backend.copy_out(buffer, type)) for buffer, type in copies)


def agrees(expected_result: np.ndarray, actual: np.ndarray) -> bool:
    """Whether two results are the same except for the order of sums.

    >>> a, b = np.float32([1, np.inf]), np.float32([1.00001, np.inf])
    >>> agrees(a, b), agrees(np.int32([1]), np.int32([2]))
    (True, False)
    """
    if expected_result.dtype not in dtypes.FLOATING:
        return np.array_equal(expected_result, actual)
    tolerance = math.sqrt(float(ml_dtypes.finfo(expected_result.dtype).eps))
    a, b = expected_result.astype(np.float64), actual.astype(np.float64)
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * _scale(a), equal_nan=True))


def _scale(values: np.ndarray) -> float:
    """The size of an array's usual values."""
    finite = np.abs(values[np.isfinite(values)])
    return float(np.median(finite)) if finite.size else 0.0


def first_line(error: Exception) -> str:
    """The message of an error, without the lines after the first."""
    return str(error).partition("\n")[0]


def _statements(code: KernelCode) -> int:
    return sum(1 for _ in walk(code.body))
