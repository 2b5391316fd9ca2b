"""Train a small language model on Python's own documentation, and save it as real ones are.

    python examples/llm/train.py --out llm-output               some minutes on two cores
    python examples/llm/train.py --out llm-output --devices 2   the rows of a batch over two devices
    python examples/llm/generate.py llm-output "The following example"

Stopped at any moment, the same command goes on from the last checkpoint.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import llm_checkpoint as checkpoint
import llm_text
import llm_training as training
import numpy as np
from llm_tokenizer import Tokenizer
from llm_tokenizer import train as train_tokenizer
from llm_training import SMALL, Plan
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import rune
from rune.checkpoints import Manager
from rune.sharding import make_mesh


def prepared(out: Path, vocabulary: int) -> tuple[Tokenizer, np.ndarray, np.ndarray]:
    """The tokenizer, and the tokens that are learned and held out; made once."""
    learned, held_out = llm_text.parts(llm_text.documentation())
    file = out / "tokenizer.json"
    if not file.exists():
        out.mkdir(parents=True, exist_ok=True)
        train_tokenizer(learned, vocabulary).save(file)
    tokenizer = Tokenizer.load(file)
    return tokenizer, *(np.array(tokenizer.encode(part), np.int32) for part in (learned, held_out))  # type: ignore


def save_curve(file: Path, losses: np.ndarray, held_out: float) -> None:
    """The loss of every step, and the held-out loss at the end."""
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.plot(np.arange(1, len(losses) + 1), losses, lw=0.8, label="batches")
    axes.axhline(held_out, color="C1", ls="--", lw=0.8, label="held out, at the end")
    axes.set(xlabel="step", ylabel="nats a token", title="Training loss")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, and say how it went."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("llm-output"))
    parser.add_argument("--steps", type=int, default=Plan().steps)
    parser.add_argument("--devices", type=int, default=1, help="devices of the processor")
    options = parser.parse_args(arguments)
    if options.devices > 1:
        rune.configure(cpu_devices=options.devices)
    plan, mesh = replace(Plan(), steps=options.steps), make_mesh((options.devices,), ("data",))
    _, learned, held_out = prepared(options.out, SMALL.vocab_size)
    print(f"{len(learned)} tokens to learn, {len(held_out)} held out, {plan.batch * plan.context} in a step")
    started = time.perf_counter()
    for number, state in training.train(learned, SMALL, plan, mesh, options.out / "checkpoints"):
        if number % plan.save_every == 0 or number == plan.steps:
            value = float(state["losses"][number - 1])
            print(f"step {number}: {value:.3f} nats a token ({time.perf_counter() - started:.0f} s)")
    state = Manager(options.out / "checkpoints").resume(training.initial(SMALL, plan)).tree
    params = state["params"]
    checkpoint.save(options.out, SMALL, params, files=2)
    value = training.held_out_loss(params, held_out, SMALL, plan)
    save_curve(options.out / "loss.png", np.asarray(state["losses"]), value)
    print(f"held out: {value:.3f} nats a token, e to that is {np.exp(value):.1f}; saved in {options.out}")


if __name__ == "__main__":
    main()
