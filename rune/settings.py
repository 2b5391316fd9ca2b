"""The public interface of settings: `configure`, and short names for the most common ones."""

from __future__ import annotations

from typing import Any

from rune.backends import Device, device_of, require_cpu_devices
from rune.config import Setting, setting
from rune.errors import ArgumentError
from rune.options import Config, checked

__all__ = ["check_tracer_leaks", "checking_leaks", "configure", "debug_infs", "debug_nans", "default_device"]
__all__ += ["device", "disable_jit", "enable_x64", "log_compiles", "numpy_dtype_promotion", "numpy_rank_promotion"]


def configure(**changes: Any) -> Setting[Config]:
    """Change settings: of the process by a statement, of a block by `with rune.configure(...):`.

    x64:           64-bit defaults for values without a dtype
    wide_dtypes:   "honoured"; "truncated": explicit 64 bits mean 32 unless x64 is set, as in JAX
    python_integers: "checked"; "wrapped": a dtype that is too narrow drops upper bits, as in JAX
    bools_select:  False times a float is 0 in arrays, even if the float is NaN, as in XLA
    complex_to_real: "refused"; "warned": conversions to real dtypes warn and take the real part
    threefry_partitionable: False: random bits and keys are those of JAX's older threefry
    callback_errors: "unchanged"; "quoted": a RuntimeError quotes what a callback raised, as in JAX
    array_namespace: the name of what `x.__array_namespace__()` gives; None: rune.numpy with boxes
    check_nans, check_infs, check_bounds:  programs report NaN, infinities, indices out of bounds
    check_keys:    using a random key twice is an error
    check_leaks:   keeping a traced value after its transformation is an error
    disable_jit:   jitted functions, branches and loops run in Python: debuggers see values
    log_compiles:  log each trace and each compilation to the logger "rune"
    check_stages:  check every stage of compiling
    profile:       programs report the time of each step (rune.debug.profile collects it)
    reproducible:  the same bits on every run; False: devices sum a scatter's updates in any order
    flush_denormals: jitted programs on the CPU take denormal numbers for 0, as XLA does
    promotion:     "standard"; "strict": operands of different dtypes do not combine
    rank_promotion: "allow"; "warn", "raise": if arrays of different ranks broadcast
    cpu_devices:   devices that share the CPU's cores: cpu:0, ...; set it before the first array
    xla_flags:     XLA_FLAGS may give the number, too: --xla_force_host_platform_device_count=8
    device:        a device or its name: where new arrays and computations with only them go
    symbolic:      "declared"; "auto": axes that change become symbolic in jit
    compiled_bytes:  the size limit of the cache of traces and machine code (1 GiB); beyond it, the
                   least recently used are dropped, and made again when they are called
    search:        the loops of kernels. "stored": those that an earlier search (`rune.tune`) found
                   fastest on this device, else the default; "off": always the default; seconds:
                   before the first run of a jitted function, search so long for each of its
                   kernels, unless that was done; "full": search until everything was tried. Loops
                   do not change values, except for the order in which floats are summed
    mesh:          the mesh for a PartitionSpec without one (rune.sharding.set_mesh)
    cache_dir:     where compiled code and winners of searches are; None: the user's; "": nowhere

    A statement applies to all threads, current and future. A block applies to its own thread or
    task, whatever is set for the process meanwhile, and at its end restores the settings from
    before the call. The result may be kept, and entered later or again. Until it is entered it is a
    statement; other threads see it once this thread uses rune again. It also decorates functions.
    Environment variables, RUNE_X64=1, RUNE_CHECK_NANS=1, RUNE_DEVICE=..., give the initial values;
    a switch is 1, true, yes, on or 0, false, no, off.

    Errors: ArgumentError for a setting that does not exist, or a value it cannot have; DeviceError
            for an unknown device, and for another number of devices once the CPU is in use.

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
    """Use 64-bit defaults, in the process or in a block `with rune.enable_x64():`.

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
    """How operands of different dtypes combine, in the process or a block: "standard", "strict".

    Strict: they do not; only Python scalars adapt, to a dtype of their own kind or a higher one.

    Errors: ArgumentError for another mode.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_dtype_promotion("strict"):
    ...     rnp.float16(1) + 2
    Array(3., f16[], cpu:0)
    """
    return setting(**checked({"promotion": mode}, "numpy_dtype_promotion"))


def numpy_rank_promotion(mode: str) -> Setting[Config]:
    """What happens if operands of different ranks broadcast: "allow", "warn", "raise".

    Numbers may always broadcast. The setting applies to the process or a block.

    Errors: ArgumentError for another mode.

    >>> import rune, rune.numpy as rnp
    >>> with rune.numpy_rank_promotion("raise"):  # doctest: +ELLIPSIS
    ...     rnp.ones((2, 3)) + rnp.ones(3)
    Traceback (most recent call last):
    rune.errors.ShapeError: add: cannot promote the ranks of [2,3] and [3] ...
    """
    return setting(**checked({"rank_promotion": mode}, "numpy_rank_promotion"))


def device(device: str | Device) -> Setting[Device]:
    """Put new arrays, and computations with only them, on this device, in the process or a block.

    The arrays are not committed to it: they follow committed ones. Existing arrays stay where they
    are. `with rune.device(...) as device:` binds the device.

    Errors: DeviceError for an unknown device.

    >>> import rune, rune.numpy as rnp
    >>> with rune.device("reference"):
    ...     x = rnp.arange(3.0) * 2.0
    >>> x
    Array([0., 2., 4.], f32[3], reference:0)
    """
    instance = device_of(device)
    return Setting({"device": instance.name}, lambda _: instance)


def default_device(device: str | Device | None) -> Setting[Device | None]:
    """JAX's name for `device`; None is the CPU.

    Errors: as device.

    >>> import rune, rune.numpy as rnp
    >>> with rune.default_device("reference"):
    ...     print(rnp.ones(2).device.name)
    reference:0
    """
    instance = None if device is None else device_of(device)
    return Setting({"device": instance and instance.name}, lambda _: instance)


def disable_jit(disable: bool = True) -> Setting[Config]:
    """Run jitted functions without jit, in the process or in a block.

    Branches, loops and scans run in Python as long as their conditions are known, so that prints,
    breakpoints and debuggers see values, one operation after another.

    Errors: ArgumentError unless it is True or False.

    >>> import rune
    >>> with rune.disable_jit():
    ...     rune.jit(print)(2.0)
    2.0
    """
    return _switch("disable_jit", "disable_jit", disable)


def debug_nans(enabled: bool = True) -> Setting[Config]:
    """Raise an error at the first operation that makes a NaN, in the process or in a block.

    Errors: ArgumentError unless it is True or False.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug_nans():  # doctest: +ELLIPSIS
    ...     rnp.log(-1.0)
    Traceback (most recent call last):
    rune.errors.NaNError: log: found NaN in its result f32*[] (first at [])...
    """
    return _switch("debug_nans", "check_nans", enabled)


def debug_infs(enabled: bool = True) -> Setting[Config]:
    """Raise an error at the first operation that makes an infinity, in the process or in a block.

    Errors: ArgumentError unless it is True or False.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug_infs():  # doctest: +ELLIPSIS
    ...     rnp.log(0.0)
    Traceback (most recent call last):
    rune.errors.NaNError: log: found infinity in its result f32*[] (first at [])...
    """
    return _switch("debug_infs", "check_infs", enabled)


def check_tracer_leaks(enabled: bool = True) -> Setting[Config]:
    """Raise an error if a traced value outlives its transformation, in the process or in a block.

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
    """JAX's name for check_tracer_leaks(). Errors: none.

    >>> import rune
    >>> with rune.checking_leaks():
    ...     _ = rune.jit(lambda x: x + 1.0)(1.0)
    """
    return check_tracer_leaks()


def log_compiles(enabled: bool = True) -> Setting[Config]:
    """Log each trace and each compilation to the logger "rune", in the process or in a block.

    Errors: ArgumentError unless it is True or False.

    >>> import logging, rune
    >>> logging.getLogger("rune").addHandler(logging.NullHandler())
    >>> with rune.log_compiles():
    ...     _ = rune.jit(lambda x: x + 1.0)(1.0)
    """
    return _switch("log_compiles", "log_compiles", enabled)


def _switch(operation: str, name: str, value: bool) -> Setting[Config]:
    return setting(**checked({name: value}, operation))
