"""Store what torch 2.13.0 answers to the calls of torch_cases.py, with the gradients of the sum of
all results times fixed weights. Run by hand, where torch is installed:

python tests/nn/make_vectors.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER.parent.parent))

from tests.nn.torch_cases import CASES, Case  # noqa: E402

VERSION = "2.13.0"
TARGET = FOLDER / "torch_2_13_0.npz"


class Functional:
    """torch.nn.functional, with cells and layers called by their weights."""

    def __init__(self, torch: Any):
        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        function = getattr(self.torch.nn.functional, name)

        def call(*args: Any, **options: Any) -> Any:
            if name in ("cross_entropy", "nll_loss"):
                labels = args[1] if args[1].dtype.is_floating_point else args[1].long()
                args = (args[0], labels, *(w.detach() for w in args[2:]))
            return function(*args, **options)

        return call

    def cells(self, name: str, x: Any, state: Any, weights: Any) -> Any:
        cell_state = tuple(state) if name == "lstm_cell" else state[0]
        return getattr(self.torch, name)(x, cell_state, *weights)

    def layers(self, kind: str, x: Any, weights: Any, ways: int) -> Any:
        layer = getattr(self.torch.nn, kind.upper())(3, 4, 2, bidirectional=ways == 2)
        names = [name for name, _ in layer.named_parameters()]
        parameters = dict(zip(names, weights, strict=True))
        outputs, last = self.torch.func.functional_call(layer, parameters, (x,))
        return (outputs, *last) if kind == "lstm" else (outputs, last)


def answer(torch: Any, case: Case) -> dict[str, np.ndarray]:
    """Results and gradients of one case."""
    tensors = [torch.tensor(x) for x in case.draw()]
    for t in tensors:
        t.requires_grad_(t.dtype.is_floating_point)
    results = case.torch_call(Functional(torch), *tensors)
    outputs = results if isinstance(results, tuple) else (results,)
    weighted_sums = [(o * torch.cos(torch.arange(o.numel()).reshape(o.shape))).sum() for o in outputs]
    torch.stack(weighted_sums).sum().backward()
    vectors = {f"{case} / {k}": o.detach().numpy() for k, o in enumerate(outputs)}
    for k, t in enumerate(tensors):
        if t.grad is not None:
            vectors[f"{case} / d{k}"] = t.grad.numpy()
    return vectors


def main() -> None:
    """Run every case on the CPU."""
    import torch  # pyright: ignore[reportMissingImports]

    assert torch.__version__.startswith(VERSION), f"torch {VERSION} required"
    vectors: dict[str, np.ndarray] = {}
    for case in CASES:
        vectors |= answer(torch, case)
    np.savez_compressed(TARGET, allow_pickle=False, **vectors)


if __name__ == "__main__":
    main()
