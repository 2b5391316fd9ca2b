"""The words of ciphers as scalar functions: ops/ciphers.py over Numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable

from rune import dtypes
from rune.lowering.scalar.number import Number
from rune.ops.ciphers import Arithmetic, Generator


def word(generator: Generator, number: int) -> Callable[..., Number]:
    """The function that gives one word of the cipher from the words of a key and of a counter."""

    def write(*words: Number) -> Number:
        return generator.cipher(_arithmetic(words[0]), words[:2], words[2:])[number]

    return write


def _arithmetic(x: Number) -> Arithmetic[Number]:
    """The arithmetic of words of the same block and dtype as x."""
    return Arithmetic(x.like, operator.add, operator.xor, lambda x, by: (x << by) | (x >> 32 - by), _products)


def _products(x: Number, y: Number) -> tuple[Number, Number]:
    wide = x.convert(dtypes.u64) * y.convert(dtypes.u64)
    return (wide >> 32).convert(dtypes.u32), x * y
