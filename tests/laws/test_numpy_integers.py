"""Sizes, axes and counts may be NumPy integers, which become Python integers in a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax

X = np.arange(105, dtype=np.float32).reshape(3, 5, 7)
# Functions of an array and a function that converts a Python integer.
CALLS: dict[str, Callable[[Any, Callable[[int], Any]], Any]] = {
    "slice": lambda x, n: lax.slice(x, (n(0), n(1), n(2)), (n(3), n(4), n(7)), (n(1), n(2), n(2))),
    "slice_in_dim": lambda x, n: lax.slice_in_dim(x, n(1), n(-1), n(2), n(1)),
    "index_in_dim": lambda x, n: lax.index_in_dim(x, n(-2), n(1)),
    "dynamic_slice": lambda x, n: lax.dynamic_slice(x, (0, 1, 2), (n(3), n(2), n(1))),
    "dynamic_slice_in_dim": lambda x, n: lax.dynamic_slice_in_dim(x, 1, n(3), n(2)),
    "pad": lambda x, n: lax.pad(x, 0.5, [(n(1), n(0), n(1)), (n(-1), n(2), n(0)), (n(0), n(0), n(0))]),
    "broadcast": lambda x, n: lax.broadcast(x, (n(2), n(1))),
    "broadcast_in_dim": lambda x, n: lax.broadcast_in_dim(x, (n(3), n(2), n(5), n(7)), (n(0), n(2), n(3))),
    "lax reshape": lambda x, n: lax.reshape(x, (n(7), n(15))),
    "expand_dims": lambda x, n: lax.expand_dims(x, (n(1),)),
    "lax squeeze": lambda x, n: lax.squeeze(x[:1], (n(0),)),
    "rev": lambda x, n: lax.rev(x, (n(2), n(0))),
    "lax transpose": lambda x, n: lax.transpose(x, (n(2), n(0), n(1))),
    "lax concatenate": lambda x, n: lax.concatenate([x, x], n(1)),
    "iota": lambda x, n: x[0, 0] + lax.iota(np.float32, n(7)),
    "broadcasted_iota": lambda x, n: x + lax.broadcasted_iota(np.float32, (n(3), n(5), n(7)), n(1)),
    "lax cumsum": lambda x, n: lax.cumsum(x, axis=n(1)),
    "top_k": lambda x, n: lax.top_k(x, n(2))[0],
    "lax argmax": lambda x, n: lax.argmax(x, n(1), np.int32),
    "lax sort": lambda x, n: lax.sort(-x, dimension=n(0)),
    "reduce": lambda x, n: lax.reduce(x, np.float32(0), lax.add, (n(0), n(2))),
    "reduce_window": lambda x, n: lax.reduce_window(x, 0.0, lax.add, (n(1), n(2), n(3)), (n(1), n(1), n(2)), "VALID"),
    "conv": lambda x, n: lax.conv_general_dilated(x, x[:, :, :3], (n(2),), [(n(1), n(1))], rhs_dilation=(n(2),)),
    "dot_general": lambda x, n: lax.dot_general(x, x, (((n(2),), (n(2),)), ((n(0),), (n(0),)))),
    "lax split": lambda x, n: lax.split(x, (n(3), n(4)), axis=n(2)),
    "reshape": lambda x, n: rnp.reshape(x, (n(-1), n(3))),
    "roll": lambda x, n: rnp.roll(x, n(2), n(1)),
    "rolls": lambda x, n: rnp.roll(x, (n(-1), n(3)), (n(0), n(2))),
    "rnp pad": lambda x, n: rnp.pad(x, ((n(1), n(0)), (n(2), n(1)), (n(0), n(3)))),
    "wrap": lambda x, n: rnp.pad(x, n(2), mode="wrap"),
    "tile": lambda x, n: rnp.tile(x, (n(2), n(1), n(1))),
    "repeat": lambda x, n: rnp.repeat(x, n(2), n(1)),
    "repeats": lambda x, n: rnp.repeat(x, np.array([1, 0, 2]), n(0), total_repeat_length=n(3)),
    "moveaxis": lambda x, n: rnp.moveaxis(x, n(0), n(2)),
    "swapaxes": lambda x, n: rnp.swapaxes(x, n(0), n(2)),
    "rot90": lambda x, n: rnp.rot90(x, n(1), (n(1), n(2))),
    "flip": lambda x, n: rnp.flip(x, n(1)),
    "split": lambda x, n: rnp.split(x, [n(2), n(5)], n(2)),
    "array_split": lambda x, n: rnp.array_split(x, n(3), n(2)),
    "take": lambda x, n: rnp.take(x, n(1), n(2)),
    "index": lambda x, n: x[n(1), n(-2) :: n(-1), n(1) : n(6) : n(2)],
    "written": lambda x, n: x.at[n(0), n(1) : n(4), n(6)].add(1.0),
    "stack": lambda x, n: rnp.stack([x, x], n(2)),
    "sum": lambda x, n: rnp.sum(x, (n(0), n(2))),
    "cumsum": lambda x, n: rnp.cumsum(x, n(1)),
    "sort": lambda x, n: rnp.sort(-x, n(0)),
    "diff": lambda x, n: rnp.diff(x, n(2), n(1)),
    "diagonal": lambda x, n: rnp.diagonal(x, n(1), n(0), n(2)),
    "tril": lambda x, n: rnp.tril(x, n(1)),
    "trace": lambda x, n: rnp.trace(x, n(-1), n(1), n(2)),
    "tensordot": lambda x, n: rnp.tensordot(x, x, (n(0), n(0))),
    "fft": lambda x, n: rnp.fft.rfft(x, n(9), n(1)),
    "zeros": lambda x, n: x[0] + rnp.zeros((n(5), n(7))),
    "eye": lambda x, n: x[0] + rnp.eye(n(5), n(7), n(1)),
    "arange": lambda x, n: x + rnp.arange(n(1), n(15), n(2)),
    "linspace": lambda x, n: x + rnp.linspace(0.0, 1.0, n(7)),
    "one_hot": lambda x, n: rune.nn.one_hot(x[0, 0].astype(int), n(9)),
    "softmax": lambda x, n: rune.nn.softmax(x, n(1)),
}


def _numbers(value: object) -> Iterator[object]:
    if isinstance(value, tuple | list):
        for item in value:
            yield from _numbers(item)
    else:
        yield value


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8], ids=lambda kind: kind.__name__)
def test_integers_of_numpy_give_the_same_result_eager_and_compiled(name: str, kind: Callable[[int], Any]):
    def integer(number: int) -> Any:
        return kind(number) if number >= 0 else np.int64(number)

    plain, other = (rune.jit(lambda x, n=n: CALLS[name](rnp.asarray(x), n)) for n in (int, integer))
    expected = rune.tree.leaves(plain(X))
    eager = rune.tree.leaves(CALLS[name](rnp.asarray(X), integer))

    for a, b, c in zip(expected, rune.tree.leaves(other(X)), eager, strict=True):
        np.testing.assert_array_equal(b, a)
        np.testing.assert_allclose(c, a, rtol=1e-6)


@pytest.mark.parametrize("name", CALLS)
def test_programs_hold_no_integers_of_numpy(name: str):
    program = rune.make_program(lambda x: CALLS[name](rnp.asarray(x), np.int64))(X)

    for equation in program.equations:
        shapes = [result.type.shape for result in equation.results]
        numbers = [*_numbers([*equation.params.values()]), *_numbers(shapes)]
        assert [n for n in numbers if isinstance(n, np.integer)] == [], equation
