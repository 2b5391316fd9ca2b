"""explain: stages as text, costs, graphs, and the notebook view with its memory picture."""

from __future__ import annotations

import re

import pytest

import rune
import rune.numpy as rnp
from rune.transforms.plan_picture import bars

W, X = rnp.ones((64, 64)), rnp.ones((32, 64))


def chain(x, w):
    for _ in range(4):
        x = rnp.tanh(x @ w)
    return x


@pytest.fixture
def explanation():
    return rune.explain(chain)(X, W)


def test_the_text_has_every_stage_in_order(explanation):
    text = str(explanation)

    places = [text.index(f"--- {s} ") for s in ("program", "simplified", "kernels", "code", "plan")]
    assert places == sorted(places)


def test_every_kernel_has_its_source(explanation):
    assert set(explanation.plan.kernels) <= set(explanation.sources)


def test_the_graphs_are_dot_with_a_node_for_each_step(explanation):
    graphs = explanation.to_dot()

    assert set(graphs) == {"program", "kernels", "plan"}
    assert all(g.startswith("digraph") and g.rstrip().endswith("}") for g in graphs.values())


def test_a_slot_used_again_is_drawn_as_a_value_of_its_own(explanation):
    drawn = bars(explanation.plan)

    places = [(b.offset, b.text) for b in drawn]
    assert len(drawn) > 2
    assert len(set(places)) < len(places)
    assert all(b.last - b.first <= 2 for b in drawn)


def test_the_notebook_view_draws_one_bar_for_each_value(explanation):
    html = explanation._repr_html_()

    assert len(re.findall("<rect", html)) == len(bars(explanation.plan))
    assert html.count("<details>") == html.count("</details>") > 4


def test_the_notebook_view_escapes_what_it_shows(explanation):
    assert "<-" not in explanation._repr_html_()
