"""Ring attention: a sequence too long for one device, with each device holding a part of it.

    python examples/ring_attention.py 4

Queries stay where they are. Keys and values travel from device to device around a ring, so after
n - 1 hops every query has met every key, and no device has held more than one part besides its own.
The softmax is put together part by part: the largest score so far, the sum of the exponentials, and
the sum of the values by them (Liu et al. 2023, arXiv:2310.01889).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import rune
import rune.numpy as rnp
from rune import lax, nn
from rune.sharding import Mesh, P, make_mesh

LENGTH, HEADS, HEAD = 256, 4, 32


def ring_attention(queries: Any, keys: Any, values: Any) -> Any:
    """Causal attention of a device's queries to the keys and values of all devices.

    Shapes: [length / n, heads, head], all three and the result.
    """
    devices, here, part = lax.axis_size("ring"), lax.axis_index("ring"), len(queries)
    to_next = [(n, (n + 1) % devices) for n in range(devices)]
    positions = rnp.arange(part)
    largest = rnp.full((HEADS, part), -rnp.inf)
    total, weighed = rnp.zeros((HEADS, part)), rnp.zeros((HEADS, part, HEAD))
    travelling = rnp.stack([keys, values])  # one message for both
    for hop in range(devices):
        arrived, source = travelling, (here - hop) % devices
        if hop < devices - 1:
            # Before the part is used, so that the next one can travel meanwhile.
            travelling = lax.ppermute(travelling, "ring", to_next)
        scores = rnp.einsum("qnh,knh->nqk", queries, arrived[0]) * HEAD**-0.5
        allowed = here * part + positions[:, None] >= source * part + positions
        scores = rnp.where(allowed, scores, -rnp.inf)
        # A device's own part comes first, so there is a finite score from the first hop on.
        peak = rnp.maximum(largest, scores.max(-1))
        shares, shrink = rnp.exp(scores - peak[..., None]), rnp.exp(largest - peak)
        total = total * shrink + shares.sum(-1)
        weighed = weighed * shrink[..., None] + rnp.einsum("nqk,knh->nqh", shares, arrived[1])
        largest = peak
    return rnp.swapaxes(weighed / total[..., None], 0, 1)


def on_ring(mesh: Mesh) -> Callable[..., Any]:
    """Attention of whole sequences, which are cut over the devices of the mesh."""
    cut = P("ring")
    return rune.jit(rune.shard_map(ring_attention, mesh=mesh, in_specs=(cut, cut, cut), out_specs=cut))


def plain_attention(queries: Any, keys: Any, values: Any) -> Any:
    """The same on one device."""
    return nn.dot_product_attention(queries, keys, values, is_causal=True)


def main(devices: int = 4) -> None:
    """Compare both, and their gradients."""
    if "RUNE_CPU_DEVICES" not in os.environ:
        rune.configure(cpu_devices=devices)
    random = np.random.default_rng(0)
    operands = tuple(random.normal(size=(LENGTH, HEADS, HEAD)).astype(np.float32) for _ in range(3))
    attend = on_ring(make_mesh((devices,), ("ring",)))
    ring, plain = attend(*operands), plain_attention(*operands)
    np.testing.assert_allclose(ring, plain, rtol=1e-4, atol=1e-5)

    def gradients(attention: Callable[..., Any]) -> Any:
        return rune.grad(lambda *operands: (attention(*operands) ** 2).sum(), (0, 1, 2))(*operands)

    for of_ring, of_plain in zip(gradients(attend), gradients(plain_attention)):
        np.testing.assert_allclose(of_ring, of_plain, rtol=1e-3, atol=1e-4)
    print(f"{LENGTH} positions, {LENGTH // devices} on each of {devices} devices, {devices - 1} hops")
    print(f"attention as on one device within {np.max(np.abs(ring - plain)):.0e}, gradients too")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
