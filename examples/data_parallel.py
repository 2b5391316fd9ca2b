"""Data parallelism: several devices learn the digits, each from its part of every batch.

    python examples/data_parallel.py 4
    RUNE_CPU_DEVICES=2 mpirun -n 2 python examples/data_parallel.py 4        # in two processes

The step is the step for one device. Its batch is cut and its parameters are not, so `jit` sums each
gradient over the devices once. The batches are those of one device, and so the losses are too, but
for the order in which a sum over a batch is taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from digits_data import Digits, load, minibatches
from digits_models import TWO_LAYER

import rune
import rune.numpy as rnp
from rune import distributed, nn, optim
from rune.sharding import Mesh, NamedSharding, P, make_mesh

BATCH, EPOCHS, LEARNING_RATE, WEIGHTS_SEED = 64, 3, 2e-3, 0


def loss(params: Any, images: Any, labels: Any) -> Any:
    """The cross entropy of a batch."""
    logits = TWO_LAYER.apply(params, images)
    return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))


def make_step(mesh: Mesh, optimizer: Any) -> Callable[..., Any]:
    """A training step for which every device has all parameters, and its rows of the batch."""
    rows, copies = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())

    def step(params: Any, state: Any, images: Any, labels: Any) -> Any:
        value, gradients = rune.value_and_grad(loss)(params, images, labels)
        updates, state = optimizer.update(gradients, state, params)
        return optim.apply_updates(params, updates), state, value

    return rune.jit(step, in_shardings=(copies, copies, rows, rows), out_shardings=copies)


def batches(digits: Digits, mesh: Mesh) -> Iterator[tuple[Any, Any]]:
    """The images and labels of each step, on their devices; equal parts want whole batches."""
    rows = NamedSharding(mesh, P("data"))
    for epoch in range(EPOCHS):
        for batch in minibatches(digits, BATCH, seed=epoch):
            if len(batch) == BATCH:
                yield rune.device_put((batch.images, batch.labels), rows)


def train(mesh: Mesh, digits: Digits) -> np.ndarray:
    """The loss of every step."""
    optimizer = optim.adam(LEARNING_RATE)
    params = TWO_LAYER.init(np.random.default_rng(WEIGHTS_SEED))
    state = optimizer.init(params)
    step = make_step(mesh, optimizer)
    losses = []
    for images, labels in batches(digits, mesh):
        params, state, value = step(params, state, images, labels)
        losses.append(value)  # not float(value), which would wait for the devices
    return np.array([float(value) for value in losses])


def main(devices: int = 4) -> None:
    """Train on several devices, of all processes, and on one, and compare."""
    if "RUNE_CPU_DEVICES" not in os.environ:
        rune.configure(cpu_devices=devices)
    distributed.initialize()  # under mpirun a mesh has the devices of all processes
    digits, _ = load()
    losses = train(make_mesh((devices,), ("data",)), digits)
    alone = train(Mesh(["cpu:0"], "data"), digits)
    np.testing.assert_allclose(losses, alone, rtol=1e-5)  # sums of a batch in another order
    if distributed.process_index() == 0:
        report(devices, losses, alone)


def report(devices: int, losses: np.ndarray, alone: np.ndarray) -> None:
    """Print how training went."""
    print(f"{devices} devices, {BATCH // devices} of {BATCH} images each")
    print(f"loss {losses[0]:.4f} at first, {losses[-1]:.4f} after {len(losses)} steps")
    print(f"on one device within {np.max(np.abs(losses / alone - 1)):.0e} in every step")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
