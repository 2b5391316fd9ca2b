"""Arrays of keys are arrays: operations that move elements move keys, as NumPy moves their data.

The words of a key are an axis of `key_data` only. An operation that moves keys must move the data
of all keys as NumPy does, with the last axis unchanged."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, random
from rune.errors import DtypeError
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
    "broadcast_to": (lambda k: rnp.broadcast_to(k, (4, 2, 3)), lambda d: np.broadcast_to(d, (4, 2, 3, 2))),
    "stack": (lambda k: rnp.stack([k, k[::-1]], axis=1), lambda d: np.stack([d, d[::-1]], axis=1)),
    "concatenate": (lambda k: rnp.concatenate([k, k[:, :1]], axis=1), lambda d: np.concatenate([d, d[:, :1]], axis=1)),
    "vstack": (lambda k: rnp.vstack([k, k]), lambda d: np.concatenate([d, d])),
    "hstack": (lambda k: rnp.hstack([k[0], k[1]]), lambda d: d.reshape(6, 2)),
    "array": (lambda k: rnp.array([k[0], k[1]]), lambda d: d),
    "asarray": (rnp.asarray, lambda d: d),
    "copy": (rnp.copy, lambda d: d),
    "where": (lambda k: rnp.where(MASK, k, k[0]), lambda d: np.where(MASK[..., None], d, d[0])),
    "select": (lambda k: lax.select(rnp.array(MASK), k, k[::-1]), lambda d: np.where(MASK[..., None], d, d[::-1])),
    "take": (lambda k: rnp.take(k, rnp.array([2, 0]), axis=1), lambda d: d[:, [2, 0]]),
    "flip": (lambda k: rnp.flip(k, 1), lambda d: d[:, ::-1]),
    "roll": (lambda k: rnp.roll(k, 1, 1), lambda d: np.roll(d, 1, 1)),
    "tile": (lambda k: rnp.tile(k, (2, 1)), lambda d: np.tile(d, (2, 1, 1))),
    "at.set": (lambda k: k.at[1].set(k[0]), lambda d: np.stack([d[0], d[0]])),
    "at.get": (lambda k: k.at[:, 2].get(), lambda d: d[:, 2]),
    "scan": (lambda k: lax.scan(lambda c, row: (row, row[::-1]), k[0], k)[1], lambda d: d[:, ::-1]),
    "repeat": (lambda k: rnp.repeat(k, 2, 1), lambda d: np.repeat(d, 2, 1)),
    "repeat, by counts": (
        lambda k: rnp.repeat(k[0], rnp.array([1, 0, 2]), total_repeat_length=3),
        lambda d: d[0][[0, 2, 2]],
    ),
    "split": (lambda k: rnp.split(k, 3, axis=1)[2], lambda d: d[:, 2:]),
    "array_split": (lambda k: rnp.array_split(k, 2, axis=1)[0], lambda d: d[:, :2]),
    "unstack": (lambda k: rnp.unstack(k)[1], lambda d: d[1]),
    "rot90": (rnp.rot90, lambda d: np.rot90(d)),
    "append": (lambda k: rnp.append(k, k[0]), lambda d: d.reshape(6, 2)[[*range(6), 0, 1, 2]]),
    "insert": (lambda k: rnp.insert(k[0], 1, k[1, 0]), lambda d: np.insert(d[0], 1, d[1, 0], 0)),
    "delete": (lambda k: rnp.delete(k, 1, axis=1), lambda d: np.delete(d, 1, 1)),
    "diagonal": (rnp.diagonal, lambda d: d[[0, 1], [0, 1]]),
    "pad": (lambda k: rnp.pad(k, 1, mode="edge"), lambda d: np.pad(d, ((1, 1), (1, 1), (0, 0)), mode="edge")),
    "zeros_like": (rnp.zeros_like, np.zeros_like),
    "ones_like": (rnp.ones_like, np.ones_like),
    "full_like": (lambda k: rnp.full_like(k, k[0, 1]), lambda d: np.broadcast_to(d[0, 1], d.shape)),
    "zeros": (lambda k: rnp.zeros(2, k.dtype), lambda d: np.zeros((2, 2), np.uint32)),
    "take_along_axis": (
        lambda k: rnp.take_along_axis(k, rnp.array([[2], [0]]), 1),
        lambda d: np.stack([d[0, 2:], d[1, :1]]),
    ),
    "choose": (
        lambda k: rnp.choose(rnp.array([0, 1, 0]), [k[0], k[1]]),
        lambda d: np.stack([d[0, 0], d[1, 1], d[0, 2]]),
    ),
    "select of a list": (lambda k: rnp.select([k == k[0]], [k[::-1]], k[0]), lambda d: np.stack([d[1], d[0]])),
    "at.set by an index array": (lambda k: k.at[:, rnp.array([1, 0])].set(k[:, :2]), lambda d: d[:, [1, 0, 2]]),
    "take beyond the end": (
        lambda k: rnp.take(k, rnp.array([5]), axis=1),
        lambda d: np.full((2, 1, 2), 0xFFFFFFFF, np.uint32),
    ),
    "apply_along_axis": (lambda k: rnp.apply_along_axis(lambda row: row[::-1], 1, k), lambda d: d[:, ::-1]),
    "lax.slice": (lambda k: lax.slice(k, (0, 0), (2, 3), (1, 2)), lambda d: d[:, ::2]),
    "lax.slice_in_dim": (lambda k: lax.slice_in_dim(k, 1, 3, axis=1), lambda d: d[:, 1:]),
    "lax.dynamic_slice": (lambda k: lax.dynamic_slice(k, (0, 2), (1, 2)), lambda d: d[:1, 1:]),
    "lax.dynamic_slice_in_dim": (lambda k: lax.dynamic_slice_in_dim(k, 1, 2, axis=1), lambda d: d[:, 1:]),
    "lax.dynamic_index_in_dim": (lambda k: lax.dynamic_index_in_dim(k, 2, 1, keepdims=False), lambda d: d[:, 2]),
    "lax.dynamic_update_slice": (
        lambda k: lax.dynamic_update_slice(k, k[:1, :2], (1, 5)),
        lambda d: np.stack([d[0], [d[1, 0], d[0, 0], d[0, 1]]]),
    ),
    "lax.dynamic_update_index_in_dim": (
        lambda k: lax.dynamic_update_index_in_dim(k, k[0], 1, 0),
        lambda d: np.stack([d[0], d[0]]),
    ),
    "lax.gather": (
        lambda k: lax.gather(k, rnp.array([[1], [0]]), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 3)),
        lambda d: d[::-1],
    ),
    "lax.scatter": (
        lambda k: lax.scatter(k, rnp.array([[1]]), k[:1], lax.ScatterDimensionNumbers((1,), (0,), (0,))),
        lambda d: np.stack([d[0], d[0]]),
    ),
    "lax.select_n": (
        lambda k: lax.select_n(rnp.array(MASK), k, k[::-1]),
        lambda d: np.where(MASK[..., None], d[::-1], d),
    ),
    "lax.concatenate": (lambda k: lax.concatenate([k, k[:1]], 0), lambda d: d[[0, 1, 0]]),
    "lax.broadcast": (lambda k: lax.broadcast(k, (2,)), lambda d: np.stack([d, d])),
    "lax.broadcast_in_dim": (
        lambda k: lax.broadcast_in_dim(k, (2, 4, 3), (0, 2)),
        lambda d: np.repeat(d[:, None], 4, 1),
    ),
    "lax.reshape": (lambda k: lax.reshape(k, (3, 2)), lambda d: d.reshape(3, 2, 2)),
    "lax.transpose": (lambda k: lax.transpose(k, (1, 0)), lambda d: d.transpose(1, 0, 2)),
    "lax.squeeze": (lambda k: lax.squeeze(k[:1], (0,)), lambda d: d[0]),
    "lax.expand_dims": (lambda k: lax.expand_dims(k, (1,)), lambda d: d[:, None]),
    "lax.rev": (lambda k: lax.rev(k, (1,)), lambda d: d[:, ::-1]),
    "lax.pad": (
        lambda k: lax.pad(k, k[0, 0], ((1, 0, 0), (0, 1, 1))),
        lambda d: np.stack([[d[0, 0]] * 6, *([row[0], d[0, 0], row[1], d[0, 0], row[2], d[0, 0]] for row in d)]),
    ),
    "lax.split": (lambda k: lax.split(k, (1, 2), 1)[1], lambda d: d[:, 1:]),
    "lax.full_like": (lambda k: lax.full_like(k, 0), np.zeros_like),
    "permutation": (
        lambda k: random.permutation(random.key(1), k, axis=1),
        lambda d: d[:, np.asarray(random.permutation(random.key(1), 3))],
    ),
    "choice": (
        lambda k: random.choice(random.key(1), k[0], (4,)),
        lambda d: d[0][np.asarray(random.choice(random.key(1), 3, (4,)))],
    ),
    "choice without replacement": (
        lambda k: random.choice(random.key(1), k[0], (2,), replace=False),
        lambda d: d[0][np.asarray(random.choice(random.key(1), 3, (2,), replace=False))],
    ),
    "cond": (lambda k: lax.cond(True, lambda k: k[1], lambda k: k[0], k), lambda d: d[1]),
    "vmap": (lambda k: rune.vmap(lambda row: row[::-1])(k), lambda d: d[:, ::-1]),
    "vmap along another axis": (lambda k: rune.vmap(lambda column: column[0], in_axes=1)(k), lambda d: d[0]),
}


@pytest.mark.parametrize("name", MOVED)
@pytest.mark.parametrize("around", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_keys_are_moved_as_their_data(name: str, around: Any):
    move, expected = MOVED[name]

    result = around(move)(KEYS)

    assert result.dtype == KEYS.dtype
    same(np.ascontiguousarray(expected(DATA)), np.asarray(random.key_data(result)))


@pytest.mark.parametrize("around", [lambda f: f, rune.jit, rune.vmap], ids=["eager", "jit", "vmap"])
def test_keys_are_arrays_to_isinstance(around: Any):
    answers: list[bool] = []

    around(lambda k: (answers.append(isinstance(k, rune.Array)), k)[1])(KEYS)

    assert answers == [True]


def test_key_arrays_have_a_shape_and_a_size():
    assert (rnp.shape(KEYS), rnp.ndim(KEYS), KEYS.size, len(KEYS)) == ((2, 3), 2, 6, 2)
    assert (KEYS.dtype.name, KEYS.dtype.itemsize, KEYS.itemsize, KEYS.nbytes) == ("key<fry>", 8, 8, 48)
    assert (KEYS.device.name, KEYS.devices(), KEYS.is_deleted()) == ("cpu:0", {KEYS.device}, False)


def test_keys_are_compared_one_by_one():
    row = KEYS[0]

    assert np.asarray(row == row[1]).tolist() == [False, True, False]
    assert np.asarray(row != row[1]).tolist() == [True, False, True]


def test_a_key_is_one_leaf_of_a_tree():
    leaves: list[Any] = []
    keys = {"a": KEYS, "b": [KEYS[0]]}

    rune.tree.map(leaves.append, keys)

    assert [k.shape for k in leaves] == [(2, 3), (3,)]
    assert leaves[0] is KEYS
    assert rune.tree.structure(KEYS) == rune.tree.structure(0)
    paths = [rune.tree.keystr(p) for p, _ in rune.tree.leaves_with_path(keys)]
    assert paths == ["['a']", "['b'][0]"]


def test_the_dtype_of_keys_has_its_own_kind():
    kinds = (rune.dtypes.prng_key, rune.dtypes.extended, np.number)

    assert [rnp.issubdtype(KEYS.dtype, kind) for kind in kinds] == [True, True, False]
    assert not rnp.issubdtype("uint32", rune.dtypes.prng_key)
    assert rune.dtypes.issubdtype(rune.dtypes.prng_key, rune.dtypes.extended)
    assert repr(KEYS.dtype) == str(rnp.result_type(KEYS)) == "key<fry>"


def test_copies_and_pickles_of_keys_are_these_keys():
    copies = [copy.copy(KEYS), copy.deepcopy(KEYS), pickle.loads(pickle.dumps(KEYS))]

    for keys in [*copies, rune.device_put(KEYS), rune.device_get(KEYS)]:
        assert keys.dtype == KEYS.dtype
        same(DATA, np.asarray(random.key_data(keys)))


# --- what is refused ----------------------------------------------------------------------------

PHILOX = random.split(random.key(1, impl="philox4x32"), 3)
REFUSED: dict[str, Callable[[Any], Any]] = {
    "where beside a number": lambda k: rnp.where(True, k, 0),
    "stack beside numbers": lambda k: rnp.stack([k[0], rnp.ones(3, "uint32")]),
    "another generator": lambda k: rnp.concatenate([k[0], PHILOX]),
    "another generator, lax": lambda k: lax.concatenate([k[0], PHILOX], 0),
    "equality with another generator": lambda k: k[0] == PHILOX,
    "equality with a number": lambda k: k == 0,
    "lax.select": lambda k: lax.select(True, k[0, 0], 1),
    "at.set of a number": lambda k: k.at[0].set(0),
    "at.add": lambda k: k.at[0].add(k[0]),
    "at.max": lambda k: k.at[rnp.array([0])].max(k[:1]),
    "add": lambda k: k + 1,
    "add, reflected": lambda k: 1 + k,
    "add to itself": lambda k: k + k,
    "neg": lambda k: -k,
    "abs": abs,
    "invert": lambda k: ~k,
    "xor": lambda k: k ^ k,
    "less": lambda k: k < k,
    "matmul": lambda k: k @ k.T,
    "power": lambda k: k**2,
    "divide": lambda k: k / 2,
    "shift": lambda k: k << 1,
    "sin": rnp.sin,
    "maximum": lambda k: rnp.maximum(k, k),
    "sum": rnp.sum,
    "mean": rnp.mean,
    "cumsum": rnp.cumsum,
    "max": rnp.max,
    "argmax": rnp.argmax,
    "any": rnp.any,
    "logical_not": rnp.logical_not,
    "sort": rnp.sort,
    "argsort": rnp.argsort,
    "lax.sort": lax.sort,
    "unique": lambda k: rnp.unique(k, size=2),
    "nonzero": lambda k: rnp.nonzero(k, size=1),
    "searchsorted": lambda k: rnp.searchsorted(k[0], k[0, 0]),
    "clip": lambda k: rnp.clip(k, 0, 1),
    "real": rnp.real,
    "imag": rnp.imag,
    "conj": rnp.conj,
    "round": rnp.round,
    "asarray": lambda k: rnp.asarray(k, "uint32"),
    "astype": lambda k: k.astype("uint32"),
    "view": lambda k: k.view("uint32"),
    "numbers as keys": lambda k: rnp.zeros(2, "uint32").astype(k.dtype),
    "bitcast": lambda k: lax.bitcast_convert_type(k, "uint32"),
    "iota": lambda k: lax.iota(k.dtype, 3),
    "conversion": lambda k: lax.convert_element_type(k, "uint32"),
    "dot": lambda k: lax.dot(k, k.T),
    "index": lambda k: rnp.arange(3)[k],
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("around", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_keys_are_not_numbers(name: str, around: Any):
    with pytest.raises(DtypeError, match=r"key<fry>"):
        around(REFUSED[name])(KEYS)


@pytest.mark.parametrize(
    "convert", [bool, int, float, np.asarray, np.array, lambda k: k.item(), lambda k: k.__buffer__(0)]
)
def test_a_key_cannot_become_a_python_number(convert: Any):
    with pytest.raises(DtypeError, match=r"key<fry>\[\] as numbers\nhint: .*key_data"):
        convert(KEYS[0, 0])
