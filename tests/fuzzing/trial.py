"""One seed: the way in which its program is run, whether the law holds, and the report if not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzzing import generate, ways
from tests.fuzzing.compare import Difference
from tests.fuzzing.program import Input, Program
from tests.fuzzing.shrink import smallest
from tests.fuzzing.ways import Way
from tests.fuzzing.ways_derivatives import gradients, hessians
from tests.fuzzing.ways_errors import mistaken, refused_alike

WAYS: tuple[Way, ...] = (
    Way("NumPy", 8, generate.draw, ways.meaning),
    Way("every intermediate is a result", 10, ways.everything, ways.compiled),
    Way("some results", 10, ways.some, ways.compiled),
    Way("reference", 6, ways.some, ways.on("reference:0")),
    Way("reference, every intermediate", 3, ways.everything, ways.on("reference:0")),
    Way("eager", 3, generate.draw, ways.eager),
    Way("other passes", 3, ways.some, ways.plain),
    Way("low limits", 6, ways.some, ways.with_low_limits("cpu:0", "cpu:0", "reference:0")),
    Way("much work", 3, ways.some_work, ways.compiled),
    Way("low limits of much work", 6, ways.some_work, ways.with_low_limits("cpu:0", "reference:0")),
    Way("other vectors", 5, ways.some, ways.narrower),
    Way("vmap", 2, ways.some, ways.lanes),
    Way("threads", 2, ways.some, ways.in_threads),
    Way("donation", 2, ways.some, ways.donated),
    Way("arguments that nobody holds", 1, ways.some, ways.alone),
    Way("other dtypes", 1.5, ways.some, ways.of_other_types),
    Way("in a scan", 2, ways.some, ways.in_a_loop),
    Way("found on disk", 1.5, ways.some, ways.kept_on_disk),
    Way("from a file", 2, ways.some, ways.from_a_file),
    Way("declared sizes", 5, generate.symbolic, ways.at_all_sizes),
    Way("automatic sizes", 1.5, generate.symbolic, ways.at_automatic_sizes),
    Way("gradients", 2, generate.smooth, gradients),
    Way("second derivatives", 0.5, generate.smooth, hessians),
    Way("errors", 4, mistaken, refused_alike),
    Way("opencl", 0.4, ways.some, ways.on("opencl:0")),
    Way("vulkan", 0.4, ways.some, ways.on("vulkan:0")),
    Way("wgpu", 0.3, ways.some, ways.on("wgpu:0")),
    Way("low limits on opencl", 0.2, ways.some_work, ways.with_low_limits("opencl:0")),
    Way("low limits on vulkan", 0.2, ways.some_work, ways.with_low_limits("vulkan:0")),
    Way("low limits on wgpu", 0.2, ways.some_work, ways.with_low_limits("wgpu:0")),
    Way("schedules", 3, ways.some, ways.scheduled_on("cpu:0")),
    Way("schedules on opencl", 0.2, ways.some, ways.scheduled_on("opencl:0")),
    Way("schedules on vulkan", 0.2, ways.some, ways.scheduled_on("vulkan:0")),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A program for which two ways do not agree."""

    seed: int
    way: Way
    drawn: Any
    error: BaseException

    def __str__(self) -> str:
        program = _program(self.drawn)
        inputs = "\n".join(map(_drawn, program.inputs))
        sizes = f"# axes: {self.drawn.patterns}\n" if program is not self.drawn else ""
        return "\n".join(
            [
                f"{self.way.name}: {type(self.error).__name__}: {self.error}\n",
                f"rng = np.random.default_rng({self.seed})\n{inputs}\n",
                f"{sizes}{program.source()}\n",
                f"replay: ./scripts/fuzz {self.way.options}--seed {self.seed}",
            ]
        )


def _drawn(argument: Input) -> str:
    if argument.values == "smooth":
        return f"{argument.name} = rng.normal(size={argument.shape}).astype({argument.dtype!r})"
    if argument.values == "hard" or argument.dtype.startswith("c"):
        return f"{argument.name} = {argument!r}.draw(rng)"
    low, high = {"b": (0, 2), "u": (0, 9)}.get(argument.dtype[0], (-4, 5))
    low, high = (-4, 5) if argument.dtype == "bfloat16" else (low, high)
    integers = f"rng.integers({low}, {high}, {argument.shape})"
    return f"{argument.name} = {integers}.astype({argument.dtype!r})"


def way_of(seed: int, candidates: Sequence[Way] = WAYS) -> Way:
    """The way in which the program of a seed is run."""
    weights = np.array([w.weight for w in candidates])
    rng = np.random.default_rng(seed + 10**9)
    return candidates[rng.choice(len(candidates), p=weights / weights.sum())]


def run(way: Way, subject: Any, seed: int) -> BaseException | None:
    """The failure, if there is one."""
    try:
        with np.errstate(all="ignore"):
            way.check(subject, seed)
    except Difference as error:
        return None if ways.is_chaotic(_program(subject), seed) else error
    except Exception as error:
        return error
    return None


def _program(subject: Any) -> Program:
    return subject.program if isinstance(subject, generate.Sized) else subject


def trial(seed: int, ways_of_search: Sequence[Way] = WAYS) -> Failure | None:
    """The program of one seed in its way."""
    way = way_of(seed, ways_of_search)
    subject = way.draw(seed)
    if not _program(subject).steps:
        return None
    error = run(way, subject, seed)
    return None if error is None else Failure(seed, way, subject, error)


def shrunk(failure: Failure, seconds: float = 60.0) -> Failure:
    """The same failure of the smallest program: an error of the same class in the same way."""
    has_sizes, error_type = isinstance(failure.drawn, generate.Sized), type(failure.error)

    def variant(program: Program) -> Any:
        return _sized_as(failure.drawn, program) if has_sizes else program

    def fails(program: Program) -> bool:
        candidate = variant(program)
        return candidate is not None and type(run(failure.way, candidate, failure.seed)) is error_type

    smaller = smallest(_program(failure.drawn), failure.seed, fails, seconds)
    error = run(failure.way, variant(smaller), failure.seed) or failure.error
    return Failure(failure.seed, failure.way, variant(smaller), error)


def _sized_as(original: generate.Sized, program: Program) -> generate.Sized | None:
    """The program with the names of its axes; None for an argument that was a step before."""
    known = dict(zip((i.name for i in original.program.inputs), original.patterns, strict=True))
    if not all(i.name in known for i in program.inputs):
        return None
    return generate.Sized(program, tuple(known[i.name] for i in program.inputs))
