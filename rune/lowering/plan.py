"""Plan: the ordered steps of one program over buffers with byte offsets in one arena.

    plan f on cpu  arena 4096 B  arguments (f32[512,64], f32[64]) results (f32[512]) {
      0: launch @scale  arena[0]:f32[512,64] <- argument 0, argument 1
      1: call dot(m=512, ...)  result 0 <- arena[0]:f32[512,64], argument 1
    }

Sizes may be symbolic: offsets, grids and shapes are then evaluated per call, from the values that
`size_sources` reads off the arguments' shapes. A donated argument lends its memory to a result.
Invariant: two buffers alive at the same step never share a byte (plan_check.py), but for
the pairs that a kernel's `aliases` declare.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from rune.core.types import ArrayType
from rune.dims import Size
from rune.lowering.kernel.nodes import KernelCode


class Space(Enum):
    """Where a slot lives."""

    ARGUMENT = "argument"
    RESULT = "result"
    ARENA = "arena"


@dataclass(frozen=True, slots=True)
class Slot:
    """One buffer of the plan: `number` for arguments and results, `offset` [B] in the arena."""

    space: Space
    type: ArrayType
    number: int = 0
    offset: Size = 0


@dataclass(frozen=True, slots=True)
class Launch:
    """Run a kernel of the plan; `slots` in the order of the kernel's parameters."""

    kernel: str
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """Run a library routine (`dot` through BLAS): outputs, inputs, static parameters."""

    routine: str
    outputs: tuple[Slot, ...]
    inputs: tuple[Slot, ...]
    parameters: tuple[tuple[str, object], ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy one slot to another of the same size: an argument or a value twice in the results."""

    target: Slot
    source: Slot


Step = Launch | Call | Copy


@dataclass(frozen=True, slots=True)
class SizeSource:
    """A symbolic size is `arguments[argument].shape[axis]`, within low..high inclusive."""

    name: str
    argument: int
    axis: int
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps, kernels, and what memory they need. `donations` are (argument, result) pairs."""

    name: str
    target: str
    arguments: tuple[ArrayType, ...]
    results: tuple[ArrayType, ...]
    steps: tuple[Step, ...]
    kernels: Mapping[str, KernelCode]
    arena_bytes: Size
    size_sources: tuple[SizeSource, ...] = ()
    donations: tuple[tuple[int, int], ...] = ()
    live_peak_bytes: Size = field(default=0)
