"""A single kernel: a plan that runs only this kernel, and arguments for it.

Arguments are finite, positive and the same every time: random numbers from 0.25 to 1, whose sums do
not cancel; integers that are in range wherever the kernel computes an index from them. So kernels
are timed on values of usual cost, and the results of two schedules can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.dims import Dim
from rune.lowering.kernel.expr import Load, Local
from rune.lowering.kernel.nodes import KernelCode, Let
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernels import Buffer, Invoke, Kernel, KernelProgram, Value, inner_lets
from rune.lowering.kernels_text import kernel_symbols
from rune.lowering.legalize.slot_types import kernel_types
from rune.lowering.memory import plan_memory
from rune.lowering.plan import Plan

MOST_INDEX = 1 << 20  # the limit of integers that are not indices, but may be counts
DIGITS = 2  # the limit of integers of a few bits, too small for an index
LOW, HIGH = 0.25, 1.0  # the range of floats


def plan_of(kernel: Kernel, code: KernelCode, target: str) -> Plan:
    """The plan that launches the kernel once.

    Errors: DimensionError for a kernel whose sizes cannot be read from its inputs.
    """
    inputs = tuple(Value(n, b.type) for n, b in enumerate(kernel.inputs))
    outputs = tuple(Value(len(inputs) + n, b.type) for n, b in enumerate(kernel.outputs))
    types = tuple(b.type for b in kernel.outputs)
    steps = (Invoke(kernel.name, outputs, inputs),)
    program = KernelProgram(kernel.name, inputs, steps, outputs, types, {kernel.name: kernel})
    return kernel_types(plan_memory(program, {kernel.name: code}, target))


def types_at(buffers: Sequence[Buffer], sizes: Mapping[str, int]) -> list[ArrayType]:
    """The types of some arrays of a kernel at these sizes. Errors: DimensionError without one."""
    return [b.type.with_shape(tuple(dims.evaluate(d, sizes) for d in b.type.shape)) for b in buffers]


def arguments(kernel: Kernel, types: Sequence[ArrayType], seed: int) -> Iterator[np.ndarray]:
    """Values for the inputs of a kernel."""
    rng, limits = np.random.default_rng(seed), _index_limits(kernel)
    return (_values(rng, t, limits.get(b.name, MOST_INDEX)) for b, t in zip(kernel.inputs, types, strict=True))


def _values(rng: np.random.Generator, type: ArrayType, limit: int) -> np.ndarray:
    dtype, shape = type.dtype, type.shape
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if dtype not in dtypes.INTEGER:
        return rng.uniform(LOW, HIGH, shape).astype(dtype)
    most = min(limit, np.iinfo(dtype).max) if dtype.kind in "iu" else min(limit, DIGITS)
    return rng.integers(0, most, shape).astype(dtype)


def _index_limits(kernel: Kernel) -> dict[str, int]:
    """For each input that holds computed indices, the size of their smallest range."""
    symbols, limits = kernel_symbols(kernel), {}
    for let, inputs in _lets(kernel):
        size = _range(symbols.get(let.name))
        for name in inputs if size else ():
            limits[name] = min(limits.get(name, MOST_INDEX), size)
    return limits


def _lets(kernel: Kernel) -> Iterator[tuple[Let, set[str]]]:
    """The scalars of a kernel, each with the inputs that it is computed from."""
    sources: dict[str, set[str]] = {}
    for statement in kernel.body:
        for let in (statement,) if isinstance(statement, Let) else inner_lets(statement):
            parts = list(walk_expr(let.value))
            inputs = {e.buffer for e in parts if isinstance(e, Load)}
            inputs.update(*(sources.get(e.name, ()) for e in parts if isinstance(e, Local)))
            sources[let.name] = inputs
            yield let, inputs


def _range(symbol: Dim | None) -> int:
    """The number of values, from 0 on, that an index may have; 0 if it may be any number."""
    low, high = (None, None) if symbol is None else dims.bounds(symbol)
    return high + 1 if low == 0 and isinstance(high, int) and high < MOST_INDEX else 0
