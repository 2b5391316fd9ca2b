"""The pictures of the digits example: grids of images, and the loss. Drawn without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from digits_data import Digits
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

IMAGE, CAPTION = 8, 3  # pixels on a side of an image, and above it


def _save(figure: Figure, file: Path) -> Path:
    FigureCanvasAgg(figure)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=110)
    return file


def save_grid(file: Path, title: str, digits: Digits, captions: Sequence[str], columns: int) -> Path:
    """Images in rows of `columns`, each with its caption above."""
    rows = max(1, -(-len(digits) // columns))
    figure = Figure(figsize=(columns * 0.75, rows * 0.95 + 0.5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    axes.axis("off")
    # One picture of all images: drawing axes for each took longer than training for an epoch.
    height, width = IMAGE + CAPTION, IMAGE + 1
    sheet = np.zeros((rows * height, columns * width))
    for n, (image, caption) in enumerate(zip(digits.images, captions)):
        y, x = n // columns * height + CAPTION, n % columns * width
        sheet[y : y + IMAGE, x : x + IMAGE] = image.reshape(IMAGE, IMAGE)
        axes.text(x + IMAGE / 2, y - 1, caption, fontsize=8, ha="center")
    axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1)
    return _save(figure, file)


def save_losses(file: Path, losses: Mapping[str, np.ndarray], steps_per_epoch: int) -> Path:
    """The loss of every step of each network, on a logarithmic axis over epochs."""
    figure = Figure(figsize=(6, 3.4), layout="constrained")
    axes = figure.subplots()
    for name, loss in losses.items():
        axes.semilogy(np.arange(1, len(loss) + 1) / steps_per_epoch, loss, label=name, lw=0.8)
    axes.set(xlabel="epoch", ylabel="cross entropy of a minibatch", title="Training loss")
    axes.grid(alpha=0.3)
    axes.legend()
    return _save(figure, file)
