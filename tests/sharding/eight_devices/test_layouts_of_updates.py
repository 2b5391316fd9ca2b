"""`out_sharding` of `x.at[index].get()` and of each update: the layout of the result."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.errors import ShapeError
from rune.sharding import NamedSharding, P, make_mesh, set_mesh

LINE = make_mesh((8,), ("d",))
X = np.sin(np.arange(64, dtype="f") * 1.3).reshape(16, 4) + 2
INDEX = np.array([1, 3, 5, 7, 9, 11, 13, 15])
FACTORS = np.arange(32, dtype="f").reshape(8, 4) / 7 + 1
UPDATES = ("set", "add", "subtract", "multiply", "mul", "min", "max", "divide", "power")


def updated(update: str) -> np.ndarray:
    """X with the rows of INDEX changed, by NumPy."""
    meanings = {"set": lambda x, v: v, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
    out = X.copy()
    out[INDEX] = meanings.get(update, getattr(np, update, None))(out[INDEX], FACTORS)  # type: ignore[misc]
    return out


@pytest.mark.parametrize("spec", [P("d"), P(), P(None, None)], ids=repr)
@pytest.mark.parametrize("update", UPDATES)
def test_an_update_is_laid_out(update: str, spec: P):
    layout, x = NamedSharding(LINE, spec), rune.device_put(X, NamedSharding(LINE, P("d")))

    def f(x: Any) -> Any:
        return getattr(x.at[INDEX], update)(FACTORS, out_sharding=layout)

    for out in (f(x), rune.jit(f)(x)):
        np.testing.assert_allclose(out, updated(update), rtol=1e-6)
        assert out.sharding.is_equivalent_to(layout, 2)


READS = [(INDEX, P("d")), (INDEX, P()), (np.s_[:, 0], P("d")), (np.s_[4:12], P("d")), (0, P()), ((INDEX, 2), P("d"))]


@pytest.mark.parametrize(("index", "spec"), READS, ids=str)
def test_elements_are_laid_out_and_so_is_what_reads_them(index: Any, spec: P):
    x = rune.device_put(X, NamedSharding(LINE, P("d")))
    with set_mesh(LINE):
        read = rune.jit(lambda x: x.at[index].get(out_sharding=spec))
        for out in (x.at[index].get(out_sharding=spec), read(x)):
            np.testing.assert_array_equal(out, X[index])
            assert out.sharding.is_equivalent_to(NamedSharding(LINE, spec), out.ndim)
        gradient = rune.grad(lambda x: (x.at[index].get(out_sharding=spec) ** 2).sum())(x)

    expected = np.zeros_like(X)
    expected[index] = 2 * X[index]
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


def test_modes_and_promises_apply_as_without_a_layout():
    x, layout = rune.device_put(X, NamedSharding(LINE, P("d"))), NamedSharding(LINE, P("d"))
    beyond = INDEX + 2

    filled = x.at[beyond].get(mode="fill", fill_value=-1, out_sharding=layout)
    roots = x.at[INDEX].apply(rnp.sqrt, unique_indices=True, out_sharding=layout)

    np.testing.assert_array_equal(filled, np.concatenate([X[beyond[:-1]], np.full((1, 4), -1, "f")]))
    np.testing.assert_allclose(roots[INDEX], np.sqrt(X[INDEX]), rtol=1e-6)
    assert filled.sharding == roots.sharding == layout


def test_an_axis_that_the_mesh_does_not_divide_is_refused_with_its_size():
    with pytest.raises(ShapeError, match=r"out_sharding: cannot cut axis 0 of f32\[3,4\].* into 8 equal parts"):
        rune.device_put(X, NamedSharding(LINE, P("d"))).at[:3].get(out_sharding=NamedSharding(LINE, P("d")))
