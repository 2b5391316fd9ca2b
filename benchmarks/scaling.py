"""The predicted weak scaling of a transformer's training step: docs/scaling.md shows the table.

    RUNE_CPU_DEVICES=2 python benchmarks/scaling.py

Nothing runs. The step of examples/tensor_parallel.py, with larger sizes, is partitioned for meshes
of up to 1,024 devices that are there by name only; what each device would compute and send is read
off its program. Times follow from what `rune.measure_devices` measures here, and from public
figures of hardware that is not here. The number of texts for each device is the same, however many
devices there are.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import rune
from rune.backends import Device, device_of
from rune.core.program import Program
from rune.lowering.stages import stages
from rune.sharding import Mesh, P
from rune.transforms.placement.curves import Curve
from rune.transforms.placement.predict import computation
from rune.transforms.placement.records import Measurements, Speed
from rune.transforms.sharding.blocks import Region
from rune.transforms.sharding.exchanges import Exchange, exchanges
from rune.transforms.sharding.localize import localized

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))

from tensor_parallel import LAYER_SPECS, loss

LAYERS, WIDTH, HEADS, HEAD, HIDDEN, LETTERS, LENGTH = 12, 1024, 16, 64, 4096, 32_768, 1024
BATCH, NODE = 8, 8  # texts on each device; devices that are linked within a machine
MESHES = ((1, 1), (8, 1), (1, 8), (64, 1), (8, 8), (1024, 1), (128, 8))  # along "data" and "model"

# NVIDIA H100 SXM, each at its peak: TF32 products without sparsity, FP32 operations, memory.
# Source: https://glennklockwood.com/garden/processors/h100 (of NVIDIA's data sheet).
H100 = Speed(
    "H100",
    "public figures",
    0.0,
    0.0,
    Curve(((1.0, 1 / 494.7e12), (494.7e12, 1.0))),
    Curve(((1.0, 1 / 3.35e12), (3.35e12, 1.0))),
    66.9e12,
)
# 18 NVLink 4 links of 25 GB/s each way: https://petronellatech.com/hardware/h100-h200-nvlink-cluster-scaling/
# InfiniBand NDR, 400 Gb/s for each device: https://www.server-parts.eu/post/infiniband-networking-nvidia-h100-h200-gpu-clusters
NVLINK, INFINIBAND = 450e9, 50e9  # bytes per second, each way
HOP_S = 5e-6  # of a collective, for each doubling of its devices: assumed


@dataclass(frozen=True, slots=True)
class Share:
    """The work of one device of a mesh in a step."""

    data: int
    model: int
    program: Program
    exchanges: tuple[Exchange, ...]

    @property
    def devices(self) -> int:
        """The number of devices of the mesh."""
        return self.data * self.model

    @property
    def bytes_sent(self) -> int:
        """The bytes sent in all collectives."""
        return sum(int(e.bytes_sent) * (e.steps or 1) for e in self.exchanges)


def shapes() -> Any:
    """The weights, by their shapes."""
    layer = {
        "queries_keys_values": (WIDTH, 3, HEADS, HEAD),
        "mix": (HEADS, HEAD, WIDTH),
        "up": (WIDTH, HIDDEN),
        "down": (HIDDEN, WIDTH),
    }
    leaves = {"letters": (LETTERS, WIDTH), "positions": (LENGTH, WIDTH), "logits": (WIDTH, LETTERS)}
    tree = {**leaves, "layers": [layer] * LAYERS}
    return rune.tree.map(lambda s: rune.ShapeDtypeStruct(s, "f32"), tree, is_leaf=lambda s: isinstance(s, tuple))


def specs(model: int) -> Any:
    """How the weights are split: as in the example, and logits by letters; not for one device."""
    cut = {"letters": P(), "positions": P(), "logits": P(None, "model"), "layers": [LAYER_SPECS] * LAYERS}
    return cut if model > 1 else rune.tree.map(lambda _: P(), cut)


def step(weights: Any, text: Any) -> Any:
    """A step of gradient descent, and its loss."""
    value, gradients = rune.value_and_grad(loss)(weights, text)
    return rune.tree.map(lambda w, g: w - 0.1 * g, weights, gradients), value


def mesh(data: int, model: int) -> Mesh:
    """A mesh of devices that are there by name only."""
    first = device_of("cpu")
    devices = [Device(replace(first.target, name=f"paper:{n}"), first.file) for n in range(data * model)]
    return Mesh(np.array(devices, object).reshape(data, model), ("data", "model"))


def share(data: int, model: int) -> Share:
    """The work of one device; the number of texts grows with that of devices."""
    texts = rune.ShapeDtypeStruct((BATCH * data * model, LENGTH + 1), "i32")
    program = rune.make_program(step)(shapes(), texts)
    grid, cuts = mesh(data, model), tuple(rune.tree.leaves(specs(model)))
    local, _ = localized(program, Region(grid, grid.axis_names), (*cuts, P("data")), (*cuts, P()))
    sent = tuple(e for e in exchanges(local, grid) if e.devices > 1)
    return Share(data, model, local, sent)


# --- times ------------------------------------------------------------------------------------


def exchange_here(exchange: Exchange, record: Measurements) -> float:
    """The exchange if all devices are linked as those of this machine are."""
    group = record.group(exchange.devices)
    return (exchange.steps or 1) * group.sums.seconds(int(exchange.bytes_sent))


def exchange_on_paper(exchange: Exchange, part: Share) -> float:
    """The exchange by NVLink within a machine, and by InfiniBand between machines."""
    is_within = part.devices <= NODE or exchange.axis == "model"
    rate = NVLINK if is_within else INFINIBAND
    return (exchange.steps or 1) * (HOP_S * math.log2(exchange.devices) + int(exchange.bytes_sent) / rate)


def counts(part: Share) -> list[str]:
    """The bytes that a device sends, which depend on no hardware."""
    grid = f"{part.data} x {part.model}"
    return [f"{part.devices:,}", grid, f"{part.bytes_sent / 1e6:,.0f}", str(len(part.exchanges))]


def times(seconds: Sequence[tuple[float, float]], alone: Sequence[tuple[float, float]]) -> list[str]:
    """The times of computation and collectives, and the efficiency, for each kind of hardware."""
    rows = (
        (text(computing), text(sending), f"{one / (computing + sending):.1%}")
        for (computing, sending), (one, _) in zip(seconds, alone, strict=True)
    )
    return [cell for row in rows for cell in row]


def text(seconds: float) -> str:
    """A time for people."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms" if seconds else "0"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the inputs, and the table."""
    argparse.ArgumentParser(prog="benchmarks/scaling.py").parse_args(argv)
    record = rune.measure_devices()
    print(record, "\n")
    head = "devices | data x model | sends [MB] | collectives | TFLOP"
    kinds = " | ".join(f"{kind}: computes | sends | efficiency" for kind in ("measured", "H100"))
    print(f"| {head} | {kinds} |\n|{'---|' * 11}")
    alone: list[tuple[float, float]] = []
    for data, model in MESHES:
        part = share(data, model)
        lowered = stages(part.program, device_of("cpu").target, ())
        here, on_paper = (computation(lowered, speed).seconds for speed in (record.speeds[0], H100))
        seconds = [
            (here, sum(exchange_here(e, record) for e in part.exchanges)),
            (on_paper, sum(exchange_on_paper(e, part) for e in part.exchanges)),
        ]
        alone = alone or seconds
        cells = [*counts(part), f"{int(lowered.costs().flops) / 1e12:.2f}", *times(seconds, alone)]
        print(f"| {' | '.join(cells)} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
