"""The walk over statements (walk.py) for languages in which one access covers several elements."""

from __future__ import annotations

from collections.abc import Iterable

from rune.lowering.codegen.runs import LoadRun, StoreRun
from rune.lowering.codegen.subgroups import Alike, Piece, Statement
from rune.lowering.codegen.walk import StatementWalk
from rune.lowering.kernel.rewrite import Body


class AccessWalk(StatementWalk):
    """Writes statements. A language says which statements of a body it merges into one access."""

    __slots__ = ()

    def body(self, body: Body) -> None:
        for access in self.accesses(body):
            self.access(access)

    def accesses(self, body: Body) -> Iterable[Statement]:
        """The statements in order; those that one access covers are merged into one."""
        return body

    def access(self, access: Statement) -> None:
        """Write one statement, or one access for several."""
        match access:
            case LoadRun():
                self.load_run(access)
            case StoreRun():
                self.store_run(access)
            case Alike():
                self.read_together(access)
            case Piece():
                self.take(access)
            case _:
                self.stmt(access)

    # Called only for what a language's `accesses` yields:

    def load_run(self, run: LoadRun) -> None:
        """Read neighbouring elements in one access."""
        raise NotImplementedError

    def store_run(self, run: StoreRun) -> None:
        """Write neighbouring elements in one access."""
        raise NotImplementedError

    def read_together(self, alike: Alike) -> None:
        """Have each thread of a subgroup read a piece of the data that all of them need."""
        raise NotImplementedError

    def take(self, piece: Piece) -> None:
        """Bind a scalar to the value that one thread of the subgroup has read."""
        raise NotImplementedError
