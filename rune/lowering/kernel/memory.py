"""Memory of the kernel interpreter: flat arrays that know what was written, and by which thread.

A View is one buffer or allocation as statements see it: a Storage and the offset of each lane's
own part. Every access is checked: inside the size, written before it is read, and no race, which
is two members of one Level touching the same element with at least one write between them, unless
both change it atomically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from rune.dims import Dim, FloorDiv, Mod, Size, Symbol
from rune.lowering.kernel.nodes import Access, KernelCode, Param
from rune.lowering.kernel.rewrite import buffers_written

# Markers in `touched` in place of a member's number: nobody, or several readers.
_NONE, _SEVERAL = -1, -2


class Touch(Enum):
    """What is done to an element. Atomic changes of one element do not race with each other."""

    READ = "read"
    WRITE = "write"
    ATOMIC = "atomic"


@dataclass(slots=True)
class Level:
    """One kind of parallel loop: `ids` numbers its members, `depth` lanes are around it."""

    name: str
    depth: int
    ids: np.ndarray


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane: its position in lanes of this shape."""

    at: tuple[int, ...]
    shape: tuple[int, ...]


def _first(flags: np.ndarray) -> Lane:
    flags = np.asarray(flags)
    return Lane(tuple(int(i) for i in np.unravel_index(flags.argmax(), flags.shape)), flags.shape)


class Fault(Exception):
    """An access that breaks a rule: the message, and the lane where it happened."""

    def __init__(self, message: str, lane: Lane | None = None):
        super().__init__(message)
        self.message, self.lane = message, lane


@dataclass(slots=True)
class Storage:
    """Memory. `written` is None where everything is initialised; `depth` as in Level."""

    data: np.ndarray
    written: np.ndarray | None
    depth: int = 0
    tracked: bool = True
    touched: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict)

    def record(self, level: Level, at: np.ndarray, ids: np.ndarray, how: Touch) -> None:
        """Note which threads touched these elements; a Fault if that is a race."""
        # Scratch allocated inside the level is private to each member.
        if not self.tracked or self.depth > level.depth:
            return
        if level.name not in self.touched:
            nobody = np.full(self.data.size, _NONE)
            self.touched[level.name] = nobody, nobody.copy(), nobody.copy()
        writer, reader, changer = self.touched[level.name]
        # For each element, `touched` holds the last writer, the only reader and the only one that
        # changed it atomically.
        conflict = _is_another(writer[at], ids)
        if how is not Touch.READ:
            conflict |= _is_another(reader[at], ids)
        if how is not Touch.ATOMIC:
            conflict |= _is_another(changer[at], ids)
        if how is Touch.WRITE:
            # If two lanes store to one element, only one id remains, and the other lane sees it.
            writer[at] = ids
            conflict |= writer[at] != ids
        else:
            _join(reader if how is Touch.READ else changer, at, ids)
        if conflict.any():
            raise Fault(f"a race within the {level.name}", None)


def _is_another(who: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return (who != _NONE) & (who != ids)


def _join(members: np.ndarray, at: np.ndarray, ids: np.ndarray) -> None:
    """Add members to those of the elements: one by its number, or several."""
    before = members[at]
    members[at] = np.where((before == _NONE) | (before == ids), ids, _SEVERAL)
    # A lane that reads back another id shares the element with that one.
    members[at[members[at] != ids]] = _SEVERAL


@dataclass(frozen=True, slots=True)
class View:
    """A buffer of `size` elements; each lane's part of the storage begins at `base`.

    Arguments have as many axes as there are lanes, or none; axes of length 1 are broadcast.
    """

    storage: Storage
    size: int
    base: np.ndarray | int = 0

    def elements(self, index: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Positions in the storage, checked; those of inactive lanes are some valid position."""
        outside = ((index < 0) | (index >= self.size)) & active
        if np.any(outside):
            lane = _first(outside)
            raise Fault(f"index {np.broadcast_to(index, lane.shape)[lane.at]} of {self.size}", lane)
        # NumPy indexes for inactive lanes too, so they get an element that exists.
        return np.asarray(np.where(active, index, 0) + self.base)

    def read(self, index: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The elements at `index`, and their positions."""
        data, written = self.storage.data, self.storage.written
        at = self.elements(index, active)
        # There is no element 0 for inactive lanes to read; active ones have failed above.
        if self.size == 0:
            return np.zeros(at.shape, data.dtype), at
        if written is not None:
            missing = ~written[at] & active
            if np.any(missing):
                raise Fault("which nothing has written", _first(missing))
        return data[at], at

    def write(self, at: np.ndarray, value: np.ndarray, combine: np.ufunc | None) -> None:
        """Store the values at flat positions, in order."""
        data, written = self.storage.data, self.storage.written
        if combine is None:
            data[at] = value
        else:
            combine.at(data, at, value)
        if written is not None:
            written[at] = True


# --- parameters -------------------------------------------------------------------------------


def size_of(x: Size, values: Mapping[str, Any]) -> Any:
    """The dimension with arrays for its symbols."""
    if not isinstance(x, Dim):
        return x
    total: Any = 0
    for coefficient, factors in x.terms:
        term: Any = coefficient
        for factor in factors:
            term = term * _factor(factor, values)
        total = total + term
    return total


def _factor(factor: Symbol | FloorDiv | Mod, values: Mapping[str, Any]) -> Any:
    if isinstance(factor, Symbol):
        return values[factor.name]
    numerator, denominator = (size_of(x, values) for x in (factor.numerator, factor.denominator))
    # A size of 0 divides where nothing is read, as in a select; 1 stands for it in every renderer.
    denominator = denominator + (denominator == 0)
    return numerator // denominator if isinstance(factor, FloorDiv) else numerator % denominator


def bind(code: KernelCode, buffers: Sequence[np.ndarray], sizes: Mapping[str, int]) -> dict[str, View]:
    """The parameters' views of the caller's arrays; a Fault where these do not fit."""
    missing = [name for name in code.sizes if name not in sizes]
    if missing or len(buffers) != len(code.params):
        raise Fault(f"{len(buffers)} buffers for {len(code.params)}, no size {missing}")
    written = buffers_written(code.body)
    together = {frozenset(pair) for pair in code.aliases}
    views: dict[str, View] = {}
    for p, array in zip(code.params, buffers, strict=True):
        size = size_of(p.size, sizes)
        if array.size != size or array.dtype != p.dtype or not array.flags.c_contiguous:
            actual = f"{array.dtype}[{array.size}]"
            raise Fault(f"{p.name} is {p.dtype}[{size}], given is {actual}")
        for other, view in views.items():
            shared = np.may_share_memory(view.storage.data, array)
            if shared and {p.name, other} & written and {p.name, other} not in together:
                raise Fault(f"{other} and {p.name} share memory")
        views[p.name] = View(_storage(code, p, array.reshape(-1), views, written), array.size)
    return views


def _storage(
    code: KernelCode, p: Param, data: np.ndarray, views: Mapping[str, View], written: frozenset[str]
) -> Storage:
    # Aliases share one Storage, or the race check would miss what crosses between the two names.
    for view in views.values():
        held = view.storage
        if np.may_share_memory(held.data, data) and held.data.dtype == p.dtype:
            held.tracked |= p.name in written
            return held
    # An aliased output starts out with its partner's values, so nothing in it is uninitialised.
    fresh = p.access is Access.WRITE and not any(p.name in pair for pair in code.aliases)
    flags = np.zeros(data.size, np.bool_) if fresh else None
    return Storage(data, flags, tracked=p.name in written)
