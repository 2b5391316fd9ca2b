"""doctor: the executors that work, those that are missing, and the commands that install them.

Every device is opened and computes one sum, so that a broken driver is found. The answer is a value
with a text for people.
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
    """What an executor needs: distributions, and the commands that install them."""

    distributions: tuple[str, ...]
    install: str
    driver: str = ""  # how to get a driver, if the distributions are installed but no device is found


NEEDS = {
    # The first distribution decides whether the package is missing, or only the driver.
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
    """One device, and the outcome of a computation on it."""

    name: str
    description: str
    finding: str  # "works, 12 ms", or the error
    abilities: tuple[str, ...] = ()  # native operations as its driver reports them, "fma f32 f64"
    lacks: tuple[str, ...] = ()  # functions that the driver lacks, with their replacements


@dataclass(frozen=True, slots=True)
class Executor:
    """One executor: its devices, or the reason why it has none and the command that helps."""

    name: str
    versions: tuple[str, ...]
    devices: tuple[Examined, ...]
    why: str | None
    remedy: str | None
    meetings: str | None = None  # how its devices exchange values in collectives


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of `doctor`."""

    versions: tuple[str, ...]
    executors: tuple[Executor, ...]
    cache: str

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    __repr__ = __str__


def doctor() -> Report:
    """The executors that work, those that are missing, and the commands that install them.

    Cost: opens every device and compiles one small kernel for it.
    Errors: none.

    >>> import rune
    >>> [e.name for e in rune.doctor().executors][0]
    'cpu'
    """
    missing = backends.missing()
    devices_by_backend: dict[str, list[Device]] = {}
    for device in backends.devices():
        devices_by_backend.setdefault(device.target.backend, []).append(device)
    executors = [_executor(name, devices, None) for name, devices in devices_by_backend.items()]
    executors += [_executor(name, [], why) for name, why in missing.items()]
    return Report(tuple(_versions()), tuple(executors), _cache())


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the report of `doctor`, or return it as a string.

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
    device_reports = tuple(map(_examined, devices))
    remedy = None if why is None else _remedy(why, needs)
    return Executor(name, versions, device_reports, why, remedy, _meetings(devices))


def _meetings(devices: list[Device]) -> str | None:
    """How devices exchange values in collectives, if the backend says so."""
    try:
        backends = [d.backend for d in devices]
    except Exception:  # the line of the device reports what is broken
        return None
    return backends[0].meetings() if backends and isinstance(backends[0], SaysHowItMeets) else None


def _remedy(why: str, needs: Needs | None) -> str | None:
    """The first thing to do: the command in the reason, the distribution, or the driver."""
    if needs is None:
        return None
    _, command = _reason_and_command(why)
    if command and "rune-ml[" not in command:
        return command
    has_distribution = _version(needs.distributions[0]) is not None
    return needs.driver if has_distribution and needs.driver else needs.install


def _reason_and_command(why: str) -> tuple[str, str]:
    """A reason, and the command at its end; "" if there is none.

    >>> _reason_and_command("no driver works; apt install mesa-vulkan-drivers")
    ('no driver works', 'apt install mesa-vulkan-drivers')
    """
    reason, _, command = why.rpartition("; ")
    return (reason, command) if reason and "install " in command else (why, "")


def _examined(device: Device) -> Examined:
    start = time.perf_counter()
    try:
        finding = _computed(device)
    except Exception as error:  # a broken driver may fail in any way, and the report has a line for it
        # The message may be empty.
        finding = f"FAILS ({': '.join([type(error).__name__, *str(error).splitlines()[:1]])})"
    milliseconds = 1e3 * (time.perf_counter() - start)
    if finding != "works":
        return Examined(device.name, device.target.description, finding, abilities(device.target))
    timing, backend = f"{finding}, {milliseconds:.0f} ms", device.backend
    lacks = backend.lacks() if isinstance(backend, SaysWhatItLacks) else ()
    return Examined(device.name, device.target.description, timing, abilities(device.target), lacks)


def abilities(target: Target) -> tuple[str, ...]:
    """The native operations of a device, one line for each."""
    kinds_of: dict[str, list[str]] = {}
    for operation, dtype in target.native:
        kinds_of.setdefault(operation, []).append(dtypes.short(dtype))
    lines = [f"{name} {' '.join(sorted(kinds))}" for name, kinds in sorted(kinds_of.items())]
    if not lines:
        return ()
    threads = target.subgroup_threads
    return (f"{threads} threads in step" if threads > 1 else "each thread by itself", *lines)


def _computed(device: Device) -> str:
    """Whether the device computes that 1..8 doubled is 2..16."""
    if device.target.backend == "null":
        return "computes nothing"
    # Distinct numbers, so that a device that returns zeros or its input is caught.
    host = np.arange(1, 9, dtype=np.float32)
    kind = ArrayType(host.shape, dtypes.f32)
    program = stage(lambda x: [add(x, x)], (kind,), "doctor").program
    executable = device.backend.record(lower(program, device.target))
    (result,) = executable([device.backend.copy_in(host)])
    same = np.array_equal(device.backend.copy_out(result, kind), host + host)
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
            # The command is printed once, below the reason.
            reason, _ = (executor.why, "") if executor.remedy is None else _reason_and_command(executor.why)
            yield f"  missing: {reason}"
        if executor.remedy is not None:
            yield f"  to get it: {executor.remedy}"
    yield ""
    yield f"compiled kernels  {report.cache}"


if __name__ == "__main__":
    print(doctor(), file=sys.stdout)
