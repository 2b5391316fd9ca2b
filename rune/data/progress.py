"""Progress bars of runs, by tqdm."""

from __future__ import annotations

from collections.abc import Iterable
from operator import length_hint

from rune import locks
from rune.data.iterator import Iterator
from rune.data.pipeline import Pipeline
from rune.errors import ArgumentError


def progress(elements: Iterable[object], description: str | None = None) -> Iterable[object]:
    """The same elements, with a bar that shows how many there were, how many will be, and how fast.

    A run that was restored shows where it began. Without a terminal nothing is shown.

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
    total = length_hint(run, -1)
    return tqdm(run, description, None if total < 0 else before + total, initial=before, disable=None)
