"""rune.flatten_util: a tree as a vector, and back; results are those of jax 0.10.2."""

from __future__ import annotations

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.flatten_util import ravel_pytree
from tests.support.close import same

TREES = {
    "a number": 1.0,
    "a matrix": np.arange(6.0, dtype="f4").reshape(2, 3),
    "several dtypes": {"a": np.int32(3), "b": [np.ones(2, "f4"), np.ones((1, 2), "f2")], "c": None},
    "complex numbers": (np.complex64(1j), np.float32(2)),
    "no elements": [np.ones((0, 3), "f4"), np.ones(2, "f4")],
    "bools": (np.bool_(True), np.zeros(3, bool)),
    "no leaves": {},
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_restored(name: str):
    vector, back = ravel_pytree(TREES[name])

    assert vector.ndim == 1
    same(rune.tree.map(rnp.asarray, TREES[name]), back(vector))


def test_leaves_stand_side_by_side_in_the_dtype_that_holds_them():
    same(np.array([3, 1, 1, 0.5], "f4"), ravel_pytree([np.int32(3), np.ones(2, "f2"), np.float32(0.5)])[0])


def test_a_tree_without_leaves_is_an_empty_vector_of_float32():
    same(np.zeros(0, "f4"), ravel_pytree(None)[0])


def test_a_tree_of_one_dtype_takes_a_vector_of_any():
    _, back = ravel_pytree((rnp.ones(2), rnp.ones(1)))

    same((np.array([0, 1], "i4"), np.array([2], "i4")), back(rnp.arange(3)))


def test_a_tree_of_several_dtypes_accepts_only_its_own_dtypes():
    _, back = ravel_pytree((rnp.ones(2), 1))

    with pytest.raises(DtypeError, match="float32 required"):
        back(rnp.arange(3))


def test_a_vector_of_another_length_is_refused():
    _, back = ravel_pytree(rnp.ones(2))

    with pytest.raises(ShapeError, match="cannot take"):
        back(rnp.ones(3))


def test_a_leaf_that_is_not_an_array_is_refused():
    with pytest.raises(ArgumentError, match="ravel_pytree"):
        ravel_pytree(["text"])


def test_ways_back_of_like_trees_are_equal():
    first, second, other = (ravel_pytree({"a": rnp.ones(n)})[1] for n in (2, 2, 3))

    assert first == second
    assert hash(first) == hash(second)
    assert first != other


def test_keys_are_elements():
    keys = rune.random.split(rune.random.key(0), 3)

    vector, back = ravel_pytree((keys, keys[0]))

    assert vector.shape == (4,)
    same(keys, back(vector)[0])


def test_it_is_transformed():
    x = {"a": rnp.arange(3.0), "b": rnp.ones((2, 2))}

    def loss(x: dict[str, rune.Array]) -> rune.Array:
        vector, back = ravel_pytree(x)
        return rnp.sum(vector**2) + rnp.sum(back(3 * vector)["a"])

    same({"a": np.array([3, 5, 7], "f4"), "b": np.full((2, 2), 2, "f4")}, rune.jit(rune.grad(loss))(x))
    same(np.ones((4, 3), "f4"), rune.vmap(lambda v: ravel_pytree([v, v])[0][:3])(rnp.ones((4, 2))))
