"""NCCL's communicators: a clique for each group of devices, created for its first collective.

A clique is the communicators of one group, in the order of its places. They belong to the process
and live as long as it does, or until one of them fails: then all of them are aborted, which ends
their pending collectives, and the next collective creates new ones.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

from rune import locks
from rune.backends.cuda.nccl.library import Library, Refused, Result
from rune.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Clique:
    """The communicators of a group. devices: CUDA's numbers of them."""

    library: Library
    devices: tuple[int, ...]
    handles: tuple[int, ...]

    def check(self) -> None:
        """Errors: Refused if a collective has failed on a device after its call had returned."""
        for handle in self.handles:
            code = ctypes.c_int()
            self.library.call("ncclCommGetAsyncError", handle, ctypes.byref(code))
            if code.value not in (Result.SUCCESS, Result.IN_PROGRESS):
                raise Refused(self.library.text(code.value))


class Communicators:
    """The cliques of one library."""

    def __init__(self, library: Library):
        self.library = library
        self._lock = locks.lock()
        self._cliques: dict[tuple[int, ...], Clique] = {}

    def of(self, devices: Sequence[int]) -> Clique:
        """The clique of these devices, in this order. Errors: Refused."""
        group = tuple(devices)
        with self._lock:
            if group not in self._cliques:
                self._cliques[group] = self._new(group)
            return self._cliques[group]

    def _new(self, devices: tuple[int, ...]) -> Clique:
        handles = (ctypes.c_void_p * len(devices))()
        self.library.call("ncclCommInitAll", handles, len(devices), (ctypes.c_int * len(devices))(*devices))
        return Clique(self.library, devices, tuple(h or 0 for h in handles))

    def abort(self, clique: Clique) -> None:
        """Abort the clique's collectives, and forget the clique."""
        with self._lock:
            if self._cliques.get(clique.devices) is not clique:
                return  # another thread has aborted it: a communicator must not be aborted twice
            del self._cliques[clique.devices]
        for handle in clique.handles:
            # Its status does not matter: the communicator cannot be used any more.
            self.library.functions["ncclCommAbort"](handle)


@functools.cache
def communicators(library: Library) -> Communicators:
    """The cliques of this process."""
    return Communicators(library)
