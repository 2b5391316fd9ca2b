"""Keys pass through every transformation as arrays do, and have no derivative.

A loop, a branch or a batch handles keys as Python does one by one; test_keys.py compares the words
of keys with those of JAX 0.10.2. Then derivatives with keys among the arguments, whose tangents are
float0; types without values, buffers, callbacks; and every executor.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, random
from rune.errors import TransformError
from tests.support.close import near, same

KEY = random.key(7)
KEYS = random.split(KEY, (2, 3))
DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("null", "reference")]
NO_TANGENT = np.zeros((), rune.float0)
each_way = pytest.mark.parametrize("around", [lambda f: f, rune.jit], ids=["eager", "jit"])


def words(keys: Any) -> np.ndarray:
    return np.asarray(random.key_data(keys))


def chain(key: Any, count: int) -> list[Any]:
    """The key, and this many keys from splitting it repeatedly."""
    keys = [key]
    for _ in range(count):
        keys.append(random.split(keys[-1])[0])
    return keys


# --- loops, branches, lanes -------------------------------------------------------------------


@each_way
def test_a_scan_carries_takes_and_gives_keys(around: Any):
    def step(carry: Any, row: Any) -> Any:
        return random.split(carry)[0], (carry, row[::-1])

    last, (carries, rows) = around(lambda ks: lax.scan(step, ks[0, 0], ks))(KEYS)

    first, second, third = chain(KEYS[0, 0], 2)
    same([words(third), words(rnp.stack([first, second]))], [words(last), words(carries)])
    same(words(KEYS)[:, ::-1], words(rows))


@each_way
def test_loops_carry_keys_as_python_does(around: Any):
    def until(key: Any) -> Any:
        return lax.while_loop(lambda s: s[1] < 3, lambda s: (random.split(s[0])[0], s[1] + 1), (key, 0))[0]

    def counted(key: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, k: random.split(k)[0], key)

    for loop in (until, counted):
        same(words(chain(KEY, 3)[-1]), words(around(loop)(KEY)))


@each_way
def test_branches_take_and_give_keys(around: Any):
    def choose(number: Any, keys: Any) -> Any:
        return lax.switch(number, [lambda k: k[0], lambda k: k[1, ::-1]], keys)

    same(words(KEYS[0]), words(around(choose)(0, KEYS)))
    same(words(KEYS[1, ::-1]), words(around(choose)(1, KEYS)))


@each_way
def test_lanes_may_part_their_ways_with_keys(around: Any):
    def run(key: Any, count: Any) -> Any:
        def step(state: Any) -> Any:
            return random.split(state[0])[0], state[1] + 1

        split, _ = lax.while_loop(lambda s: s[1] < count, step, (key, 0))
        return lax.cond(count > 1, lambda k: k, lambda k: random.fold_in(k, 5), split)

    lanes = around(rune.vmap(run))(KEYS[0], rnp.array([0, 1, 3]))

    ends = [chain(key, n)[-1] for key, n in zip(KEYS[0], (0, 1, 3))]
    expected = [random.fold_in(ends[0], 5), random.fold_in(ends[1], 5), ends[2]]
    same(np.stack([words(key) for key in expected]), words(lanes))


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_lanes_of_slices_and_updates_are_those_of_a_loop(axis: int):
    def move(number: Any, row: Any) -> Any:
        return lax.dynamic_slice(row.at[number].set(row[-1]), (number,), (2,))

    rows = rnp.moveaxis(KEYS, axis, 0)
    numbers = rnp.arange(rows.shape[0])

    lanes = rune.vmap(move, in_axes=(0, axis))(numbers, KEYS)

    same(np.stack([words(move(n, row)) for n, row in zip(numbers, rows)]), words(lanes))


def test_a_number_for_each_lane_is_folded_into_one_key():
    lanes = rune.vmap(random.fold_in, in_axes=(None, 0))(KEY, rnp.arange(3))

    same(np.stack([words(random.fold_in(KEY, n)) for n in range(3)]), words(lanes))


def test_lanes_exchange_keys():
    lanes = rune.vmap(lambda k: lax.ppermute(k, "i", [(0, 1), (1, 2), (2, 0)]), axis_name="i")(KEYS[0])

    same(words(KEYS[0])[[2, 0, 1]], words(lanes))


# --- derivatives ------------------------------------------------------------------------------


def _noise(x: Any, key: Any) -> Any:
    return rnp.sin(x * random.normal(key))


def _slope(x: float, key: Any) -> float:
    noise = float(random.normal(key))
    return float(np.cos(x * noise) * noise)


def _ruled_forward() -> Any:
    operation = rune.custom_jvp(_noise)
    operation.defjvp(lambda p, t: (_noise(*p), t[0] * rnp.cos(p[0] * random.normal(p[1])) * random.normal(p[1])))
    return operation


def _ruled_backward() -> Any:
    operation = rune.custom_vjp(_noise)

    def backward(residuals: Any, ct: Any) -> Any:
        x, key = residuals
        return ct * rnp.cos(x * random.normal(key)) * random.normal(key), None

    operation.defvjp(lambda x, key: (_noise(x, key), (x, key)), backward)
    return operation


DIFFERENTIATED = {
    "plain": lambda: _noise,
    "jit": lambda: rune.jit(_noise),
    "checkpoint": lambda: rune.checkpoint(_noise),
    "custom_jvp": _ruled_forward,
    "custom_vjp": _ruled_backward,
    "scan": lambda: lambda x, key: lax.scan(lambda c, k: (_noise(c, k), k), x, key[None])[0],
    "where": lambda: lambda x, key: _noise(x, rnp.where(x > 0, key, KEY)),
}


@pytest.mark.parametrize("name", DIFFERENTIATED)
@each_way
def test_a_gradient_skips_a_key_among_the_arguments(name: str, around: Any):
    gradient = around(rune.grad(DIFFERENTIATED[name]()))(0.7, KEYS[1, 2])

    near(_slope(0.7, KEYS[1, 2]), gradient, relative=1e-5, why="f32")


def test_a_key_has_no_derivative():
    with pytest.raises(TransformError, match=r"argument 1 of type key<fry>\[\]"):
        rune.grad(_noise, argnums=1)(0.7, KEY)


def test_the_gradient_of_keys_is_float0_of_their_shape():
    gradient = rune.grad(lambda p: _noise(p["x"], p["keys"][0, 1]), allow_int=True)({"x": 0.7, "keys": KEYS})

    near(_slope(0.7, KEYS[0, 1]), gradient["x"], relative=1e-5, why="f32")
    assert (gradient["keys"].dtype, gradient["keys"].shape) == (rune.float0, (2, 3))


def test_tangents_and_cotangents_of_keys_are_float0():
    def function(x: Any, key: Any) -> Any:
        return x * 2.0, random.split(key)

    (_, keys), (_, tangent) = rune.jvp(function, (1.0, KEY), (1.0, NO_TANGENT))
    _, pull = rune.vjp(function, 1.0, KEY)
    slope, cotangent = pull((1.0, np.zeros(2, rune.float0)))

    same(words(random.split(KEY)), words(keys))
    assert (tangent.dtype, tangent.shape) == (rune.float0, (2,))
    assert (float(slope), cotangent.dtype, cotangent.shape) == (2.0, rune.float0, ())


# --- types, buffers, callbacks ----------------------------------------------------------------


def test_shapes_are_known_without_keys():
    struct = rune.ShapeDtypeStruct((), KEY.dtype)

    type = rune.eval_shape(lambda key: random.split(key, 3), struct)

    assert (type.shape, type.dtype) == ((3,), KEY.dtype)
    assert repr(type) == "ShapeDtypeStruct(shape=(3,), dtype=key<fry>)"


def test_keys_are_donated():
    keys = random.split(random.key(11), 4)
    expected = words(keys)[::-1]

    reversed_keys = rune.jit(lambda k: k[::-1], donate_argnums=0)(keys)

    same(np.ascontiguousarray(expected), words(reversed_keys))
    assert keys.is_deleted()


def test_keys_that_a_function_closes_over_are_constants_of_its_program():
    program = rune.make_jaxpr(lambda n: (random.fold_in(KEY, n), KEYS[n, n]))(rnp.int32(1))
    results = rune.jit(lambda n: (random.fold_in(KEY, n), KEYS[n, n]))(1)

    assert "0x7: key<fry>[]" in str(program)
    same(words(random.fold_in(KEY, 1)), words(results[0]))
    same(words(KEYS[1, 1]), words(results[1]))


@each_way
def test_callbacks_take_and_give_keys(around: Any):
    def reverse(keys: Any) -> Any:
        return rune.pure_callback(lambda k: k[:, ::-1], rune.ShapeDtypeStruct(keys.shape, keys.dtype), keys)

    same(np.ascontiguousarray(words(KEYS)[:, ::-1]), words(around(reverse)(KEYS)))


@each_way
def test_keys_are_printed_by_their_words(around: Any, capfd: pytest.CaptureFixture[str]):
    around(lambda key: rune.debug.print("{k}", k=key))(KEY)

    assert capfd.readouterr().out == "[0 7]\n"


@pytest.mark.parametrize("device", DEVICES)
def test_every_executor_moves_and_splits_keys(device: str):
    def run(keys: Any, number: Any) -> Any:
        def step(buffer: Any, key: Any) -> Any:
            one, other = random.split(key)
            return buffer.at[0, number].set(one), rnp.where(number > 1, one, other)

        buffer, choices = lax.scan(step, keys, keys[1])
        return buffer, choices, keys == keys[0], random.bits(choices[0], (3,))

    results = rune.jit(run, device=device)(KEYS, 2)

    firsts = rnp.stack([random.split(key)[0] for key in KEYS[1]])
    same(words(KEYS.at[0, 2].set(firsts[2])), words(results[0]))
    same(words(firsts), words(results[1]))
    assert np.asarray(results[2]).tolist() == [[True] * 3, [False] * 3]
    same(np.asarray(random.bits(firsts[0], (3,))), np.asarray(results[3]))
