"""Kernels that are written in kernel code, since a domain cannot say what threads do together.

A primitive whose lowering is Written has a rule that returns `Loops`: their text, over the flat
buffers x0, x1, … (its operands) and y0, y1, … (its results). Such an equation is a kernel of its
own. Its operands are in memory, or computed where they are read (kernelize/write_loops.py).

Invariant: the results of these kernels depend only on their operands.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

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
    """The loops of a kernel as text, and (operand, result) pairs that are changed in place."""

    text: str
    in_place: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Code:
    """The loops of an equation, over its operands x0, x1, … and its results y0, y1, …"""

    body: Body
    in_place: tuple[tuple[str, str], ...]


def code_for(equation: Equation) -> Code:
    """The loops of an equation whose lowering is Written."""
    lower = equation.primitive.lower
    assert isinstance(lower, Written)
    operands, results = ([v.type.strong() for v in side] for side in (equation.operands, equation.results))
    sizes = type_sizes([*operands, *results])
    # Names in the text might equal those of sizes, so sizes have other names until it is parsed.
    others = {name: f"_size{k}" for k, name in enumerate(sizes)}
    apart = [[_renamed(t, others) for t in side] for side in (operands, results)]
    loops = lower.rule(*apart[0], **equation.params)
    body = _parsed(loops.text, buffers("x", apart[0]) + buffers("y", apart[1]))
    local = {name: fresh(f"{name}_", sizes) for name in names_bound(body) & sizes.keys()}
    body = rename(rename(body, local), {other: name for name, other in others.items()})
    return Code(body, loops.in_place)


def _renamed(type: ArrayType, names: Mapping[str, str]) -> ArrayType:
    return type.with_shape(tuple(rename_size(d, names) for d in type.shape))


def buffers(letter: str, types: Iterable[ArrayType]) -> tuple[Buffer, ...]:
    """Buffers of these types, named by a letter and their numbers."""
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
    """Inputs are read; outputs are written, as a kernel reads of them only what it has written."""
    sides = ((kernel.inputs, Access.READ), (kernel.outputs, Access.WRITE))
    return tuple(
        Param(b.name, b.type.dtype, product(b.type.shape), access) for buffers, access in sides for b in buffers
    )
