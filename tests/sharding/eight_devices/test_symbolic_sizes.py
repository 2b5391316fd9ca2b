"""Sizes that change from call to call on a mesh.

There is one trace if a size is declared as a multiple of the number of devices that split it,
otherwise one trace per size, and never a wrong result.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.errors import DimensionError, ShapeError
from rune.sharding import NamedSharding, P, make_mesh

MESH = make_mesh((4, 2), ("data", "model"))
ROWS = NamedSharding(MESH, P("data"))
SIZES = (8, 16, 24, 40)


def batch(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, 6)).astype("f")


def centred(x: Any) -> Any:
    return rnp.tanh(x - x.mean(0)) * 2


def loss(x: Any) -> Any:
    return (centred(x) ** 2).mean()


def by_shard_map(x: Any) -> Any:
    body = lambda v: rnp.tanh(v - lax.pmean(v.mean(0), "data")) * 2  # noqa: E731
    return rune.shard_map(body, mesh=MESH, in_specs=P("data"), out_specs=P("data"))(x)


def agree(function: Callable[..., Any], x: np.ndarray, expected: Any) -> Any:
    """The result for rows that are cut, after it was compared with that of one device."""
    result = function(rune.device_put(x, ROWS))
    np.testing.assert_allclose(result, expected(x), rtol=2e-5, atol=1e-6)
    return result


def exact(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function in NumPy's numbers: for one device, compiled for each size."""
    return lambda x: np.asarray(rune.jit(f, device="reference")(x))


@pytest.mark.parametrize("function", [centred, rune.grad(loss), by_shard_map], ids=["jit", "grad", "shard_map"])
def test_a_size_declared_as_a_multiple_is_traced_once_for_all_batches(function: Callable[..., Any]):
    alone = centred if function is by_shard_map else function
    f = rune.jit(function, dims={"n": (1, 100)}, in_dims="4*n,_")

    results = [agree(f, batch(rows), exact(alone)) for rows in SIZES]

    assert f.cache_size() == 1
    assert {r.sharding.spec for r in results} == {P("data")}


def test_in_shardings_and_a_multiple_go_together():
    f = rune.jit(centred, dims={"n": (1, 100)}, in_dims="4*n,_", in_shardings=ROWS, out_shardings=ROWS)

    for rows in SIZES:
        np.testing.assert_allclose(f(batch(rows)), exact(centred)(batch(rows)), rtol=2e-5, atol=1e-6)
    assert f.cache_size() == 1


def test_a_size_along_which_nothing_is_cut_may_be_any():
    columns = NamedSharding(MESH, P(None, "model"))
    f = rune.jit(centred, dims={"n": (1, 100)}, in_shardings=columns)

    for rows in (1, 5, 7):
        np.testing.assert_allclose(f(batch(rows)), exact(centred)(batch(rows)), rtol=2e-5, atol=1e-6)
    assert f.cache_size() == 1


@pytest.mark.parametrize("function", [centred, by_shard_map], ids=["sharded array", "shard_map"])
def test_a_size_that_need_not_be_a_multiple_is_refused_with_what_to_declare(function: Callable[..., Any]):
    f = rune.jit(function, dims={"n": (1, 100)})

    with pytest.raises(ShapeError, match=r"cannot cut axis 0 of .*\[n, ?6\].* into 4 equal parts") as error:
        f(rune.device_put(batch(8), ROWS))
    assert 'declare a multiple of 4: in_dims="4*n"' in str(error.value)


def test_a_size_that_is_no_multiple_is_refused_by_its_value():
    f = rune.jit(centred, dims={"n": (1, 100)}, in_dims="4*n,_", in_shardings=ROWS)

    with pytest.raises(DimensionError, match="10"):
        f(batch(10))


@pytest.mark.parametrize("function", [centred, by_shard_map], ids=["sharded array", "shard_map"])
def test_without_a_declaration_each_size_is_traced(function: Callable[..., Any]):
    f = rune.jit(function)

    for rows in SIZES:
        agree(f, batch(rows), exact(centred))
    assert f.cache_size() == len(SIZES)


@pytest.mark.parametrize("function", [centred, by_shard_map], ids=["sharded array", "shard_map"])
def test_automatic_sizes_fall_back_to_a_trace_for_each_and_say_so_once(function: Callable[..., Any]):
    with rune.configure(symbolic="auto"), warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        f = rune.jit(function)
        for rows in SIZES:
            agree(f, batch(rows), exact(centred))

    messages = [str(w.message) for w in records if "symbolic" in str(w.message)]
    assert len(messages) == 1
    assert "cannot make axis 0 of argument[0]" in messages[0]


def test_a_donated_array_of_a_declared_size_lends_its_blocks():
    f = rune.jit(lambda x: x + 1, donate_argnums=0, dims={"n": (1, 100)}, in_dims="4*n,_")
    for rows in SIZES:
        x = f(rune.device_put(batch(rows), ROWS))
        blocks = [b.ctypes.data for b in x.buffer.buffers]
        x = f(x)

        assert [b.ctypes.data for b in x.buffer.buffers] == blocks
        np.testing.assert_allclose(x, batch(rows) + 2, rtol=1e-6)


def test_explain_states_bytes_in_terms_of_symbolic_sizes():
    f = rune.jit(lambda x: rnp.sort(x, axis=0), dims={"n": (1, 100)}, in_dims="4*n,_")
    explanation = rune.explain(f)(rune.device_put(batch(8), ROWS))

    assert "all_gather of f32[6,n] over 'data': 72*n B" in explanation["exchanges"]
    assert explanation["exchanges"].endswith("each device sends 72*n B in 1 collectives")


def test_slicing_another_axis_keeps_a_declared_size():
    halves = lambda x: rnp.concatenate([-x[:, 3:], x[:, :3]], axis=1)  # noqa: E731
    f = rune.jit(halves, dims={"n": (1, 100)}, in_dims="4*n,_")

    for rows in SIZES:
        agree(f, batch(rows), exact(halves))
