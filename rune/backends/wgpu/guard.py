"""Guards calls of the native library by machine code, as wgpu-py's wrappers guard each of its own.

    with guard:         signal handlers wait, and errors are collected
        calls.play()
                        raises the error that the library has reported

The library reports errors to a function of Python's, in the middle of a call: an exception from a
signal handler there would be lost, with the error.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rune.backends.shared.interrupts import deferred

_NAME = "rune"  # of the calls, in reports of wgpu-py


class Guard:
    """The guard of one device. One thread at a time uses it, under the device's lock."""

    __slots__ = ("_deferred", "_errors", "_kinds")

    def __init__(self) -> None:
        native = "wgpu.backends.wgpu_native"
        self._errors: Any = import_module(f"{native}._api").error_handler
        self._kinds: Any = import_module(f"{native}._helpers").ERROR_TYPES
        self._deferred = deferred()

    def __enter__(self) -> None:
        self._deferred.__enter__()
        try:
            self._errors.capture(_NAME)
        except BaseException:
            self._deferred.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        try:
            report = self._errors.release(_NAME)
        finally:
            self._deferred.__exit__()
        if report is not None:
            kind, message = report
            raise self._kinds.get(kind, self._kinds[""])(message)
