"""The code of `associative_scan` is a few lines for each round, however long the function is.

Each round interleaves its prefixes with those of the round inside it. If all rounds were fused,
every read of such a value would need a condition and a position for each round.
"""

from __future__ import annotations

import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.lowering.kernels_text import program_text
from rune.lowering.stages import stages
from tests.support.lowering import PLAIN, f32, program_of

ROUND = 3_000  # characters of kernels for each round; up to 14,000 while rounds were nested


def affine(a, b):
    return a[0] * b[0], b[0] * a[1] + b[1]


def long(a, b):
    return rnp.tanh(rnp.sin(a) + rnp.cos(b) * a) + rnp.exp(-a * b)


SCANS = {
    "cumlogsumexp": lax.cumlogsumexp,
    "of sums": lambda x: rune.associative_scan(rnp.add, x),
    "of affine maps": lambda x: rune.associative_scan(affine, (x, x)),
    "of a long function": lambda x: rune.associative_scan(long, x),
}


def characters(function, size: int) -> int:
    """The length of the text of all kernels for a row of `size` numbers."""
    return len(program_text(stages(program_of(function, f32(size)), PLAIN).kernels))


@pytest.mark.parametrize(("size", "rounds"), [(17, 5), (257, 9), (4_097, 13)])
@pytest.mark.parametrize("name", SCANS)
def test_a_round_of_a_scan_is_a_few_lines(name, size, rounds):
    assert characters(SCANS[name], size) <= ROUND * rounds


@pytest.mark.parametrize("function", [rnp.cumsum, rnp.cumprod, lax.cummax, lax.cummin])
def test_a_running_operation_is_the_same_code_for_every_size(function):
    # The sizes themselves are a digit or two longer.
    assert characters(function, 4_097) <= 1.1 * characters(function, 17)
