"""Numbers of elements: the lengths of epochs, and the source elements of each element.

Numbers continue from one epoch to the next: with 10 items, number 23 is item 3 of epoch 2.

    shuffle    23 of 10  ->  20 + permutation of epoch 2 at 3
    shard      23        ->  23 · count + index, from the beginning of its epoch
    batch       5 of 3   ->  18, 19: the last batch of epoch 1, for 10 elements in batches of 4
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import assert_never

import numpy as np

from rune.data.permutation import permuted
from rune.data.stages import Batch, Enumerate, Items, Map, Node, Prefetch, Repeat, Rows, Shard, Shuffle, Stage, Stream

ENDLESS = math.inf


def length(stage: Node) -> int | float | None:
    """The number of elements of an epoch; None if it is not known."""
    match stage:
        case Rows():
            return stage.size
        case Items():
            return len(stage.sequence)
        case Stream():
            return None
        case Stage():
            before = length(stage.upstream)
            return before if before is None else _length_after(stage, before)
        case _:
            raise AssertionError(stage)


def size_of(stage: Node) -> int | float:
    """The number of elements of an epoch, where it is known."""
    size = length(stage)
    assert size is not None
    return size


def _length_after(stage: Stage, before: int | float) -> int | float:
    match stage:
        case Shuffle() | Map() | Enumerate() | Prefetch():
            return before
        case Shard(count=count):
            return before if before == ENDLESS else before // count
        case Repeat(epochs=epochs):
            return before and before * (ENDLESS if epochs is None else epochs)
        case Batch(size=size, remainder=remainder):
            return before if before == ENDLESS else before // size if remainder == "drop" else -(-before // size)
        case _:
            raise AssertionError(stage)


def order(stage: Node) -> str:
    """A text of all that determines the order of elements; a state is valid for one such text."""
    match stage:
        case Rows():
            return f"arrays[{stage.size}]"
        case Items():
            return f"sequence[{len(stage.sequence)}]"
        case Stream():
            return "stream"
        case Shuffle(up, words, buffer):
            return f"{order(up)} shuffle{words if buffer is None else (*words, buffer)}"
        case Shard(up, _, count):
            return f"{order(up)} shard({count})"
        case Repeat(up, epochs):
            return f"{order(up)} repeat({'' if epochs is None else epochs})"
        case Batch(up, size, remainder):
            return f"{order(up)} batch({size}, {remainder})"
        case Map(up) | Enumerate(up) | Prefetch(up):
            return order(up)
        case _:
            raise AssertionError(stage)


def fingerprint(stage: Node) -> int:
    """A number below 2³¹ for the order; two orders share it with a probability of 2⁻³¹."""
    return zlib.crc32(order(stage).encode()) >> 1


def sources(stage: Shuffle | Shard | Repeat, numbers: np.ndarray) -> np.ndarray:
    """The numbers before the stage of the elements that have these numbers (i64) after it."""
    match stage:
        case Repeat():
            return numbers
        case Shuffle(up, words):
            size = size_of(up)
            return _in_epochs(numbers, size, size, lambda places, epoch: permuted(places, int(size), words, epoch))
        case Shard(up, index, count):
            return _in_epochs(numbers, size_of(stage), size_of(up), lambda places, _: places * count + index)
        case _:
            assert_never(stage)


def _in_epochs(
    numbers: np.ndarray, size: int | float, size_before: int | float, place: Callable[[np.ndarray, int], np.ndarray]
) -> np.ndarray:
    """The numbers before a stage whose epochs have another size; `place` maps those in an epoch."""
    if size == ENDLESS:
        return place(numbers, 0)
    epochs, places = np.divmod(numbers, size)
    result = np.empty_like(numbers)
    for epoch in dict.fromkeys(epochs.tolist()):
        inside = epochs == epoch
        result[inside] = epoch * size_before + place(places[inside], epoch)
    return result


def members(stage: Batch, number: int) -> np.ndarray:
    """The numbers (i64) of the elements that a batch is made of."""
    before, size = size_of(stage.upstream), size_of(stage)
    if size == ENDLESS:
        return np.arange(number * stage.size, (number + 1) * stage.size)
    epoch, place = divmod(number, int(size))
    stop = min((place + 1) * stage.size, int(before))
    return epoch * int(before) + np.arange(place * stage.size, stop)
