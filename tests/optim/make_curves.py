"""Store the paths that torch 2.13.0's optimisers take on a small problem. Run by hand, where torch
is installed:

python tests/optim/make_curves.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.optim.problem import LABELS, POINTS, START, STEPS  # noqa: E402

VERSION = "2.13.0"
TARGET = FOLDER / "torch_2_13_0.json"


def optimizers(torch: Any) -> dict[str, Any]:
    """name -> optimizer of a list of parameters, with the arguments of test_curves.py."""
    o = torch.optim
    return {
        "sgd": lambda p: o.SGD(p, 0.1),
        "momentum": lambda p: o.SGD(p, 0.1, momentum=0.9),
        "nesterov": lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True),
        "adam": lambda p: o.Adam(p, 0.1),
        "adamw": lambda p: o.AdamW(p, 0.1, weight_decay=0.05),
        "adamax": lambda p: o.Adamax(p, 0.1),
        "rmsprop": lambda p: o.RMSprop(p, 0.05, alpha=0.9),
        "centered rmsprop": lambda p: o.RMSprop(p, 0.05, alpha=0.9, centered=True),
        "rmsprop with momentum": lambda p: o.RMSprop(p, 0.02, alpha=0.9, momentum=0.8),
        "adagrad": lambda p: o.Adagrad(p, 0.5),
        "adadelta": lambda p: o.Adadelta(p, 1.0),
    }


def path(torch: Any, make: Any) -> list[list[float]]:
    """The parameters after every step of the logistic problem."""
    weights = torch.tensor(START, dtype=torch.float64, requires_grad=True)
    points, labels = (torch.tensor(x, dtype=torch.float64) for x in (POINTS, LABELS))
    optimizer, curve = make([weights]), []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.softplus(-labels * (points @ weights)).mean()
        (loss + 0.05 * (weights**2).sum()).backward()
        optimizer.step()
        curve.append(weights.detach().tolist())
    return curve


def main() -> None:
    """Run every optimiser."""
    import torch  # pyright: ignore[reportMissingImports]

    assert torch.__version__.startswith(VERSION), f"torch {VERSION} required"
    curves = {name: path(torch, make) for name, make in optimizers(torch).items()}
    TARGET.write_text(json.dumps(curves))


if __name__ == "__main__":
    main()
