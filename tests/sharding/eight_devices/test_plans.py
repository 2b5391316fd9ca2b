"""plan_sharding: the mesh that it proposes, from invented records of devices."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.dims import symbol
from rune.errors import ArgumentError, DeviceError
from rune.sharding import NamedSharding, P, make_mesh
from rune.transforms.placement import storage
from rune.transforms.placement.plans import ShardingPlan
from tests.sharding.measured import measurements, stored

EIGHT = make_mesh((8,), ("data",)).in_order
FOUR = EIGHT[:4]


def names(devices: Any) -> list[str]:
    return [d.name for d in devices]


def shardings(plan: ShardingPlan) -> Any:
    return plan.in_shardings


def weights(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(0)
    return [(random.normal(0, 0.1, pair).astype("f"), np.zeros(pair[1], "f")) for pair in pairwise(sizes)]


def loss(layers: Any, x: Any, y: Any) -> Any:
    for w, b in layers[:-1]:
        x = rnp.tanh(x @ w + b)
    w, b = layers[-1]
    return ((x @ w + b - y) ** 2).mean()


def step(layers: Any, x: Any, y: Any) -> Any:
    gradients = rune.grad(loss)(layers, x, y)
    return rune.tree.map(lambda w, g: w - 0.1 * g, layers, gradients)


def batch(rows: int, inputs: int, outputs: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    return random.normal(size=(rows, inputs)).astype("f"), random.normal(size=(rows, outputs)).astype("f")


def test_a_large_batch_and_small_weights_are_data_parallel(tmp_path: Path):
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        plan = rune.plan_sharding(step, weights(64, 64, 8), *batch(1 << 15, 64, 8), devices=FOUR)

    assert plan.mesh == make_mesh((4,), ("data",))
    layers, x, y = shardings(plan)
    assert {s.spec for s in rune.tree.leaves(layers)} == {P()}
    assert x.spec == y.spec == P("data", None)
    assert plan.reason.startswith("data parallel on 4 devices is ")


def test_a_small_batch_and_large_weights_are_tensor_parallel(tmp_path: Path):
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        plan = rune.plan_sharding(step, weights(1024, 2048, 1024), *batch(8, 1024, 1024), devices=FOUR)

    assert plan.mesh.axis_names == ("model",)
    ((up, _), (down, _)), x, _ = shardings(plan)
    assert (up.spec, down.spec, x.spec) == (P(None, "model"), P("model", None), P())
    assert plan.reason.startswith("tensor parallel on ")


def test_one_device_is_best_where_devices_would_talk_for_longer_than_they_compute(tmp_path: Path):
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        plan = rune.plan_sharding(step, weights(8, 8, 2), *batch(16, 8, 2), devices=FOUR)

    assert plan.mesh.size == 1
    assert "to synchronise and send" in plan.reason


def test_slow_devices_are_left_out_and_the_reason_says_what_share_each_should_have(tmp_path: Path):
    with stored(measurements(names(FOUR), slower=20.0), FOUR, tmp_path):
        plan = rune.plan_sharding(lambda a, b: a @ b, *[np.ones((1536, 1536), "f")] * 2, devices=FOUR)

    assert names(plan.mesh.in_order) == names(FOUR[:3])
    assert "should have cpu:0 33%, cpu:1 33%, cpu:2 33%, cpu:3 2%" in plan.reason
    assert "the plan takes cpu:0, cpu:1, cpu:2" in plan.reason


def test_the_fastest_of_different_devices_come_first(tmp_path: Path):
    record = measurements(names(FOUR), slower=0.01)
    with stored(record, FOUR, tmp_path):
        plan = rune.plan_sharding(lambda a, b: a @ b, *[np.ones((64, 64), "f")] * 2, devices=FOUR)

    assert names(plan.mesh.in_order) == ["cpu:3"]


@pytest.mark.parametrize(
    ("sizes", "rows"), [((64, 64, 8), 1 << 15), ((1024, 2048, 1024), 8), ((8, 8, 2), 16)], ids=["data", "model", "one"]
)
def test_jit_by_a_plan_computes_what_one_device_computes(tmp_path: Path, sizes: Any, rows: int):
    args = weights(*sizes), *batch(rows, sizes[0], sizes[-1])
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        plan = rune.plan_sharding(step, *args, devices=FOUR)

    by_plan, alone = rune.jit(step, in_shardings=plan.in_shardings)(*args), rune.jit(step)(*args)
    rune.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, rtol=1e-4, atol=1e-6), by_plan, alone)


def test_the_time_of_a_plan_is_what_explain_predicts(tmp_path: Path):
    args = weights(64, 64, 8), *batch(1 << 12, 64, 8)
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        plan = rune.plan_sharding(step, *args, devices=FOUR)
        explanation = rune.explain(rune.jit(step, in_shardings=plan.in_shardings))(*args)

        assert plan.predicted_seconds == pytest.approx(explanation.prediction.seconds, rel=0.02)


def test_a_weight_may_be_cut_along_one_axis_of_a_mesh_and_the_batch_along_the_other(tmp_path: Path):
    with stored(measurements(names(EIGHT), latency=1e-6), EIGHT, tmp_path):
        plan = rune.plan_sharding(step, weights(512, 4096, 512), *batch(512, 512, 512), devices=EIGHT)

    assert any(len(option.mesh.shape) == 2 for option in plan.options)
    assert [o.prediction.seconds for o in plan.options] == sorted(o.prediction.seconds for o in plan.options)


def test_a_plan_is_printed_as_a_table_of_the_layouts_it_tried(tmp_path: Path, expect: Any):
    with stored(measurements(names(FOUR[:2])), FOUR[:2], tmp_path):
        plan = rune.plan_sharding(lambda a, b: a @ b, *[np.ones((1024, 1024), "f")] * 2, devices=FOUR[:2])

    expect(
        plan,
        """
        plan of lambda: data 2, predicted 10.84 ms
        data parallel on 2 devices is 1.98 times as fast as one device, and bound by matrix products on cpu:0

        mesh            time  computation  collectives  sent  what is cut
        data 2      10.84 ms     10.74 ms         0 ns   0 B  [0] by P('data', None)
        model 2     10.84 ms     10.74 ms         0 ns   0 B  [1] by P(None, 'model')
        one device  21.48 ms     21.47 ms         0 ns   0 B""",
    )


def test_shapes_alone_are_enough(tmp_path: Path):
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        x = rune.ShapeDtypeStruct((1 << 14, 64), "f32")
        plan = rune.plan_sharding(lambda x, w: x @ w, x, rune.ShapeDtypeStruct((64, 64), "f32"), devices=FOUR)

    assert plan.in_shardings[0] == NamedSharding(plan.mesh, P("data", None))


def test_a_plan_needs_measurements_and_does_not_measure(tmp_path: Path):
    with rune.configure(cache_dir=str(tmp_path)):
        storage.forget()
        with pytest.raises(DeviceError, match="never measured") as error:
            rune.plan_sharding(lambda x: x, np.ones(8, "f"), devices=FOUR)

    assert "rune.measure_devices()" in str(error.value)


def test_a_program_that_cannot_be_planned_is_refused_with_a_reason(tmp_path: Path):
    with stored(measurements(names(FOUR)), FOUR, tmp_path):
        mesh = make_mesh((4,), ("data",))
        f = rune.shard_map(lambda x: lax.psum(x, "data"), mesh=mesh, in_specs=P("data"), out_specs=P())
        with pytest.raises(ArgumentError, match="it speaks of Mesh"):
            rune.plan_sharding(f, np.ones(8, "f"), devices=FOUR)
        with pytest.raises(ArgumentError, match="its sizes are unknown"):
            rune.plan_sharding(lambda x: x, rune.ArrayType((symbol("n"),), np.dtype("f")), devices=FOUR)
        with pytest.raises(ArgumentError, match="each once, and at least one"):
            rune.plan_sharding(lambda x: x, np.ones(8, "f"), devices=[])
