"""Keys: the words of JAX, and arrays of keys under transformations.

First the words against stored vectors; then what seeds, positions and shapes mean; then keys as
trees under vmap, jit and grad; last what is refused.
"""

from __future__ import annotations

import copy
import operator
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import random, tree
from rune.errors import ArgumentError, DtypeError, ShapeError
from tests.random import calls
from tests.random.vectors import answers
from tests.support.close import same

SEEDS = st.integers(-(2**63), 2**64 - 1)
IMPLS = ("threefry2x32", "philox4x32")
each_impl = pytest.mark.parametrize("impl", IMPLS)


def words(key: Any) -> np.ndarray:
    """The words of keys, typed or raw."""
    return np.asarray(random.key_data(key))


@pytest.mark.parametrize("name", [*calls.BITS, *calls.BITS_64])
def test_words_and_bits_are_those_of_jax(name: str):
    call = {**calls.BITS, **calls.BITS_64}[name]

    same(answers()[name], np.asarray(call(random)))


# --- seeds ------------------------------------------------------------------------------------


@given(seed=st.integers(2**32, 2**64 - 1))
def test_all_64_bits_of_a_seed_count(seed: int):
    assert words(random.key(seed)).tolist() == [seed >> 32, seed % 2**32]


@given(seed=st.integers(-(2**31), 2**31 - 1))
def test_an_integer_array_is_the_seed_that_its_number_is(seed: int):
    key = rune.jit(random.key)(np.int32(seed))

    same(words(random.key(seed)), words(key))
    same(words(random.key(seed)), words(random.key(np.int64(seed))))


X64_SEEDS: list[tuple[Any, list[int]]] = [  # of jax 0.10.2 under jax_enable_x64
    (-100, [2**32 - 1, 2**32 - 100]),
    (2**40 + 5, [256, 5]),
    (-(2**63), [2**31, 0]),
    (np.int32(-100), [0, 2**32 - 100]),
    (np.int64(-5), [2**32 - 1, 2**32 - 5]),
    (np.int8(-3), [0, 2**32 - 3]),
    (np.uint32(2**32 - 1), [0, 2**32 - 1]),
]


@pytest.mark.parametrize(("seed", "expected"), X64_SEEDS, ids=repr)
def test_seeds_are_those_of_jax_where_integers_have_64_bits(seed: Any, expected: list[int]):
    with rune.enable_x64():
        assert words(random.key(seed)).tolist() == expected
        assert words(rune.jit(random.key)(seed)).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_a_negative_position_of_an_array_is_its_low_word_as_in_jax(dtype: Any):
    expected = [2313591868, 3981651893]  # jax.random.fold_in(key(0), np.int32(-3)), 0.10.2
    key, array = random.key(0), rnp.asarray(dtype(-3), dtype=dtype)

    assert words(random.fold_in(key, dtype(-3))).tolist() == expected
    assert words(random.fold_in(key, array)).tolist() == expected
    assert words(rune.jit(random.fold_in)(key, array)).tolist() == expected


def test_a_64_bit_array_is_a_seed_of_64_bits():
    seed = rnp.asarray(2**40 + 5, dtype="int64")

    same(words(random.key(2**40 + 5)), words(rune.jit(random.key)(seed)))


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_a_seed_of_more_than_64_bits_is_refused(seed: int):
    with pytest.raises(OverflowError, match="64 bits at most"):
        random.key(seed)


@pytest.mark.parametrize("seed", [1.5, "x", True, np.arange(2), random.key(0)])
def test_a_seed_that_is_not_an_integer_is_refused(seed: Any):
    with pytest.raises(ArgumentError, match=r"cannot use .* as a seed"):
        random.key(seed)


# --- splitting and folding --------------------------------------------------------------------


@each_impl
@given(seed=SEEDS, count=st.integers(1, 20), more=st.integers(0, 20))
def test_the_first_keys_do_not_depend_on_how_many_there_are(impl: str, seed: int, count: int, more):
    key = random.key(seed, impl=impl)

    same(words(random.split(key, count)), words(random.split(key, count + more)[:count]))


@each_impl
@given(seed=SEEDS, position=st.integers(0, 9))
def test_folding_in_a_number_gives_the_key_at_that_position(impl: str, seed: int, position: int):
    key = random.key(seed, impl=impl)

    same(words(random.split(key, 10)[position]), words(random.fold_in(key, position)))


def test_all_64_bits_of_a_folded_number_count():
    key = random.key(0)
    keys = {tuple(words(random.fold_in(key, n)).tolist()) for n in (1, 2**32 + 1, 2**63 + 1)}

    assert len(keys) == 3


@given(data=st.integers(0, 2**31 - 1))
def test_an_array_folds_in_as_its_number_does(data: int):
    key = random.key(1)

    same(words(random.fold_in(key, data)), words(rune.jit(random.fold_in)(key, np.uint32(data))))


def test_keys_of_both_generators_differ():
    first, second = (random.split(random.key(0, impl=impl), 3) for impl in IMPLS)

    assert not (words(first) == words(second)).any()


# --- arrays of keys ---------------------------------------------------------------------------


def test_an_array_of_keys_has_shape_length_and_elements():
    keys = random.split(random.key(0), (4, 3))

    assert (keys.shape, keys.ndim, keys.size, len(keys)) == ((4, 3), 2, 12, 4)
    assert keys[1].shape == (3,)
    assert keys[:, 1:].shape == (4, 2)
    assert [k.shape for k in keys] == [(3,)] * 4
    assert keys.ravel().shape == keys.reshape(12).shape == (12,)
    same(words(keys)[2, 1], words(keys[2, 1]))


def test_keys_are_compared_element_by_element():
    keys = random.split(random.key(0), 3)

    assert np.asarray(keys == keys[1]).tolist() == [False, True, False]
    with pytest.raises(DtypeError, match="key<fry> and key<phx4>"):
        operator.eq(keys, random.key(0, impl="philox4x32"))


def test_the_dtype_names_the_generator():
    keys = [random.key(0, impl=impl) for impl in IMPLS]

    assert [str(k.dtype) for k in keys] == ["key<fry>", "key<phx4>"]
    assert [random.key_impl(k) for k in keys] == list(IMPLS)
    assert random.key_dtype("philox4x32") == keys[1].dtype
    assert random.key(0, dtype=keys[1].dtype).dtype == keys[1].dtype


@each_impl
def test_words_make_the_key_that_they_came_from(impl: str):
    keys = random.split(random.key(5, impl=impl), (2, 3))
    rebuilt_keys = random.wrap_key_data(random.key_data(keys), impl=impl)

    assert np.asarray(rebuilt_keys == keys).all()


def test_a_key_prints_its_words():
    assert repr(random.key(42)) == "Array([ 0, 42], key<fry>[], cpu:0)"
    texts = []
    rune.vmap(lambda k: texts.append(repr(k)) or 0.0)(random.split(random.key(0), (3, 2)))
    assert texts == ["Traced<key<fry>[2]>"]


def test_keys_are_copied_and_pickled():
    keys = random.split(random.key(0), 2)

    for twin in (copy.deepcopy(keys), pickle.loads(pickle.dumps(keys))):
        assert np.asarray(twin == keys).all()


# --- keys in transformations ------------------------------------------------------------------


def test_a_key_array_is_a_single_leaf_with_its_shape():
    keys = random.split(random.key(0), (4, 3))
    stack = tree.map(lambda *k: rnp.stack(k), keys[0], keys[1])

    assert [leaf is keys for leaf in tree.leaves({"a": keys})] == [True]
    assert tree.structure(keys) == tree.structure(0)
    same(words(keys[:2]), words(stack))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vmap_maps_over_any_axis_of_keys(axis: int):
    keys = random.split(random.key(0), (2, 2))

    lanes = rune.vmap(random.key_data, in_axes=axis)(keys)

    same(np.moveaxis(words(keys), axis % 2, 0), np.asarray(lanes))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_vmap_returns_keys_along_any_axis(axis: int):
    keys = random.split(random.key(0), 2)

    batch = rune.vmap(lambda k: random.split(k, 2), out_axes=axis)(keys)

    lanes = np.stack([words(random.split(k, 2)) for k in keys], axis=axis % 2)
    same(lanes, words(batch))


def test_split_under_vmap_equals_the_loop():
    keys = random.split(random.key(3), 5)

    lanes = rune.vmap(lambda k: random.split(k, 2))(keys)

    same(np.stack([words(random.split(k, 2)) for k in keys]), words(lanes))


def test_lanes_of_seeds_make_keys():
    lanes = rune.vmap(random.key)(rnp.arange(3))

    same(np.stack([words(random.key(seed)) for seed in range(3)]), words(lanes))


def test_a_jitted_function_takes_and_returns_keys_and_is_traced_once():
    step = rune.jit(lambda key: random.split(key))
    key = random.key(0)
    for _ in range(3):
        key, _ = step(key)

    assert step.cache_size() == 1
    assert key.dtype == random.key_dtype()


def test_a_key_cannot_be_differentiated():
    def loss(x: Any, key: Any) -> Any:
        return rnp.sum(x * random.uniform(key, (3,)))

    gradient = rune.grad(loss)(rnp.ones(3), random.key(0))

    same(np.asarray(random.uniform(random.key(0), (3,))), np.asarray(gradient))


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("key", [0, None, (3,), np.array([1, 2], np.float32), np.array([1, 2, 3], np.uint32), "key"])
def test_a_value_that_is_not_a_key_is_refused_with_a_hint(key: Any):
    with pytest.raises(ArgumentError, match=r"split: cannot use .* as a key"):
        random.split(key)


def test_functions_of_one_key_refuse_an_array_of_keys():
    keys = random.split(random.key(0), 3)
    for function in (random.split, lambda k: random.fold_in(k, 1), random.uniform, random.normal):
        with pytest.raises(ArgumentError, match="to map over keys"):
            function(keys)


@pytest.mark.parametrize("data", [1.5, np.arange(2), "x"])
def test_only_an_integer_is_folded_in(data: Any):
    with pytest.raises(ArgumentError, match="fold_in: cannot use"):
        random.fold_in(random.key(0), data)


def test_a_negative_number_is_not_folded_in():
    with pytest.raises(OverflowError, match="not negative"):
        random.fold_in(random.key(0), -1)


def test_words_of_another_dtype_or_shape_make_no_key():
    with pytest.raises(DtypeError, match="u32 required"):
        random.wrap_key_data(rnp.zeros(2))
    with pytest.raises(ShapeError, match="last axis of 2"):
        random.wrap_key_data(rnp.zeros(3, dtype="uint32"))


def test_a_key_is_not_read_as_numbers():
    with pytest.raises(DtypeError, match=r"rune\.random\.key_data gives the words"):
        np.asarray(random.split(random.key(0)))
    with pytest.raises(DtypeError, match=r"sin: cannot take key<fry>"):
        rnp.sin(random.key(0))


def test_an_unknown_generator_is_refused_by_name():
    with pytest.raises(ArgumentError, match="one of threefry2x32, philox4x32"):
        random.key(0, impl="rbg")
    with pytest.raises(ArgumentError, match="raw keys count as keys of threefry2x32"):
        random.PRNGKey(0, impl="philox4x32")
