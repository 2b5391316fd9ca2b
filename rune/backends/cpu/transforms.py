"""Calls of Fourier transforms along one axis in a plan of the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from rune.backends.cpu import compiler
from rune.backends.cpu.dots import Run
from rune.backends.cpu.fft import forms
from rune.backends.cpu.fft.forms import Form
from rune.backends.cpu.gemm.shape import SCALARS, shape_for
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.plan import Call, Plan, all_steps
from rune.lowering.steps import is_inverse, transform_sizes

# The address of the routine of the last argument's form, compiled with all forms of the list.
Transform = Callable[[np.dtype, list[Form], Form], int]


def compile_transforms(plan: Plan, address: Transform) -> None:
    """Compile the routines that a plan calls, in one module."""
    by_dtype: dict[np.dtype, list[Form]] = defaultdict(list)
    for step in all_steps(plan):
        if isinstance(step, Call) and step.routine == "line_fft":
            by_dtype[step.outputs[0].type.dtype].append(_form(step))
    for dtype, forms_of_dtype in by_dtype.items():
        address(dtype, forms_of_dtype, forms_of_dtype[0])


def _form(step: Call) -> Form:
    return Form(*transform_sizes(step), are_pairs=len(step.inputs) == 1, is_inverse=is_inverse(step))


def scratch_bytes(plan: Plan) -> int:
    """The bytes of work memory of a plan's transforms, which use it in turn."""
    calls = [s for s in all_steps(plan) if isinstance(s, Call) and s.routine == "line_fft"]
    return max([_scratch_bytes(call) for call in calls], default=0)


def _scratch_bytes(call: Call) -> int:
    shape = shape_for(compiler.machine(), SCALARS[call.outputs[0].type.dtype])
    return forms.scratch_bytes(_form(call), shape)


def write_transform(run: Run, step: Call, address: Transform, scratch: Callable[[], Value]) -> None:
    """A transform of two parts, or of interleaved pairs. scratch: gives the address of work
    memory"""
    form = _form(step)
    function = pointer_to(address(step.outputs[0].type.dtype, [form], form))
    # Pairs are in one array, which stands for both of their parts.
    places = [run.pointer(slot) for side in (step.inputs, step.outputs) for slot in (side * 2)[:2]]
    places.append(scratch() if _scratch_bytes(step) else Value(run.writer, "ptr", "null"))
    watch = run.watch(form.outer * form.n * form.inner * form.n.bit_length())
    run.writer.do(f"call void {function}({', '.join(f'ptr {p.text}' for p in (*places, watch.pointer))})")
    watch.close()
