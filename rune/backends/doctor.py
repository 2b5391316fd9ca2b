"""doctor: which executors are here and work, what is missing, and the command that gets it.

Every device is opened and computes one sum, so that a driver that is there and broken shows. The
answer is a value; its text is for people.
"""

from __future__ import annotations

import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from rune import backends, dtypes
from rune.backends import Device
from rune.backends.shared import disk_cache
from rune.backends.shared.protocol import SaysHowItMeets, SaysWhatItLacks
from rune.core.staging import stage
from rune.core.types import ArrayType
from rune.lowering.codegen.target import Target
from rune.lowering.stages import lower
from rune.ops import add
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Needs:
    """What an executor needs: distributions, and the commands that get it."""

    distributions: tuple[str, ...]
    install: str
    driver: str = ""  # how to get a driver, where the distributions are there and no device is


NEEDS = {
    # The first distribution tells whether the package or only the driver is missing.
    "cpu": Needs(("llvmlite",), "pip install llvmlite"),
    "opencl": Needs(
        ("pyopencl", "pocl-binary-distribution"),
        'pip install "rune-ml[opencl]"',
        "install the OpenCL driver of your GPU's vendor; for a CPU device: pip install pocl-binary-distribution",
    ),
    "vulkan": Needs(
        ("vulkan",),
        'pip install "rune-ml[vulkan]"',
        "install the Vulkan driver of your GPU's vendor; for a CPU device: apt install libvulkan1 mesa-vulkan-drivers",
    ),
    "wgpu": Needs(
        ("wgpu",),
        'pip install "rune-ml[wgpu]"',
        "install a Vulkan, Metal or D3D12 driver; for a CPU device: apt install libvulkan1 mesa-vulkan-drivers",
    ),
    "cuda": Needs(
        ("cuda-bindings", "nvidia-cuda-nvrtc", "pycuda"),
        'pip install "rune-ml[cuda]", beside NVIDIA\'s driver',
        "install NVIDIA's driver; nvidia-smi shows the GPUs that it finds",
    ),
}


@dataclass(frozen=True, slots=True)
class Examined:
    """One device, and what came of computing on it."""

    name: str
    description: str
    finding: str  # "works, 12 ms" or what failed
    abilities: tuple[str, ...] = ()  # what its driver says that it has itself, "fma f32 f64"
    lacks: tuple[str, ...] = ()  # what is done in another way than the driver's, and why


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor: its devices, or why there is none and the command that helps."""

    name: str
    versions: tuple[str, ...]
    devices: tuple[Examined, ...]
    why: str | None
    remedy: str | None
    meetings: str | None = None  # which way collectives between its devices take


@dataclass(frozen=True, slots=True)
class Report:
    """What doctor found."""

    versions: tuple[str, ...]
    executors: tuple[Executor, ...]
    cache: str

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__


def doctor() -> Report:
    """Which executors are here and work, what is missing, and the command that gets it.

    Cost: opens every device and compiles one small kernel for it.
    Errors: none.

    >>> import rune
    >>> [e.name for e in rune.doctor().executors][0]
    'cpu'
    """
    missing = backends.missing()
    here: dict[str, list[Device]] = {}
    for device in backends.devices():
        here.setdefault(device.target.backend, []).append(device)
    executors = [_executor(name, devices, None) for name, devices in here.items()]
    executors += [_executor(name, [], why) for name, why in missing.items()]
    return Report(tuple(_versions()), tuple(executors), _cache())


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what `doctor` reports, or return it as a string.

    Errors: none.

    >>> import rune
    >>> "Python" in rune.print_environment_info(return_string=True)
    True
    """
    report = str(doctor())
    if return_string:
        return report
    print(report)
    return None


def _versions() -> Iterator[str]:
    yield _version("rune-ml") or "rune"
    yield f"Python {platform.python_version()}"
    yield f"{platform.system()} {platform.machine()}".strip()
    yield from (_version(name) or f"{name} missing" for name in ("numpy", "ml_dtypes"))


def _version(distribution: str) -> str | None:
    """Name and version; None where it is not installed."""
    try:
        return f"{distribution} {version(distribution)}"
    except PackageNotFoundError:
        return None


def _executor(name: str, devices: list[Device], why: str | None) -> Executor:
    needs = NEEDS.get(name)
    versions = tuple(filter(None, map(_version, needs.distributions if needs else ())))
    examined = tuple(map(_examined, devices))
    remedy = None if why is None else _remedy(why, needs)
    return Executor(name, versions, examined, why, remedy, _meetings(devices))


def _meetings(devices: list[Device]) -> str | None:
    """Which way collectives between the devices take, where the backend says so."""
    try:
        backends = [d.backend for d in devices]
    except Exception:  # the line of the device says what is broken
        return None
    return backends[0].meetings() if backends and isinstance(backends[0], SaysHowItMeets) else None


def _remedy(why: str, needs: Needs | None) -> str | None:
    """The first thing to do: what the reason says, the distribution, or the driver."""
    if needs is None:
        return None
    _, command = _reason_and_command(why)
    if command and "rune-ml[" not in command:
        return command
    installed = _version(needs.distributions[0]) is not None
    return needs.driver if installed and needs.driver else needs.install


def _reason_and_command(why: str) -> tuple[str, str]:
    """A reason, and the command at its end, which may be empty.

    >>> _reason_and_command("no driver works; apt install mesa-vulkan-drivers")
    ('no driver works', 'apt install mesa-vulkan-drivers')
    """
    reason, _, command = why.rpartition("; ")
    return (reason, command) if reason and "install " in command else (why, "")


def _examined(device: Device) -> Examined:
    start = time.perf_counter()
    try:
        finding = _computed(device)
    except Exception as error:  # a broken driver may fail in any way: the reason is reported
        finding = f"FAILS ({type(error).__name__}: {str(error).splitlines()[0]})"
    spent = 1e3 * (time.perf_counter() - start)
    if finding != "works":
        return Examined(device.name, device.target.description, finding, abilities(device.target))
    timed, backend = f"{finding}, {spent:.0f} ms", device.backend
    lacks = backend.lacks() if isinstance(backend, SaysWhatItLacks) else ()
    return Examined(device.name, device.target.description, timed, abilities(device.target), lacks)


def abilities(target: Target) -> tuple[str, ...]:
    """The native abilities of a device, one line for each operation."""
    kinds_of: dict[str, list[str]] = {}
    for operation, dtype in target.native:
        kinds_of.setdefault(operation, []).append(dtypes.short(dtype))
    lines = [f"{name} {' '.join(sorted(kinds))}" for name, kinds in sorted(kinds_of.items())]
    if not lines:
        return ()
    threads = target.subgroup_threads
    return (f"{threads} threads in step" if threads > 1 else "each thread by itself", *lines)


def _computed(device: Device) -> str:
    """Whether 1..8 doubled is 2..16 there."""
    if device.target.backend == "null":
        return "computes nothing"
    # Distinct numbers, so that a device that returns zeros or its input is caught.
    host = np.arange(1, 9, dtype=np.float32)
    kind = ArrayType(host.shape, dtypes.f32)
    program = stage(lambda x: [add(x, x)], (kind,), "doctor").program
    executable = device.backend.record(lower(program, device.target))
    (doubled,) = executable([device.backend.copy_in(host)])
    same = np.array_equal(device.backend.copy_out(doubled, kind), host + host)
    return "works" if same else "FAILS (1..8 doubled is not 2..16)"


def _cache() -> str:
    problem, cache = disk_cache.problem(), disk_cache.current()
    if problem is not None:
        return f"not used: {problem}"
    if cache is None:
        return "switched off (RUNE_CACHE_DIR, or cache_dir of rune.configure, is empty)"
    return f"{cache.folder}, {cache.entry_bytes()} B of {cache.limit_bytes} B"


# --- text -------------------------------------------------------------------------------------


def _lines(report: Report) -> Iterator[str]:
    yield ", ".join(report.versions)
    for executor in report.executors:
        yield ""
        yield executor.name + (f"  ({', '.join(executor.versions)})" if executor.versions else "")
        for device in executor.devices:
            yield f"  {device.name}  {device.description}: {device.finding}"
            if device.abilities:
                yield f"    {', '.join(device.abilities)}"
            yield from (f"    {sentence}" for sentence in device.lacks)
        if executor.meetings is not None:
            yield f"  collectives: {executor.meetings}"
        if executor.why is not None:
            # A command is said once, below the reason.
            reason, _ = (executor.why, "") if executor.remedy is None else _reason_and_command(executor.why)
            yield f"  missing: {reason}"
        if executor.remedy is not None:
            yield f"  to get it: {executor.remedy}"
    yield ""
    yield f"compiled kernels  {report.cache}"


if __name__ == "__main__":
    print(doctor(), file=sys.stdout)
