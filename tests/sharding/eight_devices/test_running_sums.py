"""Running sums along a split axis: NumPy's, and devices send only their totals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from tests.sharding.eight_devices.traffic import partitioned_traffic

GRID = make_mesh((4, 2), ("a", "b"))


def numbers(*shape: int) -> np.ndarray:
    return np.sin(np.arange(np.prod(shape), dtype="f") * 1.3).reshape(shape)


def running(x: Any) -> list[Any]:
    return [
        rnp.cumsum(x, 0),
        rnp.cumprod(x + 1, 0),
        lax.cummax(x, axis=0),
        lax.cummin(x, axis=0, reverse=True),
        lax.cumsum(rnp.floor(rnp.nan_to_num(x) * 9).astype("i4"), axis=0, reverse=True),
        rnp.cumsum(x[1:], 0),
        rnp.cumsum(x, 1),
    ]


def running_in_numpy(x: np.ndarray) -> list[np.ndarray]:
    whole_numbers = np.floor(np.nan_to_num(x) * 9).astype("i4")
    return [
        np.cumsum(x, 0),
        np.cumprod(x + 1, 0),
        np.maximum.accumulate(x, 0),
        np.minimum.accumulate(x[::-1], 0)[::-1],
        np.cumsum(whole_numbers[::-1], 0)[::-1],
        np.cumsum(x[1:], 0),
        np.cumsum(x, 1),
    ]


# Blocks of one row, of three and of five.
@pytest.mark.parametrize(("rows", "spec"), [(8, P(("b", "a"))), (12, P("a", "b")), (10, P("b"))], ids=repr)
def test_running_sums_along_a_split_axis_are_those_of_numpy(rows: int, spec: P):
    x = numbers(rows, 4)
    x[rows // 2, 1] = np.nan
    split = rune.device_put(x, NamedSharding(GRID, spec))
    results = rune.jit(running)(split)

    for number, (a, b) in enumerate(zip(results, running_in_numpy(x), strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=str(number))
    assert [r.sharding.is_equivalent_to(split.sharding, 2) for r in results[:5]] == [True] * 5


def test_the_gradient_of_running_sums_is_that_of_one_device():
    x = numbers(24, 3)
    split = rune.device_put(x, NamedSharding(GRID, P(("a", "b"))))
    gradient = rune.grad(lambda x: (rnp.cumsum(x, 0) ** 2).sum() + rnp.cumprod(x + 1, 0).sum())

    np.testing.assert_allclose(rune.jit(gradient)(split), rune.jit(gradient)(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("dtype", "sent"), [("f", 28), ("i4", 28), ("f2", 56)])
def test_a_device_sends_its_total_unless_that_would_be_rounded(dtype: str, sent: int):
    x = np.ones(32, dtype)
    messages = partitioned_traffic(rnp.cumsum, make_mesh((8,), ("x",)), [P("x")], [P("x")], x)

    assert messages == {"all_gather": (1, sent // 7)}
