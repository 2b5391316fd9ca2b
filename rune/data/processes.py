"""Runs a function on tasks in worker processes: results come in order, with some tasks ahead.

Tasks are dealt out in turn: worker w gets tasks w, w + count, ..., a few at a time, and answers in
order, so the pipes are read in turn and results need no sorting. Long arrays of a result travel
through shared memory: each task in progress has a slot, replaced by a larger one when a result did
not fit. Arrays that do not fit are sent through the pipe.
Errors of a worker are raised here, with its traceback in a note; so is the death of a worker.
Invariant: a worker reads its tasks in a thread, so that sending a task never blocks.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import field
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np

from rune.data.shared_memory import Slot, Spans, extent, new_slot, opened, pickled, remove, spans_of, views, write
from rune.data.threads import AHEAD, Scope
from rune.errors import DataError, Frame
from rune.frames import is_passed_over
from rune.records import dataclass
from rune.tracebacks import users_frames

START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_END = b""
_STOP_S = 10.0  # how long a worker may continue after it was told to stop, before it is killed

T = TypeVar("T")  # a task
R = TypeVar("R")  # a result
Function = Callable[[T], R]


# --- messages ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Task:
    """The function's argument, and the path of the shared memory for long arrays of the result."""

    argument: object
    slot: str | None


@dataclass(frozen=True, slots=True)
class _Answer:
    """A pickled result. Its long arrays are at `spans` in the slot, or follow in the pipe."""

    data: bytes
    spans: Spans
    is_in_slot: bool


@dataclass(frozen=True, slots=True)
class _Failure:
    """A worker's error (None if pickle cannot send it), its text and the user's traceback."""

    error: BaseException | None
    text: str
    lines: str


# --- in a worker ------------------------------------------------------------------------------


def serve(pipe: Connection, load: Callable[[], Function]) -> None:
    """The main loop of a worker: apply the function that `load` returns to each task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that iterates handles Ctrl-C
    tasks: SimpleQueue[bytes] = SimpleQueue()
    end_marks: list[bool] = []  # filled when the other side hangs up; no lock, as this process may fork
    threading.Thread(target=_receive, args=(pipe, tasks, end_marks), daemon=True).start()
    slots: dict[str, Slot] = {}
    function: Function | None = None
    with suppress(BrokenPipeError, ConnectionResetError):
        while (message := tasks.get()) and not end_marks:
            try:
                function = load() if function is None else function
                task = pickle.loads(message)
                answer = pickled(function(task.argument))
            except BaseException as error:
                pipe.send_bytes(_failure(error))
            else:
                _send(pipe, *answer, None if task.slot is None else _slot(slots, task.slot))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # without cleaning up: slots are mapped, and arrays of the function may lie in them


def _receive(pipe: Connection, tasks: SimpleQueue[bytes], end_marks: list[bool]) -> None:
    """Put tasks into the queue, and an end mark once the other side hangs up."""
    parent = multiprocessing.parent_process()
    with suppress(EOFError, OSError):
        while pipe in wait([pipe] if parent is None else [pipe, parent.sentinel]):
            tasks.put(pipe.recv_bytes())
    end_marks.append(True)
    tasks.put(_END)


def _slot(slots: dict[str, Slot], path: str) -> Slot | None:
    """The slot at a path; None if it was removed because the result is no longer needed."""
    if path not in slots:
        with suppress(OSError):
            slots[path] = opened(path)
    return slots.get(path)


def _send(pipe: Connection, data: bytes, buffers: list[memoryview], slot: Slot | None) -> None:
    spans = spans_of(buffers)
    if slot is not None and extent(spans) <= slot.size:
        write(slot, buffers, spans)
        pipe.send_bytes(pickle.dumps(_Answer(data, spans, True)))
        return
    pipe.send_bytes(pickle.dumps(_Answer(data, spans, False)))
    for buffer in buffers:
        pipe.send_bytes(buffer)


def _failure(error: BaseException) -> bytes:
    text = f"{type(error).__name__}: {error}"
    trace = users_frames(error.__traceback__)
    lines = "" if trace is None or is_passed_over(trace.tb_frame) else "".join(traceback.format_tb(trace))
    try:
        message = pickle.dumps(_Failure(error, text, lines))
        pickle.loads(message)  # some errors can be pickled but not unpickled
    except Exception:
        message = pickle.dumps(_Failure(None, text, lines))
    return message


def _loaded(data: bytes, path: str | None, spans: Spans) -> Function:
    """The unpickled function, whose long arrays are views of the shared memory."""
    return pickle.loads(data, buffers=[] if path is None else views(opened(path), spans))


# --- in the process that iterates -------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Worker:
    """A process, its pipe, the slots of its tasks in order, and its free slots."""

    process: BaseProcess
    pipe: Connection
    tasks: deque[Slot | None] = field(default_factory=deque)
    slots: list[Slot] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Crew:
    """The workers. `shared_slot` is memory for the function, `line` the user's line for errors.

    is_over: tells the thread that starts workers that an interrupt has ended the crew meanwhile
    """

    line: Frame | None
    process: int = field(default_factory=os.getpid)  # the process that started them
    workers: list[_Worker] = field(default_factory=list)
    shared_slot: Slot | None = None
    is_over: bool = False


def in_processes(
    count: int, start: str | None, function: Callable[[T], R], tasks: Iterable[T], line: Frame | None, scope: Scope
) -> Generator[R, None, None]:
    """`function(task)` for each task, in order. The thread that iterates draws the tasks.

    start:  a start method of `multiprocessing`
    line:   the user's line, for errors
    Errors: those of the function; DataError if a worker dies, or pickle cannot send the function.
    """
    crew, is_dropped = _Crew(line), False
    try:
        _begin(crew, count, start or START, function)
        pending: deque[_Worker] = deque()
        for number, task in enumerate(tasks):
            worker = crew.workers[number % count]
            _give(crew, worker, task)
            pending.append(worker)
            if len(pending) == AHEAD * count:
                yield _result(crew, pending.popleft())
        while pending:
            yield _result(crew, pending.popleft())
    except GeneratorExit:
        is_dropped = not scope.is_awaited
        raise
    finally:
        _end(crew)
        if not is_dropped:
            _wait_for(crew)


def _begin(crew: _Crew, count: int, start: str, function: Function) -> None:
    if multiprocessing.current_process().daemon:
        raise DataError(
            "map: cannot start processes in a worker process (its own would outlive it)",
            hint="give the inner pipeline threads: map(f, workers=4)",
            frame=crew.line,
        )
    # A forked process already has the function.
    load = (lambda: function) if start == "fork" else _sendable(crew, function, start)
    # The main thread receives interrupts, and must not receive one in the middle of a fork.
    with ThreadPoolExecutor(1) as starter:
        starter.submit(_start, crew, count, multiprocessing.get_context(start), load).result()


def _start(crew: _Crew, count: int, context: BaseContext, load: Callable[[], Function]) -> None:
    for _ in range(count):
        pipe, other = context.Pipe()
        process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=serve, args=(other, load), daemon=True
        )
        process.start()
        other.close()
        crew.workers.append(_Worker(process, pipe))
        if crew.is_over:
            return _hang_up(pipe)


def _sendable(crew: _Crew, function: Callable[[T], R], start: str) -> Callable[[], Function]:
    """A loader of the function for workers. Errors: DataError if pickle cannot send it."""
    try:
        data, buffers = pickled(function)
    except Exception as error:
        raise DataError(
            f"map: cannot send the function to a process ({type(error).__name__}: {error})",
            hint="define it at the top of a module, or use threads, or Processes(n, start='fork')",
            frame=crew.line,
        ) from error
    spans = spans_of(buffers)
    crew.shared_slot = new_slot(extent(spans)) if buffers else None
    if crew.shared_slot is None:
        return partial(_loaded, pickle.dumps(function, protocol=5), None, ())
    write(crew.shared_slot, buffers, spans)
    return partial(_loaded, data, crew.shared_slot.path, spans)


def _give(crew: _Crew, worker: _Worker, argument: object) -> None:
    slot = worker.slots.pop() if worker.slots else None
    worker.tasks.append(slot)
    try:
        worker.pipe.send_bytes(pickle.dumps(_Task(argument, slot and slot.path), protocol=5))
    except (BrokenPipeError, ConnectionResetError):
        raise _death(crew, worker) from None


def _result(crew: _Crew, worker: _Worker) -> Any:
    """The result of the worker's first task. Errors: the function's; DataError if it died."""
    slot = worker.tasks.popleft()
    try:
        answer = pickle.loads(worker.pipe.recv_bytes())
        if isinstance(answer, _Failure):
            raise _error(crew, answer)
        buffers = _buffers(worker, answer, slot)
    except (EOFError, ConnectionResetError):
        raise _death(crew, worker) from None
    _keep_slot(worker, slot, extent(answer.spans))
    return pickle.loads(answer.data, buffers=buffers)


def _buffers(worker: _Worker, answer: _Answer, slot: Slot | None) -> list[object]:
    """The bytes of the long arrays, copied into memory of this process."""
    if not answer.is_in_slot:
        return [bytearray(worker.pipe.recv_bytes()) for _ in answer.spans]
    assert slot is not None
    remove(slot.path)  # its worker has opened it
    return [np.array(view) for view in views(slot, answer.spans)]


def _keep_slot(worker: _Worker, slot: Slot | None, nbytes: int) -> None:
    """Keep a slot for the next task that is large enough for another result like this one."""
    if slot is not None and nbytes > slot.size:
        remove(slot.path)
        slot = None
    if slot is None and nbytes:
        slot = new_slot(nbytes + nbytes // 8)
    if slot is not None:
        worker.slots.append(slot)


def _error(crew: _Crew, failure: _Failure) -> BaseException:
    error = failure.error
    if error is None:
        error = DataError(f"map: cannot go on (a worker process raised {failure.text})", frame=crew.line)
    if failure.lines:
        error.add_note(f"in a worker process:\n{failure.lines.rstrip()}")
    return error


def _death(crew: _Crew, worker: _Worker) -> DataError:
    worker.process.join(_STOP_S)
    number, code = crew.workers.index(worker), worker.process.exitcode
    if code is None or code < 0:
        end = "is gone" if code is None else f"was ended by {signal.Signals(-code).name}"
        hint = "the system ends processes by SIGKILL when memory is short" if code == -signal.SIGKILL else None
    else:
        end = f"left with {code}"
        hint = 'it imports the main module, whose work has to stand behind `if __name__ == "__main__":`'
    return DataError(
        f"map: cannot go on (worker process {number} of {len(crew.workers)} {end})", hint=hint, frame=crew.line
    )


def _end(crew: _Crew) -> None:
    """Tell all workers to end, and release the shared memory."""
    if crew.process != os.getpid():
        return  # this is a fork, and the workers are its parent's
    crew.is_over = True
    for worker in crew.workers:
        _hang_up(worker.pipe)
        for slot in (*worker.slots, *worker.tasks):
            if slot is not None:
                remove(slot.path)
    if crew.shared_slot is not None:
        remove(crew.shared_slot.path)


def _wait_for(crew: _Crew) -> None:
    """Wait until all workers have ended; kill those that do not."""
    if crew.process != os.getpid():
        return
    last = time.monotonic() + _STOP_S
    for worker in crew.workers:
        worker.process.join(max(0.0, last - time.monotonic()))
        if worker.process.exitcode is None:
            worker.process.kill()
            worker.process.join()
        worker.process.close()


def _hang_up(pipe: Connection) -> None:
    """Close both directions, even if a process forked since then has a copy of this end."""
    with suppress(OSError), socket.socket(fileno=os.dup(pipe.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    pipe.close()
