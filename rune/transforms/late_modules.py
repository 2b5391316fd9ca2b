"""Modules loaded when they are first needed, so that `import rune` stays light (decision 0008)."""

from __future__ import annotations

import functools
from types import ModuleType

from rune import locks

# `locks.load` imports under the lock of imports and without collections of garbage. The modules are
# cached here, since most of these functions are called on the way to every compilation.


@functools.cache
def compiler() -> ModuleType:
    """The lowering: for the first program that is compiled."""
    return locks.load("rune.lowering.stages")


@functools.cache
def absl_flags() -> ModuleType:
    """Command-line flags: for programs that parse them."""
    return locks.load("absl.flags")


@functools.cache
def watch() -> ModuleType:
    """Programs that watch for NaN and bounds: for the first such check."""
    return locks.load("rune.lowering.watch")


@functools.cache
def native_calls() -> ModuleType:
    """Descriptions of calls for native code: for the first call that is made a second time."""
    return locks.load("rune.transforms.compile.native_calls")


@functools.cache
def plan_check() -> ModuleType:
    """The checks of plans: for `check_stages`."""
    return locks.load("rune.backends.shared.plan_check")


@functools.cache
def timing() -> ModuleType:
    """Executables that time their steps: for `profile`."""
    return locks.load("rune.backends.shared.timing")


@functools.cache
def winners() -> ModuleType:
    """Winners of searches for schedules: for the first program that is compiled."""
    return locks.load("rune.transforms.tuning.winners")


@functools.cache
def compile_log() -> ModuleType:
    """The log: for the first trace while `log_compiles` is set."""
    return locks.load("rune.transforms.inspect.compile_log")


@functools.cache
def tune() -> ModuleType:
    """The search for schedules: for the first program that is searched."""
    return locks.load("rune.transforms.tuning.tune")
