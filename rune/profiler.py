"""rune.profiler: records what ran when, in a file for Chrome's tracing page or Perfetto.

Compiled programs, named blocks of a program, and steps of a training loop become events in the
Trace Event format, in a file in the folder that JAX's profiler would use. `rune.debug.profile()`
gives totals of each kernel, with operations and bytes. While a trace is recorded, each call waits
until it is done, so the trace shows how long calls take, but no overlap between them.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

from rune import locks
from rune.config import setting
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.profiling import Kind, Profile, current, gathering, span, within
from rune.transforms.arguments import function_name, require_callable

__all__ = ["StepTraceAnnotation", "TraceAnnotation", "annotate_function", "device_memory_profile"]
__all__ += ["save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace", "trace"]

P = ParamSpec("P")
R = TypeVar("R")


class _State:
    """The trace that is being recorded, if any, and what ends it."""

    def __init__(self) -> None:
        self.lock = locks.lock()
        self.profile: Profile | None = None
        self.folder = Path()
        self.blocks = ExitStack()


_state = _State()


def start_trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> None:
    """Record a trace from now on, until `stop_trace` writes it under `log_dir`.

    log_dir:  the file is plugins/profile/<time>/rune.trace.json.gz in this folder
    create_perfetto_trace, profiler_options: accepted for JAX; there is one format and one level
    Errors: ArgumentError if a trace is already being recorded, or with create_perfetto_link.

    >>> import rune, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rune.profiler.start_trace(folder)
    ...     _ = rune.jit(lambda x: x + 1)(1.0)
    ...     rune.profiler.stop_trace()
    """
    if create_perfetto_link:
        raise ArgumentError("start_trace: cannot serve a trace by create_perfetto_link", hint="open the file it writes")
    with _state.lock:
        if _state.profile is not None:
            raise ArgumentError("start_trace: cannot record a second trace", hint="stop_trace() ends the first one")
        _state.profile, _state.folder = Profile(), Path(log_dir)
        _state.blocks.enter_context(gathering(_state.profile))
        _state.blocks.enter_context(setting(profile=True))


def stop_trace() -> None:
    """End the trace, and write it.

    Errors: ArgumentError if no trace is being recorded; OSError if the file cannot be written.

    >>> import rune
    >>> rune.profiler.stop_trace()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: stop_trace: cannot end a trace (none is being recorded)...
    """
    with _state.lock:
        profile, _state.profile = _state.profile, None
        if profile is None:
            raise ArgumentError(
                "stop_trace: cannot end a trace (none is being recorded)", hint="start_trace() begins one"
            )
        _state.blocks.close()
    folder = _state.folder / "plugins" / "profile" / time.strftime("%Y_%m_%d_%H_%M_%S")
    folder.mkdir(parents=True, exist_ok=True)
    profile.save(folder / "rune.trace.json.gz")


@contextmanager
def trace(
    log_dir: str | os.PathLike[str],
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: object = None,
) -> Iterator[None]:
    """A block that records a trace: `start_trace` before it, `stop_trace` after.

    Arguments and errors: as for `start_trace`.

    >>> import rune, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with rune.profiler.trace(folder):
    ...         _ = rune.jit(lambda x: x + 1)(1.0)
    """
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


class TraceAnnotation:
    """A block that a trace shows under a name.

    name:       the name of the event
    arguments:  numbers and texts to show with it
    Errors: none.

    >>> import rune
    >>> with rune.profiler.TraceAnnotation("load", batch=3):
    ...     pass
    """

    __slots__ = ("arguments", "block", "name")

    def __init__(self, name: str, **arguments: object):
        self.name, self.arguments = name, arguments

    def __enter__(self):
        profile = _state.profile or current()  # a trace covers all threads
        self.block = ExitStack()
        self.block.enter_context(within(profile))
        self.block.enter_context(span(self.name, Kind.SPAN, **self.arguments))
        return self

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        self.block.close()


class StepTraceAnnotation(TraceAnnotation):
    """A block that is one step of a training loop.

    name:       the name of the event, such as "train"
    arguments:  step_num=..., and others to show with it
    Errors: none.

    >>> import rune
    >>> for i in range(2):
    ...     with rune.profiler.StepTraceAnnotation("train", step_num=i):
    ...         pass
    """

    __slots__ = ()

    def __init__(self, name: str, **arguments: object):
        super().__init__(name, _r=1, **arguments)  # by which TensorBoard recognises a step


def annotate_function(
    func: Callable[P, R] | None = None, name: str | None = None, **decorator_kwargs: object
) -> Callable[..., Any]:
    """The function, with each call shown in a trace under a name.

    name:               the function's own by default
    decorator_kwargs:   numbers and texts to show with the calls
    Errors: TransformError if `func` is not a function.

    >>> import rune
    >>> @rune.profiler.annotate_function
    ... def load():
    ...     return 3
    >>> load()
    3
    """
    if func is None:
        return functools.partial(annotate_function, name=name, **decorator_kwargs)
    require_callable("annotate_function", func)
    title = name or getattr(func, "__qualname__", function_name(func))

    @functools.wraps(func)
    def annotated(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(title, **decorator_kwargs):
            return func(*args, **kwargs)

    return annotated


def _refuse(name: str, why: str, hint: str) -> NoReturn:
    raise ArgumentError(f"{name}: cannot {why}", hint=hint)


def start_server(port: int, **options: object) -> NoReturn:
    """Not supported, as traces are files.

    Errors: ArgumentError, always.

    >>> import rune
    >>> rune.profiler.start_server(9999)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: start_server: cannot serve traces on a port (traces are files)...
    """
    _refuse("start_server", "serve traces on a port (traces are files)", "rune.profiler.trace(folder) writes one")


def stop_server() -> NoReturn:
    """Not supported, as there is no server. Errors: ArgumentError, always.

    >>> import rune
    >>> rune.profiler.stop_server()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: stop_server: cannot stop a server (there is none)...
    """
    _refuse("stop_server", "stop a server (there is none)", "rune.profiler.trace(folder) writes a trace")


def device_memory_profile(backend: str | None = None) -> NoReturn:
    """Not supported, as the format is XLA's. Errors: ArgumentError, always.

    >>> import rune
    >>> rune.profiler.device_memory_profile()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: device_memory_profile: cannot write pprof's format ...
    """
    _refuse(
        "device_memory_profile",
        "write pprof's format of XLA's allocations",
        "rune.memory_stats(device) tells what is allocated",
    )


def save_device_memory_profile(filename: str, backend: str | None = None) -> NoReturn:
    """Not supported, as the format is XLA's. Errors: ArgumentError, always.

    >>> import rune
    >>> rune.profiler.save_device_memory_profile("memory.prof")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    rune.errors.ArgumentError: device_memory_profile: cannot write pprof's format ...
    """
    device_memory_profile(backend)


__dir__ = _names(globals())
