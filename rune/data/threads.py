"""Work done by threads: a function of each task, in order and some tasks ahead; and a source that
another thread reads ahead.

Whoever iterates gives tasks and takes results. Threads end after what they are just doing, once the
last result was taken, an error was raised, or the iterator is closed or dropped.
"""

from __future__ import annotations

import os
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from contextvars import copy_context
from dataclasses import field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Generic, TypeVar

from rune import profiling
from rune.errors import DataError
from rune.records import dataclass

T = TypeVar("T")  # a task
R = TypeVar("R")  # a result

AHEAD = 2  # tasks under way or done for each worker


class Scope(ExitStack):
    """What a run has at work, and whether whoever ends the run waits until that is over.

    A run that is dropped is only told to end, since it may be dropped anywhere: a collector
    runs in any thread and under any lock, and what waits there may wait for itself.
    """

    is_awaited = False


def in_threads(workers: int, function: Callable[[T], R], tasks: Iterable[T], scope: Scope) -> Generator[R, None, None]:
    """`function(task)` of each task, in order. Tasks are asked for in the thread that iterates."""
    pool = ThreadPoolExecutor(workers, "rune-data-worker")
    pending: deque[Future[R]] = deque()
    is_dropped, process = False, os.getpid()
    try:
        for task in tasks:
            pending.append(pool.submit(copy_context().run, _worked, function, task))
            if len(pending) == AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except GeneratorExit:
        is_dropped = not scope.is_awaited
        raise
    finally:
        if process == os.getpid():  # else a fork has copied the run, and its threads are not here
            pool.shutdown(not is_dropped, cancel_futures=True)


def _worked(function: Callable[[T], R], task: T) -> R:
    """One task, as a profile shows it."""
    with profiling.span("data.work", profiling.Kind.DATA):
        return function(task)


@dataclass(frozen=True, slots=True)
class _Item(Generic[R]):
    value: R


@dataclass(frozen=True, slots=True)
class _End:
    """Behind the last item; with the error that ended them."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Line(Generic[R]):
    """What a thread that reads and whoever takes its items share.

    Queues and flags are of a kind that finalisers may use, whatever the thread below them is doing.

    ready: items, then an end
    room:  a True for each item that may be read, a False to end
    drop:  is called with each item that was read and will not be used
    """

    drop: Callable[[R], object]
    ready: SimpleQueue[_Item[R] | _End] = field(default_factory=SimpleQueue)
    room: SimpleQueue[bool] = field(default_factory=SimpleQueue)
    ending: Event = field(default_factory=Event)
    ended: Event = field(default_factory=Event)

    def end(self) -> None:
        """Tell the thread to end, and drop what it has read."""
        self.ending.set()
        self.room.put(False)
        self.clear()

    def clear(self) -> None:
        """Drop what is ready."""
        with suppress(Empty):
            while True:
                item = self.ready.get_nowait()
                if isinstance(item, _Item):
                    self.drop(item.value)

    def end_and_wait(self) -> None:
        """Until the thread has ended."""
        self.end()
        self.ended.wait()


class _Reader(Generic[R]):
    """A thread that reads ahead; it is told to end when this object is no longer referenced."""

    def __init__(self, read: Callable[[], Generator[R, None, None]], depth: int, drop: Callable[[R], object]):
        self.line = _Line(drop)
        self.thread = Thread(
            target=copy_context().run, args=(_read, read, self.line), name="rune-data-reader", daemon=True
        )
        weakref.finalize(self, self.line.end).atexit = False
        # When the interpreter ends: a thread must not run on while it is taken down.
        weakref.finalize(self.thread, self.line.end_and_wait)
        for _ in range(depth):
            self.line.room.put(True)
        self.thread.start()

    def take(self) -> _Item[R] | _End:
        """The next item, and room for one more. Errors: DataError in a forked process."""
        if not self.thread.is_alive() and self.line.ready.empty():
            raise DataError(
                "prefetch: cannot go on in a forked process (the thread that reads is in its parent)",
                hint="begin to iterate in the process that uses the elements",
            )
        item = self.line.ready.get()
        self.line.room.put(True)
        return item


def read_ahead(
    read: Callable[[], Generator[R, None, None]], depth: int, drop: Callable[[R], object], scope: Scope
) -> Generator[R, None, None]:
    """What `read()` gives, read by another thread, up to `depth` items ahead.

    drop: is called with each item that was read and will not be used
    """
    reader = _Reader(read, depth, drop)
    is_dropped = False
    try:
        while isinstance(item := reader.take(), _Item):
            yield item.value
        if item.error is not None:
            raise item.error
    except GeneratorExit:
        is_dropped = not scope.is_awaited
        raise
    finally:
        reader.line.end()
        if not is_dropped and reader.thread.is_alive():
            reader.thread.join()
            reader.line.clear()


def _read(read: Callable[[], Generator[R, None, None]], line: _Line[R]) -> None:
    """What the thread does: items as long as there is room, then the end."""
    end = _End()
    try:
        with closing(read()) as items:
            while _has_room(line) and not line.ending.is_set():
                with profiling.span("data.read", profiling.Kind.DATA):
                    item = _Item(next(items))
                line.ready.put(item)
    except StopIteration:
        pass
    except BaseException as error:
        end = _End(error)
    finally:
        line.ready.put(end)
        if line.ending.is_set():
            line.clear()
        line.ended.set()


def _has_room(line: _Line[R]) -> bool:
    """Wait until another item may be read; False to end."""
    with profiling.span("data.room", profiling.Kind.WAIT):
        return line.room.get()
