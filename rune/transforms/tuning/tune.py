"""tune: search the schedules of a function's kernels, and report the result.

    trace, lower by defaults -> each kernel: trials on its device (trials.py), search (search.py)
                             -> winners, in memory and on disk (winners.py) -> a report (report.py)

One search runs at a time in a process, so that searches do not disturb each other's times. A kernel
whose winner is known from a search that had as much time is not searched again. A search that runs
out of memory keeps the default; a search that runs out of time keeps the default or the best so
far.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import perf_counter

from rune import config, counts, locks
from rune.array import committed_to, default_place, on
from rune.backends import Device
from rune.backends.shared.executor import evaluate, size_values
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.dims import Size
from rune.errors import ArgumentError, DimensionError, OutOfMemory
from rune.lowering.build import has_schedules
from rune.lowering.build.schedule import Schedule
from rune.lowering.build.space import candidates
from rune.lowering.kernels import Kernel
from rune.lowering.stages import stages
from rune.options import is_search
from rune.transforms.compile.executables import Schedules, device_for
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.run import on_mesh
from rune.transforms.compile.transfer import has_moves
from rune.transforms.tuning import winners
from rune.transforms.tuning.report import LATE, Progress, Tuned, TunedKernel
from rune.transforms.tuning.search import Budget, Dropped, Outcome, search
from rune.transforms.tuning.trials import Trials, first_line
from rune.transforms.tuning.winners import Winner

SEED = 0  # of arguments, and of the order in which schedules are tried
SECONDS = 10.0
CLEAR = "\r\x1b[K"  # the line of a terminal
Listener = Callable[[Progress], object]

_lock = locks.reentrant()


def tune(
    function: Callable[..., object],
    device: str | Device | None = None,
    *,
    search: float | str = SECONDS,
    again: bool = False,
    progress: Listener | None = None,
) -> Callable[..., Tuned]:
    """A function from arguments to the result of a search for the fastest loops of `function`.

    Every kernel that a call compiles to is run with one schedule after another, on random arguments
    of the call's sizes, against its default; `function` itself is not run. Winners are stored with
    compiled code: from then on this function, and every other function with the same kernels, is
    compiled with them, in later processes as well (`rune.configure(search="off")` uses only
    defaults). Values do not change, except by the order in which floats are summed. A kernel with
    symbolic sizes is timed at those of the call.

    device:   the device; by default that of calls
    search:   seconds for each kernel; "full": until everything has been tried, which may take hours
    again:    whether to repeat earlier searches
    progress: a function that is called with a `Progress` from time to time; by default a terminal
              shows a line
    Errors:   ArgumentError for another `search`, and for a function that runs on several devices;
              TransformError if `function` is not a function.

    >>> import rune, rune.numpy as rnp
    >>> tuned = rune.tune(lambda x: rnp.exp(x) * 2.0, search=0.1)(rnp.ones(8))
    >>> [kernel.default for kernel in tuned.kernels]
    ['plain']
    """
    if not is_search(search) or search in ("off", "stored"):
        raise ArgumentError(f"tune: cannot search {search!r} ('full', or a positive number of seconds)")
    jitted = function if isinstance(function, Jitted) else jit(function)
    budget = math.inf if search == "full" else float(search)

    def of_call(*args: object, **kwargs: object) -> Tuned:
        trace, inputs = jitted.traced(*args, **kwargs), jitted.inputs(*args, **kwargs)
        if has_moves(trace.program) or on_mesh(trace.program, inputs) is not None:
            raise ArgumentError(
                f"tune: cannot search for {trace.program.name} (it runs on several devices)",
                hint="tune the functions that each of them runs",
            )
        name = device or jitted.device
        where = device_for((committed_to(on(name)) if name else default_place()).device)
        shapes = [type_of(x).shape for x in inputs]
        report = search_program(trace.program, shapes, where, jitted.schedules, budget, again, progress or _line())
        # Code compiled with defaults is compiled again.
        jitted.clear_cache()
        return report

    return of_call


def search_first(program: Program, shapes: Sequence[tuple[Size, ...]], device: Device, schedules: Schedules) -> None:
    """Search the kernels of a program that is about to be compiled, if the settings ask for it."""
    search = config.current().search
    # Each call would lower the program again only to find that its winners are known.
    searches = program.derived.setdefault(search_first, {})
    if (device, search) not in searches:
        budget = math.inf if search == "full" else float(search)
        search_program(program, shapes, device, schedules, budget, False, _line())
        searches[device, search] = True


def search_program(
    program: Program,
    shapes: Sequence[tuple[Size, ...]],
    device: Device,
    schedules: Schedules,
    budget: float,
    again: bool,
    progress: Listener,
) -> Tuned:
    """Search all kernels of a program except those whose schedules the user gives."""
    # By defaults, not by winners: the default of each kernel is what a schedule has to beat.
    lowering = stages(program, device.target, reproducible=config.current().reproducible)
    types = [*shapes, *(v.type.shape for v, _ in program.constants)]
    sizes = size_values(lowering.plan, [tuple(evaluate(d, {}) for d in shape) for shape in types])
    choices = dict(schedules)
    kernels = [k for k in lowering.kernels.kernels.values() if k.name not in choices and has_schedules(k)]
    reports = []
    with _lock:
        for number, kernel in enumerate(kernels):
            tell = partial(_tell, progress, kernel.name, number, len(kernels))
            default = lowering.schedules[kernel.name]
            winner = winners.load(kernel, device.target)
            if winner is not None and winner.budget >= budget and not again:
                reports.append(TunedKernel.known(kernel.name, default, winner))
            else:
                reports.append(_tuned(kernel, default, winner, device, sizes, budget, tell))
    # A listener of the user's has no line in the terminal.
    if progress is _write:
        sys.stderr.write(CLEAR)
    return Tuned(program.name, device.name, tuple(reports))


def _tuned(
    kernel: Kernel,
    default: Schedule,
    known: Winner | None,
    device: Device,
    sizes: Mapping[str, int],
    budget: float,
    tell: Callable[[int, int, float], None],
) -> TunedKernel:
    """The search for one kernel, starting with the known winner; its winner is stored."""
    next(counts.searches)
    space = list(candidates(kernel, device.target))
    # An earlier winner is probably still good, so a search that runs out of time has seen it.
    first = [s for s in space if known is not None and str(s) == known.schedule]
    try:
        trials = Trials(kernel, device, sizes, SEED)
        limits = Budget(budget, perf_counter)
        outcome = search(default, space, trials.prepare, limits, SEED, partial(tell, len(space)), first)
    except (OutOfMemory, Dropped, DimensionError) as error:
        reason = "out of memory" if isinstance(error, OutOfMemory) else "not searched"
        note = f"{reason}: {first_line(error)}"
        # Stored with its reason, which `explain` shows beside the default.
        if known is None:
            winners.store(kernel, device.target, Winner(str(default), 1.0, 0.0, note))
        return TunedKernel.untried(kernel.name, default, note)
    winners.store(kernel, device.target, _winner(outcome, budget))
    return TunedKernel.of(kernel.name, outcome)


def _winner(outcome: Outcome, budget: float) -> Winner:
    # A complete search need not be repeated, whatever its budget.
    if outcome.is_complete:
        return Winner(str(outcome.winner), outcome.ratio, math.inf)
    return Winner(str(outcome.winner), outcome.ratio, budget, LATE)


# --- progress ---------------------------------------------------------------------------------


def _tell(
    progress: Listener, kernel: str, number: int, kernels: int, space: int, tried_count: int, ratio: float
) -> None:
    progress(Progress(kernel, number, kernels, tried_count, space, ratio))


def _line() -> Listener:
    """A listener that rewrites one line of a terminal; without a terminal a silent one."""
    return _write if sys.stderr.isatty() else _be_silent


def _write(progress: Progress) -> None:
    sys.stderr.write(f"{CLEAR}{progress}")
    sys.stderr.flush()


def _be_silent(progress: Progress) -> None:
    """Say nothing."""
