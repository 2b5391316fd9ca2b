"""Invented records of devices, so that predictions are the same everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import rune
from rune.backends import Device
from rune.transforms.placement import storage
from rune.transforms.placement.curves import curve
from rune.transforms.placement.records import Group, Link, Measurements, Speed


def measurements(
    names: Sequence[str], latency: float = 1e-4, bytes_per_second: float = 1e9, slower: float = 1.0
) -> Measurements:
    """Devices of 100 GFLOP/s and 10 GB/s, the last of them slower by this factor."""
    message = curve([(4, latency), (4 + bytes_per_second, latency + 1.0)])
    sizes = [2**n for n in range(1, len(names).bit_length()) if 2**n < len(names)]
    return Measurements(
        tuple(_speed(name, slower if name == names[-1] else 1.0) for name in names),
        tuple(Link(a, b, message) for n, a in enumerate(names) for b in names[n + 1 :]),
        tuple(
            Group(n, latency, 1.0, _speed("slowest", slower).streams, message, message)
            for n in [*sizes, *[len(names)] * (len(names) > 1)]
        ),
    )


def _speed(name: str, slower: float) -> Speed:
    products = curve([(1e3, slower * 1e-8), (1e12, slower * 10.0)])
    streams = curve([(1e3, slower * 1e-7), (1e10, slower)])
    return Speed(name, "invented", 1e-6, 1e-7, products, streams, 1e10 / slower)


@contextmanager
def stored(record: Measurements, machines: Sequence[Device], folder: Path) -> Iterator[None]:
    """A block in which only these devices have a record, this one."""
    with rune.configure(cache_dir=str(folder)):
        storage.forget()
        storage.store(record, machines)
        try:
            yield
        finally:
            storage.forget()
