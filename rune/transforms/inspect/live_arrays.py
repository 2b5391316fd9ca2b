"""The arrays that are alive, and the lines that made them."""

from __future__ import annotations

import gc

from rune import profiling
from rune.array import Array
from rune.backends import platform_name
from rune.backends.shared import allocations
from rune.profiling import aligned, bytes_text, counted, late_modules
from rune.records import dataclass
from rune.sharding.memory import Blocks

SHOWN = 40  # the most rows that are printed


def live_arrays(platform: str | None = None) -> list[Array]:
    """The arrays of this process that hold memory, those of one backend if it is named.

    Cost:   a walk over all objects that Python's collector knows.
    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> x = rnp.ones((2, 3))
    >>> any(y is x for y in rune.live_arrays("cpu"))
    True
    """
    # The collector knows all arrays; a registry of them would slow every creation.
    alive = [x for x in gc.get_objects() if type(x) is Array and not x.is_deleted()]
    backend = platform_name(platform)
    return alive if backend is None else [x for x in alive if x.device.target.backend == backend]


@dataclass(frozen=True, slots=True)
class LiveArray:
    """A live array: its type as text, bytes, device, and the user's line that created it.

    line: empty for arrays created while no profile was being recorded
    """

    text: str
    nbytes: int
    device: str
    line: str


class LiveArrays(tuple[LiveArray, ...]):
    """Live arrays, the largest first; prints as a table."""

    __slots__ = ()

    @property
    def nbytes(self) -> int:
        """The total bytes."""
        return sum(a.nbytes for a in self)

    def _head(self) -> str:
        return f"{counted(len(self), 'live array')}, {bytes_text(self.nbytes)}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [(a.text, bytes_text(a.nbytes), a.device, a.line) for a in self[:SHOWN]]
        return [("array", "size", "device", "line"), *rows]

    def __str__(self) -> str:
        omitted_count = len(self) - SHOWN
        more = [f"and {omitted_count} smaller ones"] if omitted_count > 0 else []
        return "\n".join([self._head(), *aligned(self._rows()), *more])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        view = late_modules.view()
        return f'{view.STYLE}<div class="rune-profile"><div>{self._head()}</div>{view.table(self._rows())}</div>'


def live_arrays_with_lines(platform: str | None = None) -> LiveArrays:
    """The arrays that hold memory, the largest first, as a table with the lines that made them.

    platform: only those of one backend, "cpu"
    Lines are known for arrays created while a `rune.debug.profile()` is recording, or in a process
    with RUNE_PROFILE=1; `rune.live_arrays()` gives the arrays themselves.
    Cost:   a walk over all objects that Python's collector knows.
    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.profile():
    ...     x = rnp.zeros((1000, 1001)) + 1
    ...     rune.debug.live_arrays()[0].text
    'f32[1000,1001]'
    """
    rows = [LiveArray(str(x.type), x.nbytes, x.device.name, _line(x)) for x in live_arrays(platform)]
    return LiveArrays(sorted(rows, key=lambda a: -a.nbytes))


def _line(array: Array) -> str:
    # A profile notes memory, not arrays: several arrays may be views of one allocation.
    buffers = array.buffer.local if isinstance(array.buffer, Blocks) else (array.buffer,)
    memories = [allocations.root(b) for b in buffers]
    records = (p.memory.of(m) for p in profiling.gathers for m in memories)
    return next((allocation.line for allocation in records if allocation is not None), "")
