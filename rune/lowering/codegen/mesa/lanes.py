"""Accesses on Mesa's CPU devices, whose driver turns each into a loop over lanes (decision 0121).

    store y[i] = (low, high)   ->   store y[i] = low | high << 32, of chosen halves

In each lane the vectors of addresses and values are written to the stack, and an element of each is
read back, unless LLVM computes that element by itself: it does where the last operation has a
constant operand and one user. Eight elements of 64 bits are 64 bytes, and some processors take 15
cycles to read back what is in the upper half of such a write. So addresses and pairs are computed
in the lane, from indices and halves of 32 bits, and costly arithmetic is kept out of it.

Invariant: writes what each thread would write by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field

from rune import dtypes
from rune.lowering.codegen.spirv.binary.module import Module
from rune.lowering.codegen.spirv.binary.words import ALIGNED, Op
from rune.lowering.codegen.spirv.binary.writer import Pointer, Writer
from rune.lowering.codegen.spirv.scalar import Value, resized
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.nodes import For, KernelCode, Kind, Store
from rune.lowering.kernel.rewrite import walk
from rune.records import dataclass


def writer_for(code: KernelCode, target: Target) -> Callable[[Module], Writer]:
    """The writer of a kernel.

    Where loops store nothing, what is stored are their sums. They have no arithmetic that could get
    into the lane, and loops of products take up to a tenth longer if pairs are sums of halves.
    """
    if not target.has_lines:
        return Writer
    loops = [s for s in walk(code.body) if isinstance(s, For) and s.kind not in (Kind.GRID, Kind.WORKGROUP)]
    stores = any(isinstance(s, Store) for loop in loops for s in walk(loop.body))
    return LaneWriter if loops and not stores else PairWriter


@dataclass(slots=True)
class LaneWriter(Writer):
    """One function.

    truth: a condition that always holds, which the driver does not know (lines.py)
    """

    truth: int = 0

    # `super()` does not know the class that slots have replaced.

    def store(self, array: Pointer, index: int, value: int) -> None:
        Writer.store(self, array, index, self.choice(array.kind, value))

    def choice(self, kind: str, value: int, otherwise: int = 0) -> int:
        """A value that is not computed in the lane.

        otherwise: what it would be if the condition did not hold; another number makes it another
                   value to the driver
        """
        return self.emit(Op.Select, self.module.type(kind), self.truth, value, self.constant(kind, otherwise))


@dataclass(slots=True)
class PairWriter(LaneWriter):
    """One function that stores pairs as sums of their halves.

    uses: how often an index was accessed, and a pair stored
    """

    uses: Counter[tuple[int, ...]] = field(default_factory=Counter)

    def store_pair(self, array: Pointer, index: int, values: tuple[int, int]) -> None:
        first, second = (self.choice(array.kind, value, self.uses[values]) for value in values)
        self.uses[values] += 1
        self.do(Op.Store, self.pair(array, index), self.joined(array.kind, first, second), ALIGNED, 8)

    def place(self, array: Pointer, kind: str, index: int) -> int:
        """The index of an access, which is another value each time that it recurs.

        An address that two accesses share is not computed in the lane.
        """
        if not array.in_block or kind != "i32":
            return index
        self.uses[(index,)] += 1
        times = self.uses[(index,)]
        return index if times == 1 else self.choice(kind, index, times)

    def joined(self, kind: str, low: int, high: int) -> int:
        """An integer of 64 bits by arithmetic on halves, which is computed in the lane."""
        dtype = dtypes.f32 if kind == "f32" else dtypes.u32
        words = [Value(self, dtype, half).as_dtype(dtypes.u32) for half in (low, high)]
        first, second = (resized(word, "i64") for word in words)
        return first.emit(Op.BitwiseOr, second.emit(Op.ShiftLeftLogical, 32)).id
