"""Measurements on disk, next to compiled kernels: once for the same devices and drivers.

An entry that is damaged, or from another version of rune, is ignored and measured again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TypedDict

from rune import locks
from rune.backends import Device, devices
from rune.backends.shared import disk_cache
from rune.transforms.placement.curves import Curve
from rune.transforms.placement.records import Group, Link, Measurements, Speed

_lock = locks.lock()
_known: dict[bytes, Measurements] = {}  # in this process, in case nothing is stored on disk


def store(record: Measurements, machines: Sequence[Device]) -> None:
    """Store the measurements of these devices."""
    key = _key(machines)
    with _lock:
        _known[key] = record
    disk_cache.store(key, to_text(record).encode())


def load(machines: Sequence[Device]) -> Measurements | None:
    """The measurements of exactly these devices, by this process or another."""
    key = _key(machines)
    with _lock:
        record = _known.get(key)
    return record or _from_disk(key)


def covering(machines: Sequence[Device]) -> Measurements | None:
    """The measurements of these devices, or of all devices of their kinds."""
    kinds = {d.target.backend for d in machines}
    all_of_kinds = tuple(d for d in devices() if d.target.backend in kinds)
    exact = load(machines)
    if exact is not None:
        return exact
    names = {d.name for d in machines}
    with _lock:
        # Measurements of more devices contain those of each of them.
        larger = [m for m in _known.values() if names <= set(m.devices)]
    return larger[-1] if larger else load(all_of_kinds)


def forget() -> None:
    """Forget what this process has measured or read."""
    with _lock:
        _known.clear()


def _from_disk(key: bytes) -> Measurements | None:
    text = disk_cache.load(key)
    record = None if text is None else from_text(text.decode())
    if record is not None:
        with _lock:
            _known[key] = record
    return record


def _key(machines: Sequence[Device]) -> bytes:
    targets = [d.target for d in machines]
    parts = (str(part) for t in targets for part in (t.name, t.description, t.driver, t.cores))
    # The first word says what was measured: when that changes, so does it, and old entries are
    # misses.
    return disk_cache.key_of("measurements of groups by amounts", *parts)


# --- as text ----------------------------------------------------------------------------------


class _Fields(TypedDict):
    speeds: Sequence[Mapping[str, object]]
    links: Sequence[Mapping[str, object]]
    groups: Sequence[Mapping[str, object]]


def to_text(record: Measurements) -> str:
    """The record as JSON."""
    return json.dumps(asdict(record))


def from_text(text: str) -> Measurements | None:
    """The record in a text; None if the text is not that of a record."""
    try:
        fields: _Fields = json.loads(text)
        return Measurements(
            tuple(Speed(**_with_curves(f)) for f in fields["speeds"]),
            tuple(Link(**_with_curves(f)) for f in fields["links"]),
            tuple(Group(**_with_curves(f)) for f in fields["groups"]),
        )
    except (ValueError, TypeError, KeyError):
        return None


def _with_curves(fields: Mapping[str, object]) -> dict:
    """The fields of a record, with its curves."""
    return {name: _curve(value) if isinstance(value, dict) else value for name, value in fields.items()}


def _curve(fields: Mapping[str, Sequence[Sequence[float]]]) -> Curve:
    return Curve(tuple((amount, seconds) for amount, seconds in fields["points"]))
