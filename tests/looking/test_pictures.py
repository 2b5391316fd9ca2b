"""Pictures: well-formed, within their frame, in the reader's colours, and true to their numbers."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import viz
from rune.drawing import timeline as drawn
from rune.drawing.axes import decades, ticks
from rune.drawing.svg import Picture
from rune.errors import ArgumentError
from rune.sharding import Mesh, NamedSharding, P

SVG = "{http://www.w3.org/2000/svg}"
HALVES = NamedSharding(Mesh(["cpu:0", "reference:0"], "data"), P("data"))


def chain(x: Any) -> Any:
    return rnp.sum(rnp.cumsum(x @ x, axis=0) @ x)


def profiled() -> tuple[Any, Any]:
    f, x = rune.jit(chain), rnp.ones((64, 64))
    with rune.debug.profile() as p:
        f(x + 1)
    return p, rune.explain(f)(x).measured(p)


@pytest.fixture(scope="module")
def pictures() -> dict[str, Picture]:
    profile, explanation = profiled()
    return {
        "curves": viz.curves({"training": [3.0, 1.0, 0.5], "test": ([0, 2], [3.2, 0.7])}, y="loss", title="<digits>"),
        "schedule": viz.schedule(lambda n: 0.1 * 0.9**n, 50),
        "timeline": viz.timeline(profile),
        "memory": viz.memory(explanation),
        "times": viz.times(explanation),
        "shards": viz.shards((6, 4), HALVES),
    }


def read(picture: Picture) -> ElementTree.Element:
    return ElementTree.fromstring(picture.svg)


NAMES = ("curves", "schedule", "timeline", "memory", "times", "shards")


@pytest.mark.parametrize("name", NAMES)
def test_a_picture_is_well_formed_and_says_what_it_shows(name: str, pictures: dict[str, Picture]):
    root = read(pictures[name])
    assert root.find(f"{SVG}title") is not None
    assert len(list(root.iter())) > 5
    assert repr(pictures[name]).startswith(f"Picture({pictures[name].title}, ")


@pytest.mark.parametrize("name", NAMES)
def test_words_and_lines_have_the_colour_of_the_page(name: str, pictures: dict[str, Picture]):
    root = read(pictures[name])
    assert root.attrib["fill"] == "currentColor"
    assert all("fill" not in t.attrib for t in root.iter(f"{SVG}text"))
    assert {e.attrib["stroke"] for e in root.iter(f"{SVG}line")} <= {"currentColor"}


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_within_the_frame(name: str, pictures: dict[str, Picture]):
    root = read(pictures[name])
    for rect in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
        assert -1 <= x <= x + width <= pictures[name].width + 1
        assert -1 <= y <= y + height <= pictures[name].height + 1


def test_a_file_is_light_or_dark_by_itself(tmp_path: Path, pictures: dict[str, Picture]):
    file = pictures["curves"].save(tmp_path / "loss.svg")
    text = file.read_text(encoding="utf-8")
    assert "prefers-color-scheme: dark" in text
    ElementTree.fromstring(text)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, pictures: dict[str, Picture]):
    with pytest.raises(ValueError, match=r"\.svg required"):
        pictures["curves"].save(tmp_path / "loss.png")


def lines(picture: Picture) -> list[list[tuple[float, float]]]:
    paths = [p.attrib["d"] for p in read(picture).iter(f"{SVG}path")]
    return [[tuple(map(float, q[1:].split())) for q in d.replace(" L", "|L").split("|")] for d in paths]  # type: ignore[misc]


def test_a_curve_falls_where_its_numbers_fall():
    (points,) = lines(viz.curves([4.0, 2.0, 1.0, 3.0]))
    xs, ys = zip(*points, strict=True)
    assert np.allclose(np.diff(xs), np.diff(xs)[0], atol=0.2)
    assert np.argsort(ys).tolist() == [0, 3, 1, 2]  # the largest is highest


def test_logarithmic_halving_is_a_straight_line():
    (points,) = lines(viz.curves([2.0**-n for n in range(20)], logarithmic=True))
    assert np.allclose(np.diff([y for _, y in points]), np.diff([y for _, y in points])[0], atol=0.2)


def test_a_value_that_is_not_finite_leaves_a_gap():
    assert len(lines(viz.curves([1.0, 2.0, math.nan, 3.0, 4.0]))) == 2
    assert len(lines(viz.curves([1.0, -2.0, 3.0, 2.0], logarithmic=True))) == 2


def test_a_long_curve_keeps_its_extremes_with_few_points():
    numbers = np.zeros(100_000)
    numbers[54_321] = 7.0
    (points,) = lines(viz.curves(numbers))
    assert len(points) < 5000
    assert max(y for _, y in points) - min(y for _, y in points) > 100


def test_a_table_is_not_a_curve():
    with pytest.raises(ArgumentError, match="vectors"):
        viz.curves({"loss": np.ones((2, 3))})


def test_an_empty_curve_is_an_empty_frame():
    assert lines(viz.curves({"loss": []})) == []


@pytest.mark.parametrize("logarithmic", [False, True])
@pytest.mark.parametrize(
    "numbers", [[], [0.0], [math.nan], [-1.0, -2.0], [math.inf, 0.0], [3.0], [1e-300, 1e300]], ids=str
)
def test_a_frame_is_drawn_from_any_numbers(numbers: list[float], logarithmic: bool):
    assert viz.curves(numbers, logarithmic=logarithmic).svg.startswith("<svg")


def test_shards_name_the_device_of_each_block():
    words = [t.text for t in read(viz.shards((6, 4), HALVES)).iter(f"{SVG}text")]
    assert {"0:3", "3:6", "cpu:0", "reference:0"} <= set(words)


def test_a_shape_without_a_sharding_is_refused():
    with pytest.raises(ArgumentError, match="without a sharding"):
        viz.shards((6, 4))


def test_a_program_without_intermediate_values_has_no_picture_of_memory():
    with pytest.raises(ArgumentError, match="no intermediate values in memory"):
        viz.memory(rune.explain(rnp.sin)(rnp.ones(3)))


# --- timelines and axes -----------------------------------------------------------------------


def bar(start: float, end: float, row: str = "cpu:0") -> drawn.Bar:
    return drawn.Bar(row, "step", f"{start}", start, end)


def test_a_bar_within_another_stands_one_lane_below():
    lanes = drawn.lanes_of([bar(0, 10), bar(1, 4), bar(2, 3), bar(5, 9), bar(10, 12)])
    assert [[b.start for b in lane] for lane in lanes] == [[0, 10], [1, 5], [2]]


def test_many_short_events_are_few_shapes():
    bars = [bar(k * 1e-6, k * 1e-6 + 5e-7) for k in range(100_000)]
    picture = drawn.timeline(bars, [], {"step": "#888888"}, (0.0, 0.1), "many")
    assert 300 < len(list(read(picture).iter(f"{SVG}rect"))) < 4000


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6))
def test_ticks_are_few_round_and_within(low: float, span: float):
    numbers = ticks(low, low + span)
    assert 1 <= len(numbers) <= 7
    slack = 1e-6 * max(span, abs(low) * 1e-6)
    assert all(low - slack <= n <= low + span + slack for n in numbers)
    assert len({round((b - a) / span, 6) for a, b in itertools.pairwise(numbers)}) <= 1


@given(low=st.floats(1e-9, 1e6), factor=st.floats(1.01, 1e12))
def test_decades_lie_within(low: float, factor: float):
    assert all(low * 0.999 <= n <= low * factor * 1.001 for n in decades(low, low * factor))
