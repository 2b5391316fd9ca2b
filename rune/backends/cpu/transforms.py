"""Calls of Fourier transforms along one axis in a plan of the CPU.

Numbers as they lie in memory are transformed by the routines of eager calls; parts of complex
numbers by routines that are compiled for the form of an array.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Protocol, TypeGuard

import numpy as np

from rune.backends.cpu import compiler, dots, routine_calls
from rune.backends.cpu.fft import arrays, forms
from rune.backends.cpu.fft.forms import Form
from rune.backends.cpu.gemm.shape import SCALARS, shape_for
from rune.backends.cpu.host import Host
from rune.backends.cpu.routine_calls import HEAD, Task
from rune.backends.cpu.watch import is_long
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.plan import Call, Plan, all_steps
from rune.lowering.steps import transform_kind, transform_sizes
from rune.ops.complex_numbers import PART

BATCH_OPERATIONS = 1 << 26  # of units between two checks for signals, some tens of milliseconds
# The address of the routine of the last argument's form, compiled with all forms of the list.
Transform = Callable[[np.dtype, list[Form], Form], int]


class Run(dots.Run, Protocol):
    """What writing a transform needs besides: long ones check for signals."""

    def hear(self) -> None:
        """Check for signals if it is time to."""
        ...


def compile_transforms(plan: Plan, address: Transform) -> None:
    """Compile the routines that a plan calls on parts, in one module."""
    by_dtype: dict[np.dtype, list[Form]] = defaultdict(list)
    for step in all_steps(plan):
        if _is_transform(step) and len(step.inputs) == 2:
            by_dtype[step.outputs[0].type.dtype].append(_form(step))
    for dtype, forms_of_dtype in by_dtype.items():
        address(dtype, forms_of_dtype, forms_of_dtype[0])


def _is_transform(step: object) -> TypeGuard[Call]:
    return isinstance(step, Call) and step.routine == "line_fft"


def _form(step: Call) -> Form:
    return Form(*transform_sizes(step))


def scratch_bytes(plan: Plan, cores: int) -> int:
    """The bytes of work memory of a plan's transforms, which use it in turn."""
    return max((_scratch_bytes(step, cores) for step in all_steps(plan) if _is_transform(step)), default=0)


def _scratch_bytes(call: Call, cores: int) -> int:
    if len(call.inputs) == 1:
        task = _task(*_sizes(call))
        return task.memory_bytes * task.shares(cores)
    shape = shape_for(compiler.machine(), SCALARS[call.outputs[0].type.dtype])
    return forms.scratch_bytes(_form(call), shape)


def write_transform(run: Run, step: Call, host: Host, scratch: Callable[[], Value]) -> None:
    """A transform of two parts, or of an array as it is. scratch: gives the address of work
    memory"""
    places = [run.pointer(slot) for side in (step.inputs, step.outputs) for slot in side]
    places.append(scratch() if _scratch_bytes(step, host.cores) else Value(run.writer, "ptr", "null"))
    outer, n, inner = transform_sizes(step)
    operations = outer * n * inner * n.bit_length()
    if len(step.inputs) == 1:
        _write_task(run, step, host, places, operations)
        return
    form = _form(step)
    function = pointer_to(host.libraries.transform(step.outputs[0].type.dtype, [form], form))
    watch = run.watch(operations)
    run.writer.do(f"call void {function}({', '.join(f'ptr {p.text}' for p in (*places, watch.pointer))})")
    watch.close()


def _write_task(run: Run, step: Call, host: Host, places: list[Value], operations: int) -> None:
    """The units of a task, some at a time where all take long, between checks for signals."""
    writer, task = run.writer, _task(*_sizes(step))
    units, words = task.work.units, writer.at(_table(host.cores, *_sizes(step)).ctypes.data)
    if not is_long(operations):
        _write_units(writer, task, host, [words, *places], writer.constant("i64", 0), writer.constant("i64", units))
        return
    batch = max(units * BATCH_OPERATIONS // operations, 1)

    def some(first: Value) -> None:
        last = (first + batch).call("smin", units)
        _write_units(writer, task, host, [words, *places], first, last)
        run.hear()

    writer.count_up(writer.constant("i64", 0), writer.constant("i64", units), batch, some)


def _write_units(writer: Writer, task: Task, host: Host, job: list[Value], first: Value, last: Value) -> None:
    """Units from `first` to `last`, on one core or shared by all. job: words, and all arrays"""
    if task.shares(host.cores) == 1:
        words, *arrays_of_job = job
        pointers = ", ".join(f"ptr {p.text}" for p in (writer.item(words, "i64", HEAD), *arrays_of_job))
        writer.do(f"call void {pointer_to(task.function)}({pointers}, i64 {first.text}, i64 {last.text})")
        return
    memory = writer.allocate("ptr", len(job) + 1)
    for k, value in enumerate((*job, first)):
        writer.store(value, writer.item(memory, "ptr", k))
    share = writer.at(routine_calls.share_address())
    counts = f"i64 {(last - first).text}, i64 {task.work.units_of_share(host.cores)}"
    writer.do(f"call void {pointer_to(host.parallel())}(ptr {share.text}, ptr {memory.text}, {counts})")


def _sizes(step: Call) -> tuple[str, int, int, int, np.dtype]:
    """What determines the task of a step: the kind, outer, n, inner, the dtype of parts."""
    dtype = step.inputs[0].type.dtype
    outer, n, inner = transform_sizes(step)
    return transform_kind(step), outer, n, inner, PART.get(dtype, dtype)


# Tasks and tables last: the code of plans contains addresses of their words.
@functools.cache
def _task(kind: str, outer: int, n: int, inner: int, dtype: np.dtype) -> Task:
    routine = arrays.routine_of(kind, outer, n, inner, dtype)
    assert routine is not None, f"no routine of {kind} for {dtype}[{outer}, {n}, {inner}]"
    return routine().task


@functools.cache
def _table(cores: int, kind: str, outer: int, n: int, inner: int, dtype: np.dtype) -> np.ndarray:
    return _task(kind, outer, n, inner, dtype).table(cores)
