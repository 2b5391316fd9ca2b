"""Calls of factorisations and triangular solves in a plan of the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from rune.backends.cpu.dots import Run
from rune.backends.cpu.linalg.library import Library
from rune.backends.cpu.linalg.tasks import task_of
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.lowering.factors import Factor, factor_of, is_factor
from rune.lowering.plan import Call, Plan, all_steps
from rune.ops.complex_numbers import WHOLE

Factors = Callable[[np.dtype], Library]  # the functions of a dtype


def compile_factors(plan: Plan, functions: Factors) -> None:
    """Compile the functions that a plan calls, in one module."""
    for dtype, factors in factors_of(plan).items():
        functions(dtype).need(factors)


def factors_of(plan: Plan) -> dict[np.dtype, list[Factor]]:
    """The factorisations of a plan by dtype."""
    factors: dict[np.dtype, list[Factor]] = defaultdict(list)
    for step in all_steps(plan):
        if isinstance(step, Call) and is_factor(step):
            factors[_dtype(step)].append(factor_of(step))
    return factors


def write_factor(run: Run, step: Call, functions: Factors) -> None:
    """A factorisation, or a triangular solve."""
    library = functions(_dtype(step))
    task = task_of(factor_of(step), library.shape)
    places = [f"ptr {run.pointer(slot).text}" for slot in (*step.inputs, *step.outputs)]
    sizes = [f"i64 {size}" for size in (*task.sizes, task.total, library.chunk(task))]
    watch = run.watch(task.total * task.operations)
    function = pointer_to(library.addresses[task.function])
    run.writer.do(f"call void {function}({', '.join([*places, *sizes, f'ptr {watch.pointer.text}'])})")
    watch.close()


def _dtype(step: Call) -> np.dtype:
    """The dtype of a call's matrices. A plan stores complex ones as two real parts."""
    dtype = step.outputs[0].type.dtype
    return dtype if factor_of(step).parts == 1 else WHOLE[dtype]
