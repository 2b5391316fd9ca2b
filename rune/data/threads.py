"""Runs a function on tasks in threads, in order and some tasks ahead; reads a source ahead.

The thread that iterates hands out tasks and takes results. Threads finish their current task and
end once the last result is taken, an error is raised, or the iterator is closed or dropped.
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

AHEAD = 2  # tasks per worker that are in progress or done but not taken


class Scope(ExitStack):
    """The workers and readers of a run, and whether ending the run waits until they have ended.

    A run that is dropped only tells them to end, without waiting: the garbage collector may drop it
    in any thread and under any lock, so waiting there could deadlock.
    """

    is_awaited = False


def in_threads(workers: int, function: Callable[[T], R], tasks: Iterable[T], scope: Scope) -> Generator[R, None, None]:
    """`function(task)` for each task, in order. The thread that iterates draws the tasks."""
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
        if process == os.getpid():  # a forked copy of the run has none of its threads
            pool.shutdown(not is_dropped, cancel_futures=True)


def _worked(function: Callable[[T], R], task: T) -> R:
    """Run one task inside a span of the profile."""
    with profiling.span("data.work", profiling.Kind.DATA):
        return function(task)


@dataclass(frozen=True, slots=True)
class _Item(Generic[R]):
    value: R


@dataclass(frozen=True, slots=True)
class _End:
    """The mark after the last item, with the error that ended them, if any."""

    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class _Line(Generic[R]):
    """The state shared by a thread that reads and the thread that takes its items.

    A finaliser may use these queues and flags, whatever the thread that it interrupts is doing.

    ready: items, then an end mark
    room:  True for each item that may be read, False to end
    drop:  called with each item that was read but will not be used
    """

    drop: Callable[[R], object]
    ready: SimpleQueue[_Item[R] | _End] = field(default_factory=SimpleQueue)
    room: SimpleQueue[bool] = field(default_factory=SimpleQueue)
    end_request: Event = field(default_factory=Event)
    end_event: Event = field(default_factory=Event)

    def end(self) -> None:
        """Tell the thread to end, and drop what it has read."""
        self.end_request.set()
        self.room.put(False)
        self.clear()

    def clear(self) -> None:
        """Drop all items that are ready."""
        with suppress(Empty):
            while True:
                item = self.ready.get_nowait()
                if isinstance(item, _Item):
                    self.drop(item.value)

    def end_and_wait(self) -> None:
        """Tell the thread to end, and wait until it has."""
        self.end()
        self.end_event.wait()


class _Reader(Generic[R]):
    """A thread that reads ahead; it is told to end when this object is no longer referenced."""

    def __init__(self, read: Callable[[], Generator[R, None, None]], depth: int, drop: Callable[[R], object]):
        self.line = _Line(drop)
        self.thread = Thread(
            target=copy_context().run, args=(_read, read, self.line), name="rune-data-reader", daemon=True
        )
        weakref.finalize(self, self.line.end).atexit = False
        # At exit: the thread must not run while the interpreter shuts down.
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
    """The items of `read()`, which another thread reads up to `depth` items ahead.

    drop: called with each item that was read but will not be used
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
    """The thread's loop: read items as long as there is room, then put an end mark."""
    end = _End()
    try:
        with closing(read()) as items:
            while _has_room(line) and not line.end_request.is_set():
                with profiling.span("data.read", profiling.Kind.DATA):
                    item = _Item(next(items))
                line.ready.put(item)
    except StopIteration:
        pass
    except BaseException as error:
        end = _End(error)
    finally:
        line.ready.put(end)
        if line.end_request.is_set():
            line.clear()
        line.end_event.set()


def _has_room(line: _Line[R]) -> bool:
    """Wait until another item may be read; False means that the thread must end."""
    with profiling.span("data.room", profiling.Kind.WAIT):
        return line.room.get()
