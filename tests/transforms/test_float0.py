"""float0, the tangent of an integer, goes through transformations: it has a shape and no bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError

VOID: Any = np.zeros((3,), rune.float0)


def is_void(value: Any, shape: tuple[int, ...]) -> bool:
    """Whether it is a float0 array of this shape."""
    return type(value) is np.ndarray and value.dtype == rune.float0 and value.shape == shape


def test_a_jitted_function_takes_float0_and_gives_it_back():
    f = rune.jit(lambda x, t: (t, 2 * x, {"t": t}))

    for x in (1.0, 5.0, 7.0):  # the first call, and those that follow it
        void, double, tree = f(x, VOID)
        assert is_void(void, (3,))
        assert is_void(tree["t"], (3,))
        assert double == 2 * x


def test_another_shape_of_float0_is_another_trace():
    f = rune.jit(lambda t: t)

    assert is_void(f(VOID), (3,))
    assert is_void(f(np.zeros((2, 2), rune.float0)), (2, 2))


@pytest.mark.parametrize("transform", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_the_gradient_of_an_integer_is_float0_under_jit_as_well(transform: Any):
    gradient = transform(rune.grad(lambda x, i: x * i, argnums=(0, 1), allow_int=True))(2.0, 3)

    assert gradient[0] == 3.0
    assert is_void(gradient[1], ())


def test_a_pullback_under_jit_gives_float0():
    cts = rune.jit(lambda x: rune.vjp(lambda a, i: a * i, x, rnp.arange(3))[1](rnp.ones(3)))(2.0)

    assert cts[0] == 3.0
    assert is_void(cts[1], (3,))


def test_each_lane_has_its_float0():
    inside: list[Any] = []

    def f(x: Any, t: Any) -> Any:
        inside.append(t)
        return x, t, np.zeros((2,), rune.float0)

    x, t, more = rune.vmap(f)(rnp.ones(3), VOID)

    assert is_void(inside[0], ())
    assert is_void(t, (3,))
    assert is_void(more, (3, 2))
    np.testing.assert_array_equal(x, np.ones(3))


def test_gradients_of_integers_are_batched():
    assert is_void(rune.vmap(rune.grad(lambda i: i * 2.0, allow_int=True))(rnp.arange(4)), (4,))


def test_float0_may_be_whole_for_every_lane_beside_an_object():
    f: Any = rune.vmap(lambda x, name, t: (x, t), in_axes=(0, None, None), out_axes=(0, None))

    assert is_void(f(rnp.ones(2), "name", VOID)[1], (3,))


def test_float0_has_a_shape_and_a_type():
    assert rnp.shape(VOID) == (3,)
    assert rune.eval_shape(lambda x: (x, VOID), 1.0)[1] == rune.ShapeDtypeStruct((3,), rune.float0)


def test_a_loop_refuses_it():
    with pytest.raises(ArgumentError, match="scan: cannot take ndarray as an array"):
        rune.scan(lambda c, x: (c, VOID), 0, rnp.arange(3))
