"""Heat in a plate whose rows are on several devices: a stencil with halo exchange.

    python examples/heat.py 4

A point needs its four neighbours. At the edge of a block one of them is on the next device, so
before every step each device sends its first row up and its last row down: two permutations.
The whole loop is one program on every device.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import lax
from rune.sharding import Mesh, P, make_mesh

SIZE, STEPS, RATE = 64, 200, 0.2  # a step is stable for rates below 1/4


def hot_spot() -> np.ndarray:
    """A cold plate with a hot square, off the middle."""
    plate = np.zeros((SIZE, SIZE), np.float32)
    plate[8:24, 20:36] = 100
    return plate


def diffuse(block: Any, above: Any, below: Any) -> Any:
    """One step of a block, given the row above it and the row below it; the walls are at 0."""
    tall = rnp.concatenate([above, block, below])
    wide = rnp.pad(block, ((0, 0), (1, 1)))
    neighbours = tall[:-2] + tall[2:] + wide[:, :-2] + wide[:, 2:]
    return block + RATE * (neighbours - 4 * block)


def step(block: Any) -> Any:
    """One step of what a device holds."""
    last = lax.axis_size("rows") - 1
    # Nobody sends to the first and the last device: they receive zeros, which are the walls.
    above = lax.ppermute(block[-1:], "rows", [(n, n + 1) for n in range(last)])
    below = lax.ppermute(block[:1], "rows", [(n + 1, n) for n in range(last)])
    return diffuse(block, above, below)


def simulation(mesh: Mesh, steps: int = STEPS) -> Callable[[Any], Any]:
    """A function from a plate to the plate after so many steps, which runs on all devices."""

    def run(block: Any) -> Any:
        return lax.fori_loop(0, steps, lambda _, block: step(block), block)

    return rune.jit(rune.shard_map(run, mesh=mesh, in_specs=P("rows"), out_specs=P("rows")))


def main(devices: int = 4) -> None:
    """Simulate on several devices and on one, compare, and draw the plate."""
    if "RUNE_CPU_DEVICES" not in os.environ:
        rune.configure(cpu_devices=devices)
    plate = simulation(make_mesh((devices,), ("rows",)))(hot_spot())
    alone = simulation(make_mesh((1,), ("rows",)))(hot_spot())
    np.testing.assert_array_equal(plate, alone)  # no sum is split, so every bit is the same
    rune.debug.visualize_array_sharding(plate)
    for row in np.asarray(plate)[::4, ::2]:
        print("".join(" .:-=+*#%@"[int(temperature / 5)] for temperature in row).rstrip())
    print(f"hottest {np.max(plate):.1f}, the same bits on {devices} devices and on one")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
