"""Scripts: the commands of a call on a WebGPU device, kept for the next call on the same memory.

The commands that a walk of the steps has encoded are encoded again without walking: as one list of
calls of the native library's functions (shared/call_list.py), because wgpu-py's wrappers cost more
than the work. Errors of these functions are raised after the last call (guard.py).

A script is valid for one choice of memory. The pool hands out the same blocks again, so few scripts
are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import field
from importlib import import_module
from itertools import pairwise
from typing import Any, Protocol

from rune.backends.shared.call_list import CallList, Notes
from rune.backends.wgpu.guard import Guard
from rune.records import dataclass

KEPT = 32  # scripts of one plan
LONGEST = 4096  # the most commands of a script, which is kept in memory and was walked before anyway


class Native(Protocol):
    """An object of wgpu-py; `_internal` is its handle."""

    _internal: object


@dataclass(frozen=True, slots=True)
class Launch:
    """A dispatch: pipeline, bind group, numbers of groups."""

    pipeline: Native
    group: Native
    groups: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Move:
    """A copy: target, offset there, source, offset there, bytes."""

    target: Native
    to: int
    source: Native
    at: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a submission."""


@dataclass(slots=True)
class Commands:
    """The commands encoded so far; `fits` becomes False if they cannot be replayed."""

    fits: bool = True
    commands: list[Launch | Move | Cut] = field(default_factory=list)

    def note(self, command: Launch | Move | Cut) -> None:
        """Add a command."""
        self.commands.append(command)
        self.fits = self.fits and len(self.commands) < LONGEST


@dataclass(frozen=True)
class Script:
    """Commands to be replayed. The list of calls is made for the first replay."""

    commands: tuple[Launch | Move | Cut, ...]
    device: Native
    queue: Native

    def play(self, guard: Guard) -> None:
        """Encode and submit all commands. Signal handlers run between submissions. Errors: those of
        wgpu-py."""
        for calls in self.lists:
            with guard:
                calls.play()

    @functools.cached_property
    def lists(self) -> tuple[CallList, ...]:
        """Lists of calls that encode and submit, one for each submission."""
        # Separate ones, so that signal handlers can run between submissions.
        cuts = [k for k, command in enumerate(self.commands) if isinstance(command, Cut)]
        submissions = pairwise([-1, *cuts, len(self.commands)])
        return tuple(self._list(self.commands[first + 1 : end]) for first, end in submissions)

    def _list(self, group: Sequence[Launch | Move | Cut]) -> CallList:
        writer = _Writer(Notes(), self.device, self.queue)
        for command in group:
            match command:
                case Launch():
                    writer.launch(command)
                case Move():
                    writer.move(command)
        writer.submit()
        return writer.notes.list()  # handles do not keep their objects alive, so the script does


def _library() -> Any:
    return import_module("wgpu.backends.wgpu_native")


def function_of(name: str) -> int:
    """The address of a function of the native library."""
    native = _library()
    return int(native.ffi.cast("uintptr_t", getattr(native.lib, name)))


def handle_of(native: Native) -> int:
    """The handle of an object of wgpu-py."""
    return int(_library().ffi.cast("uintptr_t", native._internal))


@dataclass(slots=True)
class _Writer:
    """Converts commands to calls of the native library."""

    notes: Notes
    device: Native
    queue: Native
    encoder: int | None = None  # the word of the open encoder
    computing: int | None = None  # and of its open pass
    pipeline: object = None  # the pipeline of the pass

    def call(self, name: str, *words: int) -> int:
        """Record a call of a function of the library; returns the word of its answer."""
        return self.notes.call(function_of(name), *words)

    def handle(self, native: Native) -> int:
        """The word of an object's handle."""
        return self.notes.constant(handle_of(native))

    def opened(self) -> int:
        """The word of the open encoder, with or without a pass."""
        if self.encoder is None:
            nothing = self.notes.constant(0)
            self.encoder = self.call("wgpuDeviceCreateCommandEncoder", self.handle(self.device), nothing)
        return self.encoder

    def launch(self, launch: Launch) -> None:
        """Record a dispatch. Consecutive ones share a pass."""
        zero, one = map(self.notes.constant, (0, 1))
        if self.computing is None:
            self.computing = self.call("wgpuCommandEncoderBeginComputePass", self.opened(), zero)
        computing, groups = self.computing, map(self.notes.constant, launch.groups)
        if launch.pipeline is not self.pipeline:
            self.pipeline = launch.pipeline
            self.call("wgpuComputePassEncoderSetPipeline", computing, self.handle(launch.pipeline))
        self.call("wgpuComputePassEncoderSetBindGroup", computing, zero, self.handle(launch.group), zero, zero)
        self.call("wgpuComputePassEncoderDispatchWorkgroups", computing, *groups, one)

    def end_pass(self) -> None:
        """End the open pass, if there is one."""
        if self.computing is not None:
            self.call("wgpuComputePassEncoderEnd", self.computing)
            self.call("wgpuComputePassEncoderRelease", self.computing)
        self.computing = self.pipeline = None

    def move(self, move: Move) -> None:
        """Record a copy, which is not allowed inside a pass."""
        self.end_pass()
        source, target = self.handle(move.source), self.handle(move.target)
        at, to, nbytes = map(self.notes.constant, (move.at, move.to, move.nbytes))
        self.call("wgpuCommandEncoderCopyBufferToBuffer", self.opened(), source, at, target, to, nbytes)

    def submit(self) -> None:
        """Record the submission of the encoder."""
        self.end_pass()
        if self.encoder is None:
            return
        buffer = self.call("wgpuCommandEncoderFinish", self.encoder, self.notes.constant(0))
        one = self.notes.constant(1)
        self.call("wgpuQueueSubmit", self.handle(self.queue), one, self.notes.address_of(buffer))
        # The library counts handles: each call would leave both behind.
        self.call("wgpuCommandBufferRelease", buffer)
        self.call("wgpuCommandEncoderRelease", self.encoder)
        self.encoder = None
