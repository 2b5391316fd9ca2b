"""Images that are turned, moved and scaled on their way to the network: augmentation by rune.

    python examples/images.py --out images-output

Every image is warped by a function of its own key, written for one image; `vmap` makes it one of a
batch and `jit` a single program. The key is folded from the number of the image in the pipeline, so
epochs differ, and a run that is interrupted and restored sees the same images. What it is for: a
network that saw only upright digits fails where they are turned.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from digits_data import Digits, load
from digits_figures import save_grid
from digits_models import TWO_LAYER

import rune
import rune.numpy as rnp
from rune import data, nn, optim
from rune.scipy.ndimage import map_coordinates

BATCH, EPOCHS, LEARNING_RATE = 64, 40, 3e-3
TURN, SCALE, SHIFT = 0.6, 0.15, 0.8  # at most: radians, a share, pixels
KEY = rune.random.key(0)


def warped(key: Any, image: Any) -> Any:
    """An image [8, 8] turned, scaled and moved at random, by bilinear interpolation."""
    turn, scale, *shift = rune.random.uniform(key, (4,), minval=-1.0, maxval=1.0)
    angle, size = TURN * turn, 1 + SCALE * scale
    y, x = rnp.meshgrid(rnp.arange(8) - 3.5, rnp.arange(8) - 3.5, indexing="ij")
    rows = (rnp.cos(angle) * y - rnp.sin(angle) * x) * size + 3.5 + SHIFT * shift[0]
    columns = (rnp.sin(angle) * y + rnp.cos(angle) * x) * size + 3.5 + SHIFT * shift[1]
    return map_coordinates(image, [rows, columns], order=1)


def _warped_row(number: Any, row: Any) -> Any:
    return warped(rune.random.fold_in(KEY, number), row.reshape(8, 8)).reshape(64)


@rune.jit
def augmented(batch: Any) -> Any:
    """A batch of numbers and digits, with every image warped by the key of its number."""
    numbers, digits = batch
    return {**digits, "images": rune.vmap(_warped_row)(numbers, digits["images"])}


def batches(digits: Digits, augments: bool) -> data.Pipeline:
    """The batches of all epochs: each epoch in another order, and with other warps."""
    source = data.arrays({"images": digits.images, "labels": digits.labels})
    rows = source.shuffle(KEY).enumerate().batch(BATCH, remainder="drop").repeat(EPOCHS).prefetch()
    return rows.map(augmented if augments else lambda batch: batch[1])


def train(digits: Digits, augments: bool) -> Any:
    """Parameters that have learned the digits."""
    optimizer = optim.adam(LEARNING_RATE)
    params = TWO_LAYER.init(np.random.default_rng(0))

    def loss(params: Any, batch: Any) -> Any:
        logits = TWO_LAYER.apply(params, batch["images"])
        return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]))

    @rune.jit
    def step(params: Any, state: Any, batch: Any) -> Any:
        updates, state = optimizer.update(rune.grad(loss)(params, batch), state, params)
        return optim.apply_updates(params, updates), state

    state = optimizer.init(params)
    for batch in data.progress(batches(digits, augments), "warped" if augments else "upright"):
        params, state = step(params, state, batch)
    return params


def accuracy(params: Any, digits: Digits) -> float:
    """The share of digits that are recognised."""
    return float(rnp.mean(rnp.argmax(TWO_LAYER.apply(params, digits.images), axis=1) == digits.labels))


def all_warped(digits: Digits) -> Digits:
    """The same digits, each warped by a key that training has not seen."""
    numbers = np.arange(len(digits)) + 10**6
    batch = augmented((numbers, {"images": digits.images, "labels": digits.labels}))
    return Digits(np.asarray(batch["images"]), digits.labels)


def main() -> None:
    """Train with and without warps, and compare both on upright and on warped digits."""
    parser = argparse.ArgumentParser(description="augmentation under jit and vmap")
    parser.add_argument("--out", type=Path, default=Path("images-output"))
    out = parser.parse_args().out
    digits, held_out = load()
    turned = all_warped(held_out)
    for name, augments in (("upright", False), ("warped", True)):
        params = train(digits, augments)
        print(f"trained on {name}: {accuracy(params, held_out):.3f} upright, {accuracy(params, turned):.3f} warped")
    pairs = np.stack([held_out.images[:10], turned.images[:10]]).reshape(20, 64)
    labels = np.tile(held_out.labels[:10], 2)
    print(save_grid(out / "warped.png", "Digits, and the same ones warped", Digits(pairs, labels), [""] * 20, 10))


if __name__ == "__main__":
    main()
