"""From the measurements of a device to its record for the cost model of kernels.

Results of `measure_devices` replace numbers of the table: memory and caches from streams of the
size that fits there; arithmetic from products; a launch from one additional step in a program.
Latencies, registers and the like, which it does not measure, come from the table.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from rune import dtypes
from rune.lowering.codegen.target import Target
from rune.lowering.costs import Cache, DeviceRecord, record_of
from rune.transforms.placement.records import Speed


def kernel_record(speed: Speed, target: Target) -> DeviceRecord:
    """The record of a device as it was measured."""
    table = record_of(target)
    # The share of the table's peak that products reach; other arithmetic is scaled alike.
    efficiency = speed.products.rate / table.flops(dtypes.f32)
    memory = speed.streams.rate
    # The first level limits a kernel by its requests, not by a rate, so the table's number stays.
    rates = [*(c.rate if c is table.caches[0] else _served(speed, table, c) for c in table.caches), memory]
    # Noise may make a cache look slower than the next level.
    for place, (near, far) in reversed(list(enumerate(pairwise(rates)))):
        rates[place] = max(near, far)
    floats = {d: efficiency * rate for d, rate in table.operations.items() if d in dtypes.FLOATING}
    return replace(
        table,
        name=speed.device,
        operations={**table.operations, **floats},
        caches=tuple(replace(c, rate=r) for c, r in zip(table.caches, rates, strict=False)),
        memory_rate=memory,
        launch_ns=1e9 * speed.step_seconds,
        source=f"measured on {speed.description}",
    )


def _served(speed: Speed, table: DeviceRecord, cache: Cache) -> float:
    """The rate of a cache: that of a stream that fills half of it, on all units. Units: B/s."""
    size = cache.capacity_bytes * (1 if cache.is_shared else table.units) / 2
    return size / max(1e-9, speed.streams.seconds(size) - speed.streams.latency)


__all__ = ["kernel_record"]
