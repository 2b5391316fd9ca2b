"""Memory: mutable scalars on the stack, and elements, one by one or as vectors.

A vector holds neighbours, scattered elements, or elements a few apart, in their form in memory
(types.py); an address for each lane is a vector of pointers. Elements of lanes that are switched
off are not accessed. With elements s apart, L lanes read or write every s-th of s·L elements: a
read picks them from whole vectors, a write masks the elements in between. Nothing before the first
or after the last element is accessed.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from rune.lowering.codegen.llvm.ir.names import lanes_of, suffix
from rune.lowering.codegen.llvm.ir.text import Value, Writer
from rune.lowering.codegen.llvm.ir.types import memory_type
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Alive:
    """Lanes, and which of them are alive.

    mask: an i1 for each lane; None if all are alive
    all_alive: an i1 that tells at run time whether all are alive; None if nothing computes it
    """

    count: int
    mask: Value | None = None
    all_alive: Value | None = None

    def only(self, mask: Value) -> Alive:
        """The lanes that are alive here and in a mask."""
        return Alive(self.count, mask if self.mask is None else self.mask & mask)

    def bits(self, writer: Writer) -> Value:
        """An i1 for each lane."""
        return self.mask or writer.constant(f"<{self.count} x i1>", 1)


@dataclass(frozen=True, slots=True)
class Slot:
    """A mutable scalar on the stack, or one per lane; LLVM turns it into a register."""

    pointer: Value
    type: str

    def read(self) -> Value:
        """Its value now."""
        return self.pointer.writer.load(self.type, self.pointer)

    def write(self, value: Value) -> None:
        """Give each lane its value, or all of them the same."""
        writer = self.pointer.writer
        writer.store(writer.splat(value, lanes_of(self.type)), self.pointer)


def slot(value: Value, lanes: int) -> Slot:
    """A slot that begins with a value, one for each of so many lanes; 0 for a scalar."""
    type = f"<{lanes} x {value.scalar_type}>" if lanes else value.type
    place = Slot(value.writer.allocate(type), type)
    place.write(value)
    return place


@dataclass(frozen=True, slots=True)
class Memory:
    """Elements of a dtype at a pointer.

    lanes: how many lanes have elements of their own, those of one index side by side; 0 if all
        share them
    """

    pointer: Value
    dtype: np.dtype
    lanes: int = 0

    @property
    def writer(self) -> Writer:
        """The writer that accesses are appended to."""
        return self.pointer.writer

    @property
    def type(self) -> str:
        """The IR type of an element."""
        return memory_type(self.dtype)

    def address(self, index: Value) -> Value:
        """Where the element, or each lane's element, lies."""
        index = index * self.lanes if self.lanes else index
        result = f"<{index.lanes} x ptr>" if index.lanes else "ptr"
        text = f"getelementptr inbounds {self.type}, ptr {self.pointer.text}, {index.type} {index.text}"
        return self.writer.emit(result, text)

    def read(self, at: Value, alive: Alive | None) -> Value:
        """The element at an address, or one for each lane, 0 for those that are switched off."""
        if alive is None:
            return self.writer.load(self.type, at, self.dtype.itemsize)
        read_alive = partial(self._read_alive, at, alive)
        if at.lanes:
            return read_alive()
        read_all = partial(self.writer.load, f"<{alive.count} x {self.type}>", at, self.dtype.itemsize)
        if alive.mask is None:
            return read_all()
        # Not every processor prefetches for masked loads (Zen 5: 6.1 ns a vector instead of 2.6).
        return read_alive() if alive.all_alive is None else self.writer.choose(alive.all_alive, read_all, read_alive)

    def _read_alive(self, at: Value, alive: Alive) -> Value:
        type = f"<{alive.count} x {self.type}>"
        name = self._masked("gather" if at.lanes else "load", type, at)
        zeros = self.writer.constant(type, 0)
        return self.writer.call(type, name, at, self._alignment(), alive.bits(self.writer), zeros)

    def write(self, raw: Value, at: Value, alive: Alive | None) -> None:
        """Put an element at an address, or one for each lane that is alive."""
        write_all = partial(self.writer.store, raw, at, self.dtype.itemsize)
        if alive is None or (alive.mask is None and not at.lanes):
            write_all()
        elif alive.all_alive is None or at.lanes:
            self._write_alive(raw, at, alive)
        else:
            self.writer.either(alive.all_alive, write_all, partial(self._write_alive, raw, at, alive))

    def _write_alive(self, raw: Value, at: Value, alive: Alive) -> None:
        mask = alive.bits(self.writer)  # LLVM has no scatter without one
        if not at.lanes and _may_be_truncated(raw):
            mask = mask & self.writer.opaque_mask(raw.lanes)
        self._store_masked(raw, at, mask)

    def _store_masked(self, raw: Value, at: Value, mask: Value) -> None:
        name = self._masked("scatter" if at.lanes else "store", raw.type, at)
        self.writer.run(name, raw, at, self._alignment(), mask)

    def _alignment(self) -> Value:
        return self.writer.constant("i32", self.dtype.itemsize)

    def _masked(self, kind: str, type: str, at: Value) -> str:
        return f"@llvm.masked.{kind}.{suffix(type)}." + (f"v{at.lanes}p0" if at.lanes else "p0")

    # --- a few apart -------------------------------------------------------------------------

    def read_apart(self, first: Value, step: int, alive: Alive) -> Value:
        """Every step-th element from `first` on, one for each lane."""
        count, last = alive.count, step * (alive.count - 1)
        elements: Value | None = None
        begin = 0  # the first lane whose element is not in the vectors before
        for k in range(step):
            # The last vector ends with the last element.
            start = min(k * count, last + 1 - count)
            end = min(count, -(-(k + 1) * count // step))
            if end == begin:
                continue
            lanes_alive = Alive(count, alive.mask and _spread(alive.mask, step, start))
            vector = self.read(self.address(first + start), lanes_alive)
            places = [lane * step - start for lane in range(begin, end)]
            if elements is None:
                elements = self.writer.shuffle(vector, vector, [*places, *[0] * (count - end)])
            else:
                lanes = [*range(begin), *(count + place for place in places), *range(end, count)]
                elements = self.writer.shuffle(elements, vector, lanes)
            begin = end
        assert elements is not None
        return elements

    def write_apart(self, raw: Value, first: Value, step: int, alive: Alive) -> None:
        """Write the lanes to every step-th element from `first` on; f32 and f64 only."""
        bits = alive.bits(self.writer)
        for start in range(0, step * raw.lanes, raw.lanes):
            places = range(start, start + raw.lanes)
            values = self.writer.shuffle(raw, raw, [place // step for place in places])
            mask = _spread(bits, step, start)
            self._store_masked(values, self.address(first + start), mask)


def _spread(mask: Value, step: int, start: int) -> Value:
    """The mask of elements start, start + 1, ...: those that a lane of `mask` has."""
    zeros = mask.writer.constant(mask.type, 0)
    places = range(start, start + mask.lanes)
    return mask.writer.shuffle(mask, zeros, [mask.lanes if place % step else place // step for place in places])


def _may_be_truncated(value: Value) -> bool:
    """Whether LLVM may merge a masked store with a conversion to a narrower type before it.

    Where the mask is constant and has one lane, LLVM 22.1 then writes a scalar of the *wide* type
    (its issue 179489), past the end of the element. LLVM may find a mask to be constant that is not
    so in our text, e.g. for the last of 16 n + 1 elements, so these masks are hidden from it.
    """
    return value.scalar_type in ("i8", "i16", "i32")


__all__ = ["Alive", "Memory", "Slot", "slot"]
