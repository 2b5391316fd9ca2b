"""Faults planted in rune for a test, one of each kind that has occurred, which must be found.

    with FAULTS["a diagonal in step with its matrix"]():
        ...                                             # what is compiled now is wrong

rune does not know about them: each replaces a function by a faulty one from this file. None writes
out of bounds, so a fault that once crashed the process gives a wrong value here.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest.mock import patch

import numpy as np

import rune
from rune.backends.cpu.fft import forms
from rune.backends.cpu.fft.stage_lists import Stages
from rune.backends.cpu.gemm import blocks
from rune.backends.shared import callbacks
from rune.lowering import arena, memory, pipeline
from rune.lowering.build.streams import sums as stream_sums
from rune.lowering.codegen.llvm.body import Body
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.nodes import For, KernelCode, Stmt
from rune.lowering.kernel.rewrite import map_expr, map_parts, map_stmts, walk
from rune.lowering.kernelize import groups, write
from rune.lowering.lanes import layout, width
from rune.lowering.passes import Pass
from rune.lowering.scatters import by_sorting
from rune.lowering.simplify import eliminate_common
from rune.lowering.sorting import radix
from rune.ops import conv_expansion
from rune.transforms.compile import executables, run
from rune.transforms.compile.jit import Jitted
from tests.fuzzing import limits
from tests.fuzzing.trial import WAYS, Way, trial

WITH_LOW_LIMITS = "low limits of much work"  # the way that finds the faults of LOWERED
Fault = Callable[[], AbstractContextManager[Any]]


def _diagonal() -> AbstractContextManager[Any]:
    def aligned(reader: Any, read: Any, positions: Iterable[tuple]) -> tuple[int | None, ...]:
        if not read.is_whole:
            return (None,) * len(read.sizes)
        axes = {s: k for k, s in enumerate(groups.axis_symbols(reader.sizes))}
        return tuple(
            groups._only({groups._axis(index, axes, size, reader) for index in column})
            for column, size in zip(zip(*positions), read.sizes)
        )

    return patch.object(groups, "_alignment", aligned)


def _three_registers() -> AbstractContextManager[Any]:
    def registers(code: KernelCode, vector_loops: frozenset[int], lanes: int) -> int:
        around = [s for s in walk(code.body) if isinstance(s, For) and id(s) in vector_loops]
        if not around or not all(map(width._holds_cheap_loop, around)):
            return 1
        shortest = min(width.trip_count(loop.extent) for loop in around)
        return max(1, min(width.MOST_REGISTERS, shortest // lanes))

    return patch.object(layout, "registers_of_vector", registers)


def _lost_lane() -> AbstractContextManager[Any]:
    tail = Body.masked_tail

    def without_one(self: Body, first: Any, end: Any, body: Any) -> None:
        tail(self, first, end if end.text == "0" else end - 1, body)

    return patch.object(Body, "masked_tail", without_one)


def _shape_of_the_buffer() -> AbstractContextManager[Any]:
    fill = callbacks._fill

    def reshaped(function: Any, arrays: Sequence[Any], types: Any, outputs: int) -> None:
        transposes = [a.reshape(a.shape[::-1]) for a in arrays[outputs:]]
        fill(function, [*arrays[:outputs], *transposes], types, outputs)

    return patch.object(callbacks, "_fill", reshaped)


def _run_as(change: Callable[..., list[Any]]) -> AbstractContextManager[Any]:
    """Calls of compiled code by Python, changed. Native code makes the later calls."""
    run = executables.run_executable

    def changed(executable: Any, types: Any, buffers: Any, *arguments: Any) -> list[Any]:
        return change(run, executable, types, buffers, *arguments)

    return patch.object(executables, "run_executable", changed)


def _size_of_zero() -> AbstractContextManager[Any]:
    def wrong(run: Any, executable: Any, types: Any, buffers: Sequence[Any], *arguments: Any) -> Any:
        results = run(executable, types, buffers, *arguments)
        if not any(getattr(b, "size", 1) == 0 for b in buffers):
            return results
        for result in results:
            if result.size and isinstance(result.buffer, np.ndarray) and result.dtype != np.bool_:
                result.buffer[...] += np.ones((), result.dtype)
        return results

    return _run_as(wrong)


def _race() -> AbstractContextManager[Any]:
    last_buffers: dict[str, Any] = {}

    def raced(run: Any, executable: Any, types: Any, buffers: Any, *arguments: Any) -> Any:
        last_buffers[str(types)] = buffers
        time.sleep(1e-3)
        return run(executable, types, last_buffers[str(types)], *arguments)

    return _run_as(raced)


@contextmanager
def _donation() -> Iterator[None]:
    execute = executables.execute

    def all_lent(program: Any, args: Any, place: Any, donations: Any, schedules: Any) -> Any:
        return execute(program, args, place, tuple(range(len(args))), schedules)

    # Both at once, not within a call: threads would undo each other's patches.
    with patch.object(executables, "_may_lend", lambda value, device: True), patch.object(run, "execute", all_lent):
        yield


def _parameters_by_hash() -> AbstractContextManager[Any]:
    def lossy(params: tuple[Any, ...]) -> Any:
        try:
            return hash(params) % 8
        except TypeError:
            return params

    return patch.object(eliminate_common, "_Params", lossy)


def _no_dtype_in_the_key() -> AbstractContextManager[Any]:
    call = Jitted.__call__

    def careless(self: Jitted, *args: Any, **kwargs: Any) -> Any:
        known = self.__dict__.setdefault("of_shapes", {})
        first = known.setdefault(tuple(x.shape for x in args), [x.dtype for x in args])
        return call(self, *(x.astype(d) for x, d in zip(args, first)), **kwargs)

    return patch.object(Jitted, "__call__", careless)


def _narrow_index() -> AbstractContextManager[Any]:
    def wrapped(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or not expr.indices:
            return expr
        indices = (*expr.indices[:-1], expr.indices[-1] % 64)
        return Load(expr.buffer, indices, expr.dtype, expr.guard)

    def narrowed(code: KernelCode) -> KernelCode:
        def change(stmt: Stmt) -> Iterable[Stmt]:
            return (map_parts(stmt, lambda e: map_expr(wrapped, e), lambda size: size),)

        return KernelCode(code.name, code.params, code.sizes, map_stmts(change, code.body), code.aliases)

    passes = pipeline.kernel_passes
    first = Pass("narrow-index", "indices of six bits", narrowed)
    return patch.object(pipeline, "kernel_passes", lambda target: (first, *passes(target)))


def _short_lives() -> AbstractContextManager[Any]:
    return patch.object(arena, "_meet", lambda a, b: a.first < b.last and b.first < a.last)


def _in_place_too_early() -> AbstractContextManager[Any]:
    ranges = memory.live_ranges

    def shorter(program: Any, within: Any = None) -> Any:
        lives = ranges(program, within)
        ends = {v: (a, max(a, b - 1)) for v, (a, b) in lives.items() if v not in program.outputs}
        return lives | ends

    return patch.object(memory, "live_ranges", shorter)


def _read_after_it_changed() -> AbstractContextManager[Any]:
    return patch.object(write, "with_originals", lambda kernel, inputs: (kernel, inputs))


# --- in code that low limits use for small arrays -------------------------------------------------


@contextmanager
def _lost_depth() -> Iterator[None]:
    """Products leave out the last block of a sum, if it is not full and not the only one."""
    count = blocks.block_count

    def full(length: Any, size: int) -> Any:
        is_depth = size == blocks.DEPTH and size != blocks.HEIGHT
        return length.binary("udiv", size).call("smax", 1) if is_depth else count(length, size)

    with ExitStack() as stack:
        stack.enter_context(patch.object(blocks, "block_count", full))
        stack.enter_context(patch.object(limits, "_of_choice", functools.cache(lambda _: limits.fresh_libraries())))
        for module, functions in limits.fresh_libraries().items():
            stack.enter_context(patch.multiple(module, **functions))
        yield


@contextmanager
def _turns_of_one_run_more() -> Iterator[None]:
    """Stages of transforms multiply by the turns of other runs."""
    data_of_stage = forms.data_of_stage

    def shifted(radix: int, runs: int, dtype: np.dtype) -> Stages:
        data = data_of_stage(radix, runs, dtype)
        return Stages(np.roll(data.words, 1, 0), data.tables) if data.words.ndim > 1 else data

    with ExitStack() as stack:
        stack.enter_context(patch.object(forms, "data_of_stage", shifted))
        stack.enter_context(patch.object(limits, "_of_choice", functools.cache(lambda _: limits.fresh_libraries())))
        for module, functions in limits.fresh_libraries().items():
            stack.enter_context(patch.multiple(module, **functions))
        yield


@contextmanager
def _turns_of_one_row_more() -> Iterator[None]:
    """Long transforms are put together with the turns of other rows."""
    turns = forms.turns_between

    def shifted(rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
        return np.roll(turns(rows, columns, dtype), 1, 1)

    with ExitStack() as stack:
        stack.enter_context(patch.object(forms, "turns_between", shifted))
        stack.enter_context(patch.object(limits, "_of_choice", functools.cache(lambda _: limits.fresh_libraries())))
        for module, functions in limits.fresh_libraries().items():
            stack.enter_context(patch.multiple(module, **functions))
        yield


def _filled_with_ones(module: str) -> Fault:
    """Parts of a sum that are not full are filled with ones."""

    def plant() -> AbstractContextManager[Any]:
        module_of_fills = import_module(f"rune.lowering.kernelize.{module}")
        identity = module_of_fills.identity

        def one(combine: str, type: Any) -> Any:
            neutral = identity(combine, type)
            return replace(neutral, value=neutral.value + 1) if combine == "add" else neutral

        return patch.object(module_of_fills, "identity", one)

    return plant


def _largest_of_a_tile() -> AbstractContextManager[Any]:
    module_of_scans = import_module("rune.lowering.kernelize.split_scans")
    return patch.dict(module_of_scans.REDUCE, add=module_of_scans.REDUCE["max"])


def _phases_in_the_other_order() -> AbstractContextManager[Any]:
    merge = conv_expansion._merged
    return patch.object(conv_expansion, "_merged", lambda parts, axis: merge(parts[::-1], axis))


def _one_level_of_scatters() -> AbstractContextManager[Any]:
    level = by_sorting._level

    def first(combine: str, rows: Any, *entries: Any) -> list[Any]:
        return level(combine, rows, *entries)[:1]

    return patch.object(by_sorting, "_level", first)


def _third_tile_of_a_sort() -> AbstractContextManager[Any]:
    """From the third tile of a row on, digits begin where those of the second do."""
    return patch.object(radix._Moves, "start", _start_of_two_tiles)


def _start_of_two_tiles(moves: Any, digit: str) -> str:
    count = -(-moves.word.shape[-1] // moves.tile)
    first, third = (f"({radix.DIGITS}*r + {digit})*({count}) + {p}" for p in ("p", "1"))
    if count < 3:
        return f"x2[{first}] - x1[{first}]"
    return f"select(index(p) < 2_i64, x2[{first}] - x1[{first}], x2[{third}] - x1[{third}])"


def _parts_of_an_attention() -> AbstractContextManager[Any]:
    """The parts of a row are added up without scaling by their peaks."""
    return patch.object(stream_sums, "_corrected_in_parts", lambda frame, peak: iter(()))


LOWERED: Mapping[str, Fault] = {
    "a sum of parts filled with ones": _filled_with_ones("two_step"),
    "a scan with the largest of a tile for its sum": _largest_of_a_tile,
    "a convolution's phases in another order": _phases_in_the_other_order,
    "a sort's third tile": _third_tile_of_a_sort,
    "a scatter of one level": _one_level_of_scatters,
    "a transform with the turns of another run": _turns_of_one_run_more,
    "an attention of parts of their own": _parts_of_an_attention,
    "a product without its last depth": _lost_depth,
    "a product of parts filled with ones": _filled_with_ones("split_dots"),
}
FAULTS: Mapping[str, Fault] = {
    "a diagonal in step with its matrix": _diagonal,
    "vectors of three registers": _three_registers,
    "a lost lane of a tail": _lost_lane,
    "a host call with another shape": _shape_of_the_buffer,
    "a wrong value at size 0": _size_of_zero,
    "a race between threads": _race,
    "donation of what is held": _donation,
    "a key that holds only a hash": _parameters_by_hash,
    "a key without the dtype": _no_dtype_in_the_key,
    "an index that wraps": _narrow_index,
    "memory shared by two live buffers": _short_lives,
    "memory taken over too early": _in_place_too_early,
    "an element read after it changed": _read_after_it_changed,
    **LOWERED,
}


@dataclass(frozen=True, slots=True)
class Discovery:
    """How a planted fault was found."""

    programs: int
    seconds: float
    way: str
    error: str

    def __str__(self) -> str:
        return f"{self.programs} programs, {self.seconds:.0f} s, {self.way}: {self.error}"


def find(name: str, seconds: float, first: int = 0, ways: Sequence[Way] = WAYS) -> Discovery | None:
    """Put a fault in and run seed after seed until one fails; None where none does in the time."""
    begin = time.monotonic()
    candidates = [w for w in ways if not any(device in w.name for device in ("opencl", "vulkan", "wgpu"))]
    candidates = [w for w in candidates if name not in LOWERED or w.name == WITH_LOW_LIMITS]
    with FAULTS[name](), rune.configure(cache_dir=""):
        for seed in itertools.count(first):
            if time.monotonic() > begin + seconds:
                return None
            failure = trial(seed, candidates)
            if failure is not None:
                seconds_of_search, lines = time.monotonic() - begin, str(failure.error).splitlines()
                reason = f"{type(failure.error).__name__} {lines[0][:80] if lines else ''}"
                return Discovery(seed - first + 1, seconds_of_search, failure.way.name, reason)
    raise AssertionError
