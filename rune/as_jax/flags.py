"""JAX's configuration: each option changes a setting of rune, or says why it cannot.

    jax.config.update("jax_enable_x64", True)      for the process
    with jax.enable_x64(True):                     for a block
    JAX_ENABLE_X64=1                               the initial value in a process

An option in ACTING changes a setting of rune. One in NOTED has no counterpart in rune: nearly all
of these tune XLA or choose what JAX prints, and cannot change a result here, so any value is
accepted and read back. An option in FIXED keeps its default; another value raises an error that
gives the reason.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ContextDecorator, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any

from rune import config, settings
from rune.backends import Device, device_named, platform_name
from rune.context import innermost, inside
from rune.errors import ArgumentError
from rune.records import dataclass
from rune.transforms import late_modules
from rune.transforms.inspect.cache_misses import explain_cache_misses as cache_miss_reasons

Change = dict[str, Any]


def _named(name: str) -> Callable[[Any], Change]:
    return lambda value: {name: value}


def _on_platform(value: Any) -> Change:
    """Select the first of several platforms; None or "" selects the default device."""
    return {"device": platform_name(value.split(",")[0]) if value else None}


def _on_device(value: Any) -> Change:
    return {"device": value.name if isinstance(value, Device) else platform_name(value)}


@dataclass(frozen=True, slots=True)
class Acting:
    """An option that acts: how it changes rune's settings, and its value under given settings."""

    changes: Callable[[Any], Change]
    value: Callable[[config.Config], Any]
    default: Any = False


def _switch(name: str, default: Any = False) -> Acting:
    return Acting(_named(name), lambda settings: getattr(settings, name), default)


ACTING: Mapping[str, Acting] = {
    "jax_enable_x64": _switch("x64"),
    "jax_debug_nans": _switch("check_nans"),
    "jax_debug_infs": _switch("check_infs"),
    "jax_check_tracer_leaks": _switch("check_leaks"),
    "jax_enable_checks": _switch("check_stages"),
    "jax_disable_jit": _switch("disable_jit"),
    "jax_debug_key_reuse": _switch("check_keys"),
    "jax_log_compiles": _switch("log_compiles"),
    "jax_threefry_partitionable": _switch("threefry_partitionable", True),
    "jax_numpy_dtype_promotion": _switch("promotion", "standard"),
    "jax_numpy_rank_promotion": _switch("rank_promotion", "allow"),
    "jax_default_device": Acting(_on_device, lambda s: s.device and device_named(s.device), None),
    "jax_platforms": Acting(_on_platform, lambda s: s.device and s.device.split(":")[0], None),
    "jax_platform_name": Acting(_on_platform, lambda s: (s.device or "").split(":")[0], ""),
    "jax_compilation_cache_dir": Acting(
        lambda v: {"cache_dir": None if v is None else str(v)}, lambda s: s.cache_dir, None
    ),
    "jax_num_cpu_devices": Acting(lambda v: {"cpu_devices": 1 if v < 0 else v}, lambda s: s.cpu_devices, -1),
}

# How XLA compiles, what it stores, what JAX prints: none of these options changes a result here,
# except one that `rune.as_jax` itself reads.
NOTED: Mapping[str, Any] = {
    "jax2tf_associative_scan_reductions": False,
    "jax_allow_f16_reductions": True,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2000000000,
    "jax_check_static_indices": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_async_dispatch": True,
    "jax_default_matmul_precision": None,  # a product is computed in the precision of its dtype
    "jax_disable_most_optimizations": False,
    "jax_enable_compilation_cache": True,
    "jax_enable_custom_prng": False,  # jax.random.PRNGKey reads it
    "jax_enable_pgle": False,
    "jax_exec_time_optimization_effort": 0.0,
    "jax_explain_cache_misses": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_optimization_level": "UNKNOWN",
    "jax_persistent_cache_enable_xla_caches": "xla_gpu_per_fusion_autotune_cache_dir",
    "jax_persistent_cache_min_compile_time_secs": 1.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pprint_use_color": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_softmax_custom_jvp": False,
    "jax_traceback_filtering": "auto",
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_use_direct_linearize": True,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_profile_version": 0,
}

_KEYS = "rune.random draws with threefry2x32 keys, or with philox4x32"
_TRANSFERS = "rune does not watch copies between host and devices"
# Options whose default describes what rune does, and why rune offers no alternative.
FIXED: Mapping[str, tuple[Any, str]] = {
    "jax_array_garbage_collection_guard": (None, "rune does not watch arrays in reference cycles"),
    "jax_auto_pcast": (True, "rune inserts casts along mesh axes automatically"),
    "jax_default_prng_impl": ("threefry2x32", _KEYS),
    "jax_error_checking_behavior_divide": ("ignore", "rune.debug.checks finds NaN and infinities"),
    "jax_error_checking_behavior_nan": ("ignore", "jax_debug_nans finds NaN"),
    "jax_error_checking_behavior_oob": ("ignore", "rune.debug.checks(bounds=True) finds indices out of bounds"),
    "jax_explicit_x64_dtypes": ("warn", "jax_enable_x64 decides what explicit 64-bit dtypes mean"),
    "jax_high_dynamic_range_gumbel": (False, "rune draws as JAX does by default"),
    "jax_legacy_prng_key": ("allow", "rune accepts raw keys"),
    "jax_no_execution": (False, "rune runs every call"),
    "jax_no_tracing": (False, "rune may trace every call"),
    "jax_random_seed_offset": (0, "rune adds no offset to seeds"),
    "jax_thread_guard": (False, "rune may be called by several threads"),
    "jax_transfer_guard": (None, _TRANSFERS),
    "jax_transfer_guard_device_to_device": (None, _TRANSFERS),
    "jax_transfer_guard_device_to_host": (None, _TRANSFERS),
    "jax_transfer_guard_host_to_device": (None, _TRANSFERS),
}
# Values that mean the same as the default.
_SAME = {("jax_explicit_x64_dtypes", 1): "warn"} | {(n, "allow"): None for n in FIXED if "guard" in n}

_process: dict[str, Any] = {}


class Options(dict[str, Any]):
    """The values that enclosing blocks give to options without effect on rune."""


def _options() -> Mapping[str, Any]:
    return innermost(Options) or {}


def value_of(name: str) -> Any:
    """The current value. Errors: AttributeError for an option that JAX does not have."""
    if name in ACTING:
        return ACTING[name].value(config.current())
    if name in NOTED:
        return _options().get(name, _process.get(name, NOTED[name]))
    if name in FIXED:  # a block may have set a synonym of the default
        return _options().get(name, FIXED[name][0])
    raise AttributeError(f"Unrecognized config option: {name}")


def in_block(name: str, value: Any) -> Block:
    """A block that sets the option, and can decorate functions. Errors: as `update`."""
    if name in ACTING:
        return Block(partial(_setting, name, value))
    _require_possible(name, value)
    return Block(partial(_noted, name, value))


def update(name: str, val: Any) -> None:
    """Set the option for the process.

    Errors: AttributeError for an unknown option; ArgumentError for a value that rune does not
            support, with the reason.
    """
    if name in ACTING:
        _setting(name, val).act()
        return
    _require_possible(name, val)
    if name in NOTED:
        _process[name] = val


def _setting(name: str, value: Any) -> config.Setting[Any]:
    acting = ACTING[name]
    return settings.configure(**acting.changes(acting.default if value is None else value))


def _require_possible(name: str, value: Any) -> None:
    if name in FIXED:
        default, reason = FIXED[name]
        if _SAME.get((name, value), value) != default:
            raise ArgumentError(f"config: cannot set {name}={value!r} (only {default!r} is available: {reason})")
    elif name not in NOTED:
        raise AttributeError(f"Unrecognized config option: {name}")


class Block(ContextDecorator):
    """A block that sets an option. Several threads may enter it, and it may be nested in itself.

    scope: creates the context manager to enter, once per entry, because one of rune's settings
           takes effect as soon as it is created
    """

    def __init__(self, scope: Callable[[], AbstractContextManager[object]]):
        self._scope, self._thread = scope, threading.local()

    def __enter__(self) -> None:
        scope = ExitStack()
        scope.enter_context(self._scope())
        self._thread.scopes = [*getattr(self._thread, "scopes", []), scope]

    def __exit__(self, *error: object) -> None:
        self._thread.scopes.pop().close()


@contextmanager
def _noted(name: str, value: object) -> Iterator[None]:
    with inside(Options, Options({**_options(), name: value})):
        yield


_REQUIRED = object()


@dataclass(frozen=True, slots=True)
class State:
    """An option as an attribute of JAX's modules: `jax.debug_nans(True)` is a block."""

    name: str

    @property
    def value(self) -> Any:
        """The current value."""
        return value_of(self.name)

    def __call__(self, new_val: Any = _REQUIRED) -> Block:
        """A block that sets the option, or without a value turns a switch on.

        Errors: TypeError without a value if the option is not a switch.
        """
        if new_val is not _REQUIRED:
            return in_block(self.name, new_val)
        if not isinstance(self.value, bool):
            raise TypeError(f"{self.name.removeprefix('jax_')}: cannot open a block without a value")
        return in_block(self.name, True)


def disable_jit(disable: bool = True) -> Block:
    """A block in which jitted functions, too, run operation by operation."""
    return in_block("jax_disable_jit", disable)


@contextmanager
def explain_cache_misses(new_val: bool = True) -> Iterator[list[str]]:
    """A block that reports why jit traces: `rune.explain_cache_misses`."""
    with in_block("jax_explain_cache_misses", new_val), cache_miss_reasons() if new_val else nullcontext([]) as reasons:
        yield reasons


class Configuration:
    """`jax.config`: options as attributes, `update` and `read`."""

    def __getattr__(self, name: str) -> Any:
        return value_of(name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]

    update = staticmethod(update)
    read = staticmethod(value_of)

    @property
    def values(self) -> dict[str, Any]:
        """All options and their values."""
        return {name: value_of(name) for name in (*ACTING, *NOTED, *FIXED)}

    @property
    def x64_enabled(self) -> bool:
        """An older name of jax_enable_x64."""
        return self.jax_enable_x64

    def config_with_absl(self) -> None:
        """Errors: ArgumentError, always: rune does not register options as absl flags."""
        raise ArgumentError(
            "config: cannot register options with absl (rune's options are not absl flags)",
            hint="set them by jax.config.update, or by environment variables like JAX_ENABLE_X64=1",
        )

    def parse_flags_with_absl(self) -> None:
        """Set options from the command line, as `--jax_enable_x64`, and make absl's flags readable.

        Errors: as `begin`; ImportError without absl.
        """
        begin_by_arguments(sys.argv[1:])
        flags = late_modules.absl_flags().FLAGS
        if not flags.is_parsed():
            flags([""])  # their defaults, as in JAX: parsing absl's own flags is up to the program


_WORDS = {"1": True, "true": True, "y": True, "yes": True, "t": True, "on": True}
_WORDS |= {"0": False, "false": False, "n": False, "no": False, "f": False, "off": False}


def begin(variables: Mapping[str, str] = os.environ) -> None:
    """Set options from JAX's environment variables, such as JAX_ENABLE_X64=1.

    Errors: ArgumentError for a value that an option cannot have.
    """
    for name, acting in ACTING.items():
        text = variables.get(name.upper())
        if text is not None:
            update(name, _read(name, text, acting.default))


def begin_by_arguments(arguments: Sequence[str]) -> None:
    """Set options from command-line arguments, as `--jax_enable_x64` or `--jax_platforms=cpu`.

    Other arguments, and all after `--`, belong to the program and are ignored.
    Errors: ArgumentError for a value that an option cannot have.
    """
    for argument in itertools.takewhile("--".__ne__, arguments):
        name, is_assigned, text = argument.removeprefix("--").partition("=")
        if argument.startswith("--jax_") and name in _DEFAULTS:
            update(name, _read(name, text if is_assigned else "true", _DEFAULTS[name]))


_DEFAULTS: Mapping[str, object] = {
    **{name: acting.default for name, acting in ACTING.items()},
    **NOTED,
    **{name: default for name, (default, _) in FIXED.items()},
}


def _read(name: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in _WORDS:
            raise ArgumentError(f"config: cannot use {name.upper()}={text!r} (true or false)")
        return _WORDS[text.lower()]
    return type(default)(text) if isinstance(default, int | float) else text
