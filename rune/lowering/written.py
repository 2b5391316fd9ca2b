"""Kernels that are written in kernel code: what threads do together is not said by a domain.

A primitive whose lowering is Written has a rule that gives `loops(...)`: the text of the loops over
buffers x0, x1, … (its operands) and y0, y1, … (its results), each flat. Such an equation is a kernel of its own,
and what it reads is in memory.

Invariant: what these kernels compute depends on nothing but their operands.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rune.core.program import Equation
from rune.core.types import ArrayType
from rune.dims import Dim, product, symbols_within
from rune.lowering.kernel.nodes import Access, KernelCode, Param
from rune.lowering.kernel.parse import parse_body
from rune.lowering.kernel.rewrite import Body
from rune.lowering.kernels import Buffer, Kernel
from rune.lowering.kernels_text import kernel_sizes, type_sizes


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a kernel as text, and which results start out as which operands."""

    text: str
    in_place: tuple[tuple[str, str], ...] = ()


def written_kernel(equation: Equation, loops: Loops) -> Kernel:
    """The kernel of an equation; it has no name yet."""
    inputs = _buffers("x", [a.type for a in equation.operands])
    outputs = _buffers("y", [v.type for v in equation.results])
    code = _parsed(loops.text, (*inputs, *outputs))
    return Kernel("", inputs, outputs, (), (), loops.in_place, code)


def _buffers(letter: str, types: Sequence[ArrayType]) -> tuple[Buffer, ...]:
    return tuple(Buffer(f"{letter}{k}", t.strong()) for k, t in enumerate(types))


@functools.lru_cache(maxsize=256)
def _parsed(text: str, buffers: tuple[Buffer, ...]) -> Body:
    symbols: Mapping[str, Dim] = {}
    for size in type_sizes(b.type for b in buffers).values():
        symbols = {**symbols, **symbols_within(size)}
    return parse_body(text, {b.name: b.type.dtype for b in buffers}, symbols)


def code_of(kernel: Kernel) -> KernelCode:
    """The code of a kernel whose loops are given."""
    return KernelCode(kernel.name, kernel_params(kernel), tuple(kernel_sizes(kernel)), kernel.code, kernel.in_place)


def kernel_params(kernel: Kernel) -> tuple[Param, ...]:
    """Inputs are read; outputs are new values: what a kernel reads of them it wrote itself."""
    sides = ((kernel.inputs, Access.READ), (kernel.outputs, Access.WRITE))
    return tuple(
        Param(b.name, b.type.dtype, product(b.type.shape), access) for buffers, access in sides for b in buffers
    )
