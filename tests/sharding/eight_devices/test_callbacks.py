"""Callbacks in programs on a mesh: called once for all devices, or once on each in a body."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh

X = np.sin(np.arange(16.0, dtype="f"))


def placed() -> Any:
    return rune.device_put(X, NamedSharding(make_mesh((8,), ("a",)), P("a")))


def test_a_function_with_side_effects_is_called_once_for_all_devices():
    notes: list[float] = []

    def note(v: Any) -> Any:
        notes.append(float(v))
        return np.float32(v * 2)

    def program(x: Any) -> Any:
        total = rune.io_callback(note, rune.ShapeDtypeStruct((), "f32"), x.sum(), ordered=True)
        return x * total

    result = rune.jit(program)(placed())

    assert len(notes) == 1
    np.testing.assert_allclose(result, X * 2 * X.sum(), rtol=1e-5)


def test_a_callback_in_a_loop_is_called_once_per_step_and_in_order():
    notes: list[int] = []

    def step(carry: Any, n: Any) -> Any:
        rune.debug.callback(lambda k: notes.append(int(k)), n, ordered=True)
        return rnp.tanh(carry), carry.sum()

    last, _ = rune.jit(lambda x: lax.scan(step, x, rnp.arange(5)))(placed())

    assert notes == [0, 1, 2, 3, 4]
    assert last.shape == (16,)


def test_a_pure_function_gives_every_device_its_result():
    def program(x: Any) -> Any:
        return rune.pure_callback(lambda v: np.sort(v), rune.ShapeDtypeStruct((16,), "f32"), x) - x

    np.testing.assert_allclose(rune.jit(program)(placed()), np.sort(X) - X, rtol=1e-6)


def test_its_error_is_that_of_the_call():
    def refuse(v: Any) -> Any:
        raise KeyError("no")

    f = rune.jit(lambda x: rune.pure_callback(refuse, rune.ShapeDtypeStruct((), "f32"), x.sum()) * x)

    with pytest.raises(KeyError, match="no"):
        f(placed())


def test_every_device_calls_a_callback_in_a_body():
    places: list[int] = []

    def body(x: Any) -> Any:
        rune.debug.callback(lambda n: places.append(int(n)), lax.axis_index("a"))
        return x

    mesh = make_mesh((8,), ("a",))
    rune.shard_map(body, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(X)

    assert sorted(places) == list(range(8))
