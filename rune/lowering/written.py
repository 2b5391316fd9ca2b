"""Kernels that are written in kernel code: what threads do together is not said by a domain.

A primitive whose lowering is Written has a rule that gives `Loops`: their text, over the buffers
x0, x1, … (its operands) and y0, y1, … (its results), each flat. Such an equation is a kernel of its
own, and what it reads is in memory.

Invariant: what these kernels compute depends on nothing but their operands.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from rune.core.lower import Written
from rune.core.program import Equation
from rune.core.types import ArrayType
from rune.dims import Dim, product, symbols_within
from rune.lowering.kernel.nodes import Access, KernelCode, Param
from rune.lowering.kernel.parse import parse_body
from rune.lowering.kernel.rewrite import Body, fresh, names_bound, rename, rename_size
from rune.lowering.kernels import Buffer, Kernel
from rune.lowering.kernels_text import kernel_sizes, type_sizes
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Loops:
    """The loops of a kernel as text, and which results start out as which operands."""

    text: str
    in_place: tuple[tuple[str, str], ...] = ()


def written_kernel(equation: Equation, memory: Sequence[ArrayType]) -> Kernel:
    """The kernel of an equation whose lowering is Written; it has no name yet.

    memory: the types of what is read in place of the operands, the same elements in the same order.
    """
    lower = equation.primitive.lower
    assert isinstance(lower, Written)
    operands, results = ([v.type.strong() for v in side] for side in (equation.operands, equation.results))
    sizes = type_sizes([*operands, *results])
    # The text has names of its own, so the sizes have other ones until it is read.
    others = {name: f"_size{k}" for k, name in enumerate(sizes)}
    apart = [[_renamed(t, others) for t in side] for side in (operands, results)]
    loops = lower.rule(*apart[0], **equation.params)
    code = _parsed(loops.text, _buffers("x", apart[0]) + _buffers("y", apart[1]))
    local = {name: fresh(f"{name}_", sizes) for name in names_bound(code) & sizes.keys()}
    code = rename(rename(code, local), {other: name for name, other in others.items()})
    return Kernel("", _buffers("x", memory), _buffers("y", results), (), (), loops.in_place, code)


def _renamed(type: ArrayType, names: Mapping[str, str]) -> ArrayType:
    return type.with_shape(tuple(rename_size(d, names) for d in type.shape))


def _buffers(letter: str, types: Sequence[ArrayType]) -> tuple[Buffer, ...]:
    return tuple(Buffer(f"{letter}{k}", t.strong()) for k, t in enumerate(types))


@functools.lru_cache(maxsize=256)
def _parsed(text: str, buffers: tuple[Buffer, ...]) -> Body:
    symbols: dict[str, Dim] = {}
    for size in type_sizes(b.type for b in buffers).values():
        symbols |= symbols_within(size)
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
