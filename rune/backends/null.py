"""The null executor: computes nothing, and checks plans, arguments and uses of donated buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune.backends.shared.checking import CheckingBackend, CheckingExecutable, checking_target
from rune.backends.shared.executor import Concretes, result_buffers, static_shape
from rune.backends.shared.plan_check import check_plan
from rune.backends.shared.pool import MemoryStats, PoolStats
from rune.core.types import ArrayType
from rune.errors import CheckError, DeletedArrayError
from rune.lowering.codegen.target import Target
from rune.lowering.plan import Plan
from rune.records import dataclass

TARGET = checking_target("null", "computes nothing, checks plans")


def probe() -> tuple[list[Target], str | None]:
    """The one null device."""
    return [TARGET], None


def open_device(target: Target) -> NullBackend:
    """The null device."""
    return NullBackend(target)


@dataclass(frozen=True, slots=True)
class NullBackend(CheckingBackend):
    """The device that does nothing."""

    def alloc(self, type: ArrayType) -> NullBuffer:
        """A buffer without contents."""
        return NullBuffer(type)

    def copy_in(self, array: np.ndarray) -> NullBuffer:
        """A buffer of the array's type."""
        return NullBuffer(ArrayType(array.shape, array.dtype))

    def copy_out(self, buffer: NullBuffer, type: ArrayType) -> np.ndarray:
        """Zeros: there is nothing to copy."""
        if not buffer.alive:
            raise DeletedArrayError(f"copy_out: cannot read {type} (it was donated)")
        return np.zeros(static_shape(type), type.dtype)

    def record(self, plan: Plan) -> NullExecutable:
        """The plan, checked."""
        check_plan(plan)
        return NullExecutable(plan, Concretes(plan), self.work)

    def memory_stats(self) -> MemoryStats:
        """Zeros: its buffers have no memory."""
        return MemoryStats.of(device=PoolStats(0, 0, 0, None, 0, 0))


@dataclass(slots=True, eq=False)
class NullBuffer:
    """A buffer without contents."""

    type: ArrayType
    alive: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """The static shape."""
        return static_shape(self.type)


def _reuse(buffer: NullBuffer, type: ArrayType) -> NullBuffer:
    buffer.alive = False
    return NullBuffer(type)


@dataclass(slots=True)
class NullExecutable(CheckingExecutable):
    """A checked plan. A call checks its arguments and returns buffers without contents."""

    def run(self, arguments: Sequence[Any], donated: Sequence[int]) -> list[Any]:
        """Check the arguments; a donated one is dead afterwards, if a result takes its memory."""
        concrete = self.concretes([a.shape for a in arguments])
        for number, (buffer, type_) in enumerate(zip(arguments, self.plan.arguments, strict=True)):
            if not buffer.alive:
                raise DeletedArrayError(f"{self.plan.name}: cannot use argument {number} (it was donated)")
            if buffer.type.dtype != type_.dtype:
                misfit = f"argument {number} must be {type_}, not {buffer.type}"
                raise CheckError(f"{self.plan.name}: cannot run with this argument ({misfit})")
        # `_reuse` marks donated buffers as dead, so that a later use of them raises.
        return result_buffers(self.plan, concrete, arguments, donated, NullBuffer, _reuse)
