"""explain: every stage of one call as text, what it costs, and graphs of it. The view in a notebook
is in test_explain_view.py.

Texts are golden on the reference executor, whose plans are the same on every machine.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError
from rune.lowering.explain import GRAPHS
from tests.support.expect import expect_file

W, X = rnp.ones((64, 64)), rnp.ones((32, 64))


def layer(x, w):
    return rune.nn.softmax(rnp.tanh(x @ w))


@pytest.fixture(scope="module")
def explanation():
    return rune.explain(layer, device="reference")(X, W)


def test_the_whole_text_of_a_small_function(request: pytest.FixtureRequest):
    text = str(rune.explain(lambda x: rnp.sum(rnp.exp(x)), device="reference")(rnp.ones(8)))

    text_without_times = re.sub(r"\d+\.\d ms", "# ms", text)
    expect_file(request.config, Path(__file__).parent / "explain.txt", text_without_times)


def test_the_text_has_every_stage_in_order(explanation):
    text = str(explanation)

    stages = ("program", "simplified", "kernels", "code", "plan", "costs", "source")
    places = [text.index(f"--- {s} ") for s in stages]
    assert places == sorted(places)


def test_every_kernel_has_its_source(explanation):
    assert set(explanation.plan.kernels) == set(explanation.sources)


def test_a_stage_that_does_not_exist_is_named(explanation):
    with pytest.raises(ArgumentError, match="explain: cannot show 'soup'"):
        explanation["soup"]
    with pytest.raises(ArgumentError, match="explain: cannot draw 'code'"):
        explanation.graph("code")


# --- costs ------------------------------------------------------------------------------------


def test_the_costs_of_each_step(explanation, expect):
    expect(
        explanation["costs"],
        """
        1 kernel, 1 call, 0 copies; 49152 bytes moved, 278528 operations
        arena 0 bytes, 0 alive at once
           step                bytes read  written  operations
        0  dot                      24576     8192      262144
        1  tanh_max_sum_div_0        8192     8192       16384""",
    )


def test_the_costs_of_a_symbolic_size_are_functions_of_it(expect):
    double = rune.jit(lambda x: x * 2.0, dims={"n": (1, 4096)}, device="reference")

    expect(
        rune.explain(double)(rnp.ones(3))["costs"],
        """
        1 kernel, 0 calls, 0 copies; 8*n bytes moved, n operations
        arena 0 bytes, 0 alive at once
           step   bytes read  written  operations
        0  mul_0         4*n      4*n           n""",
    )


# --- graphs -----------------------------------------------------------------------------------


def test_the_graph_of_a_program(expect):
    program = rune.make_program(lambda x: rnp.exp(x) * 2.0)(rnp.ones(8))

    expect(
        program.graph(),
        """
        digraph "lambda" {
          bgcolor="transparent";
          node [style=filled, color="#8a9aa8", fontname="Courier", fontsize=10];
          edge [color="#8a9aa8", fontname="Courier", fontsize=9, fontcolor="#6b7a88"];
          v0 [label="%0: f32[8]", shape=ellipse, fillcolor="#ffffff"];
          e0 [label="exp\\n%1: f32[8]", shape=box, fillcolor="#dcebf7"];
          e1 [label="mul 2.0\\n%2: f32[8]", shape=box, fillcolor="#dcebf7"];
          r0 [label="result 0: f32[8]", shape=ellipse, fillcolor="#ffffff"];
          v0 -> e0;
          e0 -> e1;
          e1 -> r0;
        }""",
    )


def test_the_graph_of_kernels_shows_why_two_kernels_are_not_fused(explanation, expect):
    expect(
        explanation.graph("kernels"),
        """
        digraph "layer" {
          bgcolor="transparent";
          node [style=filled, color="#8a9aa8", fontname="Courier", fontsize=10];
          edge [color="#8a9aa8", fontname="Courier", fontsize=9, fontcolor="#6b7a88"];
          v0 [label="%0: f32[32,64]", shape=ellipse, fillcolor="#ffffff"];
          v1 [label="%1: f32[64,64]", shape=ellipse, fillcolor="#ffffff"];
          s0 [label="dot", shape=box, fillcolor="#fdebd3"];
          s1 [label="tanh_max_sum_div_0", shape=box, fillcolor="#dcebf7"];
          r0 [label="result 0: f32[32,64]", shape=ellipse, fillcolor="#ffffff"];
          v0 -> s0;
          v1 -> s0;
          s0 -> s1 [label="%2: f32[32,64]\\na library routine"];
          s1 -> r0;
        }""",
    )


def test_the_graph_of_a_plan_shows_the_offsets_of_values(explanation, expect):
    expect(
        explanation.graph("plan"),
        """
        digraph "layer" {
          bgcolor="transparent";
          node [style=filled, color="#8a9aa8", fontname="Courier", fontsize=10];
          edge [color="#8a9aa8", fontname="Courier", fontsize=9, fontcolor="#6b7a88"];
          a0 [label="argument 0: f32[32,64]", shape=ellipse, fillcolor="#ffffff"];
          a1 [label="argument 1: f32[64,64]", shape=ellipse, fillcolor="#ffffff"];
          s0 [label="0: dot", shape=box, fillcolor="#fdebd3"];
          s1 [label="1: tanh_max_sum_div_0", shape=box, fillcolor="#dcebf7"];
          r0 [label="result 0: f32[32,64]", shape=ellipse, fillcolor="#ffffff"];
          a0 -> s0;
          a1 -> s0;
          s0 -> s1 [label="result 0"];
          s1 -> r0;
        }""",
    )


@pytest.mark.parametrize("stage", GRAPHS)
def test_every_edge_of_a_graph_joins_two_of_its_nodes(explanation, stage: str):
    graph = explanation.graph(stage)

    names = [n.name for n in graph.nodes]
    assert len(set(names)) == len(names)
    assert {e.source for e in graph.edges} | {e.target for e in graph.edges} <= set(names)


def test_a_graph_has_a_node_for_each_step(explanation):
    graph = explanation.graph("plan")

    assert sum(n.name.startswith("s") for n in graph.nodes) == len(explanation.plan.steps)
