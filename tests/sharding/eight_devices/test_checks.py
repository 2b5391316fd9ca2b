"""Checks in programs on several devices: the error is that of running lanes in sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.checkify import check, checkify, nan_checks
from rune.errors import ArgumentError
from rune.sharding import P, make_mesh
from tests.support.sampling import each_value

MESH = make_mesh((4, 2), ("rows", "columns"))
HIDDEN = rune.jit(lambda x: _positive(x))


def _positive(x: Any) -> Any:
    check(rnp.all(x > 0), "not positive: {}", rnp.min(x))
    return rnp.sqrt(x)


def _by_shard_map(f: Callable[[Any], Any], **options: Any) -> Callable[[Any], Any]:
    return rune.shard_map(f, mesh=MESH, in_specs=P(("rows", "columns")), out_specs=P(("rows", "columns")), **options)


BODIES = {
    "a body": _positive,
    "a jitted function": lambda x: HIDDEN(x),
    "a loop": lambda x: lax.fori_loop(0, 3, lambda i, c: _positive(c) ** 2, x),
    "a branch": lambda x: rune.cond(rnp.sum(x) > 1e9, lambda x: x, _positive, x),
}
WAYS = {
    "pmap": lambda f: rune.pmap(f, "lanes"),
    "shard_map": _by_shard_map,
    "shard_map without types": lambda f: _by_shard_map(f, check_vma=False),
    "a jitted shard_map": lambda f: rune.jit(_by_shard_map(f)),
}


@each_value()
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", WAYS)
def test_the_check_that_fails_on_a_device_is_reported(way: str, body: str):
    f = checkify(WAYS[way](BODIES[body]))
    x = rnp.arange(1.0, 9.0)

    error, roots = f(x)
    assert error.get() is None
    assert np.asarray(roots) == pytest.approx(np.asarray(x) if body == "a loop" else np.sqrt(np.asarray(x)))
    assert f(x.at[5].set(-2.0))[0].get() == "not positive: -2.0 (`check` failed)"
    assert rune.jit(f)(x.at[0].set(-3.0))[0].get() == "not positive: -3.0 (`check` failed)"


def test_the_first_failure_is_the_one_reported():
    def f(x: Any) -> Any:
        check(x[0] > 100.0, "before")
        return _by_shard_map(_positive)(x)

    assert checkify(f)(rnp.zeros(8))[0].get() == "before (`check` failed)"


def test_checks_in_a_shard_map_under_vmap_and_grad():
    total = checkify(lambda x: rnp.sum(_by_shard_map(_positive)(x)))
    batch = rnp.stack([rnp.ones(8), -rnp.ones(8)])

    error, gradient = rune.jacrev(lambda x: total(x)[::-1], has_aux=True)(rnp.ones(8))[::-1]
    assert error.get() is None
    assert gradient.tolist() == [0.5] * 8
    assert checkify(rune.vmap(_by_shard_map(_positive)))(batch)[0].get() == "not positive: -1.0 (`check` failed)"


def test_operations_on_several_devices_are_not_looked_at():
    with pytest.raises(ArgumentError, match="cannot check operations on several devices"):
        checkify(_by_shard_map(rnp.log), nan_checks)(rnp.ones(8))
