"""Tensor parallelism: a small transformer whose weights are cut over several devices, in two ways.

    python examples/tensor_parallel.py 4

Each device has some of the heads and some of the hidden units, and computes what they add to the
residual stream; a layer needs two sums over the devices forwards, and two backwards
(Shoeybi et al. 2019, arXiv:1909.08053). With `shard_map` we say where these sums are; with sharded
`jit` we say how the weights are cut, and it finds out. Both learn what one device learns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import lax, nn
from rune.sharding import Mesh, NamedSharding, P, make_mesh

LAYERS, WIDTH, HEADS, HEAD, HIDDEN = 2, 32, 8, 4, 128
LETTERS, BATCH, LENGTH, STEPS, LEARNING_RATE = 128, 8, 32, 20, 0.1

Loss = Callable[[Any, Any], Any]

LAYER_SPECS = {
    "queries_keys_values": P(None, None, "model"),  # [WIDTH, 3, HEADS, HEAD], cut by heads
    "mix": P("model"),  # [HEADS, HEAD, WIDTH]
    "up": P(None, "model"),  # [WIDTH, HIDDEN], cut by hidden units
    "down": P("model"),  # [HIDDEN, WIDTH]
}
SPECS = {"letters": P(), "positions": P(), "layers": [LAYER_SPECS] * LAYERS, "logits": P()}


def make_weights() -> Any:
    """Weights drawn from a fixed seed; their variances keep the scale of what they meet."""
    random = np.random.default_rng(0)

    def draw(inputs: int, *shape: int) -> np.ndarray:
        return random.normal(0, inputs**-0.5, shape).astype(np.float32)

    def layer() -> dict[str, Any]:
        return {
            "queries_keys_values": draw(WIDTH, WIDTH, 3, HEADS, HEAD),
            "mix": draw(WIDTH, HEADS, HEAD, WIDTH),
            "up": draw(WIDTH, WIDTH, HIDDEN),
            "down": draw(HIDDEN, HIDDEN, WIDTH),
        }

    return {
        "letters": draw(WIDTH, LETTERS, WIDTH),
        "positions": draw(WIDTH, LENGTH, WIDTH),
        "layers": [layer() for _ in range(LAYERS)],
        "logits": draw(WIDTH, WIDTH, LETTERS),
    }


def loss(weights: Any, text: Any, add_up: Callable[[Any], Any] = lambda partial: partial) -> Any:
    """How badly each letter of texts [BATCH, LENGTH + 1] is told from those before it.

    add_up: sums what the devices add to the residual stream; on one device that is all there is.
    """
    x = weights["letters"][text[:, :-1]] + weights["positions"]
    for layer in weights["layers"]:
        projected = rnp.einsum("btw,wcnh->cbtnh", nn.rms_norm(x), layer["queries_keys_values"])
        context = nn.dot_product_attention(*projected, is_causal=True)
        x = x + add_up(rnp.einsum("btnh,nhw->btw", context, layer["mix"]))
        x = x + add_up(nn.gelu(nn.rms_norm(x) @ layer["up"]) @ layer["down"])
    logits = nn.rms_norm(x) @ weights["logits"]
    return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, text[:, 1:]))


def by_shard_map(mesh: Mesh) -> Loss:
    """Every device computes with its part of the weights, and says itself what is summed."""

    def part(weights: Any, text: Any) -> Any:
        return loss(weights, text, add_up=lambda partial: lax.psum(partial, "model"))

    return rune.shard_map(part, mesh=mesh, in_specs=(SPECS, P()), out_specs=P())


def train(loss: Loss, mesh: Mesh) -> tuple[Any, np.ndarray]:
    """The weights after some steps of gradient descent, cut over the mesh, and the losses."""

    def placed(spec: P) -> NamedSharding:
        return NamedSharding(mesh, spec)

    cut = rune.tree.map(placed, SPECS)
    copies = NamedSharding(mesh, P())

    def step(weights: Any, text: Any) -> Any:
        value, gradients = rune.value_and_grad(loss)(weights, text)
        return rune.tree.map(lambda w, g: w - LEARNING_RATE * g, weights, gradients), value

    compiled_step = rune.jit(step, in_shardings=(cut, copies), out_shardings=(cut, copies))
    weights, losses = make_weights(), []
    for text in texts():
        weights, value = compiled_step(weights, text)
        losses.append(float(value))
    return weights, np.array(losses)


def texts() -> np.ndarray:
    """Pieces of this very page, as [STEPS, BATCH, LENGTH + 1]."""
    letters = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32) % LETTERS
    starts = np.random.default_rng(1).integers(len(letters) - LENGTH, size=(STEPS, BATCH, 1))
    return letters[starts + np.arange(LENGTH + 1)]


def main(devices: int = 4) -> None:
    """Train in both ways, and on one device; compare losses and weights."""
    if "RUNE_CPU_DEVICES" not in os.environ:
        rune.configure(cpu_devices=devices)
    mesh = make_mesh((devices,), ("model",))
    expected, alone = train(loss, make_mesh((1,), ("model",)))
    # Sharded jit takes the function for one device: that its weights are cut is all it needs.
    ways = {"shard_map": by_shard_map(mesh), "sharded jit": loss}
    for name, loss_of_mesh in ways.items():
        weights, losses = train(loss_of_mesh, mesh)
        np.testing.assert_allclose(losses, alone, rtol=1e-4)
        rune.tree.map(lambda w, e: np.testing.assert_allclose(w, e, rtol=1e-3, atol=1e-4), weights, expected)
        block = weights["layers"][0]["up"].addressable_shards[0].data
        print(f"{name}: loss {losses[0]:.3f} to {losses[-1]:.3f}, as on one device")
        print(f"  of up {list(weights['layers'][0]['up'].shape)} a device has {list(block.shape)}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
