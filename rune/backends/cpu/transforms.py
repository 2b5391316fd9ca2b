"""Calls of Fourier transforms along one axis in the plan of the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.dots import Run
from rune.backends.cpu.fft.forms import Form
from rune.lowering.plan import Call, Plan, all_steps
from rune.lowering.steps import transform_sizes

# The address of the routine of a form, the last; of all of these at once, if they are not there.
Transform = Callable[[np.dtype, list[Form], Form], int]


def compile_transforms(plan: Plan, address: Transform) -> None:
    """Have the routines that a plan calls compiled at once."""
    forms: dict[np.dtype, list[Form]] = defaultdict(list)
    for step in all_steps(plan):
        if isinstance(step, Call) and step.routine == "line_fft":
            forms[step.outputs[0].type.dtype].append(_form(step))
    for dtype, listed in forms.items():
        address(dtype, listed, listed[0])


def _form(step: Call) -> Form:
    return Form(*transform_sizes(step))


def write_transform(run: Run, step: Call, address: Transform) -> None:
    """The transform of real and imaginary parts."""
    form = _form(step)
    function = f"inttoptr (i64 {address(step.outputs[0].type.dtype, [form], form)} to ptr)"
    places = [run.pointer(slot) for slot in (*step.inputs, *step.outputs)]
    watch = run.watch(form.outer * form.n * form.inner * form.n.bit_length())
    run.writer.do(f"call void {function}({', '.join(f'ptr {p.text}' for p in (*places, watch.pointer))})")
    watch.close()
