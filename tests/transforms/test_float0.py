"""float0, the tangent of an integer, goes through transformations: it has a shape and no bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.errors import AxisError

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


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_loops_and_branches_carry_it(way: Any):
    def f(t: Any) -> Any:
        last, ys = rune.scan(lambda c, x: ((c[0] + x, c[1]), c[1]), (0.0, t), rnp.arange(4.0))
        count = rune.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, t))
        both = rune.fori_loop(0, 2, lambda i, c: (c[0] + i, c[1]), (0, t))
        return last, ys, count, both, rune.cond(True, lambda x: (x, 1.0), lambda x: (x, 2.0), t)

    last, ys, count, both, branch = way(f)(VOID)

    assert (float(last[0]), int(count[0]), int(both[0]), float(branch[1])) == (6.0, 3, 1, 1.0)
    assert all(is_void(pair[1], (3,)) for pair in (last, count, both))
    assert is_void(branch[0], (3,))
    assert is_void(ys, (4, 3))


def test_a_scan_steps_through_its_rows():
    rows = np.zeros((3, 2), rune.float0)

    total, ys = rune.scan(lambda c, x: (c + x[1], x[0]), 0.0, (rows, rnp.arange(3.0)))

    assert float(total) == 3.0
    assert is_void(ys, (3, 2))
    assert int(rune.scan(lambda c, x: (c + 1, None), 0, rows)[0]) == 3
    with pytest.raises(AxisError, match="scan: cannot step"):
        rune.scan(lambda c, x: (c, None), 0, (rows, rnp.arange(2.0)))
    with pytest.raises(AxisError, match="float0 arrays of shapes"):
        rune.scan(lambda c, x: (c, None), 0, (rows, VOID, np.zeros(2, rune.float0)))
