"""Pictures of shards, as text and in notebooks: each block names its devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import rune
from rune import numpy as rnp
from rune.errors import ArgumentError
from rune.sharding import NamedSharding, P, make_mesh
from tests.sharding.layouts import LAYOUTS, MESHES

MATRIX = """\
       0:3     3:6
    ┌───────┬───────┐
0:2 │ cpu:0 │ cpu:1 │
    ├───────┼───────┤
2:4 │ cpu:2 │ cpu:3 │
    ├───────┼───────┤
4:6 │ cpu:4 │ cpu:5 │
    ├───────┼───────┤
6:8 │ cpu:6 │ cpu:7 │
    └───────┴───────┘
"""
REPLICAS = """\
        0:6
    ┌─────────┐
0:4 │ cpu:0,1 │
    ├─────────┤
4:8 │ cpu:2,3 │
    └─────────┘
"""
VECTOR = """\
     0:12       12:24
┌───────────┬───────────┐
│ cpu:0,2,4 │ cpu:1,3,5 │
└───────────┴───────────┘
"""


def sharding(sizes: tuple[int, int], spec: P) -> NamedSharding:
    return NamedSharding(make_mesh(sizes, ("a", "b")), spec)


@pytest.mark.parametrize(
    ("shape", "sizes", "spec", "picture"),
    [((8, 6), (4, 2), P("a", "b"), MATRIX), ((8, 6), (2, 2), P("a"), REPLICAS), ((24,), (3, 2), P("b"), VECTOR)],
    ids=["matrix", "replicas", "vector"],
)
def test_a_picture_has_a_box_for_each_block_with_the_devices_that_hold_it(
    capsys: pytest.CaptureFixture[str], shape: tuple[int, ...], sizes: tuple[int, int], spec: P, picture: str
):
    rune.debug.visualize_sharding(shape, sharding(sizes, spec))
    assert capsys.readouterr().out == picture

    rune.debug.visualize_array_sharding(rune.device_put(np.zeros(shape, "f"), sharding(sizes, spec)))
    assert capsys.readouterr().out == picture


def test_the_result_of_an_operation_is_drawn_with_its_own_layout(capsys: pytest.CaptureFixture[str]):
    x = rune.device_put(np.zeros((6, 8), "f"), sharding((4, 2), P("b", "a")))

    rune.debug.visualize_array_sharding(rnp.sin(x).T)

    assert capsys.readouterr().out == MATRIX


def cells(page: str) -> dict[tuple[str, str], str]:
    """The text of each cell of a table, by the headings of its row and its column."""
    table = ElementTree.fromstring(page).find("table")
    assert table is not None
    (_, *columns), *rows = (["".join(cell.itertext()) for cell in row] for row in table)
    return {(row, column): text for row, *texts in rows for column, text in zip(columns, texts, strict=True)}


def test_a_notebook_shows_each_shard_in_its_place():
    for name, spec, shape in LAYOUTS:
        try:
            x = rune.device_put(np.zeros(shape, "f"), NamedSharding(make_mesh(*MESHES[name]), P(*spec)))
        except ValueError:
            continue  # the layout does not exist
        if len(shape) not in (1, 2):
            assert x._repr_html_() is None
            continue
        cell_texts = cells(x._repr_html_() or "")
        for shard in x.addressable_shards:
            parts = ["{}:{}".format(*part.indices(n)) for part, n in zip(shard.index, shape, strict=True)]
            row, column = ["", *parts][-2:]
            number = shard.device.name.removeprefix("cpu:")
            assert number in cell_texts[row, column].removeprefix("cpu:").split(",")


def test_a_notebook_shows_the_contents_and_the_sharding_too():
    x = rune.device_put(np.arange(8.0, dtype="f"), sharding((4, 2), P("a")))

    page = "".join(ElementTree.fromstring(x._repr_html_() or "").itertext())

    assert repr(x) in page
    assert repr(x.sharding) in page


def test_an_array_on_one_device_is_shown_as_text():
    array = rune.device_put(np.zeros(8, "f"), sharding((4, 2), P("a")))
    array.delete()

    assert rnp.ones((2, 3))._repr_html_() is None
    assert array._repr_html_() is None


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "three axes": (
        lambda: rune.debug.visualize_array_sharding(rnp.ones((2, 3, 4))),
        r"visualize_array_sharding: cannot draw the blocks of \[2, 3, 4\] .*\nhint: pass a slice, .*reshape",
    ),
    "no axis": (
        lambda: rune.debug.visualize_sharding((), sharding((4, 2), P())),
        r"visualize_sharding: cannot draw the blocks of \[\] \(1 or 2 axes required\)",
    ),
    "a traced value with three axes": (
        lambda: rune.jit(rune.debug.visualize_array_sharding)(rnp.ones((2, 3, 4))),
        r"visualize_array_sharding: cannot draw the blocks of \[2, 3, 4\]",
    ),
    "an array of NumPy": (
        lambda: rune.debug.visualize_array_sharding(np.ones(3)),  # type: ignore[arg-type]
        "cannot draw the blocks of a ndarray",
    ),
    "a spec alone": (
        lambda: rune.debug.visualize_sharding((8,), P("a")),  # type: ignore[arg-type]
        r"cannot draw blocks by PartitionSpec \(a Sharding required\)",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_array_without_a_picture_is_refused_with_a_reason(name: str):
    call, words = REFUSED[name]

    with pytest.raises(ArgumentError, match=words):
        call()
