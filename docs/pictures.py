"""Pictures of the site, drawn by what its pages say.

python -m docs.pictures docs/spirals.png      the one of the README
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from docs.snippets import namespace

HERE = Path(__file__).resolve().parent
GREY = "#808080"  # of lines and letters, on light and on dark pages
REACH, SIDE = 1.1, 200  # of the plane that is drawn, and its points along one axis


def spirals() -> Figure:
    """The spirals of the tutorial, what its network says of every place, and its losses."""
    names = namespace(sorted((HERE / "tutorial").glob("[1-6]-*.md")))
    figure = Figure(figsize=(8, 3.6), layout="constrained")
    plane, curve = figure.subplots(1, 2)
    _draw_plane(plane, names)
    _draw_losses(curve, names["losses"])
    return figure


def _draw_plane(axes: Any, names: Mapping[str, Any]) -> None:
    ticks = np.linspace(-REACH, REACH, SIDE, dtype=np.float32)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    logits = np.asarray(names["predict"](names["params"], grid))
    share = 1 / (1 + np.exp(logits[..., 0] - logits[..., 1]))
    axes.contourf(ticks, ticks, share, levels=8, cmap="RdBu", alpha=0.5)
    places, labels = np.asarray(names["places"]), np.asarray(names["labels"])
    # An edge, by which dark points stand out on dark pages, whose colour shines through.
    axes.scatter(*places.T, c=labels, cmap="RdBu", s=9, edgecolors="white", linewidths=0.3)
    axes.set_axis_off()
    axes.set_aspect("equal")


def _draw_losses(axes: Any, losses: Any) -> None:
    axes.semilogy([float(x) for x in losses], color="#6478e8")
    plain(axes, "loss of each batch")


def plain(axes: Any, title: str) -> None:
    """Two spines, and nothing but grey about the lines."""
    axes.set_title(title, fontsize=10, color=GREY)
    axes.tick_params(which="both", colors=GREY)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(GREY)
    axes.patch.set_alpha(0)


if __name__ == "__main__":
    spirals().savefig(sys.argv[1], dpi=100, transparent=True)
