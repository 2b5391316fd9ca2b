"""Sorts, transforms and factorisations of many rows or matrices, divided among devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh
from tests.ops.library import USES
from tests.ops.use import Use
from tests.sharding.eight_devices.traffic import partitioned_traffic
from tests.support.sampling import IS_WHOLE, one_in

# The host computes eig and schur, and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
LANES = (4, 2)
# One of each primitive, and a fourth of the others: lanes are divided alike whatever is in them.
FIRST = {use.primitive: use for use in reversed(USES)}.values()
TRIED = [*FIRST, *one_in(8, [use for use in USES if use not in FIRST])]


def mesh() -> Any:
    return make_mesh(LANES, ("a", "b"))


def sent(function: Any, spec: P, *args: Any) -> Any:
    outs = len(rune.make_program(function)(*args).outputs)
    return partitioned_traffic(function, mesh(), [spec] * len(args), [spec] * outs, *args)


@pytest.mark.parametrize("use", USES if IS_WHOLE else TRIED, ids=str)
def test_a_library_primitive_of_cut_lanes_means_the_same_and_sends_nothing(use: Use):
    inputs = use.prepare(*use.draw(*LANES, narrow=True))
    x_on_devices = [rune.device_put(x, NamedSharding(mesh(), P("a", "b"))) for x in inputs]
    call = lambda *xs: use.primitive(*xs, **_on_lanes(use))  # noqa: E731

    assert sent(call, P("a", "b"), *inputs) == {}
    results = rune.jit(call)(*x_on_devices)
    outputs = [np.asarray(x) for x in (results if use.primitive.multiple_results else [results])]
    tolerance = use.tolerance(narrow=True)
    for lane in np.ndindex(LANES):
        operands = [np.asarray(x)[lane] for x in inputs]
        observation = use.observe([x[lane] for x in outputs], *operands)
        for value, truth in zip(observation, use.expected(*operands), strict=True):
            np.testing.assert_allclose(value, truth, atol=tolerance, rtol=tolerance)


def _on_lanes(use: Use) -> dict[str, Any]:
    """The parameters where lanes lead the operands."""
    params = dict(use.params)
    if "axes" in params:
        params["axes"] = tuple(axis + len(LANES) for axis in params["axes"])
    return params


@pytest.mark.parametrize("axis", [0, 1])
def test_a_sort_along_an_axis_that_is_not_cut_sends_nothing(axis: int):
    x = np.random.default_rng(0).normal(size=(8, 8)).astype("f")
    spec = P(None, "a") if axis == 0 else P(("a", "b"))

    assert sent(lambda x: rnp.sort(x, axis=axis), spec, x) == {}


def test_a_transform_along_the_first_axis_of_split_columns_sends_nothing():
    x = np.random.default_rng(0).normal(size=(6, 8)).astype("f")
    x_on_devices = rune.device_put(x, NamedSharding(mesh(), P(None, "a")))

    assert sent(lambda x: rnp.fft.fft(x, axis=0), P(None, "a"), x) == {}
    np.testing.assert_allclose(
        rune.jit(lambda x: rnp.fft.fft(x, axis=0))(x_on_devices), np.fft.fft(x, axis=0), atol=1e-5
    )


def test_the_gradient_of_a_cut_batch_of_determinants_is_each_devices_own():
    x = np.eye(3, dtype="f") + np.random.default_rng(0).normal(size=(8, 3, 3)).astype("f") / 4

    assert sent(rune.grad(lambda x: rnp.log(rnp.linalg.det(x)).sum()), P("a"), x) == {}
