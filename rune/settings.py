"""The public face of settings: `configure`, and short names for the most usual ones."""

from __future__ import annotations

from typing import Any

from rune.backends import Device, device_of, require_cpu_devices
from rune.config import Setting, setting
from rune.errors import ArgumentError
from rune.options import Config, checked

__all__ = [
    "check_tracer_leaks",
    "checking_leaks",
    "configure",
    "debug_infs",
    "debug_nans",
    "default_device",
    "device",
    "disable_jit",
    "enable_x64",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
]


def configure(**changes: Any) -> Setting[Config]:
    """Change settings: of the process as a statement, of a block as `with rune.configure(...):`.

    x64:           64-bit defaults for values without a dtype
    wide_dtypes:   "honoured"; "truncated": explicit 64 bits mean 32 unless x64 is set, as in JAX
    python_integers: "checked"; "wrapped": where the dtype is too narrow, upper bits go, as in JAX
    bools_select:  an array of bools times floats is 0 where it is False, beside NaN too, as in XLA
    check_nans, check_infs, check_bounds:  programs report NaN, infinities, indices out of bounds
    check_keys:    a random key that is used twice is an error
    check_leaks:   a traced value that is kept after its transformation is an error
    disable_jit:   jitted functions run as if they were not, branches and loops as Python's, so
                   that prints and debuggers see values
    log_compiles:  each trace and each compilation is told to the logger "rune"
    check_stages:  every stage of compiling is checked
    profile:       programs tell the time of each step (rune.debug.profile gathers it)
    reproducible:  results are the same bits on every run; False lets devices sum the updates of a
                   scatter in any order, which is faster
    promotion:     "standard"; "strict": operands of different dtypes do not combine
    rank_promotion: "allow"; "warn", "raise": where operands of different ranks, numbers apart,
                   broadcast
    cpu_devices:   how many devices the CPU is, cpu:0, cpu:1, ..., which share its cores; said once,
                   before the first array
    xla_flags:     XLA_FLAGS may say so, too: --xla_force_host_platform_device_count=8
    device:        a device or its name: where new arrays are, and what is computed of them alone
    symbolic:      "declared"; "auto": axes that change become symbolic in jit
    compiled_bytes:  how much of traces and machine code is kept (1 GiB); what was not used for
                   longest is forgotten beyond it, and made again when it is called
    search:        which loops kernels have: "stored": those that an earlier search (`rune.tune`)
                   has found fastest on this device, else the default; "off": the default, whatever
                   was found; seconds: search so long for each kernel of a jitted function before
                   its first run, unless that was done; "full": until everything was tried. Loops
                   do not change values, but for the order in which floats are summed up
    mesh:          by which a PartitionSpec alone is read (rune.sharding.set_mesh)
    cache_dir:     where compiled code and winners of searches are kept; None: the user's cache;
                   "": nowhere

    A statement holds in every thread, and those that are to come. A block holds in its own thread
    or task, whatever is set for the process meanwhile, and leaves everything as it was before the
    call. What is returned may be kept, and entered later or again; until it is entered it is a
    statement, for other threads from when this one goes on to use rune. It is also a decorator of
    functions. An environment variable for each, RUNE_X64=1, RUNE_CHECK_NANS=1, RUNE_DEVICE=...,
    says what a process begins with; a switch is 1, true, yes, on or 0, false, no, off.

    Errors: ArgumentError for a setting that does not exist, or a value it cannot have; DeviceError
            for a device that is not there, and another number of devices of a CPU in use.

    >>> import rune, rune.numpy as rnp
    >>> with rune.configure(device="reference:0"):
    ...     print(rnp.ones(2).device)
    reference:0 (NumPy interpreter of kernel code, every check on)
    >>> _ = rune.configure(promotion="strict")
    >>> rune.configure(promotion="standard")
    configure(promotion='standard')
    """
    if changes.get("device") is not None:
        changes["device"] = device_of(changes["device"]).name
    settings = checked(changes)
    if "cpu_devices" in settings:
        require_cpu_devices(changes["cpu_devices"])
    return setting(**settings)


def enable_x64(enabled: bool = True) -> Setting[Config]:
    """64-bit defaults: for the process, or for a block as `with rune.enable_x64():`.

    Errors: ArgumentError unless it is True or False.

    >>> import rune, rune.numpy as rnp
    >>> with rune.enable_x64():
    ...     print(rnp.ones(2).dtype)
    float64
    """
    if not isinstance(enabled, bool):
        raise ArgumentError(f"enable_x64: cannot use {enabled!r} (True or False)")
    return setting(x64=enabled)


def numpy_dtype_promotion(mode: str) -> Setting[Config]:
    """How operands of different dtypes combine, for the process or a block: "standard", "strict".

    Strict: they do not; only Python scalars adapt, to a dtype of their own kind or a higher one.

    Errors: ArgumentError for another mode.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_dtype_promotion("strict"):
    ...     rnp.float16(1) + 2
    Array(3., f16[], cpu:0)
    """
    return setting(**checked({"promotion": mode}, "numpy_dtype_promotion"))


def numpy_rank_promotion(mode: str) -> Setting[Config]:
    """What happens where operands of different ranks broadcast: "allow", "warn", "raise".

    Numbers broadcast always. It holds for the process or a block.

    Errors: ArgumentError for another mode.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_rank_promotion("raise"):  # doctest: +ELLIPSIS
    ...     rnp.ones((2, 3)) + rnp.ones(3)
    Traceback (most recent call last):
    rune.errors.ShapeError: add: cannot promote the ranks of [2,3] and [3] ...
    """
    return setting(**checked({"rank_promotion": mode}, "numpy_rank_promotion"))


def device(device: str | Device) -> Setting[Device]:
    """New arrays and what is computed of them alone are on this device: for the process or a block.

    They are not committed to it: they follow what is. An array stays where it was made. The block
    `with rune.device(...) as there:` is given the device.

    Errors: DeviceError for an unknown device.

    >>> import rune, rune.numpy as rnp
    >>> with rune.device("reference"):
    ...     x = rnp.arange(3.0) * 2.0
    >>> x
    Array([0., 2., 4.], f32[3], reference:0)
    """
    resolved = device_of(device)
    return Setting({"device": resolved.name}, lambda _: resolved)


def default_device(device: str | Device | None) -> Setting[Device | None]:
    """JAX's name of `device`; None is the CPU.

    Errors: as device.

    >>> import rune, rune.numpy as rnp
    >>> with rune.default_device("reference"):
    ...     print(rnp.ones(2).device.name)
    reference:0
    """
    resolved = None if device is None else device_of(device)
    return Setting({"device": resolved and resolved.name}, lambda _: resolved)


def disable_jit(disable: bool = True) -> Setting[Config]:
    """Jitted functions run as if they were not: for the process, or for a block.

    Branches, loops and scans are Python's as long as what decides them is known, so that prints,
    breakpoints and debuggers see values, one operation after another.

    Errors: ArgumentError unless it is True or False.

    >>> import rune
    >>> with rune.disable_jit():
    ...     rune.jit(print)(2.0)
    2.0
    """
    return _switch("disable_jit", "disable_jit", disable)


def debug_nans(enabled: bool = True) -> Setting[Config]:
    """The first operation that makes a NaN is an error: for the process, or for a block.

    Errors: ArgumentError unless it is True or False.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug_nans():  # doctest: +ELLIPSIS
    ...     rnp.log(-1.0)
    Traceback (most recent call last):
    rune.errors.NaNError: log: found NaN in its result f32*[] (first at [])...
    """
    return _switch("debug_nans", "check_nans", enabled)


def debug_infs(enabled: bool = True) -> Setting[Config]:
    """The first operation that makes an infinity is an error: for the process, or for a block.

    Errors: ArgumentError unless it is True or False.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug_infs():  # doctest: +ELLIPSIS
    ...     rnp.log(0.0)
    Traceback (most recent call last):
    rune.errors.NaNError: log: found infinity in its result f32*[] (first at [])...
    """
    return _switch("debug_infs", "check_infs", enabled)


def check_tracer_leaks(enabled: bool = True) -> Setting[Config]:
    """A traced value that is kept after its transformation is an error: a process or a block.

    Errors: ArgumentError unless it is True or False.

    >>> import rune
    >>> values = []
    >>> with rune.check_tracer_leaks():  # doctest: +ELLIPSIS
    ...     rune.jit(values.append)(1.0)
    Traceback (most recent call last):
    rune.errors.EscapedTracerError: tracer: found a traced value f32*[] kept after ...
    """
    return _switch("check_tracer_leaks", "check_leaks", enabled)


def checking_leaks() -> Setting[Config]:
    """JAX's name of check_tracer_leaks(). Errors: none.

    >>> import rune
    >>> with rune.checking_leaks():
    ...     _ = rune.jit(lambda x: x + 1.0)(1.0)
    """
    return check_tracer_leaks()


def log_compiles(enabled: bool = True) -> Setting[Config]:
    """Each trace and each compilation is told to the logger "rune": a process or a block.

    Errors: ArgumentError unless it is True or False.

    >>> import logging, rune
    >>> logging.getLogger("rune").addHandler(logging.NullHandler())
    >>> with rune.log_compiles():
    ...     _ = rune.jit(lambda x: x + 1.0)(1.0)
    """
    return _switch("log_compiles", "log_compiles", enabled)


def _switch(operation: str, name: str, enabled: bool) -> Setting[Config]:
    return setting(**checked({name: enabled}, operation))
