"""Arrays of keys are arrays: what moves elements moves keys, as NumPy moves the rows of their data.

The words of a key are an axis of `key_data` alone. Whatever moves keys must do to the data of all
keys what NumPy does, the last axis of the data left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, random
from rune.errors import ArgumentError, DtypeError
from tests.support.close import same

KEYS = random.split(random.key(7), (2, 3))
DATA = np.asarray(random.key_data(KEYS))
MASK = np.array([[True, False, True], [False, False, True]])

# A function of keys [2, 3], and what NumPy does to their data, [2, 3, 2].
MOVED: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], Any]]] = {
    "an index": (lambda k: k[1], lambda d: d[1]),
    "a slice": (lambda k: k[:, 1:], lambda d: d[:, 1:]),
    "an ellipsis": (lambda k: k[..., -1], lambda d: d[:, -1]),
    "an index array": (lambda k: k[rnp.array([1, 0, 1])], lambda d: d[[1, 0, 1]]),
    "T": (lambda k: k.T, lambda d: d.transpose(1, 0, 2)),
    "mT": (lambda k: k.mT, lambda d: d.transpose(1, 0, 2)),
    "transpose": (rnp.transpose, lambda d: d.transpose(1, 0, 2)),
    "swapaxes": (lambda k: k.swapaxes(0, 1), lambda d: d.swapaxes(0, 1)),
    "moveaxis": (lambda k: rnp.moveaxis(k, 0, 1), lambda d: np.moveaxis(d, 0, 1)),
    "reshape": (lambda k: rnp.reshape(k, (3, -1)), lambda d: d.reshape(3, 2, 2)),
    "ravel": (rnp.ravel, lambda d: d.reshape(6, 2)),
    "flatten": (lambda k: k.flatten(), lambda d: d.reshape(6, 2)),
    "expand_dims": (lambda k: rnp.expand_dims(k, 0), lambda d: d[None]),
    "squeeze": (lambda k: rnp.squeeze(k[:1]), lambda d: d[0]),
    "squeeze, as a method": (lambda k: k[:1].squeeze(), lambda d: d[0]),
    "broadcast_to": (
        lambda k: rnp.broadcast_to(k, (4, 2, 3)), lambda d: np.broadcast_to(d, (4, 2, 3, 2))
    ),
    "stack": (lambda k: rnp.stack([k, k[::-1]], axis=1), lambda d: np.stack([d, d[::-1]], axis=1)),
    "concatenate": (
        lambda k: rnp.concatenate([k, k[:, :1]], axis=1),
        lambda d: np.concatenate([d, d[:, :1]], axis=1),
    ),
    "vstack": (lambda k: rnp.vstack([k, k]), lambda d: np.concatenate([d, d])),
    "hstack": (lambda k: rnp.hstack([k[0], k[1]]), lambda d: d.reshape(6, 2)),
    "array": (lambda k: rnp.array([k[0], k[1]]), lambda d: d),
    "asarray": (rnp.asarray, lambda d: d),
    "copy": (rnp.copy, lambda d: d),
    "where": (lambda k: rnp.where(MASK, k, k[0]), lambda d: np.where(MASK[..., None], d, d[0])),
    "select": (lambda k: lax.select(rnp.array(MASK), k, k[::-1]),
               lambda d: np.where(MASK[..., None], d, d[::-1])),
    "take": (lambda k: rnp.take(k, rnp.array([2, 0]), axis=1), lambda d: d[:, [2, 0]]),
    "flip": (lambda k: rnp.flip(k, 1), lambda d: d[:, ::-1]),
    "roll": (lambda k: rnp.roll(k, 1, 1), lambda d: np.roll(d, 1, 1)),
    "tile": (lambda k: rnp.tile(k, (2, 1)), lambda d: np.tile(d, (2, 1, 1))),
    "at.set": (lambda k: k.at[1].set(k[0]), lambda d: np.stack([d[0], d[0]])),
    "at.get": (lambda k: k.at[:, 2].get(), lambda d: d[:, 2]),
    "scan": (lambda k: lax.scan(lambda c, row: (row, row[::-1]), k[0], k)[1], lambda d: d[:, ::-1]),
    "cond": (lambda k: lax.cond(True, lambda k: k[1], lambda k: k[0], k), lambda d: d[1]),
    "vmap": (lambda k: rune.vmap(lambda row: row[::-1])(k), lambda d: d[:, ::-1]),
    "vmap along another axis": (
        lambda k: rune.vmap(lambda column: column[0], in_axes=1)(k), lambda d: d[0]
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("around", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_keys_are_moved_as_their_data(name: str, around: Any):
    move, expected = MOVED[name]

    found = around(move)(KEYS)

    assert found.dtype == KEYS.dtype
    same(np.ascontiguousarray(expected(DATA)), np.asarray(random.key_data(found)))


@pytest.mark.parametrize("around", [lambda f: f, rune.jit, rune.vmap], ids=["eager", "jit", "vmap"])
def test_keys_are_arrays_to_isinstance(around: Any):
    seen: list[bool] = []

    around(lambda k: (seen.append(isinstance(k, rune.Array)), k)[1])(KEYS)

    assert seen == [True]


def test_key_arrays_say_their_shape_and_size():
    assert (rnp.shape(KEYS), rnp.ndim(KEYS), KEYS.size, len(KEYS)) == ((2, 3), 2, 6, 2)
    assert (KEYS.dtype.name, KEYS.dtype.itemsize, KEYS.itemsize, KEYS.nbytes) == (
        "key<fry>", 8, 8, 48
    )  # fmt: skip
    assert (KEYS.device.name, KEYS.devices(), KEYS.is_deleted()) == (
        "cpu:0", {KEYS.device}, False
    )  # fmt: skip


def test_keys_are_compared_one_by_one():
    row = KEYS[0]

    assert np.asarray(row == row[1]).tolist() == [False, True, False]
    assert np.asarray(row != row[1]).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "mixed",
    [
        lambda: rnp.where(True, KEYS, 0),
        lambda: rnp.stack([KEYS[0], rnp.ones(3, "uint32")]),
        lambda: rnp.concatenate([KEYS[0], random.split(random.key(1, impl="philox4x32"))]),
        lambda: lax.select(True, KEYS[0, 0], 1),
        lambda: KEYS.at[0].set(0),
    ],
)
def test_keys_do_not_mix_with_numbers_or_with_keys_of_another_generator(mixed: Any):
    with pytest.raises(ArgumentError, match=r"cannot (combine|put) "):
        mixed()


def test_keys_are_not_converted_to_numbers():
    with pytest.raises(DtypeError, match="cannot convert key<fry> to uint32"):
        rnp.asarray(KEYS, "uint32")
