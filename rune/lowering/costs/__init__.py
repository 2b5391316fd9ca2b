"""Costs: the time and resources that a kernel takes on a device, computed from its code alone.

records.py  a device in numbers            table.py      those of devices not measured here
devices.py  which record is a target's     launch.py     loops, groups and threads of a launch
samples.py  sectors and banks of requests  reading.py    code as rounds and touches
footprints.py bytes through caches         registers.py, occupancy.py  what a unit holds
totals.py   sums over rounds               processors.py lanes as a processor has them
model.py    the time, and what bounds it
"""

from __future__ import annotations

from rune.lowering.costs.devices import record_of
from rune.lowering.costs.model import Cost, cost
from rune.lowering.costs.records import Cache, DeviceRecord

__all__ = ["Cache", "Cost", "DeviceRecord", "cost", "record_of"]
