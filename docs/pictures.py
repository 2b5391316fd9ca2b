"""Pictures of the site, drawn by what its pages say."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from docs.snippets import namespace

HERE = Path(__file__).resolve().parent
GREY = "#808080"  # of lines and letters, on light and on dark pages
REACH, SIDE = 1.1, 200  # of the plane that is drawn, and its points along one axis


def spirals() -> str:
    """The spirals of the tutorial, what its network says of every place, and its losses; as SVG."""
    chapters = sorted((HERE / "tutorial").glob("[1-6]-*.md"))
    names = namespace(chapters)
    style = {
        "text.color": GREY,
        "axes.edgecolor": GREY,
        "xtick.color": GREY,
        "ytick.color": GREY,
        "svg.hashsalt": "rune",
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(8, 3.6), layout="constrained")
        plane, curve = figure.subplots(1, 2)
        _draw_plane(plane, names)
        _draw_losses(curve, names["losses"])
        svg = io.StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    return svg.getvalue()


def _draw_plane(axes: Any, names: Mapping[str, Any]) -> None:
    ticks = np.linspace(-REACH, REACH, SIDE, dtype=np.float32)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    logits = np.asarray(names["predict"](names["params"], grid))
    share = 1 / (1 + np.exp(logits[..., 0] - logits[..., 1]))
    axes.contourf(ticks, ticks, share, levels=8, cmap="RdBu", alpha=0.5)
    places, labels = np.asarray(names["places"]), np.asarray(names["labels"])
    axes.scatter(*places.T, c=labels, cmap="RdBu", s=6)
    axes.set_axis_off()
    axes.set_aspect("equal")


def _draw_losses(axes: Any, losses: Any) -> None:
    axes.semilogy([float(x) for x in losses], color="#4051b5")
    axes.set_title("loss of each batch", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.patch.set_alpha(0)
