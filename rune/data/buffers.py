"""Shuffle of a stream: the next elements wait in a buffer, from which each result is drawn.

Source: the buffered shuffle of tf.data; its documentation explains how little it mixes: an element
        comes out at most one buffer length early, and nearly always at most a few lengths late.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import numpy as np

from rune.data.permutation import hashes


def shuffled(items: Iterator[object], words: tuple[int, ...], buffer: int) -> Iterator[object]:
    """The items in an order that depends only on the words of a key and the number of each draw."""
    waiting = list(islice(items, buffer))
    draws = _draws(words)
    for item in items:
        place = next(draws) % buffer
        waiting[place], choice = item, waiting[place]
        yield choice
    while waiting:
        place = next(draws) % len(waiting)
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        yield waiting.pop()


def _draws(words: tuple[int, ...]) -> Iterator[int]:
    """Random words of 63 bits, from a counter."""
    for block in count():
        yield from (hashes((*words, block), 1024) >> np.uint64(1)).tolist()
