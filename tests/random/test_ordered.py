"""Draws in the order of counters that JAX had before its keys became partitionable.

First the words beside Python's integers, and draws beside the answers of jax 0.10.2; then
transformations, and what the setting leaves as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops, random
from rune.backends import device_named
from rune.errors import KeyReuseError, ShapeError
from tests.random import calls, plain
from tests.random.vectors import answers_of_halves
from tests.support.close import same

DEVICES = [d.name for d in rune.devices() if d.target.backend != "null"]


@pytest.fixture(autouse=True)
def _in_halves() -> Iterator[None]:
    with rune.configure(threefry_partitionable=False):
        yield


def test_words_are_those_of_the_cipher_at_the_halves_of_one_range():
    key = random.key(7)
    words = plain.key_of_words(np.array(0, np.uint32), np.array(7, np.uint32), impl="threefry2x32")

    for count in (*range(131), 257, 4099):
        same(plain.random_words(words, count=count), np.asarray(ops.random_words(key, count=count)))


@pytest.mark.parametrize("name", [*calls.HALVES, *calls.HALVES_64])
def test_draws_are_those_of_jax(name: str):
    call = {**calls.HALVES, **calls.HALVES_64}[name]

    same(answers_of_halves()[name], np.asarray(call(random)))


@pytest.mark.parametrize("name", ["bits 131 u8", "bits 130", "split 3", "bits 131 u64", "uniform"])
@pytest.mark.parametrize("device", DEVICES)
def test_draws_of_every_executor_are_those_of_jax(device: str, name: str):
    if "u64" in name and dtypes.u64 not in device_named(device).target.dtypes:
        pytest.skip("no 64-bit integers")
    call = {**calls.HALVES, **calls.HALVES_64}[name]

    with rune.device(device):
        same(answers_of_halves()[name], np.asarray(rune.jit(lambda: call(random))()))


@pytest.mark.parametrize("width", ["uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("count", [0, 1, 5, 8])
def test_a_batch_of_keys_draws_what_its_keys_draw_one_by_one(count: int, width: str):
    keys = random.split(random.key(1), 3)
    expected = np.stack([np.asarray(random.bits(k, (count,), width)) for k in keys])

    same(expected, np.asarray(rune.vmap(lambda k: random.bits(k, (count,), width))(keys)))


def test_a_batch_of_keys_splits_into_what_its_keys_split_into():
    keys = random.split(random.key(1), 3)
    expected = np.stack([np.asarray(random.key_data(random.split(k, (2, 3)))) for k in keys])

    same(expected, np.asarray(random.key_data(rune.vmap(lambda k: random.split(k, (2, 3)))(keys))))


def test_one_program_draws_for_a_symbolic_count():
    key = random.key(3)
    draw = rune.jit(lambda x: random.bits(key, x.shape), dims={"n": (0, 1000)}, in_dims=("n",))

    for count in (0, 1, 2, 7, 130):
        same(np.asarray(random.bits(key, (count,))), np.asarray(draw(rnp.zeros(count))))


def test_a_jitted_function_is_traced_anew_when_the_order_changes():
    draw = rune.jit(lambda key: random.bits(key, (3,)))
    halves = np.asarray(draw(random.key(7)))

    with rune.configure(threefry_partitionable=True):
        positions = np.asarray(draw(random.key(7)))

    assert not np.array_equal(halves, positions)
    same(halves, np.asarray(draw(random.key(7))))


def test_philox_and_fold_in_have_one_order():
    key, other = random.key(7), random.key(7, impl="philox4x32")
    draws = [random.key_data(random.fold_in(key, 3)), random.bits(other, (5,)), random.key_data(random.split(other, 3))]

    with rune.configure(threefry_partitionable=True):
        same(np.asarray(random.key_data(random.fold_in(key, 3))), np.asarray(draws[0]))
        same(np.asarray(random.bits(other, (5,))), np.asarray(draws[1]))
        same(np.asarray(random.key_data(random.split(other, 3))), np.asarray(draws[2]))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_a_key_that_is_used_twice_is_noticed(compiled: bool):
    draw = lambda key: (random.bits(key, (3,)), random.split(key))  # noqa: E731

    with rune.configure(check_keys=True), pytest.raises(KeyReuseError, match="cannot use a key twice"):
        (rune.jit(draw) if compiled else draw)(random.key(0))


def test_one_draw_has_less_than_2_to_the_32_words():
    with pytest.raises(ShapeError, match=r"cannot number 4294967296 words \(4294967295 at most\)"):
        rune.eval_shape(lambda key: random.bits(key, (2**32,)), random.key(0))
