"""Calls of factorisations and solutions by triangles in the plan of the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.dots import Run
from rune.backends.cpu.linalg.library import Library, task_of
from rune.lowering.factors import Factor, factor_of, is_factor
from rune.lowering.plan import Call, Plan, all_steps

Factors = Callable[[np.dtype], Library]  # the functions of a dtype


def compile_factors(plan: Plan, functions: Factors) -> None:
    """Have the functions that a plan calls compiled at once."""
    factors: dict[np.dtype, list[Factor]] = defaultdict(list)
    for step in all_steps(plan):
        if isinstance(step, Call) and is_factor(step):
            factors[step.outputs[0].type.dtype].append(factor_of(step))
    for dtype, listed in factors.items():
        functions(dtype).need(listed)


def write_factor(run: Run, step: Call, functions: Factors) -> None:
    """A factorisation, or a solution by a triangle."""
    library = functions(step.outputs[0].type.dtype)
    task = task_of(factor_of(step), library.shape)
    places = [f"ptr {run.pointer(slot).text}" for slot in (*step.inputs, *step.outputs)]
    sizes = [f"i64 {size}" for size in (*task.sizes, task.total, library.chunk(task))]
    function = f"inttoptr (i64 {library.addresses[task.function]} to ptr)"
    run.writer.do(f"call void {function}({', '.join([*places, *sizes])})")
