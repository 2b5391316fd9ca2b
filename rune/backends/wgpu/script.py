"""Scripts: the commands of a call on a WebGPU device, kept for the next call on the same memory.

What a walk of the steps has encoded, pipelines and bind groups in order, is encoded again without
walking; and by the native library's own functions, since wgpu-py's wrappers cost more than the work
(14 against 2 µs a kernel). What a pass objects to is said by its encoder's `finish`.

A script belongs to one choice of memory. Memory comes back from the pool, so few are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

KEPT = 32  # scripts of one plan
LONGEST = 4096  # commands of a script


@dataclass(frozen=True, slots=True)
class Launches:
    """Consecutive dispatches, one pass: native pipeline and bind group, numbers of groups."""

    calls: tuple[tuple[object, object, int, int], ...]
    held: tuple[object, ...]  # what keeps the native handles alive


@dataclass(frozen=True, slots=True)
class Move:
    """A copy: target, offset there, source, offset there, bytes."""

    target: object
    to: int
    source: object
    at: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a submission: what follows is one of its own."""


Script = tuple[Launches | Move | Cut, ...]


@dataclass(slots=True)
class Notes:
    """The commands encoded so far; `fits` turns false where they cannot be replayed."""

    fits: bool = True
    commands: list[Launches | Move | Cut] = field(default_factory=list)
    calls: list[tuple[Any, Any, int, int]] = field(default_factory=list)
    held: list[object] = field(default_factory=list)

    def dispatch(self, pipeline: Any, group: Any, groups: tuple[int, int]) -> None:
        """Note a dispatch."""
        self.calls.append((pipeline._internal, group._internal, *groups))
        # Raw handles do not keep their objects alive, so the objects are held as well.
        self.held += [pipeline, group]
        self.fits = self.fits and len(self.calls) < LONGEST

    def copy(self, *move: Any) -> None:
        """Note a copy."""
        self._end_pass()
        self.commands.append(Move(*move))
        self.fits = self.fits and len(self.commands) < LONGEST

    def cut(self) -> None:
        """Note that a submission ends."""
        self._end_pass()
        self.commands.append(Cut())

    def script(self) -> Script | None:
        """The script; None if it cannot be kept."""
        self._end_pass()
        return tuple(self.commands) if self.fits else None

    def _end_pass(self) -> None:
        if self.calls:
            self.commands.append(Launches(tuple(self.calls), tuple(self.held)))
            self.calls, self.held = [], []


@functools.cache
def _native() -> tuple[Callable[..., None], Callable[..., None], Callable[..., None], Any]:
    """The library's functions for a pass: set a pipeline, set a bind group, dispatch; and NULL."""
    native: Any = import_module("wgpu.backends.wgpu_native")
    return (
        native.lib.wgpuComputePassEncoderSetPipeline,
        native.lib.wgpuComputePassEncoderSetBindGroup,
        native.lib.wgpuComputePassEncoderDispatchWorkgroups,
        native.ffi.NULL,
    )


def play(script: Script, device: Any) -> None:
    """Encode the script, and submit it."""
    commands = device.create_command_encoder()
    for part in script:
        match part:
            case Launches(calls=calls):
                computing = commands.begin_compute_pass()
                _dispatch(computing._internal, calls)
                computing.end()
            case Move():
                commands.copy_buffer_to_buffer(part.source, part.at, part.target, part.to, part.nbytes)
            case Cut():
                device.queue.submit([commands.finish()])
                commands = device.create_command_encoder()
    device.queue.submit([commands.finish()])


def _dispatch(computing: object, calls: tuple[tuple[object, object, int, int], ...]) -> None:
    set_pipeline, set_group, dispatch, null = _native()
    last = None
    for pipeline, group, wide, high in calls:
        if pipeline is not last:
            set_pipeline(computing, pipeline)
            last = pipeline
        set_group(computing, 0, group, 0, null)
        dispatch(computing, wide, high, 1)
