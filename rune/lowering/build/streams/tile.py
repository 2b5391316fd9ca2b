"""The tile of a stream: the rows and keys of a group of threads, and how threads divide them.

Threads form `down` rows of `across`. The rows and columns of a thread are in runs of neighbours,
between which lie those of other threads, so that it reads several at once; its keys are single.
"""

from __future__ import annotations

from rune.dims import Size
from rune.lowering.build.streams.panels import Panels
from rune.lowering.kernels import Sum
from rune.records import dataclass

NO_PANELS = Panels()


@dataclass(frozen=True, slots=True)
class Tile:
    """The rows, keys and threads of a group; `axis` of the domain has the rows.

    parts: how many tiles of keys the group has at once, each with threads of its own
    """

    axis: int
    rows: int
    keys: int
    down: int
    across: int
    parts: int = 1
    panels: Panels = NO_PANELS

    @property
    def lanes(self) -> int:
        """The threads of a part."""
        return self.down * self.across

    @property
    def threads(self) -> int:
        """The threads of a group."""
        return self.parts * self.lanes

    @property
    def thread_rows(self) -> int:
        """Rows of a thread."""
        return self.rows // self.down

    @property
    def thread_keys(self) -> int:
        """Keys of a thread."""
        return self.keys // self.across

    def row(self, lane: Size, number: int) -> Size:
        """A row of a thread, within the tile."""
        run = next(n for n in (4, 2, 1) if self.thread_rows % n == 0)
        return lane // self.across * run + number % run + number // run * (run * self.down)

    def key(self, lane: Size, number: int) -> Size:
        """A key of a thread, within the tile."""
        return lane % self.across + number * self.across

    def column(self, lane: Size, number: int, columns: int) -> Size:
        """A column of a thread, of `columns` in all; it may be beyond the end."""
        run = self.column_run(columns)
        return (lane % self.across + number // run * self.across) * run + number % run

    def column_run(self, columns: int) -> int:
        """How many columns of a thread are neighbours, of so many in all."""
        return next((n for n in (4, 2) if columns % n == 0 and columns >= n * self.across), 1)

    def thread_columns(self, columns: int) -> int:
        """Columns of a thread, of so many in all."""
        run = self.column_run(columns)
        return -(-columns // (run * self.across)) * run


def columns_of(total: Sum) -> int:
    """How many columns a sum has."""
    (axis,) = total.columns
    assert isinstance(axis.size, int)
    return axis.size
