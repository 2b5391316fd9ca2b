"""pmap over several devices computes what vmap computes on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax, random
from rune import numpy as rnp
from rune.errors import ArgumentError

LANES = 24  # three on each of eight devices, six on each of four
X = np.sin(np.arange(LANES * 6.0)).astype("f").reshape(LANES, 2, 3)

BODIES: dict[str, Callable[[Any], Any]] = {
    "mean": lambda r: r - lax.pmean(r, "i"),
    "extremes": lambda r: lax.pmax(r, "i") - lax.pmin(r, "i"),
    "gathered": lambda r: lax.all_gather(r, "i"),
    "gathered along an axis": lambda r: lax.all_gather(r, "i", tiled=True, axis=1),
    "number": lambda r: r * lax.axis_index("i"),
    "number of lanes": lambda r: r / lax.axis_size("i"),
    "permuted": lambda r: lax.ppermute(r, "i", [(n, (n + 5) % LANES) for n in range(LANES)]),
    "scattered": lambda r: lax.psum_scatter(lax.all_gather(r, "i"), "i"),
    "exchanged": lambda r: lax.all_to_all(lax.all_gather(r, "i"), "i", 0, 0),
    "shared by all": lambda r: lax.psum(rnp.float32(2.0), "i") + r,
    "in a loop": lambda r: lax.scan(lambda c, _: (lax.pmean(c, "i") + c, c.sum()), r, None, length=3)[1],
    "in a jitted function": lambda r: rune.jit(lambda q: lax.psum(q, "i"))(r),
    "gradient": lambda r: rune.grad(lambda q: (lax.pmean(q, "i") ** 2).sum())(r),
    "checkpoint": lambda r: rune.grad(lambda q: rune.checkpoint(lambda v: lax.pmean(v**2, "i").sum())(q))(r),
}


@pytest.mark.parametrize("devices", [1, 2, 4, 8])
@pytest.mark.parametrize("name", BODIES)
def test_lanes_on_several_devices_mean_what_they_mean_on_one(name: str, devices: int):
    body = BODIES[name]
    expected = rune.vmap(body, axis_name="i")(X)

    results = rune.pmap(body, "i", devices=rune.devices()[:devices])(X)

    np.testing.assert_allclose(results, expected, rtol=1e-5, atol=1e-6)


def test_draws_without_a_key_do_not_depend_on_the_number_of_devices():
    def body(r: Any) -> Any:
        return r + random.normal(shape=r.shape)

    with random.seed(3):
        expected = rune.pmap(body, devices=["cpu:0"])(X)
    with random.seed(3):
        results = rune.pmap(body)(X)

    np.testing.assert_array_equal(results, expected)


def test_two_runs_are_equal_bit_for_bit():
    step = rune.pmap(lambda r: lax.psum(r * 1.37, "i") / 3, "i")

    assert len({np.asarray(step(X)).tobytes() for _ in range(20)}) == 1


@pytest.mark.parametrize("size", [1, 131])
def test_denormal_numbers_are_flushed_on_every_device_if_the_setting_says_so(size: int):
    x = np.full((LANES, size), np.finfo(np.float32).smallest_normal)

    def body(r: Any) -> Any:
        return r * 0.5, lax.psum(r * 0.5, "i")

    half, total = rune.pmap(body, "i")(x)
    np.testing.assert_array_equal(half, x / 2)
    np.testing.assert_array_equal(total, LANES * (x / 2))
    with rune.configure(flush_denormals=True):
        for result in rune.pmap(body, "i")(x):
            np.testing.assert_array_equal(result, np.zeros_like(x))


def test_lanes_that_cannot_be_dealt_out_evenly_are_refused():
    with pytest.raises(ArgumentError, match=r"cannot deal 13 lanes out to 8 devices \(as many for each required\)"):
        rune.pmap(lambda x: x)(np.ones(13, "f"))


@pytest.mark.parametrize("lanes", [8, 16, 24])
def test_groups_of_lanes_may_span_several_devices(lanes: int):
    order = np.random.default_rng(lanes).permutation(lanes).reshape(-1, 4)
    x = np.sin(np.arange(lanes * 3.0, dtype="f")).reshape(lanes, 3)
    expected = np.zeros_like(x)
    for group in order:
        expected[group] = x[group].sum(0)

    f = rune.pmap(lambda x: lax.psum(x, "i", axis_index_groups=order), "i")

    np.testing.assert_allclose(f(x), expected, rtol=1e-5, atol=1e-6)


def test_a_backend_names_the_devices():
    by_name = rune.pmap(lambda x: x + 1, backend="cpu")(X[:3])

    assert {d.name for d in by_name.devices()} == {"cpu:0", "cpu:1", "cpu:2"}
    np.testing.assert_array_equal(by_name, X[:3] + 1)


def test_devices_are_those_of_a_backend_that_is_named_too():
    result = rune.pmap(lambda x: x + 1, devices=["cpu:5", "cpu:3"], backend="cpu")(X[:2])

    assert {d.name for d in result.devices()} == {"cpu:3", "cpu:5"}
    np.testing.assert_array_equal(result, X[:2] + 1)
    with pytest.raises(ArgumentError, match=r"cannot use reference:0 \(not a device of backend='cpu'"):
        rune.pmap(lambda x: x, devices=["reference:0"], backend="cpu")


def test_calls_without_an_axis_name_can_share_one_program():
    rows = rnp.arange(8.0)
    double, square = rune.pmap(lambda r: 2 * r), rune.pmap(lambda r: r * r)

    np.testing.assert_array_equal(rune.jit(lambda r: double(r) + square(double(r)))(rows), 2 * rows + 4 * rows**2)
    np.testing.assert_array_equal(rune.grad(lambda r: (double(r) * square(r)).sum())(rows), 6 * rows**2)
