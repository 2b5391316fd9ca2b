"""Kernels as text for the tests of costs, and the record of a GPU that need not be present."""

from __future__ import annotations

from rune import dtypes
from rune.lowering.codegen.target import Target
from rune.lowering.costs import Cost, DeviceRecord, cost
from rune.lowering.costs.table import H100
from rune.lowering.kernel.nodes import KernelCode
from rune.lowering.kernel.text import parse

M16 = 1 << 24


def target(language: str = "cuda", cores: int = 132, vector_bytes: int = 16, description: str = "H100") -> Target:
    """A device that is not here."""
    all_dtypes = frozenset(dtypes.ANY)
    return Target(
        "a:0", language, language, description, all_dtypes, vector_bytes, cores, 1024, 227 << 10, 4096, frozenset()
    )


def kernel(body: str, params: str) -> KernelCode:
    """The code with this body."""
    return parse(f"code f({params}) {{ {body} }}")


def on_h100(body: str, params: str, record: DeviceRecord = H100) -> Cost:
    """The cost of a kernel on an H100."""
    return cost(kernel(body, params), target(), record)


def copy(read: str, write: str = "i", size: int = M16, dtype: str = "f32") -> Cost:
    """The cost of y[write] = x[read] for each point i."""
    params = f"x: read {dtype}[{33 * size}], y: write {dtype}[{33 * size}]"
    return on_h100(f"for i in {size} grid {{ store y[{write}] = x[{read}] }}", params)


def loop(rounds: int, points: int = 1 << 16) -> Cost:
    """The cost of a sum of this many neighbours at each point."""
    inner = f"for k in {rounds} serial {{ s add= x[{rounds}*i + k] }}"
    params = f"x: read f32[{rounds * points}], y: write f32[{points}]"
    return on_h100(f"for i in {points} grid {{ var s: f32 = 0.0_f32 {inner} store y[i] = s }}", params)
