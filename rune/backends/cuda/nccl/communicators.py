"""Communicators of NCCL: a clique for each group of devices that meets, made when it first does.

A clique is the communicators of one group, in the order of its places. They belong to the process
and live as long as it does, or until something goes wrong with one of them: then all are aborted,
which ends whatever still runs on their devices, and the next meeting makes new ones.
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
    """The communicators of a group. devices: their numbers, as CUDA counts them."""

    library: Library
    devices: tuple[int, ...]
    handles: tuple[int, ...]

    def check(self) -> None:
        """Errors: Refused where something went wrong on a device after the call that began it."""
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
        """End what its devices still do for each other, and forget it."""
        with self._lock:
            if self._cliques.get(clique.devices) is not clique:
                return  # somebody has aborted it already
            del self._cliques[clique.devices]
        for handle in clique.handles:
            # Whatever it answers: the communicator is gone.
            self.library.functions["ncclCommAbort"](handle)


@functools.cache
def communicators(library: Library) -> Communicators:
    """The cliques of this process."""
    return Communicators(library)
