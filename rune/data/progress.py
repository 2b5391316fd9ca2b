"""Progress bars of runs, by tqdm."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator as Iteration
from operator import length_hint
from typing import Protocol, Self, TypeVar

from rune import locks
from rune.data.iterator import Iterator
from rune.data.pipeline import Pipeline
from rune.errors import ArgumentError

T = TypeVar("T")


def progress(elements: Iterable[T], description: str | None = None) -> Iterable[T]:
    """The same elements, with a bar that shows how many there were, how many will be, and how fast.

    A run that was restored shows where it began, and one that is left, by `break` say, how many
    elements there were. Without a terminal nothing is shown.

    elements: a pipeline, a run of one, or whatever can be iterated
    Errors:   ArgumentError if tqdm is not installed.

    >>> from rune import data
    >>> [b.tolist() for b in data.progress(data.sequence(range(4)).batch(2), "epoch 1")]
    [[0, 1], [2, 3]]
    """
    try:
        tqdm = locks.load("tqdm.auto").tqdm
    except ImportError as error:
        raise ArgumentError("progress: cannot draw a bar (tqdm is not installed)", hint="pip install tqdm") from error
    run = iter(elements) if isinstance(elements, Pipeline) else elements
    before = run.element if isinstance(run, Iterator) else 0
    after = length_hint(run, -1)
    total = None if after < 0 else before + after
    return _counted(run, tqdm(desc=description, total=total, initial=before, disable=None))


class _Bar(Protocol):
    """What is used of a bar of tqdm."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def update(self) -> object: ...


def _counted(elements: Iterable[T], bar: _Bar) -> Iteration[T]:
    # tqdm's own loop does not count the element at which it is left, and turns an endless bar red.
    with bar:
        for x in elements:
            bar.update()
            yield x
