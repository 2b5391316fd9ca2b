"""What explain shows in a notebook: well-formed markup, a memory picture that does not lie, and the
view as a whole, drawn and compared with a reviewed picture.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import rune
import rune.numpy as rnp
from rune.control import scan
from rune.lowering.steps import numbered
from rune.transforms.inspect.explanations import Explanation
from rune.transforms.inspect.plan_picture import SMALL, Bar, bars, plan_svg
from tests.support.picture import SHARE, differing, draw, expect_picture

GOLDEN = Path(__file__).parent / "explain_view.png"
SVG = "{http://www.w3.org/2000/svg}"


def loss(weights, x, y):
    w1, b1, w2 = weights
    return rnp.mean((rune.nn.softmax(rnp.tanh(x @ w1 + b1) @ w2) - y) ** 2)


def loop(x, rows):
    return scan(lambda c, row: (rnp.tanh(c @ row), rnp.sum(c)), x, rows)


def chain(x, w):
    for _ in range(12):
        x = rune.nn.softmax(rnp.tanh(x @ w))
    return rnp.sum(x * x)


WEIGHTS = (rnp.ones((64, 32)), rnp.ones(32), rnp.ones((32, 10)))
X, Y, W = rnp.ones((128, 64)), rnp.ones((128, 10)), rnp.ones((64, 64))
SYMBOLIC = rune.jit(chain, dims={"n": (1, 4096)}, in_dims=("n", None), device="reference")
CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "network": (rune.value_and_grad(loss), (WEIGHTS, X, Y)),
    "long": (rune.grad(chain), (X, W)),
    "symbolic": (SYMBOLIC, (X, W)),
    "loop": (loop, (X, rnp.ones((9, 64, 64)))),
    "one kernel": (rnp.exp, (X,)),
}


def explained(name: str) -> Explanation:
    """An explanation without times, which differ from run to run."""
    function, arguments = CALLS[name]
    e = rune.explain(function, device="reference")(*arguments)
    return replace(e, compile_seconds=0.02, lowered=replace(e.lowered, seconds={"plan": 0.004}))


@pytest.fixture(scope="module", params=CALLS)
def explanation(request: pytest.FixtureRequest) -> Explanation:
    return explained(request.param)


def svg(e: Explanation) -> ElementTree.Element:
    """The memory picture, read by an XML parser; an empty element if there is none."""
    return ElementTree.fromstring(plan_svg(e.plan) or "<svg/>")


def number(element: ElementTree.Element, name: str) -> float:
    """An attribute."""
    return float(element.attrib[name])


# --- the memory picture -----------------------------------------------------------------------


def meet(a: Bar, b: Bar) -> bool:
    """Whether two bars cover a common area."""
    steps = a.first < b.last and b.first < a.last
    return steps and a.offset < b.offset + b.size and b.offset < a.offset + a.size


def test_no_two_bars_overlap(explanation: Explanation):
    bars_of_plan = bars(explanation.plan)

    assert [(a, b) for a, b in itertools.combinations(bars_of_plan, 2) if meet(a, b)] == []


def test_a_reused_slot_is_drawn_as_a_separate_value():
    bars_of_plan = bars(explained("long").plan)

    places = [(b.offset, b.size) for b in bars_of_plan]
    assert len(set(places)) < len(places)


def test_every_value_is_drawn_once_and_within_the_arena(explanation: Explanation):
    picture = svg(explanation)
    rects = [r for r in picture.iter(f"{SVG}rect") if r.attrib["class"] == "value"]
    frames = [r for r in picture.iter(f"{SVG}rect") if r.attrib["class"] == "arena"]

    assert len(rects) == len(bars(explanation.plan))
    for frame, rect in itertools.product(frames, rects):
        for start, size in (("x", "width"), ("y", "height")):
            begin, end = number(frame, start), number(frame, start) + number(frame, size)
            assert begin - 1 <= number(rect, start)
            assert number(rect, start) + number(rect, size) <= end + 1.5


def test_labels_stay_within_their_bars(explanation: Explanation):
    for group in svg(explanation).iter(f"{SVG}g"):
        (rect,), labels = group.iter(f"{SVG}rect"), list(group.iter(f"{SVG}text"))
        bottom = number(rect, "y") + number(rect, "height")

        for label in labels:
            width = number(label, "x") - number(rect, "x") + SMALL * len(label.text or "")
            assert width <= number(rect, "width")
            assert number(rect, "y") + 8 <= number(label, "y") <= bottom
        lines = [number(label, "y") for label in labels]
        assert all(b - a >= 11 for a, b in itertools.pairwise(lines))


def test_the_names_of_steps_keep_their_distance(explanation: Explanation):
    names = [t for t in svg(explanation).iter(f"{SVG}text") if t.get("class") == "step"]
    xs = [number(t, "x") for t in names]

    # They lean by 45 degrees, so lines of 11 pixels keep apart by 11 times the root of 2.
    assert all(b - a >= 11 * 2**0.5 for a, b in itertools.pairwise(xs))


def test_a_symbolic_plan_is_drawn_at_a_size_that_the_view_names():
    assert "drawn for n = 1024" in explained("symbolic")._repr_html_()
    assert "drawn for" not in explained("network")._repr_html_()


def test_a_plan_without_arena_has_no_picture():
    assert plan_svg(explained("one kernel").plan) == ""
    assert "<svg" not in explained("one kernel")._repr_html_()


# --- the page ---------------------------------------------------------------------------------


def test_the_view_is_well_formed(explanation: Explanation):
    page = ElementTree.fromstring(f"<body>{explanation._repr_html_()}</body>")

    assert "".join(page.itertext()).count("KiB") > 2 or "*n" in explanation._repr_html_()


def test_every_step_has_a_row_with_its_cost(explanation: Explanation):
    page = explanation._repr_html_()
    rows = re.findall(r"<tr><td class=\"name\">([\d.]+)</td><td class=\"name\">(.*?)</td>", page)

    assert rows == [(n, s.name) for n, s in numbered(explanation.lowered.steps())]


def test_every_stage_and_source_is_folded(explanation: Explanation):
    titles = re.findall("<summary>(.*?)</summary>", explanation._repr_html_())

    stages = ["program", "simplified", "kernels", "schedules", "code", "plan", "costs"]
    assert titles == [*stages, *(f"source {name}" for name in explanation.sources)]


def test_the_view_shows_why_two_kernels_are_not_fused():
    html = explained("network")._repr_html_()

    assert "another kernel lies between them: <code>tanh_0 → mul_3 (%6: f32[128,32])" in html


def test_the_view_runs_no_script_and_fetches_nothing(explanation: Explanation):
    html = explanation._repr_html_().replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"<script|https?:|@import|url\(", html)


# --- the whole, as one sees it ----------------------------------------------------------------


def test_the_view_matches_the_reviewed_picture(request: pytest.FixtureRequest, tmp_path: Path):
    expect_picture(request.config, GOLDEN, explained("network")._repr_html_(), tmp_path)


@pytest.mark.parametrize("word", [">37 KiB<", ">16 KiB<", "3 max_exp_sum_mul_1", ">0.33<", "mul_3 (%6: f32[128,32])"])
def test_a_picture_that_lacks_a_word_is_noticed(word: str, tmp_path: Path):
    page = explained("network")._repr_html_()
    assert word in page
    blank = "".join(c if c in "<>" else "\u00a0" for c in word)

    full, less = (draw(p, tmp_path / "p.png") for p in (page, page.replace(word, blank, 1)))

    assert differing(full, less) > SHARE
