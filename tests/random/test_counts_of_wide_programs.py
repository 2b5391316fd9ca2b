"""Positions and counts have the default integer dtype, as in JAX, even if it has 64 bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import rune
import rune.numpy as rnp

P = (0.1, 0.2, 0.7)
DRAWS: dict[str, Callable[[rune.Array], rune.Array]] = {
    "choice": lambda k: rune.random.choice(k, 3, (2,)),
    "choice by weight": lambda k: rune.random.choice(k, 3, (2,), p=rnp.array(P)),
    "choice without replacement": lambda k: rune.random.choice(k, 3, (2,), replace=False),
    "choice by weight without replacement": lambda k: rune.random.choice(k, 3, (2,), replace=False, p=rnp.array(P)),
    "categorical": lambda k: rune.random.categorical(k, rnp.array(P)),
    "permutation": lambda k: rune.random.permutation(k, 5),
    "randint": lambda k: rune.random.randint(k, (), 0, 3),
    "poisson": lambda k: rune.random.poisson(k, 3.0),
    "geometric": lambda k: rune.random.geometric(k, 0.5),
}


@pytest.mark.parametrize("name", DRAWS)
def test_counts_are_wide_where_integers_are(name: str):
    with rune.enable_x64():
        eager = DRAWS[name](rune.random.key(1))
        result = rune.jit(DRAWS[name])(rune.random.key(1))

    assert (eager.dtype, result.dtype) == (rnp.int64, rnp.int64)


@pytest.mark.parametrize("name", DRAWS)
def test_counts_have_32_bits_otherwise(name: str):
    assert DRAWS[name](rune.random.key(1)).dtype == rnp.int32
