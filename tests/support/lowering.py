"""Helpers of lowering tests: targets, programs from functions, and three ways to run one.

evaluate(program, args)             equation by equation, by the primitives' own meaning
run_kernel_program(kernels, args)   kernels from their definition (kernel_program.py)
run_plan(plan, args)                every step of a plan, loops by the kernel interpreter
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rune import dims, dtypes
from rune.core.program import Literal, Program
from rune.core.staging import Stage, trace_program
from rune.core.types import ArrayType
from rune.dims import Dim
from rune.lowering.codegen.target import Target
from rune.lowering.decompose import decompose
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernels import Invoke, Kernel, KernelProgram
from rune.lowering.plan import Call, Copy, Launch, Plan, Slot, Space
from tests.support.kernel_program import run_dot, run_kernel_program


def target(*routines: str, language: str = "llvm", scratch_bytes: int = 1 << 16) -> Target:
    """The target of a device that does not exist."""
    return Target(
        "test:0", "test", language, "a test", frozenset(dtypes.ANY), 32, 8, 1, 0, scratch_bytes, frozenset(routines)
    )


PLAIN = target()
WITH_DOT = target("dot")


def f32(*shape: Any) -> ArrayType:
    """The type of an f32 array."""
    return ArrayType(shape, dtypes.f32)


def i32(*shape: Any) -> ArrayType:
    """The type of an i32 array."""
    return ArrayType(shape, dtypes.i32)


def number(value: Any, dtype: np.dtype = dtypes.f32) -> np.ndarray:
    """A rank-0 constant."""
    return np.asarray(value).astype(dtype)


def program_of(function: Callable[..., Any], *types: ArrayType, name: str = "f") -> Program:
    """The decomposed program of a function of tracers."""

    def run(*inputs: Any) -> list[Any] | tuple[Any, ...]:
        out = function(*inputs)
        return out if isinstance(out, list | tuple) else [out]

    trace = trace_program(Stage(None), run, types, name)
    assert not trace.captured
    return decompose(trace.program)


def evaluate(program: Program, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs by each primitive's NumPy meaning."""
    env: dict[Any, Any] = dict(zip(program.inputs, args, strict=True))
    env |= dict(program.constants)

    def read(atom: Any) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    with np.errstate(all="ignore"):
        for equation in program.equations:
            assert equation.primitive.reference is not None, equation.primitive
            out = equation.primitive.reference(
                *map(read, equation.operands), **concrete(equation.params, args, program)
            )
            env[equation.results[0]] = np.asarray(out)
    return [np.asarray(read(a)) for a in program.outputs]


def sizes_of(program: Program, args: Sequence[np.ndarray]) -> dict[str, int]:
    """The values of the symbolic sizes that the inputs show."""
    sizes: dict[str, int] = {}
    for var, array in zip(program.inputs, args):
        for size, actual in zip(var.type.shape, array.shape):
            if isinstance(size, Dim) and str(size).isidentifier():
                sizes[str(size)] = actual
    return sizes


def concrete(params: Mapping[str, Any], args: Sequence[np.ndarray], program: Program) -> Any:
    """Parameters with every symbolic size replaced by its value."""
    sizes = sizes_of(program, args)

    def value(x: Any) -> Any:
        if isinstance(x, Dim):
            return dims.evaluate(x, sizes)
        return type(x)(map(value, x)) if type(x) is tuple else x

    return {name: value(x) for name, x in params.items()} if sizes else params


def random_arguments(program: Program, seed: int = 0, **sizes: int) -> list[np.ndarray]:
    """Arrays for the inputs: normal floats, small integers."""
    rng = np.random.default_rng(seed)
    arguments = []
    for var in program.inputs:
        shape = tuple(dims.evaluate(d, sizes) for d in var.type.shape)
        dtype = var.type.dtype
        if dtype in dtypes.FLOATING:
            arguments.append(rng.normal(size=shape).astype(dtype))
        else:
            high = 2 if dtype == dtypes.bool_ else 6
            arguments.append(rng.integers(0, high, size=shape).astype(dtype))
    return arguments


def run_code(
    code: KernelCode, kernels: KernelProgram, sizes: Mapping[str, int], args: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """The results of a program of one kernel, by these loops."""
    (step,) = kernels.steps
    assert isinstance(step, Invoke)
    memory = {v: a.reshape(-1) for v, a in zip(kernels.inputs, args)}
    shapes = [tuple(d if isinstance(d, int) else sizes[str(d)] for d in t.shape) for t in kernels.output_types]
    results = [np.empty(int(np.prod(s)), t.dtype) for s, t in zip(shapes, kernels.output_types)]
    memory |= dict(zip(kernels.outputs, results))
    interpret(code, [memory[v] for v in (*step.operands, *step.results)], sizes)
    return [m.reshape(s) for m, s in zip(results, shapes)]


def run_plan(plan: Plan, args: Sequence[np.ndarray], sizes: Mapping[str, int] | None = None) -> list[np.ndarray]:
    """The results of a plan; the arena and the results start out as garbage."""
    known = sizes or {}

    def value(x: Any) -> int:
        return int(dims.evaluate(x, known))

    arena = np.full(value(plan.arena_bytes), 0xA5, np.uint8)
    results = [np.empty(tuple(map(value, t.shape)), t.dtype) for t in plan.results]

    def memory(slot: Slot) -> np.ndarray:
        if slot.space is Space.ARGUMENT:
            return args[slot.number].reshape(-1)
        if slot.space is Space.RESULT:
            return results[slot.number].reshape(-1)
        start = value(slot.offset)
        size = value(dims.product(slot.type.shape)) * slot.type.dtype.itemsize
        return arena[start : start + size].view(slot.type.dtype)

    for step in plan.steps:
        if isinstance(step, Launch):
            interpret(plan.kernels[step.kernel], [memory(s) for s in step.slots], known)
        elif isinstance(step, Copy):
            memory(step.target)[:] = memory(step.source)
        else:
            assert isinstance(step, Call), "plans with loops and branches run on an executor"
            parameters = {k: v if isinstance(v, bool) else value(v) for k, v in step.parameters}
            product = run_dot([memory(s) for s in step.inputs], (-1,), parameters)
            memory(step.outputs[0])[:] = product
    return results


def agree(expected: Sequence[np.ndarray], actual: Sequence[np.ndarray], relative: float) -> None:
    """Equal dtypes, shapes, NaNs and infinities; finite values within a relative tolerance of the
    largest one (sums may associate differently)."""
    for x, y in zip(expected, actual, strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        if x.dtype not in dtypes.INEXACT:
            np.testing.assert_array_equal(x, y)
            continue
        wide = x.astype(np.complex128 if x.dtype in dtypes.COMPLEX else np.float64)
        finite = np.abs(wide[np.isfinite(wide)])
        scale = max(float(finite.max(initial=0.0)), 1e-2)  # cancellation leaves noise near 0
        np.testing.assert_allclose(y.astype(wide.dtype), wide, rtol=relative, atol=relative * scale)


def only_kernel(program: KernelProgram) -> Kernel:
    """The kernel of a program that has one."""
    (kernel,) = program.kernels.values()
    return kernel


__all__ = [
    "PLAIN",
    "WITH_DOT",
    "agree",
    "evaluate",
    "f32",
    "i32",
    "number",
    "only_kernel",
    "program_of",
    "random_arguments",
    "run_kernel_program",
    "run_plan",
    "sizes_of",
    "target",
]
