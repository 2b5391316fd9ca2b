"""The settings, their values, and their environment variables.

rune/config.py decides which values are in force.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Hashable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rune.errors import ArgumentError
from rune.records import dataclass

Value = bool | int | float | str | Hashable | None


@dataclass(frozen=True, slots=True, eq=False)
class Config:
    """All settings. Equal settings are one object, so comparing and hashing are free."""

    x64: bool = False  # 64-bit defaults for Python and NumPy values without an explicit dtype
    # Programs report the first operation with such a fault: rune.debug.checks.
    check_bounds: bool = False  # an index out of bounds
    check_nans: bool = False  # a NaN from operands without one
    check_infs: bool = False  # an infinity from operands without one
    check_leaks: bool = False  # raise if a traced value is kept after its transformation
    check_stages: bool = False  # check every stage of the lowering after every pass
    disable_jit: bool = False  # jitted functions, branches and loops run in Python
    checkified: bool = False  # True in checkified functions, so that jit traces separately for them
    profile: bool = False  # programs report the time of each step
    reproducible: bool = True  # the same bits on every run; False lets a device add in any order
    flush_denormals: bool = False  # on the CPU, programs take denormal numbers for 0
    check_keys: bool = False  # raise KeyReuseError if a random key is used twice
    wide_dtypes: str = "honoured"  # "truncated": an explicit 64-bit dtype means 32 bits unless x64
    python_integers: str = "checked"  # "wrapped": integers out of the dtype's range wrap around
    bools_select: bool = False  # False times a float is 0 in arrays, even if the float is NaN
    complex_to_real: str = "refused"  # "warned": conversions take the real part, with a warning
    threefry_partitionable: bool = True  # False: draws are those of JAX's older threefry
    callback_errors: str = "unchanged"  # "quoted": a RuntimeError that quotes the error, as XLA's
    array_namespace: str | None = None  # the module `x.__array_namespace__()` gives; None: boxes
    promotion: str = "standard"  # "strict": operands of different dtypes do not combine
    rank_promotion: str = "allow"  # "warn", "raise": if operands of different ranks broadcast
    log_compiles: bool = False  # log traces and compilations to the logger "rune"
    cpu_devices: int = 1  # cpu:0, cpu:1, ...: devices that share the processor's cores
    xla_flags: bool = False  # XLA_FLAGS may give the number of CPU devices, if nothing else does
    device: str | None = None  # where new arrays and jitted calls without arrays go
    symbolic: str = "declared"  # "auto": in jit, an axis that changed twice becomes symbolic
    compiled_bytes: int = 1 << 30  # limit of the cache of traces and machine code [B]
    # Search for schedules: "stored": none, but use winners of earlier searches; "off": defaults
    # only; "full": until everything was tried; or seconds for each kernel.
    search: float | str = "stored"
    mesh: Any = None  # the mesh of a PartitionSpec without one: rune.sharding.set_mesh
    cache_dir: str | None = None  # of kernels; None: RUNE_CACHE_DIR or the user's; "": none


FIRST_CPU = frozenset({None, "cpu", "cpu:0"})  # values of `device` under which the CPU computes
WIDE_DTYPES = ("honoured", "truncated")
PYTHON_INTEGERS = ("checked", "wrapped")
COMPLEX_TO_REAL = ("refused", "warned")
CALLBACK_ERRORS = ("unchanged", "quoted")
PROMOTIONS = ("standard", "strict")
RANK_PROMOTIONS = ("allow", "warn", "raise")
SYMBOLIC = ("declared", "auto")
SEARCHES = ("stored", "off", "full")  # or seconds
_LEAST = {"cpu_devices": 1}  # 0 for other integers
_CHOICES = {
    "wide_dtypes": WIDE_DTYPES,
    "python_integers": PYTHON_INTEGERS,
    "complex_to_real": COMPLEX_TO_REAL,
    "callback_errors": CALLBACK_ERRORS,
    "promotion": PROMOTIONS,
    "rank_promotion": RANK_PROMOTIONS,
    "symbolic": SYMBOLIC,
}
_KINDS = {f.name: str(f.type) for f in fields(Config)}  # "bool", "str" or "str | None"
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


# --- names and values -------------------------------------------------------------------------


def checked(changes: Mapping[str, Any], operation: str = "configure") -> dict[str, Value]:
    """The changes, checked and in the form that settings store.

    Errors: ArgumentError for a setting that does not exist, and for a value it cannot have.
    """
    for name, value in changes.items():
        _require_known(name, operation)
        _require_fit(name, value, operation)
    return {n: _KEPT_AS.get(_KINDS[n], lambda value: value)(v) for n, v in changes.items()}


_KEPT_AS = {"bool": bool, "int": int, "float | str": lambda value: value if isinstance(value, str) else float(value)}


def _require_known(name: str, operation: str) -> None:
    if name not in _KINDS:
        close = difflib.get_close_matches(name, _KINDS, 1)
        raise ArgumentError(
            f"{operation}: cannot set {name} (settings: {', '.join(_KINDS)})",
            hint=f"did you mean {close[0]}?" if close else None,
        )


def _require_fit(name: str, value: Any, operation: str) -> None:
    kind, choices = _KINDS[name], _CHOICES.get(name)
    if choices is not None:
        is_fit = isinstance(value, str) and value in choices
        requirement = " or ".join(map(repr, choices))
    elif kind == "bool":
        is_fit, requirement = isinstance(value, bool | np.bool_), "True or False"
    elif name == "search":
        is_fit, requirement = is_search(value), f"{', '.join(map(repr, SEARCHES))}, or a positive number of seconds"
    elif name == "mesh":
        is_fit, requirement = value is None or hasattr(value, "axis_names"), "a mesh or None"
    elif kind == "int":
        is_int = isinstance(value, int | np.integer) and not isinstance(value, bool)
        least = _LEAST.get(name, 0)
        is_fit, requirement = is_int and value >= least, f"an integer from {least} on"
    else:
        is_fit, requirement = value is None or isinstance(value, str), "a string or None"
    if not is_fit:
        raise ArgumentError(f"{operation}: cannot use {name}={value!r} ({requirement})")


def is_search(value: object) -> bool:
    """Whether a value is valid for the setting `search`.

    >>> is_search("full"), is_search(2.5), is_search(0), is_search(float("inf")), is_search(True)
    (True, True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return isinstance(value, str) and value in SEARCHES
    return bool(0 < value < math.inf)


def variable_of(name: str) -> str:
    """The environment variable of a setting.

    >>> variable_of("check_nans")
    'RUNE_CHECK_NANS'
    """
    return f"RUNE_{name.upper()}"


def from_environment(environment: Mapping[str, str]) -> dict[str, Value]:
    """The settings from environment variables; empty variables are ignored.

    RUNE_CACHE_DIR is not among them: opening the cache reads it, and there an empty value has a
    meaning. A mesh cannot be written as text.
    Errors: ArgumentError with the name of a variable whose value the setting cannot have.

    >>> from_environment({"RUNE_X64": "yes", "RUNE_PROMOTION": "strict", "RUNE_CHECK_NANS": ""})
    {'x64': True, 'promotion': 'strict'}
    """
    texts = {n: environment.get(variable_of(n), "") for n in _KINDS if n not in ("cache_dir", "mesh")}
    return {name: _parsed(name, text) for name, text in texts.items() if text}


def _parsed(name: str, text: str) -> Value:
    if _KINDS[name] == "bool":
        value, requirement = _WORDS.get(text.lower()), ", ".join(_WORDS)
    elif _KINDS[name] == "int":
        least = _LEAST.get(name, 0)
        value = int(text) if text.isdecimal() and int(text) >= least else None
        requirement = f"{least}, {least + 1}, {least + 2}, ..."
    elif name == "search":
        value, requirement = _search_named(text), f"{', '.join(SEARCHES)}, or seconds"
    else:
        choices = _CHOICES.get(name, (text,))
        value, requirement = text if text in choices else None, ", ".join(choices)
    if value is None:
        raise ArgumentError(f"import: cannot use {variable_of(name)}={text!r} (one of {requirement})")
    return value


def _search_named(text: str) -> str | float | None:
    try:
        value = text if text in SEARCHES else float(text)
    except ValueError:
        return None
    return value if is_search(value) else None
