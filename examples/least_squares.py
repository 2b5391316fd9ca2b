"""Decay rates that many curves share: least squares in batches, and the gradient through them.

    python examples/least_squares.py --out least-squares-output

Each curve is a sum of exponentials with amplitudes of its own, at times of its own, in noise:
y(t) = a exp(-r t) + b exp(-s t). For given rates the best amplitudes are a linear problem, solved
by a QR factorisation for each curve of the batch; what it leaves is a function of the rates alone,
and its gradient, through the factorisations, leads to them. The amplitudes never are parameters.

Source: Golub & Pereyra 1973, "The differentiation of pseudo-inverses and nonlinear least squares
        problems whose variables separate" (variable projection).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import rune
import rune.numpy as rnp
from rune import data, optim

CURVES, TIMES, NOISE = 1_000, 40, 0.02
RATES = np.array([0.5, 3.0])  # 1/s
BATCH, EPOCHS, LEARNING_RATE = 64, 12, 0.05


def measure(path: Path) -> None:
    """Write curves [CURVES, TIMES] and their times to a file."""
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0, 4, (CURVES, TIMES)), axis=1)
    amplitudes = random.uniform(0.5, 2, (CURVES, 2))
    curves = np.einsum("nk,ntk->nt", amplitudes, np.exp(-times[:, :, None] * RATES))
    curves += NOISE * random.standard_normal(curves.shape)
    np.savez(path, times=times.astype(np.float32), curves=curves.astype(np.float32))


def amplitudes(log_rates: Any, times: Any, curve: Any) -> tuple[Any, Any]:
    """The best amplitudes of one curve [T] for these rates [K], and the curve that they make."""
    q, r = rnp.linalg.qr(rnp.exp(-times[:, None] * rnp.exp(log_rates)))
    projections = q.T @ curve
    return rune.scipy.linalg.solve_triangular(r, projections), q @ projections


def loss(log_rates: Any, batch: Any) -> Any:
    """The mean square of what the best amplitudes leave, over a batch of curves."""
    _, fits = rune.vmap(amplitudes, in_axes=(None, 0, 0))(log_rates, batch["times"], batch["curves"])
    return rnp.mean((batch["curves"] - fits) ** 2)


def learn(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """The rates, ascending, and the loss of every step."""
    batches = data.file(path).shuffle(0).batch(BATCH)
    optimizer = optim.adam(LEARNING_RATE)

    def step(log_rates: Any, state: Any, batch: Any) -> Any:
        value, gradient = rune.value_and_grad(loss)(log_rates, batch)
        updates, state = optimizer.update(gradient, state, log_rates)
        return optim.apply_updates(log_rates, updates), state, value

    # The smaller last batch of an epoch runs the same program.
    compiled = rune.jit(step, dims=batches.dims, in_dims=(None, None, "batch,_"))
    log_rates = rnp.log(rnp.array([0.2, 1.0]))
    state, losses = optimizer.init(log_rates), []
    for batch in data.progress(batches.repeat(EPOCHS).prefetch(), "curves"):
        log_rates, state, value = compiled(log_rates, state, batch)
        losses.append(value)
    return np.sort(np.exp(log_rates)), np.array(losses)


def draw(file: Path, path: Path, rates: np.ndarray, losses: np.ndarray) -> Path:
    """Three curves with their fits, and the loss."""
    curves, axes = np.load(path), []
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 2)
    for number in range(3):
        times, curve = curves["times"][number], curves["curves"][number]
        _, fit = amplitudes(rnp.log(rnp.asarray(rates, "f32")), rnp.asarray(times), rnp.asarray(curve))
        axes[0].plot(times, curve, "o", ms=2.5, color=f"C{number}")
        axes[0].plot(times, fit.numpy(), lw=1, color=f"C{number}")
    axes[0].set(xlabel="time [s]", title="Three curves, amplitudes by least squares")
    axes[1].semilogy(losses, lw=0.8)
    axes[1].axhline(NOISE**2 * (1 - len(RATES) / TIMES), ls="--", lw=0.8, color="gray", label="noise")
    axes[1].set(xlabel="step", title="What they leave, mean square")
    axes[1].legend()
    figure.savefig(file, dpi=110)
    return file


def main() -> None:
    """Measure, learn the rates, and draw."""
    parser = argparse.ArgumentParser(description="batched least squares with gradients")
    parser.add_argument("--out", type=Path, default=Path("least-squares-output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    measure(out / "curves.npz")
    rates, losses = learn(out / "curves.npz")
    print(f"rates {rates[0]:.3f} and {rates[1]:.3f} per second, where {RATES[0]} and {RATES[1]} were")
    print(f"mean square {losses[0]:.2e} at first, {losses[-1]:.2e} at last, noise {NOISE**2:.2e}")
    print(draw(out / "curves.png", out / "curves.npz", rates, losses))


if __name__ == "__main__":
    main()
