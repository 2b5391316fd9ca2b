"""Progress bars of runs, by tqdm."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator as Iteration
from operator import length_hint
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from rune import locks
from rune.data.iterator import Iterator
from rune.data.pipeline import Pipeline
from rune.errors import ArgumentError

T = TypeVar("T")


def progress(elements: Iterable[T], description: str | None = None) -> Progress[T]:
    """The same elements, with a bar that shows how many are done, how many there are, and the rate.

    The bar of a restored run starts at its position; after a `break` the bar still shows the count
    at that point. `set_postfix` shows numbers after the bar. Without a terminal nothing is shown.

    elements: a pipeline, a run of one, or any iterable
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
    return Progress(run, tqdm(desc=description, total=total, initial=before, disable=None))


class _Bar(Protocol):
    """The methods of a tqdm bar that are used here."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def update(self) -> object: ...
    def set_postfix(self, **values: object) -> None: ...


class Progress(Generic[T]):
    """Elements that advance a bar; can be iterated only once."""

    def __init__(self, elements: Iterable[T], bar: _Bar):
        self._elements, self._bar = elements, bar

    def __iter__(self) -> Iteration[T]:
        # tqdm's own loop does not count the element at which a `break` leaves it, and colours a
        # bar without a total red.
        with self._bar:
            for x in self._elements:
                self._bar.update()
                yield x

    def set_postfix(self, **values: object) -> None:
        """Show values after the bar; an array with one element is shown as a number.

        >>> from rune import data
        >>> for x in (bar := data.progress([1, 2])):
        ...     bar.set_postfix(loss=1 / x)
        """
        self._bar.set_postfix(**{name: _number(value) for name, value in values.items()})


def _number(value: object) -> object:
    """The number that an array with one element holds."""
    array = np.asarray(value) if hasattr(value, "dtype") else None
    return value if array is None or array.size != 1 else array.item()
