"""Threads that run the parts of a sharded program, one for each device.

The caller's own thread runs the part of the first device, and workers run the others. A device
takes part in one run at a time; runs take their devices in a fixed order, so that two callers
cannot wait for each other.
"""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Generic, TypeVar

from rune import locks
from rune.backends import Device
from rune.errors import DeviceError, RuneError
from rune.lowering.meetings import is_seated

R = TypeVar("R")


class _Worker:
    """The turn of one device, and its thread, which starts with its first job."""

    def __init__(self, device: Device):
        self.turn = locks.lock()
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        # A daemon: it waits for jobs for ever, and must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=f"rune {device.name}", daemon=True)

    def _work(self) -> None:
        while True:
            self._jobs.get()()

    def begin(self, job: Callable[[], None]) -> None:
        """Run the job, which raises nothing, in the worker's thread. The caller has the turn."""
        if not self._thread.is_alive():
            self._thread.start()
        self._jobs.put(job)


class _Part(Generic[R]):
    """The part of one device: its result or its error, once it has ended."""

    __slots__ = ("_end", "_error", "_function", "_result")

    def __init__(self, function: Callable[[], R]):
        # A part runs in another thread, under the settings of the caller.
        context = contextvars.copy_context()
        self._function = lambda: context.run(function)
        self._end: SimpleQueue[None] = SimpleQueue()  # empty until the part has ended
        self._result: R | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run it, here."""
        try:
            self._result = self._function()
        # KeyboardInterrupt too: the caller waits for the end of the part, and raises its error.
        except BaseException as error:
            self._error = error
        finally:
            self._end.put(None)

    def wait(self) -> None:
        """Wait until it has ended."""
        self._end.get()

    def result(self) -> R:
        """The result of the function. Errors: those of the function."""
        if isinstance(self._error, RuneError):
            self._error.locate()
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


_workers: dict[Device, _Worker] = {}
_lock = locks.lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.clear)  # a child has no threads


def _worker_of(device: Device) -> _Worker:
    with _lock:
        if device not in _workers:
            _workers[device] = _Worker(device)
        return _workers[device]


@contextmanager
def turns(devices: Sequence[Device]) -> Iterator[list[_Worker]]:
    """The workers of the devices, reserved for this run."""
    # A callback runs while its device has the turn: waiting for it would never end.
    if is_seated():
        raise DeviceError(
            f"shard_map: cannot run on {', '.join(d.name for d in devices)} from a callback of a sharded program",
            hint="a device takes part in one run at a time",
        )
    workers = {d: _worker_of(d) for d in devices}
    with ExitStack() as turns:
        # In one order in all threads, so that two runs never wait for each other.
        for device in sorted(devices, key=lambda d: d.name):
            turns.enter_context(workers[device].turn)
        yield [workers[d] for d in devices]


def run_each(devices: Sequence[Device], function: Callable[[int], R]) -> list[R]:
    """`function(n)` for the n-th device, all at the same time, each in the thread of its device.

    Errors: that of the first device, in order, that raises one.
    """
    with turns(devices) as workers:
        parts = [_Part(lambda n=n: function(n)) for n in range(1, len(devices))]  # type: ignore[misc]
        for worker, part in zip(workers[1:], parts, strict=True):
            worker.begin(part.run)
        # The caller's thread would only wait, so it runs the first part itself.
        first = _Part(lambda: function(0))
        first.run()
        for part in parts:
            part.wait()
    return [part.result() for part in (first, *parts)]
