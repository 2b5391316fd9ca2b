"""explain of calls on a mesh: how arrays are cut, and what the devices send."""

from __future__ import annotations

from typing import Any

import numpy as np

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import NamedSharding, P, make_mesh

MESH = make_mesh((4, 2), ("data", "model"))
W = rune.device_put(np.ones((8, 16), "f"), NamedSharding(MESH, P(None, "model")))
X = rune.device_put(np.ones((32, 8), "f"), NamedSharding(MESH, P("data")))


def without_lines(text: str) -> str:
    return "\n".join(line.partition("  #")[0] for line in text.splitlines())


def test_a_call_on_sharded_arrays_shows_how_they_are_cut():
    explanation = rune.explain(lambda w, x: x @ w)(W, X)

    assert explanation["layout"] == (
        "argument 0: f32[8,16] by P(None, 'model'), f32[8,8] on each device\n"
        "argument 1: f32[32,8] by P('data'), f32[8,8] on each device\n"
        "result 0: f32[32,16] by P('data', 'model'), f32[8,8] on each device"
    )
    assert explanation["exchanges"] == "each device sends 0 B in 0 collectives"


def test_explain_lists_collectives_with_their_bytes_and_the_users_line():
    explanation = rune.explain(rune.grad(lambda w, x: (rnp.tanh(x @ w) ** 2).sum()))(W, X)

    assert without_lines(explanation["exchanges"]) == (
        "psum of f32[8,8] over 'data': 384 B\neach device sends 384 B in 1 collectives"
    )
    assert "# test_explain.py:" in explanation["exchanges"]


def test_an_operation_without_a_rule_shows_what_it_gathers():
    # The devices do not divide the other axis, which would be split in place of the sorted one.
    explanation = rune.explain(lambda x: rnp.sort(x[:, :7], axis=0))(X)

    assert without_lines(explanation["exchanges"]).startswith("all_gather of f32[7,8] over 'data': 672 B")


def test_bytes_are_those_of_the_best_known_algorithm():
    def body(x: Any) -> Any:
        return (
            lax.psum(x, "data"),
            lax.pmax(x, "data"),
            lax.psum_scatter(x[:4], "data"),
            lax.all_to_all(x[:4], "data", 0, 0),
            lax.all_gather(x, "data"),
            lax.ppermute(x, "data", [(0, 1)]),
            lax.psum(x, "data", axis_index_groups=[[0, 1], [2, 3]]),
            lax.axis_index("data")[None],
        )

    f = rune.shard_map(body, mesh=MESH, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    message_bytes = [exchange.bytes_sent for exchange in rune.explain(f)(X).exchanges]

    block, part = 8 * 8 * 4, 4 * 8 * 4
    assert message_bytes == [block * 3 // 2, block * 3 // 2, part * 3 // 4, part * 3 // 4, block * 3, block, block]


def test_a_collective_in_a_loop_counts_as_often_as_the_loop_takes_steps():
    def body(x: Any) -> Any:
        first = lax.scan(lambda c, r: (lax.pmean(c, "data") + r, None), x, rnp.ones((5, 1)))[0]
        return lax.while_loop(lambda c: lax.psum(c.sum(), "data") < 9.0, lambda c: c + 1, first)

    f = rune.shard_map(body, mesh=MESH, in_specs=P("data"), out_specs=P("data"), check_vma=False)
    lines = without_lines(rune.explain(f)(X)["exchanges"]).splitlines()

    assert lines == [
        "psum of f32[8,8] over 'data': 384 B, 5 times",
        "psum of f32[] over 'data': 6 B, in a loop",
        "each device sends 1920 B in 1 collectives, and 1 in loops whose steps only a run tells",
    ]


def test_each_kind_of_device_shows_its_own_stages():
    mesh = rune.sharding.Mesh(["cpu:0", "opencl:0"], "data")
    f = rune.shard_map(lambda x: lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
    explanation = rune.explain(f)(np.ones(8, "f"))

    assert sorted(device.device for device in explanation.devices) == ["cpu:0", "opencl:0"]
    assert "explain" in str(explanation)
    assert "Mesh('data': 2)" in str(explanation)
