"""Learn handwritten digits: two networks, trained by jitted Adam steps on real images.

    python examples/digits.py --out digits-output

One step, loss, gradient and optimiser together, is one compiled function. The batch axis is
symbolic, so the smaller last batch of an epoch runs the same compiled code, and the accuracy is
computed on all images at once. A fifth of the images is held out; training never sees it. Every
draw comes from a fixed seed: two runs on one machine print the same numbers, but for the times.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import digits_figures as figures
import numpy as np
from digits_data import Digits, load, minibatches
from digits_models import MIXER, TWO_LAYER, Model
from tqdm import tqdm

import rune
import rune.numpy as rnp
from rune import nn, optim

BATCH = 64
LEARNING_RATE = 2e-3
WEIGHTS_SEED = 0
MODELS = {model.name: model for model in (TWO_LAYER, MIXER)}


@dataclass(frozen=True, slots=True)
class Trained:
    """What training a model gave. Units: seconds."""

    predict: Callable[[np.ndarray], np.ndarray]
    losses: np.ndarray
    first_call: float
    steps_per_second: float


def make_step(model: Model, optimizer: Any) -> Callable[..., Any]:
    """The whole training step as one compiled function for every batch of 1 to BATCH images."""

    def loss(params: Any, images: Any, labels: Any) -> Any:
        logits = model.apply(params, images)
        return rnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits, labels))

    def step(params: Any, state: Any, images: Any, labels: Any) -> Any:
        value, grads = rune.value_and_grad(loss)(params, images, labels)
        updates, state = optimizer.update(grads, state, params)
        return optim.apply_updates(params, updates), state, value

    return rune.jit(step, dims={"n": (1, BATCH)}, in_dims=(None, None, "n", "n"))


def make_predict(model: Model, params: Any) -> Callable[[np.ndarray], np.ndarray]:
    """images [N, 64] -> digits [N], compiled once for every N."""
    compiled = rune.jit(
        lambda params, images: rnp.argmax(model.apply(params, images), axis=-1),
        dims={"n": (1, 4096)},
        in_dims=(None, "n"),
    )
    return lambda images: np.asarray(compiled(params, images))


def train(model: Model, digits: Digits, epochs: int) -> Trained:
    """Adam over minibatches, each epoch in another order."""
    params = model.init(np.random.default_rng(WEIGHTS_SEED))
    optimizer = optim.adam(LEARNING_RATE)
    state = optimizer.init(params)
    step = make_step(model, optimizer)
    losses, ends = [], [time.perf_counter()]
    for epoch in tqdm(range(epochs), desc=model.name, unit="epoch", disable=None):
        for batch in minibatches(digits, BATCH, seed=epoch):
            params, state, loss = step(params, state, batch.images, batch.labels)
            losses.append(float(loss))
            ends.append(time.perf_counter())
    first_call, later_calls = ends[1] - ends[0], ends[-1] - ends[1]
    rate = (len(losses) - 1) / later_calls if later_calls else float("nan")
    return Trained(make_predict(model, params), np.array(losses), first_call, rate)


def steps_per_epoch(digits: Digits) -> int:
    """Minibatches in one epoch, the smaller last one included."""
    return -(-len(digits) // BATCH)


def report(trained: Trained, digits: Digits, held_out: Digits) -> np.ndarray:
    """Print losses, accuracies and times; return which held-out images were misread."""
    wrong = trained.predict(held_out.images) != held_out.labels
    fitted = np.mean(trained.predict(digits.images) == digits.labels)
    last = np.mean(trained.losses[-steps_per_epoch(digits) :])
    print(f"  loss           {trained.losses[0]:.4f} at first, {last:.5f} in the last epoch")
    print(f"  training set   {fitted:.2%} of {len(digits)} images")
    print(f"  held-out fifth {1 - np.mean(wrong):.2%} of {len(held_out)} images")
    print(f"  time           first call {trained.first_call:.2f} s, then {trained.steps_per_second:.0f} steps/s")
    return wrong


def show_mistakes(out: Path, model: Model, trained: Trained, held_out: Digits) -> Path:
    """Draw the held-out images that the model misreads, with what it took them for."""
    predictions = trained.predict(held_out.images)
    wrong = predictions != held_out.labels
    mistakes = held_out.take(wrong)
    captions = [f"{t} read {f}" for t, f in zip(mistakes.labels, predictions[wrong])]
    title = f"{model.name}: {len(mistakes)} of {len(held_out)} misread"
    file = out / f"mistakes-{model.name.replace(' ', '-')}.png"
    return figures.save_grid(file, title, mistakes, captions, columns=6)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="digits", description="Learn handwritten digits.")
    parser.add_argument("--out", type=Path, default=Path("digits-output"), help="figures go here")
    parser.add_argument("--epochs", type=int, default=30, help="passes over the training set")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=[*MODELS], help="what to train")
    parser.add_argument("--device", default=None, help='where to run, e.g. "opencl"')
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Load, show, train, measure, show mistakes."""
    options = arguments(argv)
    digits, held_out = load()
    print(f"{len(digits)} images to learn from, {len(held_out)} held out")
    captions = [str(label) for label in digits.labels[:60]]
    chosen = digits.take(np.arange(60))
    files = [figures.save_grid(options.out / "digits.png", "Digits", chosen, captions, columns=12)]
    losses = {}
    with rune.configure(device=options.device):
        print(f"executor: {options.device or rune.devices()[0]}")
        for model in (MODELS[name] for name in options.models):
            print(f"{model.name}, {options.epochs} epochs")
            trained = train(model, digits, options.epochs)
            report(trained, digits, held_out)
            losses[model.name] = trained.losses
            files.append(show_mistakes(options.out, model, trained, held_out))
    file = options.out / "loss.png"
    files.append(figures.save_losses(file, losses, steps_per_epoch(digits)))
    print("figures:", *files, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
