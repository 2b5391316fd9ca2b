"""ppermute over several axes of a mesh: each device sends its operand once, to one device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune.sharding import P, make_mesh
from tests.sharding.eight_devices.traffic import traffic

CUBE = make_mesh((2, 2, 2), ("a", "b", "c"))
X = np.sin(np.arange(8 * 3, dtype="f")).reshape(8, 3) + 2
RING = [(n, (n + 3) % 8) for n in range(8)]
SOME = [(0, 5), (3, 0), (7, 7), (2, 1), (5, 4)]
NAMES = [("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")]


def permuted(names: Any, pairs: Any, *, is_checked: bool = True) -> Any:
    return rune.shard_map(
        lambda x: lax.ppermute(x, names, pairs), mesh=CUBE, in_specs=P(names), out_specs=P(names), check_vma=is_checked
    )


def received(x: np.ndarray, pairs: Any) -> np.ndarray:
    result = np.zeros_like(x)
    for sender, receiver in pairs:
        result[receiver] = x[sender]
    return result


@pytest.mark.parametrize("names", NAMES, ids=str)
@pytest.mark.parametrize("pairs", [RING, SOME], ids=["ring", "some"])
@pytest.mark.parametrize("is_checked", [True, False])
def test_places_along_several_axes_count_with_the_first_outermost(names: Any, pairs: Any, is_checked: bool):
    function = permuted(names, pairs, is_checked=is_checked)

    np.testing.assert_array_equal(np.asarray(rune.jit(function)(X)), received(X, pairs))
    assert traffic(function, X) == {"ppermute": (1, 12)}


def test_the_other_axes_are_groups_of_their_own():
    function = rune.shard_map(
        lambda x: lax.ppermute(x, ("a", "c"), [(0, 3), (3, 1)]), mesh=CUBE, in_specs=P(NAMES[0]), out_specs=P(NAMES[0])
    )

    # Places along a and c, for each place along b.
    blocks = X.reshape(2, 2, 2, 3).transpose(1, 0, 2, 3).reshape(2, 4, 3)
    expected = np.stack([received(x, [(0, 3), (3, 1)]) for x in blocks])
    expected = expected.reshape(2, 2, 2, 3).transpose(1, 0, 2, 3).reshape(8, 3)
    np.testing.assert_array_equal(np.asarray(rune.jit(function)(X)), expected)


@pytest.mark.parametrize("pairs", [RING, SOME], ids=["ring", "some"])
def test_the_cotangent_goes_the_other_way(pairs: Any):
    function = permuted(NAMES[1], pairs)
    gradient = rune.jit(rune.grad(lambda x: (function(x) * X).sum()))(X)

    np.testing.assert_array_equal(np.asarray(gradient), received(X, [(b, a) for a, b in pairs]))


def test_lanes_are_permuted_alike():
    lanes = np.stack([X, -X, X * X], axis=2)
    function = rune.jit(rune.vmap(permuted(NAMES[2], SOME), in_axes=2, out_axes=2))

    np.testing.assert_array_equal(np.asarray(function(lanes)), received(lanes, SOME))


def test_lanes_of_vmap_and_devices_are_permuted_together():
    def body(x: Any) -> Any:
        return rune.vmap(lambda r: lax.ppermute(r, ("a", "lanes"), RING), axis_name="lanes")(x)

    function = rune.shard_map(body, mesh=CUBE, in_specs=P("a"), out_specs=P("a"), check_vma=False)
    np.testing.assert_array_equal(np.asarray(rune.jit(function)(X)), received(X, RING))


def test_ppermute_in_a_loop_permutes_in_every_step():
    def body(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda _, x: lax.ppermute(x, NAMES[0], RING) * 2, x)

    function = rune.shard_map(body, mesh=CUBE, in_specs=P(NAMES[0]), out_specs=P(NAMES[0]))
    np.testing.assert_array_equal(np.asarray(rune.jit(function)(X)), 8 * np.roll(X, 9, axis=0))
