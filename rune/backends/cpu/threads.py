"""A pool of worker threads in native code, which splits one kernel between the cores.

    parallel(task, words, total, chunk)     task(words, begin, end) over 0..total in pieces

Each device of the CPU has its own pool, which runs one job at a time: a caller that finds it busy
runs its kernel alone, so calls from several Python threads never wait for each other. Pieces are
claimed by compare-and-swap on one word, epoch | pieces | next, so that a late worker can never
claim a piece of a job that has been replaced. Workers and caller spin briefly, then sleep on
condition variables. After a fork the child has no workers, and its caller runs all pieces.

Invariant: when `parallel` returns, every piece has run exactly once.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from rune import config, locks
from rune.backends.cpu import compiler, conventions
from rune.records import dataclass

T = TypeVar("T")

SPINS = 2_000  # polls of the job word before a thread sleeps, about 50 µs: the time that waking takes
STACK_BYTES = 8 << 20  # as the main thread's: kernels keep private arrays on the stack
_OF_A_THREAD = 6  # Linux: the clock of one thread (4), which counts what it ran (2); man clock_getcpuclockid

_X86 = ("void @llvm.x86.sse2.pause()", "@llvm.x86.sse2.pause()")
_ARM = ("void @llvm.aarch64.hint(i32)", "@llvm.aarch64.hint(i32 1)")
_FORCED = r"--xla_force_host_platform_device_count=(\d+)"
_PAUSE = {"x86_64": _X86, "amd64": _X86, "arm64": _ARM, "aarch64": _ARM}


def is_available() -> bool:
    """Whether this system has POSIX threads, and the processor a known pause instruction."""
    return os.name == "posix" and platform.machine().lower() in _PAUSE


@functools.cache
def device_count() -> int:
    """The number of devices of the CPU, which is fixed by the first call."""
    settings = config.current()
    if settings.cpu_devices > 1 or not settings.xla_flags:
        return settings.cpu_devices
    counts = re.findall(_FORCED, os.environ.get("XLA_FLAGS", ""))
    return max(int(counts[-1]), 1) if counts else 1


def is_counted() -> bool:
    """Whether the number of devices is fixed."""
    return bool(device_count.cache_info().currsize)


@dataclass(frozen=True, slots=True)
class Share:
    """One device's share of the processor: its number, the number of devices, and of all cores.

    A device gets neighbouring cores. If there are more devices than cores, devices share them.

    >>> [Share(k, 2, 5).of("abcde") for k in range(2)], [Share(k, 3, 2).cores for k in range(3)]
    (['ab', 'cde'], [1, 1, 1])
    """

    device: int
    devices: int
    all_cores: int

    @property
    def cores(self) -> int:
        """The number of cores between which the device splits kernels, at least one."""
        return len(self.of(range(self.all_cores)))

    def of(self, processors: Sequence[T]) -> Sequence[T]:
        """The device's part of a sequence with one entry for each core."""
        count = len(processors)
        first = self.device * count // self.devices
        return processors[first : max(first + 1, (self.device + 1) * count // self.devices)]


@functools.cache
def shares() -> tuple[Share, ...]:
    """The cores of each device."""
    cores = compiler.available_cores() if is_available() else 1
    return tuple(Share(number, device_count(), cores) for number in range(device_count()))


@dataclass(frozen=True, slots=True)
class Pool:
    """The running pool of this process."""

    code: compiler.Code
    workers: int


def pause() -> tuple[str, str]:
    """The processor's instruction for spinning threads: declaration and call."""
    return _PAUSE[platform.machine().lower()]


def detached() -> int:
    """The system's number of PTHREAD_CREATE_DETACHED."""
    return 2 if platform.system() == "Darwin" else 1


@contextmanager
def without_signals() -> Iterator[None]:
    """Blocks all signals in threads that are started inside the block."""
    # New threads inherit the mask. A signal that went to a worker could interrupt no Python.
    before = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The pool as text, imported if no earlier process has left the code.
_text = locks.late_module("rune.backends.cpu.threads_code")


def _compiled() -> compiler.Code:
    system = *pause(), detached(), STACK_BYTES, SPINS, can_place()

    def write() -> str:
        code = _text()
        return code.text(code.System(*system))

    # More effort does not make locks and waits faster; the first call would take 9 ms more.
    return compiler.compile_routine("pool", system, {}, write, conventions.HURRY)


def can_place() -> bool:
    """Whether the C library can move threads between processors."""
    library = ctypes.CDLL(None)
    return all(hasattr(library, f) for f in ("sched_getcpu", "sched_setaffinity", "gettid"))


def allow(code: compiler.Code, processors: Iterable[int]) -> None:
    """Set the processors that native code may move its threads to, as bits of a mask."""
    words = (ctypes.c_uint64 * 16).from_address(code.address("allowed"))
    for number in processors:
        if number < 1024:  # the size of the mask, glibc's CPU_SETSIZE
            words[number // 64] |= 1 << number % 64


@functools.cache
def _pool(share: Share) -> Pool:
    # Linked anew for each device, because the globals of the module are the pool's state.
    code = _compiled()
    # Workers run this code until the process ends, so it must never be freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    if can_place():
        allow(code, share.of(sorted(os.sched_getaffinity(0))))
    # Registered before the workers start, since another thread may fork in between.
    os.register_at_fork(after_in_child=ctypes.CFUNCTYPE(None)(code.address("forget")))
    start = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("start"))
    with without_signals():
        worker_count = start(share.cores - 1)
    return Pool(code, worker_count)


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a device; a profile reads their clocks."""

    code: compiler.Code

    @property
    def ids(self) -> list[int]:
        """Their thread ids in Linux; none in the child of a fork."""
        count = ctypes.c_int64.from_address(self.code.address("workers")).value
        ids = (ctypes.c_int32 * count).from_address(self.code.address("ids"))
        return [thread for thread in ids if thread]

    def seconds(self) -> float:
        """The processor time of all of them, spinning included. Units: s."""
        return sum(time.clock_gettime(~thread << 3 | _OF_A_THREAD) for thread in self.ids)


def workers(share: Share) -> Workers | None:
    """The workers of a device; None if it has none, or if the system has no clocks of threads."""
    has_clocks = share.cores > 1 and is_available() and can_place() and sys.platform == "linux"
    return Workers(_pool(share).code) if has_clocks else None


def parallel_address(share: Share) -> int:
    """The address of a device's `parallel`, with a worker for every core but the caller's."""
    return _pool(share).code.address("parallel")
