"""The CPU executor: a plan becomes one native function, and calling it is one Python call.

Buffers are NumPy arrays, shared with the user without a copy. Kernels are LLVM IR
(lowering/codegen/llvm), compiled together with the plan's steps; a pool of threads splits large
kernels and matrix products between the cores.

    compiler   modules, compiled or from disk     plan      a plan as one module: steps, entry
    llvm       LLVM                               images/   code that runs without LLVM
    run        a compiled plan                    threads   the pool of threads
    drafts     plans compiled quickly at first
    gemm/      matrix products                    calls/    cached calls, made by native code
    fft/       Fourier transforms                 linalg/   factorisations

Modules that write code are imported only if no earlier process has left the code on disk.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from rune import config, dtypes, locks
from rune.backends.cpu import compiler, conventions, host_abi, threads
from rune.backends.cpu.drafts import DraftExecutable
from rune.backends.cpu.host import ROUTINES, Host
from rune.backends.cpu.libraries import Libraries
from rune.backends.cpu.run import CpuExecutable
from rune.backends.shared import host_memory
from rune.backends.shared.executor import static_shape
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.protocol import Buffer, Executable
from rune.backends.shared.work import Work, WorkStats
from rune.core.types import ArrayType
from rune.errors import DeviceError
from rune.lowering.codegen.machine import SUPPORTED
from rune.lowering.codegen.target import Target, natively

if TYPE_CHECKING:
    from rune.backends.cpu.crew.run import Crew
    from rune.backends.shared.timing import Meter
    from rune.lowering.meetings import Grid
    from rune.lowering.plan import Plan

SCRATCH_BYTES = 1 << 18  # stays in the second-level cache, with room for the data beside it


def probe() -> tuple[list[Target], str | None]:
    """The devices of the host's processor, or why it cannot be used. Never raises.

    The setting `cpu_devices` is their number, which is fixed by the first call.
    """
    try:
        compiler.host()
    # OSError: llvmlite is installed, but the system cannot load its library.
    except (ImportError, OSError) as error:
        return [], f"llvmlite cannot be imported ({error})"
    if host_abi.abi() is None:
        return [], f"the layout of arrays in NumPy {np.__version__} is not known"
    return [_target(share) for share in threads.shares()], None


# Collectives in native code, imported for the first one.
_crews = locks.late_module("rune.backends.cpu.crew.run")
# Compiled plans on disk, imported for the first program that has a text.
_on_disk = locks.late_module("rune.backends.cpu.on_disk")
# Plans that time their steps, imported for the first profile.
_timed = locks.late_module("rune.backends.cpu.timed")


def _is_plain(executable: Executable) -> TypeGuard[CpuExecutable]:
    """Whether native code can call the executable."""
    return isinstance(executable, CpuExecutable) and executable.runs_natively


def _target(share: threads.Share) -> Target:
    machine = compiler.machine()
    supported_dtypes = SUPPORTED if compiler.has_half() else SUPPORTED - {dtypes.f16}
    part = f", {share.cores} of {share.all_cores} cores" if share.devices > 1 else ""
    return Target(
        name=f"cpu:{share.device}",
        backend="cpu",
        language="llvm",
        description=f"{platform.machine()} {compiler.host().name}{part}",
        dtypes=supported_dtypes,
        vector_bytes=machine.vector_bytes,
        cores=share.cores,
        threads_per_workgroup=1,
        shared_bytes=SCRATCH_BYTES,
        scratch_bytes=SCRATCH_BYTES,
        routines=frozenset({*ROUTINES, "numpy"}),
        subgroup_threads=1,
        native=_native(),
    )


def _native() -> frozenset[tuple[str, np.dtype]]:
    features, is_arm = compiler.features(), platform.machine().lower() in ("arm64", "aarch64")
    floats = [dtypes.f32, dtypes.f64]
    half = features.get("avx512fp16") or features.get("fullfp16")  # of x86, of Arm
    # Every 64-bit Arm has fma.
    return natively(
        fma=floats if is_arm or features.get("fma") else [], arithmetic=[*floats, *([dtypes.f16] if half else [])]
    )


def open_device(target: Target) -> CpuBackend:
    """The backend of the host.

    Errors: DeviceError where llvmlite is missing.
    """
    targets, why = probe()
    if not targets:
        raise DeviceError(f"cpu: cannot open {target.name} ({why})")
    return CpuBackend(target)


class CpuBackend:
    """The host's processor, or one device's share of it."""

    def __init__(self, target: Target):
        self.target = target
        self.work = Work()
        # A draft calls routines of its own effort: those of full effort take longer to compile than
        # a draft may run.
        self._precise = replace(self._host(conventions.EFFORT), draft=self._host(conventions.HURRY))

    @property
    def host(self) -> Host:
        """The host for programs that are compiled now."""
        return self._precise.flushing() if config.current().flush_denormals else self._precise

    def _host(self, effort: int) -> Host:
        """What plans need to know of the process, with routines compiled at one level of effort."""
        # Addresses as functions: the pool starts its threads when a plan first needs it.
        target, abi = self.target, host_abi.abi()
        assert abi is not None
        self.share = threads.shares()[int(target.name.split(":")[1])]
        pool = partial(threads.parallel_address, self.share)
        libraries = Libraries(target.cores, effort, pool)
        return Host(compiler.machine(), abi, target.cores, pool, libraries, meet=lambda: _crews().meet_address())

    def alloc(self, type: ArrayType) -> np.ndarray:
        """An uninitialised array."""
        return host_memory.empty(static_shape(type), type.dtype)

    def copy_in(self, array: np.ndarray) -> np.ndarray:
        """A copy of a host array, C-contiguous."""
        copy = host_memory.empty(array.shape, array.dtype)
        copy[...] = array
        return copy

    def copy_out(self, buffer: Buffer, type: ArrayType) -> np.ndarray:
        """A copy, because the reader may write to it. Arrays of cpu:0 are read without a copy."""
        return buffer.copy()

    def record(self, plan: Plan) -> CpuExecutable:
        """Compile a plan.

        Errors: CompileError carries the numbered IR and LLVM's message.
        """
        return CpuExecutable(plan, self.host, self.work)

    def draft(self, plan: Plan) -> DraftExecutable:
        """Compile a plan, quickly to slower code if it is short. Errors: CompileError."""
        return DraftExecutable(plan, self.host, self.work)

    def keep(self, key: bytes, executable: Executable) -> None:
        """Store a compiled plan on disk under the text of its program."""
        assert isinstance(executable, DraftExecutable)
        _on_disk().keep(key, executable, self.host)

    def stored(self, key: bytes, lower: Callable[[], Plan]) -> CpuExecutable | None:
        """The compiled plan that an earlier process has stored under this text, or None."""
        return _on_disk().load(key, self.host, lower, self.work)

    def adopted(self, executable: Executable) -> CpuExecutable | None:
        """The same code, counted as work of this device, if both use one core."""
        # Code for several cores calls the pool of its own device.
        if not _is_plain(executable) or not executable.cores == 1 == self.target.cores:
            return None
        return executable.on(self.work)

    def is_brief(self, executable: Executable) -> bool:
        """Whether a run takes less time than handing it to another thread, and calls no Python."""
        return _is_plain(executable) and executable.is_brief

    def together(self, executables: Sequence[Executable], grid: Grid) -> Crew | None:
        """The executables as a crew of native threads, if all of them are of the CPU."""
        return _crews().crew_for(executables, grid)

    @property
    def has_clock(self) -> bool:
        """Never: the host is the device."""
        return False

    def record_timed(self, plan: Plan, meter: Meter) -> CpuExecutable:
        """Compile a plan that times its steps. Errors: CompileError."""
        timing = _timed()
        return timing.TimedExecutable(plan, replace(self.host, clock=timing.Clock(plan)), self.work, meter)

    @property
    def workers(self) -> threads.Workers | None:
        """The pool's threads, if their clocks can be read."""
        return threads.workers(self.share)

    def synchronize(self) -> None:
        """Nothing is ever pending: a call returns when its work is done."""

    def memory_stats(self) -> MemoryStats:
        """Counts of the arrays of at least 1 MiB; smaller ones are NumPy's own."""
        return host_memory.stats()

    def work_stats(self) -> WorkStats:
        """Counts of calls so far."""
        return self.work.stats()
