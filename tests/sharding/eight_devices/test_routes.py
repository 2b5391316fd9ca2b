"""Routes from one layout to another: the same array, and no more bytes than gathers send."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.sharding.reshard import layout_of
from rune.transforms.sharding.routes import Layout, route
from tests.sharding.eight_devices.traffic import partitioned_traffic
from tests.support.sampling import IS_WHOLE

MESHES = {"x": (8,), "ab": (4, 2), "abc": (2, 2, 2)}
SPECS: dict[str, list[P]] = {
    "x": [P(), P("x"), P(None, "x"), P(None, None, "x")],
    "ab": [P(), P("a"), P("b"), P("a", "b"), P("b", "a"), P(("a", "b")), P(("b", "a")), P(None, ("a", "b"), None)],
    "abc": [P("a", "b", "c"), P("c", "a", "b"), P(("c", "a"), "b"), P(("a", "b", "c")), P(None, "c", ("b", "a")), P()],
}
# The axes that eight devices, four and two divide; others are odd.
SHAPES = {"x": (8, 24, 16), "ab": (24, 8, 3), "abc": (8, 40, 12)}


def sizes(names: str) -> dict[Any, int]:
    return dict(zip(names, MESHES[names], strict=True))


def layouts(names: str) -> list[Layout]:
    return [layout_of(spec, 3) for spec in SPECS[names]]


def gathered_and_split(source: Layout, target: Layout, devices: dict[Any, int]) -> float:
    """The share of an array that is sent if names that differ are gathered first."""
    block, share = 1 / np.prod([devices[n] for names in source for n in names]), 0.0
    for names, new_names in zip(source, target, strict=True):
        common = next((n for n, (x, y) in enumerate(zip(names, new_names, strict=False)) if x != y), len(new_names))
        for name in reversed(names[common:]):
            share += (devices[name] - 1) * block
            block *= devices[name]
    return share


@pytest.mark.parametrize("names", MESHES)
def test_an_array_is_the_same_in_every_layout_that_it_is_brought_to(names: str):
    mesh, shape = make_mesh(MESHES[names], tuple(names)), SHAPES[names]
    x = np.arange(np.prod(shape), dtype="i4").reshape(shape)
    pairs = [*product(SPECS[names], repeat=2)]
    pairs = pairs if IS_WHOLE else pairs[::4]

    def by(x: Any, spec: P) -> Any:
        return lax.with_sharding_constraint(x, NamedSharding(mesh, spec))

    def all_pairs(x: Any) -> list[Any]:
        return [by(by(x, source) + n, target) for n, (source, target) in enumerate(pairs)]

    for n, out in enumerate(rune.jit(all_pairs)(x)):
        assert layout_of(out.sharding.spec, 3) == layout_of(pairs[n][1], 3)
        np.testing.assert_array_equal(out, x + n)


@pytest.mark.parametrize("names", MESHES)
def test_a_route_sends_no_more_than_gathers_and_no_less_than_what_a_device_lacks(names: str):
    devices, shape = sizes(names), SHAPES[names]
    for source, target in product(layouts(names), repeat=2):
        share = route(source, target, shape, devices).share

        assert share <= gathered_and_split(source, target, devices) + 1e-9
        assert share >= lacking(source, target, devices) - 1e-9, (source, target)


def lacking(source: Layout, target: Layout, devices: dict[Any, int]) -> float:
    """The share of the array that a device lacks of its block, on average."""
    indices = np.indices([devices[name] for name in devices])
    places = dict(zip(devices, indices.reshape(len(devices), -1), strict=True))
    total, count = 0.0, len(indices[0].ravel())
    for n in range(count):
        has, needs = 1.0, 1.0
        for names, new_names in zip(source, target, strict=True):
            (low, high), (first, last) = bounds(names, n, places, devices), bounds(new_names, n, places, devices)
            needs *= last - first
            has *= max(0.0, min(high, last) - max(low, first))
        total += needs - has
    return total / count


def bounds(names: Any, number: int, places: Any, devices: dict[Any, int]) -> tuple[float, float]:
    low, size = 0.0, 1.0
    for name in names:
        size /= devices[name]
        low += size * places[name][number]
    return low, low + size


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [(P("a"), P(None, "a"), "all_to_all"), (P(("a", "b")), P(("b", "a")), "ppermute"), (P("a"), P(), "all_gather")],
    ids=["rows to columns", "another order of axes", "all"],
)
def test_a_layout_is_changed_by_one_message(source: P, target: P, kind: str):
    mesh, x = make_mesh((4, 2), ("a", "b")), np.ones((24, 8), "f")
    messages = partitioned_traffic(lambda x: x * 2, mesh, [source], [target], x)

    assert {name: count for name, (count, _) in messages.items()} == {kind: 1}


def test_more_mesh_axes_than_are_searched_are_gathered_and_split():
    devices: dict[Any, int] = dict.fromkeys("abcde", 2)
    way = route((tuple("abc"), ("d",)), (("a", "e"), tuple("bcd")), (8, 8), devices)

    assert [type(step).__name__ for step in way.steps].count("Turn") == 0
    assert way.share <= 1
