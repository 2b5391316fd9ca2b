"""A transformation returns arrays of rune, in memory that the user cannot write to.

A function returns the user's NumPy array unchanged, or a view of it, under every transformation
that passes values through. Then the user writes to the array: no result and no linear map may
change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax, tree
from tests.support.close import same

Function = Callable[[Any], Any]

HANDED_THROUGH: dict[str, Function] = {
    "itself": lambda x: x,
    "in a tree": lambda x: {"a": [x, x], "b": None},
    "transposed": lambda x: rnp.swapaxes(x, 0, -1),
    "a slice": lambda x: x[:1],
    "reshaped": lambda x: rnp.reshape(x, (-1,)),
    "broadcast": lambda x: rnp.broadcast_to(x, (2, *x.shape)),
    "without a gradient": lax.stop_gradient,
    "behind a barrier": lax.optimization_barrier,
    "named": lambda x: rune.checkpoint_name(x, "x"),
    "put": lambda x: rune.device_put(x),
    "real": rnp.real,
}
each_way = pytest.mark.parametrize("way", HANDED_THROUGH.values(), ids=HANDED_THROUGH)


def _ones_like(values: Any) -> Any:
    return tree.map(lambda v: rnp.ones(v.shape, v.dtype), values)


def _vjp(f: Function, x: Any) -> Any:
    out, pull = rune.vjp(f, x)
    return out, pull(_ones_like(out)), rune.vjp(f, rnp.ones(x.shape))[1](tree.map(np.copy, out))


def _custom_jvp(f: Function, x: Any) -> Any:
    operation = rune.custom_jvp(f)
    operation.defjvp(lambda primals, tangents: (f(primals[0]), f(tangents[0])))
    return operation(x), rune.jvp(operation, (x,), (x,))


def _custom_vjp(f: Function, x: Any) -> Any:
    operation = rune.custom_vjp(f)
    operation.defvjp(lambda x: (f(x), x), lambda residuals, _: (residuals,))
    out, pull = rune.vjp(operation, x)
    return operation(x), out, pull(_ones_like(out))


def _linearize(f: Function, x: Any) -> Any:
    out, linear = rune.linearize(f, x)
    return out, linear(x)


def _summed(f: Function) -> Function:
    return lambda x: (sum(rnp.sum(v) for v in tree.leaves(x)), f(x))


TRANSFORMATIONS: dict[str, Callable[[Function, Any], Any]] = {
    "jit": lambda f, x: rune.jit(f)(x),
    "jit of a closure": lambda f, x: rune.jit(lambda: f(rnp.asarray(x)))(),
    "vmap": lambda f, x: rune.vmap(f)(x),
    "vmap of a constant": lambda f, x: rune.vmap(lambda a, b: f(b), in_axes=(0, None), out_axes=None)(rnp.ones(2), x),
    "vmap along another axis": lambda f, x: rune.vmap(f, in_axes=1, out_axes=1)(x),
    "jvp": lambda f, x: rune.jvp(f, (x,), (x,)),
    "vjp": _vjp,
    "linearize": _linearize,
    "checkpoint": lambda f, x: rune.checkpoint(f)(x),
    "checkpoint under vmap": lambda f, x: rune.vmap(rune.checkpoint(f))(x),
    "aux of grad": lambda f, x: rune.grad(_summed(f), has_aux=True)(x)[1],
    "aux of another argument": lambda f, x: rune.grad(lambda a, b: (a, f(rune.vmap(lambda v: v)(b))), has_aux=True)(
        1.0, x
    ),
    "aux of jvp": lambda f, x: rune.jvp(_summed(f), (x,), (x,), has_aux=True)[2],
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "jit that moves": lambda f, x: rune.jit(lambda x: rune.device_put(f(x), "cpu"))(x),
    "pmap": lambda f, x: rune.pmap(f)(x),
    "scan": lambda f, x: lax.scan(lambda c, row: (c, f(row)), x, x),
    "map": lambda f, x: lax.map(f, x),
    "while_loop": lambda f, x: f(lax.while_loop(lambda c: False, lambda c: c, x)),
    "fori_loop": lambda f, x: f(lax.fori_loop(0, 0, lambda i, c: c, x)),
    "cond": lambda f, x: lax.cond(True, f, f, x),
    "switch": lambda f, x: lax.switch(1, [f, f], x),
    "associative_scan": lambda f, x: lax.associative_scan(lambda a, b: a + b, f(x[:1])),
    "pure_callback": lambda f, x: rune.pure_callback(lambda v: x, rune.ShapeDtypeStruct(x.shape, x.dtype), x),
    "io_callback": lambda f, x: rune.io_callback(lambda v: x, rune.ShapeDtypeStruct(x.shape, x.dtype), x),
}
each_transformation = pytest.mark.parametrize("transformation", TRANSFORMATIONS.values(), ids=TRANSFORMATIONS)


@each_transformation
@each_way
def test_a_result_is_an_array_that_the_user_cannot_write_to(
    transformation: Callable[[Function, Any], Any], way: Function
):
    x = np.arange(1, 5, dtype=np.float32).reshape(2, 2)

    results = transformation(way, x)
    before = tree.map(np.copy, results)
    x[:] = np.nan

    for leaf in tree.leaves(results):
        assert type(leaf) is rune.Array or leaf.dtype == rune.float0
    same(before, tree.map(np.asarray, results))


CAPTURING: dict[str, Callable[[Any, Any], Any]] = {
    "of vjp, an argument": lambda x, c: rune.vjp(lambda x: x * x * 2, x)[1],
    "of vjp, a constant": lambda x, c: rune.vjp(lambda x: x * c, x)[1],
    "of vjp, a constant of a scan": lambda x, c: rune.vjp(
        lambda x: lax.scan(lambda s, r: (s * r, r * s), x[0] * c[0], c)[0] * x, x
    )[1],
    "of linearize": lambda x, c: rune.linearize(lambda x: x * x * c, x)[1],
    "of linear_transpose": lambda x, c: rune.linear_transpose(lambda x: x * c, x),
    "of jit": lambda x, c: (f := rune.jit(lambda v: v * c), f(x))[0],
    "of a gradient of jit": lambda x, c: rune.vjp(rune.jit(lambda v: v * v * c), x)[1],
    "of custom_vjp": lambda x, c: rune.vjp(_scaled(c), x)[1],
    "of checkpoint": lambda x, c: rune.vjp(rune.checkpoint(lambda v: rnp.sin(v * v) * c), x)[1],
}


def _scaled(c: Any) -> Any:
    operation = rune.custom_vjp(lambda x: x * c)
    operation.defvjp(lambda x: (x * c, (x, c)), lambda residuals, ct: (ct * residuals[0] * residuals[1],))
    return operation


@pytest.mark.parametrize("make", CAPTURING.values(), ids=CAPTURING)
def test_values_that_a_linear_map_captured_do_not_change(make: Callable[[Any, Any], Any]):
    x, c, one = np.full((2, 2), 3, np.float32), np.full((2, 2), 5, np.float32), rnp.ones((2, 2))
    linear = make(x, c)
    before = tree.map(np.copy, linear(one))

    x[:] = c[:] = np.nan

    same(before, tree.map(np.asarray, linear(one)))


@pytest.mark.parametrize("way", sorted(HANDED_THROUGH.keys() - {"itself", "in a tree", "a slice"}))
def test_64_bits_of_numpy_arrive_with_32(way: str):
    assert HANDED_THROUGH[way](np.arange(4.0).reshape(2, 2)).dtype == np.float32
