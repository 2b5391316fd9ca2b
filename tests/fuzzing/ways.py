"""The ways of running one program that must agree.

A way takes a program and a seed, from which arguments and choices come, and raises where what it
finds differs from the values that the primitives' own meaning gives.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends import device_named
from rune.backends.cpu import compiler
from rune.core.same import same_program
from rune.errors import ArgumentError, DeviceError, DimensionError, ShapeError
from rune.lowering import kernelize, pipeline
from rune.lowering.build import build, build_by_default, flat_kernel, has_schedules
from rune.lowering.build.schedule import PLAIN, Schedule
from rune.lowering.build.space import shared, walks
from rune.lowering.codegen.machine import Machine
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.rounds import require_few
from rune.lowering.kernelize import groups
from rune.lowering.kernels import Kernel
from tests.fuzzing import generate
from tests.fuzzing.compare import Difference, agree, means_what_numpy_says, rounding, values
from tests.fuzzing.limits import lowered
from tests.fuzzing.maker import Refused, is_exact
from tests.fuzzing.program import Program

Check = Callable[[Program, int], None]
WRONG = (Difference, *Refused, AssertionError, RuntimeError, MemoryError)


@dataclass(frozen=True, slots=True)
class Way:
    """A name, how often it is chosen, what draws its programs, what checks one, and the options of
    the command that replays it."""

    name: str
    weight: float
    draw: Callable[[int], Any]
    check: Callable[[Any, int], None]
    options: str = ""


# --- which results ------------------------------------------------------------------------------


def everything(seed: int) -> Program:
    """A program that returns all of its values."""
    program = generate.draw(seed)
    return program.returning(program.intermediates())


def some(seed: int, draw: Callable[[int], Program] = generate.draw) -> Program:
    """A program that returns some of its values."""
    program = draw(seed)
    names = program.intermediates()
    share = np.random.default_rng(seed + 1).random(len(names))
    return program.returning([n for n, x in zip(names, share) if x < 0.4] or names[-1:])


def some_work(seed: int) -> Program:
    """A program of much work that returns some of its values."""
    return some(seed, generate.heavy)


# --- ways -----------------------------------------------------------------------------------------


def in_bits(program: Program) -> bool:
    """Whether values are compared bit for bit."""
    return program.inputs[0].values != "smooth"


def expected(program: Program, args: list[Any]) -> list[Any]:
    """The results by the meaning of the primitives."""
    env = values(program, args)
    return [env[name] for name in program.results]


def same(program: Program, oracle: Sequence[Any], actual: Sequence[Any]) -> None:
    """Raise where any result differs."""
    for name, x, y in zip(program.results, oracle, actual, strict=True):
        agree(name, x, y, 0.0 if in_bits(program) else rounding(program.dtypes_behind(name)))


def is_chaotic(program: Program, seed: int) -> bool:
    """Whether the last bit of the arguments decides the results, as in a loop that takes signs of
    sums that cancel: there no two orders of adding agree, and neither is wrong."""
    if in_bits(program):
        return False
    args = program.arguments(seed)
    try:
        same(program, expected(program, args), expected(program, list(map(_neighbour, args))))
    except Difference:
        return True
    except Refused:  # a program with a mistake has no values
        return False
    return False


def _neighbour(x: Any) -> Any:
    """The next larger numbers, in dtypes whose results need not agree bit for bit."""
    if x.dtype.kind != "f" or not rounding([x.dtype.name]):
        return x
    return rnp.asarray(np.nextafter(np.asarray(x), np.inf, dtype=x.dtype), x.dtype)


def meaning(program: Program, seed: int) -> None:
    """NumPy, step by step."""
    env = values(program, program.arguments(seed))
    for step in program.steps:
        means_what_numpy_says(step, env, in_bits(program))


def compiled(program: Program, seed: int, device: str = "cpu:0", **options: Any) -> None:
    """jit, all stages checked; twice, for the second call is made by native code."""
    args = program.arguments(seed)
    oracle = expected(program, args)
    with rune.configure(check_stages=seed % 4 == 0):
        f = rune.jit(program.function(), device=device, **options)
        same(program, oracle, f(*args))
    same(program, oracle, f(*args))


def kept_on_disk(program: Program, seed: int) -> None:
    """Compiled for one function, and loaded by the program's text for the next: the same bits."""
    args = program.arguments(seed)
    oracle = expected(program, args)
    with rune.configure(check_stages=False):
        first, second = (rune.jit(program.function(), device="cpu:0")(*args) for _ in range(2))
    same(program, oracle, second)
    for name, x, y in zip(program.results, first, second, strict=True):
        agree(name, x, y, 0.0)


def from_a_file(program: Program, seed: int) -> None:
    """Exported, read back and compiled, where a file can hold it: the same program and values."""
    args = program.arguments(seed)
    oracle = expected(program, args)
    try:
        original = rune.export(program.function())(*args)
    except ArgumentError as error:
        if "callback" in error.message:
            return  # a file holds no Python
        raise
    copy = rune.export.load(original.serialize())
    if not same_program(copy.program, original.program):
        raise Difference("another program is in the file")
    same(program, oracle, copy.call(*args))


def on(name: str) -> Check:
    """Compiled for a device, where it has the dtypes."""

    def check(program: Program, seed: int) -> None:
        known = device_named(name).target.program_dtypes
        env = values(program, program.arguments(seed))
        if all(v.dtype in known for v in env.values()):
            compiled(program, seed, name)

    return check


def scheduled_on(name: str) -> Check:
    """Compiled for a device with loops of any legal layout, where it has the dtypes."""

    def check(program: Program, seed: int) -> None:
        known = device_named(name).target.program_dtypes
        args = program.arguments(seed)
        if all(v.dtype in known for v in values(program, args).values()):
            schedule = any_schedules(program, args, name, seed)
            compiled(program, seed, name, schedule=schedule)

    return check


def any_schedules(program: Program, args: list[Any], device: str, seed: int) -> dict[str, Schedule]:
    """A legal schedule for each kernel of a program."""
    lowering = rune.explain(program.function(), device=device)(*args).lowered
    rng, target = np.random.default_rng(seed), device_named(device).target
    return {name: any_schedule(kernel, target, rng) for name, kernel in lowering.kernels.kernels.items()}


def any_schedule(kernel: Kernel, target: Target, rng: np.random.Generator) -> Schedule:
    """A schedule by which the kernel can be built, with a tolerable number of iterations."""
    if not has_schedules(kernel):
        return PLAIN
    flat = flat_kernel(kernel)
    walk = list(walks(flat, target))
    candidates = [*walk, *shared(flat, walk, target)]
    for number in rng.permutation(len(candidates))[:8]:
        try:
            require_few(build(kernel, candidates[number], target), target)
        except (ArgumentError, DeviceError):
            continue
        return candidates[number]
    return build_by_default(kernel, target).schedule


def eager(program: Program, seed: int) -> None:
    """Step by step, loops and branches compiled."""
    args = program.arguments(seed)
    same(program, expected(program, args), program.function()(*args))


@contextmanager
def plainly(seed: int) -> Iterator[None]:
    """No kernel fused where the seed is even; optional passes in any order, some left out."""
    rng = np.random.default_rng(seed)

    def shuffled(passes: Sequence[Any], last_required: str) -> tuple[Any, ...]:
        first = 1 + [p.name for p in passes].index(last_required)
        selection = [p for p in passes[first:] if rng.random() < 0.7]
        rng.shuffle(selection)  # type: ignore[arg-type]
        return (*passes[:first], *selection)

    programs, kernels = pipeline.program_passes, pipeline.kernel_passes
    with ExitStack() as stack:
        stack.enter_context(
            patch.object(pipeline, "program_passes", lambda t, **how: shuffled(programs(t, **how), "split-parts"))
        )
        stack.enter_context(patch.object(pipeline, "kernel_passes", lambda t: shuffled(kernels(t), "legalize-storage")))
        if seed % 2 == 0:
            for module in (groups, kernelize):
                stack.enter_context(patch.object(module, "match", lambda *_: "kept apart"))
        yield


def plain(program: Program, seed: int) -> None:
    """Other passes, in another order; kernels apart."""
    with plainly(seed):
        compiled(program, seed, ("cpu:0", "reference:0")[seed % 3 == 0])


def with_low_limits(*devices: str) -> Check:
    """The ways of large arrays, in small ones: some of them, drawn by the seed."""

    def check(program: Program, seed: int) -> None:
        device = devices[seed % len(devices)]
        known = device_named(device).target.program_dtypes
        if all(v.dtype in known for v in values(program, program.arguments(seed)).values()):
            with lowered(np.random.default_rng(seed), device.split(":")[0]):
                compiled(program, seed, device)

    return check


MACHINES = (Machine(16, has_cheap_masks=False), Machine(32, has_cheap_masks=False), Machine(64, has_cheap_masks=False))


def narrower(program: Program, seed: int) -> None:
    """Vectors of other widths, and without masks."""
    target = MACHINES[seed % len(MACHINES)]
    with patch.object(compiler, "machine", lambda: target):
        compiled(program, seed)


def lanes(program: Program, seed: int) -> None:
    """vmap, compiled, against a loop."""
    rows = [program.arguments(seed + k) for k in range(3)]
    expected_rows = [expected(program, row) for row in rows]
    columns = [rnp.stack(column) for column in zip(*rows)]
    results = rune.jit(rune.vmap(program.function()))(*columns)
    for k, row in enumerate(expected_rows):
        same(program, row, [np.asarray(y)[k] for y in results])


def in_threads(program: Program, seed: int) -> None:
    """One jitted function, called by several threads at once with their own arguments."""
    calls = [program.arguments(seed + k) for k in range(4)]
    oracle = [expected(program, args) for args in calls]
    f = rune.jit(program.function())
    wrong: list[BaseException] = []
    start = threading.Barrier(len(calls))

    def run(k: int) -> None:
        start.wait()
        try:
            for _ in range(6):
                same(program, oracle[k], f(*calls[k]))
        except WRONG as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]


def donated(program: Program, seed: int) -> None:
    """Arguments that lend their memory to the results; others keep theirs."""
    rng = np.random.default_rng(seed)
    numbers = tuple(k for k in range(len(program.inputs)) if rng.random() < 0.7) or (0,)
    f = rune.jit(program.function(), donate_argnums=numbers)
    for call in range(3):
        args = program.arguments(seed + call)
        copies = {k: np.array(x) for k, x in enumerate(args) if k not in numbers}
        oracle = [np.array(x) for x in expected(program, args)]
        results = f(*args)
        same(program, oracle, results)
        for k, before in copies.items():
            agree(f"argument {k}", before, args[k], 0.0)


def alone(program: Program, seed: int) -> None:
    """Arguments without other references, and results that are dropped or kept at random."""
    rng, f, pairs = np.random.default_rng(seed), rune.jit(program.function()), []
    for call in range(3):
        oracle = [np.array(x) for x in expected(program, program.arguments(seed + call))]
        results = f(*program.arguments(seed + call))
        pairs += [(oracle, results)] if rng.random() < 0.7 else []
        del results
    for oracle, results in pairs:
        same(program, oracle, results)


def in_a_loop(program: Program, seed: int) -> None:
    """The whole program as the body of a compiled scan over several arguments."""
    rows = [program.arguments(seed + k) for k in range(3)]
    expected_rows = [expected(program, row) for row in rows]
    columns = [rnp.stack(column) for column in zip(*rows)]
    function = program.function()
    body = rune.jit(lambda *xs: rune.scan(lambda c, row: (c, function(*row)), 0, xs)[1])
    for row, *results in zip(expected_rows, *body(*columns)):
        same(program, row, results)


def at_all_sizes(subject: generate.Sized, seed: int) -> None:
    """Compiled once for declared sizes, called with several, 0 and 1 among them."""
    names = sorted({d for p in subject.patterns for d in p if not d.isdigit()})
    patterns = tuple(map(",".join, subject.patterns))
    for least in (0, 1, 4):
        f = rune.jit(subject.program.function(), dims={n: (least, 40) for n in names}, in_dims=patterns)
        try:
            return _at_each_size(subject, seed, f, least)
        except DimensionError:
            continue  # the program asks which of two sizes is larger
    return None


def at_automatic_sizes(subject: generate.Sized, seed: int) -> None:
    """One jitted function called with one size after another, with automatic sizes."""
    with rune.configure(symbolic="auto"):
        _at_each_size(subject, seed, rune.jit(subject.program.function()))


OTHER_SIZES = ({"n": 7, "m": 2}, {"n": 2, "m": 9}, {"n": 33, "m": 1}, {"n": 4, "m": 4})


def _at_each_size(subject: generate.Sized, seed: int, f: Callable[..., Any], least: int = 0) -> None:
    letters = {d for p in subject.patterns for d in p}
    for k, sizes in enumerate((*generate.SIZES, *OTHER_SIZES)):
        if any(size < least for name, size in sizes.items() if name in letters):
            continue
        program = subject.at(sizes)
        args = program.arguments(seed + k)
        try:
            results = expected(program, args)
        except Refused:
            continue  # an empty axis has no largest element
        try:
            same(program, results, f(*args))
        except DimensionError:
            raise
        except ShapeError as error:
            if _fits_all_sizes(subject, least):
                raise Difference(f"sizes {sizes}: {error}") from error
            return  # it is traced once, for sizes that do not fit as well
        except WRONG as error:
            raise Difference(f"sizes {sizes}: {type(error).__name__}: {error}") from error


def _fits_all_sizes(subject: generate.Sized, least: int) -> bool:
    """Whether shapes fit at all sizes up to 11; a drawn program may fit at the drawn ones alone."""
    for m, n in itertools.product(range(least, 12), repeat=2):
        program = subject.at({"m": m, "n": n})
        try:
            expected(program, program.arguments(0))
        except ShapeError:
            return False
        except Refused:
            continue  # as where an empty axis has no largest element
    return True


def of_other_types(program: Program, seed: int) -> None:
    """One jitted function, called with arguments of one dtype after another."""
    f = rune.jit(program.function())
    for k, dtype in enumerate(("float32", "int32", "float64", "int8", "uint8", "bfloat16")):
        inputs = tuple(replace(i, dtype=dtype) for i in program.inputs)
        other = replace(program, inputs=inputs)
        args = other.arguments(seed + k)
        try:
            env = values(other, args)
        except Refused:
            continue
        if all(is_exact_number(env[name]) for name in other.names()):
            same(other, [env[name] for name in other.results], f(*args))


def is_exact_number(value: Any) -> bool:
    """Whether the value may be compared bit for bit."""
    return value.dtype not in dtypes.INEXACT or is_exact(np.asarray(value))
