"""How many groups of a launch a unit holds at the same time, and how often it is filled."""

from __future__ import annotations

from rune.lowering.costs.launch import Launch
from rune.lowering.costs.records import DeviceRecord
from rune.records import dataclass

_ALLOCATED = 256  # subgroups get registers in pieces of this size


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Groups that a unit holds, how often all units are filled, and the share of its threads."""

    groups: int
    waves: int
    share: float


def occupancy(launch: Launch, record: DeviceRecord, registers: int, shared_bytes: int) -> Occupancy:
    """How much of a launch a unit holds if each thread needs this many registers."""
    subgroups = -(-launch.group_threads // record.subgroup_threads)
    limits = [record.unit_groups, record.unit_threads // (subgroups * record.subgroup_threads)]
    if record.unit_registers:
        subgroup_registers = min(registers, record.thread_registers) * record.subgroup_threads
        limits.append(record.unit_registers // (-(-subgroup_registers // _ALLOCATED) * _ALLOCATED * subgroups))
    if shared_bytes:
        limits.append(record.shared_bytes // shared_bytes)
    groups = max(1, min(limits))
    # A launch with few groups does not fill a unit.
    present = min(groups, max(1, -(-launch.groups // record.units)))
    waves = max(1, -(-launch.groups // (groups * record.units)))
    return Occupancy(present, waves, present * launch.group_threads / record.unit_threads)


__all__ = ["Occupancy", "occupancy"]
