"""Runs of a pipeline: elements in order, computed by the workers and readers of its stages.

`run` is for sources of known length: groups of numbers go up to the source, elements come down.
`stream` is for all others: it first skips used elements, as close to the source as possible.
The scope ends workers and readers. Otherwise a generator suspended in a frame of an error's
traceback would keep them alive for as long as a variable holds the error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import TypeVar

import numpy as np

from rune.data.buffers import shuffled
from rune.data.elements import applied, batch_of, each, element
from rune.data.numbers import length, members, sources
from rune.data.placing import Arrival, Where, join, sent, taken_over
from rune.data.processes import in_processes
from rune.data.stages import (
    Batch,
    Enumerate,
    Map,
    Node,
    Prefetch,
    Processes,
    Repeat,
    Shard,
    Shuffle,
    Stage,
    Stream,
    Threads,
    Workers,
)
from rune.data.threads import Scope, in_threads, read_ahead

T = TypeVar("T")  # a task
S = TypeVar("S", bound=Stage)

GROUP = 256  # numbers in a group


def elements(stage: Node, start: int, scope: Scope) -> Generator[object, None, None]:
    """All elements from number `start` on, in order."""
    size = length(stage)
    with scope:
        try:
            yield from stream(stage, start, scope) if size is None else run(stage, _groups(start, size), scope)
        except Exception:
            scope.is_awaited = True
            raise


def _groups(start: int, size: int | float) -> Iterator[np.ndarray]:
    while start < size:
        stop = int(min(start + GROUP, size))
        yield np.arange(start, stop)
        start = stop


def run(stage: Node, groups: Iterable[np.ndarray], scope: Scope) -> Iterator[object]:
    """The elements of these numbers (i64)."""
    match stage:
        case Shuffle(up) | Shard(up) | Repeat(up):
            return run(up, (sources(stage, numbers) for numbers in groups), scope)
        case (Map(workers=workers) as map_stage) | Batch(Map(workers=workers) as map_stage) if workers is not None:
            return _worked(workers, partial(element, stage), _flat(groups), map_stage, scope)
        case Map(up):
            return (applied(stage, x) for x in run(up, groups, scope))
        case Enumerate(up):
            numbers: deque[int] = deque()
            return ((numbers.popleft(), x) for x in run(up, _noted(groups, numbers), scope))
        case Batch(up) if _is_ahead(up):
            return _batches(stage, groups, scope)
        case Prefetch(up, device, depth):
            return _prefetched(partial(run, up, groups), device, depth, scope)
        case _:
            return (x for numbers in groups for x in each(stage, numbers))


def _flat(groups: Iterable[np.ndarray]) -> Iterator[int]:
    return (n for numbers in groups for n in numbers.tolist())


def _noted(groups: Iterable[np.ndarray], numbers: deque[int]) -> Iterator[np.ndarray]:
    for group in groups:
        numbers.extend(group.tolist())
        yield group


def _is_ahead(stage: Node) -> bool:
    """Whether this stage or an earlier one has workers or reads ahead."""
    while isinstance(stage, Stage):
        if isinstance(stage, Prefetch) or (isinstance(stage, Map) and stage.workers is not None):
            return True
        stage = stage.upstream
    return False


def _batches(stage: Batch, groups: Iterable[np.ndarray], scope: Scope) -> Iterator[object]:
    """Batches of elements that other threads or processes compute ahead."""
    counts: deque[int] = deque()

    def numbers() -> Iterator[np.ndarray]:
        for number in _flat(groups):
            part = members(stage, number)
            counts.append(len(part))
            yield part

    items = run(stage.upstream, numbers(), scope)
    for first in items:
        yield batch_of(stage, [first, *islice(items, counts.popleft() - 1)])


def _worked(
    workers: Workers, function: Callable[[T], object], tasks: Iterable[T], map_stage: Map, scope: Scope
) -> Iterator[object]:
    results: Generator[object, None, None]
    match workers:
        case Threads(size):
            results = in_threads(size, function, tasks, scope)
        case Processes(size, start):
            results = in_processes(size, start, function, tasks, map_stage.line, scope)
    return scope.enter_context(closing(results))


def _prefetched(read: Callable[[Scope], Iterator[object]], device: Where, depth: int, scope: Scope) -> Iterator[object]:
    """One thread reads elements, another copies them; iteration waits for the slower one."""

    def elements() -> Generator[object, None, None]:
        with Scope() as inner:
            inner.is_awaited = True  # the thread that reads also ends this scope, and may wait
            yield from read(inner)

    def arrivals() -> Generator[Arrival, None, None]:
        with Scope() as inner:
            inner.is_awaited = True
            for x in inner.enter_context(closing(read_ahead(elements, 1, lambda _: None, inner))):
                yield sent(x, device)

    items = scope.enter_context(closing(read_ahead(arrivals, depth, join, scope)))
    return (taken_over(arrival) for arrival in items)


# --- streams ----------------------------------------------------------------------------------


def stream(stage: Node, skip: int, scope: Scope) -> Iterator[object]:
    """The elements of a source of unknown length, without the first `skip`."""
    match stage:
        case Stream(iterable):
            return islice(iter(iterable), skip, None)
        case Shuffle(up, words, buffer) if buffer is not None:
            return islice(shuffled(stream(up, 0, scope), words, buffer), skip, None)
        case Shard(up, index, size):
            return (part[index] for part in _parts(stream(up, skip * size, scope), size) if len(part) == size)
        case Repeat(up, epochs):
            passes = count() if epochs is None else range(epochs)
            return islice((x for _ in passes for x in stream(up, 0, scope)), skip, None)
        case Batch(Map(up, _, workers) as map_stage, size) if workers is not None:
            tasks = _parts_of(stage, stream(up, skip * size, scope))
            return _worked(workers, partial(_mapped_batch, _alone(stage), _alone(map_stage)), tasks, map_stage, scope)
        case Batch(up, size):
            return (batch_of(stage, part) for part in _parts_of(stage, stream(up, skip * size, scope)))
        case Map(up, _, workers) if workers is not None:
            return _worked(workers, partial(applied, _alone(stage)), stream(up, skip, scope), stage, scope)
        case Map(up):
            return (applied(stage, x) for x in stream(up, skip, scope))
        case Enumerate(up):
            return enumerate(stream(up, skip, scope), skip)
        case Prefetch(up, device, depth):
            return _prefetched(partial(stream, up, skip), device, depth, scope)
        case _:
            raise AssertionError(stage)


def _parts(items: Iterator[object], size: int) -> Iterator[list[object]]:
    """Lists of `size` items; the last one may be shorter."""
    while part := list(islice(items, size)):
        yield part


def _parts_of(stage: Batch, items: Iterator[object]) -> Iterator[list[object]]:
    return (part for part in _parts(items, stage.size) if len(part) == stage.size or stage.remainder != "drop")


def _alone(stage: S) -> S:
    """The stage without earlier stages, which a worker process does not need."""
    return replace(stage, upstream=Stream(()))


def _mapped_batch(stage: Batch, map_stage: Map, part: list[object]) -> object:
    return batch_of(stage, [applied(map_stage, x) for x in part])
