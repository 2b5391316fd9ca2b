"""The language model of examples/llm learns the same on four devices as on one."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rune.sharding import make_mesh

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "llm"))

import llm_training as training
from llm_model import Config

TINY = Config(64, 16, 24, 1, 4, 2, 4, 32)
PLAN = training.Plan(steps=6, batch=8, context=16, peak_rate=1e-2, warmup=2)


def test_four_devices_have_the_losses_of_one(tmp_path: Path):
    tokens = np.random.default_rng(0).integers(0, 64, 500).astype(np.int32)
    losses = []
    for devices in (1, 4):
        mesh = make_mesh((devices,), ("data",))
        *_, (_, state) = training.train(tokens, TINY, PLAN, mesh, tmp_path / str(devices))
        losses.append(np.asarray(state["losses"]))

    assert losses[0].all()
    np.testing.assert_allclose(*losses, rtol=1e-4)  # sums of a batch in another order
