"""Reports to a profile: new buffers (memory, type, device, line) and copies to and from devices."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import Protocol

import numpy as np

from rune import profiling
from rune.backends.shared.protocol import Backend, Buffer
from rune.core.types import ArrayType
from rune.errors import user_frame
from rune.profiling import Allocation, Kind


class Holder(Protocol):
    """A device: its name, and what runs it."""

    @property
    def name(self) -> str: ...
    @property
    def backend(self) -> Backend: ...


def root(buffer: object) -> object:
    """The object that holds a buffer's memory: a view's base array, or the pool's block on a
    device."""
    if isinstance(buffer, np.ndarray):
        return buffer.base if type(buffer.base) is np.ndarray else buffer
    return getattr(buffer, "memory", buffer)


def note(buffer: Buffer, type: ArrayType, device: Holder | str | None, known: Collection[int] = ()) -> None:
    """Record a new buffer in the profile in force, at the user's line that is running.

    device: None for cpu:0
    known:  ids of memory that existed before: a result in donated memory is not a new buffer
    """
    memory, profile = root(buffer), profiling.current()
    if profile is None or id(memory) in known:
        return
    frame, shape = user_frame(), tuple(buffer.shape)
    nbytes = math.prod(shape) * type.dtype.itemsize
    name = "cpu:0" if device is None else device if isinstance(device, str) else device.name
    line = "" if frame is None else frame.short
    profile.memory.note(memory, Allocation(str(type.with_shape(shape)), nbytes, name, line, time.perf_counter()))


def copied_in(data: np.ndarray, device: Holder) -> Buffer:
    """A buffer on a device with the contents of an array of the host."""
    with profiling.span(f"copy to {device.name}", Kind.COPY, bytes=data.nbytes):
        return device.backend.copy_in(np.asarray(data, order="C"))


def copied_out(buffer: Buffer, type: ArrayType, device: Holder) -> np.ndarray:
    """An array of the host with the contents of a buffer on a device."""
    nbytes = math.prod(buffer.shape) * type.dtype.itemsize
    with profiling.span(f"copy from {device.name}", Kind.COPY, bytes=nbytes):
        return device.backend.copy_out(buffer, type)
