"""A symbolic size as a value: what a traced function may do with the number of its rows.

Where an array is taken, a size is the whole number that it is in a call. Python's own numbers
cannot be made of it, and the error says what to write.
"""

from __future__ import annotations

from typing import Any

import pytest

import rune
import rune.numpy as rnp
from rune.errors import DimensionError
from tests.support.close import near

RANGE = (1, 64)


def ones(*shape: int) -> Any:
    return rnp.ones(shape)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x, x.shape[0]),
        lambda x: rune.jit(lambda x, n: x / n)(x, x.shape[0]),
        lambda x: rune.vmap(lambda v, n: v * n, in_axes=(0, None))(x, x.shape[0]),
        lambda x: rune.scan(lambda c, v: (c - 1, c * v), x.shape[0], x),
        lambda x: rune.cond(x[0] > 0, lambda n: n + 1, lambda n: n, x.shape[0]),
        lambda x: rnp.array([1, x.shape[0]]),
        lambda x: rnp.float32(x.shape[0]) / 2,
        lambda x: rnp.array_split(x, 3),
        lambda x: (divmod(x.shape[0], 4), x.shape[0] ** 2),
        lambda x: rune.random.randint(rune.random.key(0), (3,), 0, x.shape[0]),
        lambda x: rune.random.permutation(rune.random.key(0), x),
        lambda x: rune.random.choice(rune.random.key(0), x.shape[0], (4,)),
        lambda x: rune.random.choice(rune.random.key(0), x, (4,), p=x / x.sum()),
        lambda x: rune.random.uniform(rune.random.fold_in(rune.random.key(0), x.shape[0])),
    ],
)
def test_a_size_is_a_whole_number_where_arrays_are_taken(function: Any):
    f = rune.jit(function, dims={"n": (3, 64)})

    for n in (3, 8, 9):
        x = rnp.arange(1.0, n + 1)
        near(function(x), f(x), relative=1e-6, why="f32")
    assert f.cache_size() == 1


def test_a_size_that_is_printed_has_its_value(capsys):
    f = rune.jit(lambda x: rune.debug.print("{} rows", x.shape[0]), dims={"n": RANGE})

    for n in (3, 5):
        f(ones(n))
    assert capsys.readouterr().out == "3 rows\n5 rows\n"


def test_a_size_is_a_number_when_it_is_made_one():
    f = rune.jit(lambda x: rnp.asarray(x.shape[0]) * 0.5 + (x / x.shape[0]).sum(), dims={"n": RANGE})

    assert float(f(ones(5))) == 3.5


@pytest.mark.parametrize(
    "function", [lambda n: n * 0.5, lambda n: 0.5**n, lambda n: n**0.5, lambda n: 1 / n, lambda n: n & 1]
)
def test_a_size_is_not_a_number_before_the_call(function: Any):
    with pytest.raises(TypeError, match=r"cannot compute with n and .*\n.*rune.numpy.asarray"):
        rune.jit(lambda x: x * function(x.shape[0]), dims={"n": RANGE})(ones(5))


@pytest.mark.parametrize(
    ("function", "hint"), [(range, "rune.fori_loop"), (int, "as it is"), (float, "asarray"), (bool, "range decides")]
)
def test_an_error_about_the_value_of_a_size_says_what_to_write(function: Any, hint: str):
    f = rune.jit(lambda x: function(x.shape[0]), dims={"n": RANGE})

    with pytest.raises(DimensionError, match=rf"of a dimension \(n; n in 1..64\)\n.*{hint}"):
        f(ones(5))
