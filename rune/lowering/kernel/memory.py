"""Memory of the kernel interpreter: flat arrays that record what was written, and by which thread.

A View is one buffer or allocation as statements see it: a Storage and the offset of each lane's
own part. Every access is checked: it is inside the size, and an element is written before it is
read. races.py looks for accesses that conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rune.dims import Dim, FloorDiv, Mod, Size, Symbol
from rune.lowering.kernel.nodes import Access, KernelCode, Param
from rune.lowering.kernel.races import Fault, Lane, Storage
from rune.lowering.kernel.rewrite import buffers_written
from rune.records import dataclass


def _first(flags: np.ndarray) -> Lane:
    flags = np.asarray(flags)
    return Lane(tuple(int(i) for i in np.unravel_index(flags.argmax(), flags.shape)), flags.shape)


@dataclass(slots=True)
class View:
    """A buffer of `size` elements; each lane's part of the storage begins at `base`.

    Arguments have as many axes as there are lanes, or none; axes of length 1 are broadcast.
    """

    storage: Storage
    size: int
    base: np.ndarray | int = 0

    def elements(self, index: np.ndarray, active: np.ndarray) -> np.ndarray:
        """Positions in the storage, checked; inactive lanes get any valid position."""
        at = np.asarray(index, np.int64)
        bits = at.view(np.uint64)  # a negative index becomes larger than any size
        if at.size and bits.max() >= self.size:
            outside = (bits >= self.size) & active
            if outside.any():
                lane = _first(outside)
                raise Fault(f"index {np.broadcast_to(index, lane.shape)[lane.at]} of {self.size}", lane)
            # NumPy indexes for inactive lanes too, so they get an element that exists.
            at = np.where(active, at, 0)
        return at if isinstance(self.base, int) else np.asarray(at + self.base)

    def element(self, index: int | np.ndarray) -> int:
        """The position of an element when there are no lanes, checked."""
        at = int(index)
        if not 0 <= at < self.size:
            raise Fault(f"index {at} of {self.size}", Lane((), ()))
        return at + int(self.base)

    def read_one(self, index: int | np.ndarray) -> np.generic:
        """The element at `index`, when there are no lanes."""
        at, flags = self.element(index), self.storage.write_flags
        if flags is not None and not flags[at]:
            raise Fault("which nothing has written", Lane((), ()))
        return self.storage.data[at]

    def read(self, index: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The elements at `index`, and their positions."""
        data, flags = self.storage.data, self.storage.write_flags
        at = self.elements(index, active)
        # There is no element 0 for inactive lanes to read; active ones have failed above.
        if self.size == 0:
            return np.zeros(at.shape, data.dtype), at
        if flags is not None:
            is_written = flags[at]
            if not is_written.all() and np.any(missing := ~is_written & active):
                raise Fault("which nothing has written", _first(missing))
        return data[at], at

    def write(self, at: np.ndarray, value: np.ndarray, combine: np.ufunc | None) -> None:
        """Store the values at flat positions, in order."""
        data, flags = self.storage.data, self.storage.write_flags
        if combine is None:
            data[at] = value
        else:
            combine.at(data, at, value)
        if flags is not None:
            flags[at] = True


# --- parameters -------------------------------------------------------------------------------


Value = Callable[[str], int | np.ndarray]  # of a symbol, by its name


def size_of(x: Size, value: Value) -> Any:
    """The value of a dimension from the values of its symbols, which may be arrays."""
    if not isinstance(x, Dim):
        return x
    total: Any = None
    for coefficient, factors in x.terms:
        term = None
        for factor in factors:
            number = value(factor.name) if isinstance(factor, Symbol) else _quotient(factor, value)
            term = number if term is None else term * number
        # A factor of 1 and an empty sum are left out, because each operation makes an array.
        term = coefficient if term is None else term if coefficient == 1 else term * coefficient
        total = term if total is None else total + term
    return total


def _quotient(factor: FloorDiv | Mod, value: Value) -> Any:
    numerator, denominator = size_of(factor.numerator, value), size_of(factor.denominator, value)
    # A size of 0 may divide where nothing is read, as in a select; renderers divide by 1 then.
    if not isinstance(denominator, int) or denominator == 0:
        denominator = denominator + (denominator == 0)
    return numerator // denominator if isinstance(factor, FloorDiv) else numerator % denominator


def bind(code: KernelCode, buffers: Sequence[np.ndarray], sizes: Mapping[str, int]) -> dict[str, View]:
    """The parameters' views of the caller's arrays; raises Fault if an array does not fit."""
    missing = [name for name in code.sizes if name not in sizes]
    if missing or len(buffers) != len(code.params):
        raise Fault(f"{len(buffers)} buffers for {len(code.params)}, no size {missing}")
    names_written = buffers_written(code.body)
    together = {frozenset(pair) for pair in code.aliases}
    views: dict[str, View] = {}
    for p, array in zip(code.params, buffers, strict=True):
        size = size_of(p.size, sizes.__getitem__)
        if array.size != size or array.dtype != p.dtype:
            raise Fault(f"{p.name} is {p.dtype}[{size}], not {array.dtype}[{array.size}]")
        if not array.flags.c_contiguous:
            raise Fault(f"{p.name} is an array that is not contiguous")
        for other, view in views.items():
            is_shared = np.may_share_memory(view.storage.data, array)
            if is_shared and {p.name, other} & names_written and {p.name, other} not in together:
                raise Fault(f"{other} and {p.name} share memory")
        views[p.name] = View(_storage(code, p, array.reshape(-1), views, names_written), array.size)
    return views


def _storage(
    code: KernelCode, p: Param, data: np.ndarray, views: Mapping[str, View], names_written: frozenset[str]
) -> Storage:
    # Aliases share one Storage, or the race check would miss what crosses between the two names.
    for view in views.values():
        storage = view.storage
        if np.may_share_memory(storage.data, data) and storage.data.dtype == p.dtype:
            storage.is_tracked |= p.name in names_written
            return storage
    # An aliased output starts out with its partner's values, so nothing in it is uninitialised.
    fresh = p.access is Access.WRITE and not any(p.name in pair for pair in code.aliases)
    flags = np.zeros(data.size, np.bool_) if fresh else None
    return Storage(data, flags, is_tracked=p.name in names_written)
