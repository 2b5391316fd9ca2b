"""Statements of a subgroup whose threads are all active: they read lines, and exchange values.

This is for Mesa's processors (lines.py, exchanges.py). All other statements are written as for any
driver (spirv/body.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from rune.dims import Size
from rune.lowering.codegen.groups import Spread
from rune.lowering.codegen.mesa.exchanges import exchanges
from rune.lowering.codegen.mesa.lines import Lines, Subgroup
from rune.lowering.codegen.runs import LoadRun, StoreRun
from rune.lowering.codegen.spirv.body import Body
from rune.lowering.codegen.spirv.scalar import Value
from rune.lowering.kernel.expr import Load
from rune.lowering.kernel.nodes import Alloc, For, If, Store
from rune.records import dataclass


@dataclass(slots=True)
class SubgroupBody(Body):
    """The statements of a kernel.

    lines:     those read so far; None in branches and loops, where threads may be idle
    exchanges: arrays of one element for each thread, which need no memory
    parts:     the values that the threads have written there, by array
    """

    lines: Lines | None = None
    exchanges: frozenset[str] = frozenset()
    parts: dict[str, int] = field(default_factory=dict)

    def begin(self, shape: Spread, group: Subgroup, lane: Value, arguments: int) -> None:
        """Read lines and exchange values from here on.

        lane, arguments: a thread's number, and the id of the push constants
        """
        self.exchanges = exchanges(shape.before, shape.innermost, group.thread)
        self.paired_buffers -= self.exchanges
        self.lines = Lines(self.writer, group, lane, arguments, self.paired_buffers)

    # `super()` does not know the class that slots have replaced.

    def load_run(self, run: LoadRun) -> None:
        values = self.line(run.buffer, run.index, 2) if run.guard is None else ()
        if values:
            for let, id in zip(run.lets, values, strict=True):
                self.bind(let.name, self.value(run.dtype, id))
        else:
            Body.load_run(self, run)

    def load(self, load: Load) -> Value:
        if load.buffer in self.exchanges:
            (number,) = load.indices
            assert isinstance(number, int)
            return self.of_lane(self.parts[load.buffer], number)
        values = self.line(load.buffer, load.indices[0], 1) if load.guard is None else ()
        return self.value(load.dtype, values[0]) if values else Body.load(self, load)

    def line(self, buffer: str, index: Size, count: int) -> Sequence[int]:
        """The elements that a thread reads of a line; empty if it reads them by itself."""
        array, lines = self.arrays[buffer], self.lines
        return lines.read(buffer, array, index, count, lambda: self.place(buffer, index)) if lines else ()

    def store(self, stmt: Store) -> None:
        if stmt.buffer in self.exchanges:
            self.parts[stmt.buffer] = self.expr(stmt.value).id
            return
        Body.store(self, stmt)
        self.forget()

    def store_run(self, run: StoreRun) -> None:
        Body.store_run(self, run)
        self.forget()

    def forget(self) -> None:
        """Read columns again: they may have been overwritten."""
        if self.lines is not None:
            self.lines.turned.clear()

    def alloc(self, stmt: Alloc) -> None:
        if stmt.name not in self.exchanges:
            Body.alloc(self, stmt)

    def branch(self, stmt: If) -> None:
        lines, self.lines = self.lines, None
        Body.branch(self, stmt)
        self.lines = lines
        self.forget()

    def loop(self, loop: For) -> None:
        lines, self.lines = self.lines, None
        Body.loop(self, loop)
        self.lines = lines
        self.forget()
