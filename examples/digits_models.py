"""Two networks for 8×8 digits: pure functions from parameters and images to logits.

Parameters are trees of arrays. Initial weights are drawn by NumPy from a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import nn

CHANNELS, BLOCKS = 32, 2
QUIET = 0.3  # gain of what is added to a residual stream, and of the logits


@dataclass(frozen=True, slots=True)
class Model:
    """A network: `init(random)` makes its parameters, `apply(params, images)` gives logits.

    Shapes: images [N, 64] -> logits [N, 10].
    """

    name: str
    init: Callable[[np.random.Generator], Any]
    apply: Callable[[Any, Any], Any]


def dense(random: np.random.Generator, inputs: int, outputs: int, gain: float = 1.0) -> dict[str, Any]:
    """A weight and a bias; He's variance, so that relu and gelu keep the scale, times a gain."""
    weight = random.normal(0, gain * np.sqrt(2 / inputs), (inputs, outputs))
    return {"weight": rnp.asarray(weight.astype(np.float32)), "bias": rnp.zeros(outputs)}


def affine(layer: dict[str, Any], x: Any) -> Any:
    """x @ weight + bias."""
    return x @ layer["weight"] + layer["bias"]


# --- a two-layer network -----------------------------------------------------------------------


def init_two_layer(random: np.random.Generator) -> dict[str, Any]:
    """64 pixels, 128 hidden units, 10 digits."""
    return {"hidden": dense(random, 64, 128), "logits": dense(random, 128, 10)}


def two_layer(params: dict[str, Any], images: Any) -> Any:
    """relu between two affine maps."""
    return affine(params["logits"], nn.relu(affine(params["hidden"], images)))


# --- a mixer: patches talk to each other, then channels do --------------------------------------


def init_mixer(random: np.random.Generator) -> dict[str, Any]:
    """16 patches of 2×2 pixels, each a vector of CHANNELS numbers, through BLOCKS blocks."""

    def branch(size: int, hidden: int) -> dict[str, Any]:
        return {"in": dense(random, size, hidden), "out": dense(random, hidden, size, QUIET)}

    return {
        "embed": dense(random, 4, CHANNELS),
        "blocks": [{"patches": branch(16, 32), "channels": branch(CHANNELS, 64)} for _ in range(BLOCKS)],
        "logits": dense(random, 16 * CHANNELS, 10, QUIET),
    }


def into_patches(images: Any) -> Any:
    """images [N, 64] -> [N, 16, 4]: the 2×2 squares of each image, row by row."""
    squares = images.reshape(-1, 4, 2, 4, 2)
    return squares.transpose(0, 1, 3, 2, 4).reshape(-1, 16, 4)


def perceptron(layers: dict[str, Any], x: Any) -> Any:
    """Two affine maps on the last axis with gelu between them."""
    return affine(layers["out"], nn.gelu(affine(layers["in"], x)))


def normalise(x: Any) -> Any:
    """Layer norm over channels; its epsilon keeps blank patches blank instead of loud."""
    return nn.layer_norm(x, epsilon=0.1)


def mixer(params: dict[str, Any], images: Any) -> Any:
    """Tolstikhin et al. 2021, arXiv:2105.01601, in small."""
    x = affine(params["embed"], into_patches(images))  # [N, 16, CHANNELS]
    for block in params["blocks"]:
        across = rnp.swapaxes(normalise(x), 1, 2)  # [N, CHANNELS, 16]
        x = x + rnp.swapaxes(perceptron(block["patches"], across), 1, 2)
        x = x + perceptron(block["channels"], normalise(x))
    return affine(params["logits"], normalise(x).reshape(-1, 16 * CHANNELS))


TWO_LAYER = Model("two-layer network", init_two_layer, two_layer)
MIXER = Model("mixer", init_mixer, mixer)
