"""A long signal on disk, filtered in chunks: FFTs of windows that overlap, by one program.

    python examples/spectra.py --out spectra-output

Overlap-save: a window of N samples begins M - 1 samples before the ones that it is for, where M is
the length of the filter. A product of its transform with the filter's is a circular convolution,
whose first M - 1 samples are wrong and are dropped. Neither signal nor result is ever in memory.
SciPy's convolution of the whole signal is the oracle.

Source: Oppenheim & Schafer, Discrete-Time Signal Processing 3e, section 8.7.3.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.signal
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import rune
import rune.numpy as rnp
from rune import data

RATE = 8_000  # samples a second
SECONDS, TONES = 250, (440.0, 1_000.0, 2_500.0)  # Hz; the filter lets the second one through
TAPS, WINDOW, BATCH = 801, 1 << 14, 16


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows of a signal that overlap, with zeros before its beginning and behind its end."""

    signal: np.ndarray
    size: int
    overlap: int

    @property
    def hop(self) -> int:
        """From one window to the next."""
        return self.size - self.overlap

    def __len__(self) -> int:
        return -(-len(self.signal) // self.hop)

    def __getitem__(self, number: int) -> np.ndarray:
        begin = number * self.hop - self.overlap
        part = self.signal[max(begin, 0) : begin + self.size]
        before = max(-begin, 0)
        return np.pad(part, (before, self.size - before - len(part)))


def record(path: Path) -> None:
    """Write tones in noise to a file, a second at a time."""
    random = np.random.default_rng(0)
    signal = np.lib.format.open_memmap(path, "w+", np.float32, (SECONDS * RATE,))
    for second in range(SECONDS):
        t = np.arange(second * RATE, (second + 1) * RATE) / RATE
        tones = sum(np.sin(2 * np.pi * f * t) for f in TONES)
        signal[second * RATE : (second + 1) * RATE] = tones + random.standard_normal(RATE)
    signal.flush()


def filtered(source: Path, target: Path, taps: np.ndarray) -> None:
    """Convolve the signal of one file with the taps, into another file of the same length."""
    signal = np.load(source, mmap_mode="r")
    windows = Windows(signal, WINDOW, len(taps) - 1)
    response = rnp.fft.rfft(rnp.asarray(taps), WINDOW)

    def convolved(rows: Any) -> Any:
        return rnp.fft.irfft(rnp.fft.rfft(rows) * response, WINDOW)[:, windows.overlap :]

    batches = data.sequence(windows).batch(BATCH)
    result = np.lib.format.open_memmap(target, "w+", np.float32, signal.shape)
    at = 0
    for rows in data.progress(batches.prefetch().map(rune.jit(convolved, dims=batches.dims)), "windows"):
        part = rows.numpy().reshape(-1)[: len(signal) - at]
        result[at : at + len(part)] = part
        at += len(part)
    result.flush()


def draw(file: Path, signals: dict[str, np.ndarray]) -> Path:
    """The power of each signal by frequency."""
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for name, signal in signals.items():
        frequencies, power = rune.scipy.signal.welch(rnp.asarray(signal), fs=RATE, nperseg=4096)
        axes.semilogy(frequencies.numpy(), power.numpy(), label=name, lw=0.9)
    axes.set(xlabel="frequency [Hz]", ylabel="power density [1/Hz]", ylim=(1e-12, None), title="Before and after")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=110)
    return file


def main() -> None:
    """Record, filter, compare with SciPy, and draw the spectra."""
    parser = argparse.ArgumentParser(description="a filter over a signal on disk")
    parser.add_argument("--out", type=Path, default=Path("spectra-output"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    taps = np.asarray(scipy.signal.firwin(TAPS, (900, 1_100), pass_zero=False, fs=RATE), np.float32)
    record(out / "signal.npy")
    filtered(out / "signal.npy", out / "filtered.npy", taps)
    signal, result = np.load(out / "signal.npy"), np.load(out / "filtered.npy")
    oracle = scipy.signal.oaconvolve(signal.astype(np.float64), taps.astype(np.float64))[: len(signal)]
    error = np.max(np.abs(result - oracle)) / np.max(np.abs(oracle))
    print(f"{len(signal):,} samples in {-(-len(signal) // (WINDOW - TAPS + 1))} windows of {WINDOW:,}")
    print(f"within {error:.0e} of SciPy's convolution")
    print(draw(out / "spectra.png", {"recorded": signal[: 60 * RATE], "filtered": result[: 60 * RATE]}))


if __name__ == "__main__":
    main()
