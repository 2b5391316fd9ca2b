"""Requested layouts of results, and how far they propagate backwards to the operations before."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.core.higher import subprograms
from rune.core.program import Program
from rune.errors import ShapeError
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.localize import localized
from tests.sharding.eight_devices.traffic import partitioned_traffic


def mesh() -> Any:
    return make_mesh((4, 2), ("a", "b"))


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


def local(function: Callable[..., Any], specs: tuple[P, ...], outs: tuple[P, ...], *args: Any) -> Program:
    """The program of a device."""
    return localized(rune.make_program(function)(*args), Region(mesh(), mesh().axis_names), specs, outs)[0]


def largest(program: Program) -> int:
    """The elements of the largest result of an operation."""
    sizes = [math.prod(map(int, v.type.shape)) for e in program.equations for v in e.results]
    return max([*sizes, *(largest(p) for e in program.equations for p in subprograms(e))], default=0)


MAKERS: dict[str, Callable[..., Any]] = {
    "zeros": lambda: rnp.zeros((8, 6)),
    "a broadcast": lambda: rnp.broadcast_to(rnp.arange(6.0), (8, 6)),
    "a mask": lambda: rnp.arange(6.0) + rnp.ones((8, 1)) > 3,
    "turned positions": lambda: (rnp.zeros((6, 8)) + rnp.arange(6.0)[:, None]).T,
    "heads": lambda: rnp.ones((4, 2, 6)).reshape(8, 6) * 2,
    "a sum": lambda: rnp.ones((8, 3, 6)).sum(axis=1),
}


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_each_device_computes_its_shard_of_a_sharded_result(name: str):
    make = MAKERS[name]

    assert largest(local(make, (), (P("a"),))) <= make().size * (3 if name == "a sum" else 1) // 4
    result = rune.jit(make, out_shardings=NamedSharding(mesh(), P("a")))()
    np.testing.assert_array_equal(result, make())


def test_a_product_of_what_all_have_is_computed_in_parts():
    def product(x: Any, w: Any) -> Any:
        return rnp.tanh(x @ w) * 2

    x, w = numbers(8, 10), numbers(10, 6)
    program = local(product, (P(), P()), (P("a", "b"),), x, w)

    assert largest(program) == max(10 * 3, 2 * 10)  # the part of a factor, not all of the product
    out = rune.jit(product, out_shardings=NamedSharding(mesh(), P("a", "b")))(x, w)
    np.testing.assert_allclose(out, np.tanh(x @ w) * 2, rtol=1e-5, atol=1e-6)


def test_a_constraint_reaches_back_as_a_wanted_result_does():
    rows = NamedSharding(mesh(), P("a"))
    program = local(lambda x: lax.with_sharding_constraint(rnp.outer(x, x), rows).sum(), (P(),), (P(),), numbers(8))

    assert largest(program) == 8 * 8 // 4


def test_a_constraint_that_the_mesh_does_not_divide_leaves_the_axis_whole_in_compiled_code():
    sharding, x = NamedSharding(make_mesh((4, 2), ("a", "b")), P(("b", "a"), None)), np.arange(18.0, dtype="f")
    x = x.reshape(6, 3)
    result = rune.jit(lambda x: rune.lax.with_sharding_constraint(2 * x, sharding))(x)

    assert result.sharding.spec == P("b")
    np.testing.assert_array_equal(result, 2 * x)
    with pytest.raises(ShapeError, match="cannot cut axis 0"):
        rune.lax.with_sharding_constraint(rune.numpy.asarray(x), sharding)
    with pytest.raises(ShapeError, match="cannot cut axis 0"):
        rune.jit(lambda x: x, out_shardings=sharding)(x)


def test_a_value_also_needed_whole_is_computed_whole():
    def both(x: Any) -> tuple[Any, Any]:
        y = rnp.exp(x)
        return y, y * 2

    x = numbers(8, 6)
    layouts = (NamedSharding(mesh(), P()), NamedSharding(mesh(), P("a")))
    copies, rows = rune.jit(both, out_shardings=layouts)(x)
    np.testing.assert_allclose(copies, np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(rows, np.exp(x) * 2, rtol=1e-6)


def test_a_layout_reaches_back_through_thousands_of_operations():
    def long(x: Any) -> Any:
        for _ in range(4000):
            x = x + 1.0
        return x

    assert largest(local(long, (P(),), (P("a"),), numbers(8, 2))) == 4


def test_a_gathered_value_is_not_gathered_again():
    def readers(x: Any) -> tuple[Any, Any, Any]:
        return rnp.cumsum(x, 0), rnp.cumsum(x, 0) * 2, x

    # The devices of `a` do not divide the columns, and sums of f16 are not sent in parts: they need
    # all of x.
    halves = numbers(8, 6).astype(np.float16)
    program = local(readers, (P("a"),), (P(), P(), P(None, "b")), halves)
    assert [e.primitive.name for e in program.equations].count("all_gather") == 1


def test_of_a_gathered_value_the_reversed_one_is_not_gathered():
    program = local(lambda x: (rnp.flip(x, 0), x), (P("a"),), (P(), P(None, "a")), numbers(8, 8))

    names = [e.primitive.name for e in program.equations]
    assert names.count("all_gather") == 1
    assert "ppermute" not in names


# --- sums of which each device computes a part ----------------------------------------------------


def gradient_step(w: Any, x: Any) -> Any:
    return w - 0.1 * rune.grad(lambda w: (rnp.tanh(x @ w) ** 2).sum())(w)


def step_in_numpy(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = np.tanh(x @ w)
    return w - 0.1 * x.T @ (2 * y * (1 - y**2))


W, X = numbers(8, 6), numbers(16, 8) / 4


@pytest.mark.parametrize("spec", [P("a"), P(("a", "b")), P("b", "a")], ids=repr)
def test_a_gradient_of_a_weight_that_is_cut_is_scattered_along_all_axes_that_cut_it(spec: P):
    w, x = W.repeat(2, axis=1)[:, :8], X
    operands = rune.device_put(w, NamedSharding(mesh(), spec)), rune.device_put(x, NamedSharding(mesh(), P(("a", "b"))))
    messages = partitioned_traffic(gradient_step, mesh(), [spec, P(("a", "b"))], [spec], w, x)

    names = spec.all_names()
    assert messages["psum_scatter"][0] == len(names)
    assert messages.get("psum") == (None if len(names) == 2 else (1, w.nbytes // 4))  # over b, of the part
    result = rune.jit(gradient_step)(*operands)
    assert result.sharding.spec == spec
    np.testing.assert_allclose(result, step_in_numpy(w, x), rtol=1e-4, atol=1e-5)


def test_a_step_with_cut_weights_gathers_them_and_scatters_their_gradient_once():
    messages = partitioned_traffic(gradient_step, mesh(), [P("a"), P("a")], [P("a")], W, X)

    assert messages == {"all_gather": (1, W.nbytes // 4), "psum_scatter": (1, W.nbytes)}


def test_every_step_of_a_loop_gathers_weights_and_scatters_their_gradient_once():
    def train(w: Any, x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, w: gradient_step(w, x), w)

    operands = rune.device_put((W, X), NamedSharding(mesh(), P("a")))
    messages = partitioned_traffic(train, mesh(), [P("a"), P("a")], [P("a")], W, X)
    expected = step_in_numpy(step_in_numpy(step_in_numpy(W, X), X), X)

    assert messages == {"all_gather": (1, W.nbytes // 4), "psum_scatter": (1, W.nbytes)}
    np.testing.assert_allclose(rune.jit(train)(*operands), expected, rtol=1e-4, atol=1e-5)


def test_a_sum_that_is_read_whole_too_is_one_sum():
    def clipped(w: Any, x: Any) -> Any:
        g = rune.grad(lambda w: (rnp.tanh(x @ w) ** 2).sum())(w)
        return w - g / (1 + (g**2).sum())

    messages = partitioned_traffic(clipped, mesh(), [P("a"), P("a")], [P("a")], W, X)
    assert messages == {"all_gather": (1, W.nbytes // 4), "psum": (1, W.nbytes)}
