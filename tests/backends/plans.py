"""Plans for one kernel: arguments from the parameters it reads, results from those it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rune import dims, dtypes
from rune.core.types import ArrayType
from rune.dims import Size
from rune.lowering.kernel.nodes import Access, KernelCode
from rune.lowering.kernel.text import parse
from rune.lowering.plan import Launch, Plan, SizeSource, Slot, Space

# A kernel of symbolic size, the type of its operands, and where the size is read.
DOUBLE = parse("""
code double(x: read f32[n], y: write f32[n]) sizes n in 1..100 {
  for i in n grid { store y[i] = x[i] + x[i] }
}""")
VECTOR = ArrayType((dims.symbol("n", 1, 100),), dtypes.f32)
SOURCES = (SizeSource("n", 0, 0, 1, 100),)


def plan_of(
    code: KernelCode,
    shapes: Mapping[str, tuple[Size, ...]] | None = None,
    sources: Sequence[SizeSource] = (),
    donations: Sequence[tuple[int, int]] = (),
) -> Plan:
    """A plan that launches the kernel once."""
    shapes = shapes or {}
    types = {p.name: ArrayType(shapes.get(p.name, (p.size,)), p.dtype) for p in code.params}
    inputs = [p.name for p in code.params if p.access is Access.READ]
    outputs = [p.name for p in code.params if p.access is not Access.READ]
    slots = {name: Slot(Space.ARGUMENT, types[name], n) for n, name in enumerate(inputs)}
    slots |= {name: Slot(Space.RESULT, types[name], n) for n, name in enumerate(outputs)}
    return Plan(
        code.name,
        "test",
        tuple(types[name] for name in inputs),
        tuple(types[name] for name in outputs),
        (Launch(code.name, tuple(slots[p.name] for p in code.params)),),
        {code.name: code},
        0,
        tuple(sources),
        tuple(donations),
    )


def run(backend, plan: Plan, *arrays: np.ndarray) -> list[np.ndarray]:
    """The plan's results on a backend, as host arrays."""
    results = backend.record(plan)([backend.copy_in(a) for a in arrays])
    return [
        backend.copy_out(buffer, type_.with_shape(tuple(buffer.shape)))
        for buffer, type_ in zip(results, plan.results, strict=True)
    ]
