"""Debugging: print, callback and checks in eager and compiled code, profiles, and a view of which
device holds which block of a sharded array.

    rune.debug.print("x = {x:.3f}", x=x)
    with rune.debug.checks(bounds=True, nans=True): ...
    with rune.debug.profile() as profile: ...

A print shows the values when the program runs. Under vmap it prints once per lane, or once if no
argument is batched; under grad once, for the primal.
"""

from __future__ import annotations

import builtins
import itertools
import re
import string
import typing as _typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from rune import dtypes, tree
from rune.absent import of as _absent
from rune.array import Array
from rune.config import setting
from rune.core.interpreter import Tracer
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.profiling import Profile, gathering
from rune.records import dataclass
from rune.sharding import Sharding, picture
from rune.transforms.callback import debug_callback
from rune.transforms.checkpoint.residuals import print_saved_residuals, saved_residuals
from rune.transforms.inspect.breakpoint import breakpoint
from rune.transforms.inspect.layouts import inspect_array_sharding, inspect_layout
from rune.transforms.inspect.live_arrays import live_arrays_with_lines as live_arrays

__all__ = ["Profile", "breakpoint", "callback", "checks", "inspect_array_sharding", "live_arrays", "print"]
__all__ += ["print_saved_residuals", "profile", "saved_residuals", "visualize_array_sharding", "visualize_sharding"]


@contextmanager
def checks(bounds: bool = False, nans: bool = False, infs: bool = False) -> Iterator[None]:
    """A block in which programs report indices out of bounds, and new NaNs and infinities.

    bounds:  check indices without an explicit mode (x[i], x.at[i], dynamic slices).
    nans:    check for NaNs in operations whose operands have none, even in unused results.
    infs:    check for infinities, likewise.
    The settings check_bounds, check_nans and check_infs of rune.configure have the same effect.
    Errors: BoundsError (an IndexError) and NaNError with the operation, the index or position, and
            your line; the call that ran the program raises them.

    On every executor kernels contain the checks, which makes them slower. Jitted functions are
    traced again in their checked form. The values do not change.

    >>> import rune, rune.numpy as rnp
    >>> f = rune.jit(lambda x, i: x[i])
    >>> with rune.debug.checks(bounds=True):
    ...     try:
    ...         f(rnp.arange(5.0), 7)
    ...     except IndexError as error:
    ...         str(error).splitlines()[0]
    'gather: found index 7 out of bounds (axis 0 of f32[5])'
    """
    with setting(check_bounds=bounds, check_nans=nans, check_infs=infs):
        yield


@contextmanager
def profile() -> Iterator[Profile]:
    """A block that records when each event began, and how long it took.

    Events are compiled programs and each of their steps, eager operations, traces, compilations,
    copies between host and devices, waiting for data, collectives, callbacks and their wait for the
    interpreter, and blocks of `rune.profiler.TraceAnnotation`; array allocations are recorded, too.
    Each has your line and its `rune.named_scope`. The time between events is Python's. An event has
    both its duration and its thread's time on a processor; for the rest the thread waited.

    The profile prints as tables, and a notebook draws its timeline. `plans` has the figures of
    programs, `totals` those of all other events, `threads` how long each thread computed and
    waited, `events` the single events, `between` the Python between them, `counters` the numbers of
    traces, compilations and binaries found on disk, `live_arrays()` the new arrays that are still
    alive, `picture()` the timeline; `save("trace.json")` writes it for Perfetto and Chrome. Times
    are the device's own if it has a clock (OpenCL, Vulkan, CUDA, WebGPU with timestamp-query), else
    the host's.

    Profiling compiles programs again, with separate steps, and makes each call wait. With
    RUNE_DEBUG=profile in the environment, the whole process is profiled and prints the tables at
    its end. Other threads need blocks of their own.
    Errors: none.

    >>> import rune, rune.numpy as rnp
    >>> f, x = rune.jit(lambda x: rnp.sum(rnp.sin(x))), rnp.ones(1000)
    >>> with rune.debug.profile() as p:
    ...     y = x + 1
    ...     for _ in range(3):
    ...         _ = f(y)
    >>> [(plan.name, plan.calls, plan.steps[0].calls) for plan in p.plans]
    [('lambda', 3, 3)]
    >>> [total.name for total in p.totals if total.kind == "eager"]
    ['add']
    """
    with gathering(Profile()) as record, setting(profile=True):
        yield record


def callback(
    callback: Callable[..., object], *args: object, ordered: bool = False, partitioned: bool = False, **kw: object
) -> None:
    """Call a Python function of concrete arrays, for its side effects, when the program runs.

    ordered:      keep this call in program order with other ordered callbacks.
    partitioned:  JAX's request for one call per shard; without effect, as arrays arrive whole.
    The result of the function is ignored. Leaves that are not arrays are passed unchanged.
    Errors: TransformError if an argument is not a function; else those of the function.

    >>> import rune
    >>> values = []
    >>> rune.vmap(lambda x: rune.debug.callback(values.append, x))(rune.numpy.arange(3))
    >>> [int(x) for x in values]
    [0, 1, 2]
    """
    debug_callback(callback, *args, ordered=ordered, **kw)


def print(
    fmt: str,
    *args: object,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: object,
) -> None:
    """Print `fmt.format(*args, **kwargs)` with the values when the program runs.

    Numbers are formatted by NumPy's `printoptions` at the call.
    ordered:      keep this print in program order with other ordered ones.
    partitioned:  as for `callback`.
    skip_format_check: whether to accept arguments that no field of the format uses.
    Errors:  ArgumentError, when traced, if the format does not match the arguments.

    >>> import rune
    >>> rune.jit(lambda x: rune.debug.print("x = {x:.1f}", x=x))(2.0)
    x = 2.0
    """
    if not skip_format_check:
        _require_fit(fmt, args, kwargs)
    debug_callback(_Show(fmt, _print_options()), *args, ordered=ordered, **kwargs)


_Options = tuple[tuple[str, Any], ...]  # names and values of NumPy's print options


@dataclass(frozen=True, slots=True)
class _Show:
    """Prints by a format. Equal formats compare equal, so that an eager loop compiles once."""

    fmt: str
    options: _Options
    name: ClassVar[str] = "print"

    def __call__(self, *values: object, **keywords: object) -> None:
        hosts, by_name = tree.map(_host, (values, keywords))
        with np.printoptions(**dict(self.options)):
            builtins.print(self.fmt.format(*hosts, **by_name))


def _print_options() -> _Options:
    """NumPy's current print options, without `formatter`, which holds functions."""
    options = np.get_printoptions()
    return tuple((name, options[name]) for name in _SHOWN)


_SHOWN = ("precision", "threshold", "edgeitems", "linewidth", "suppress", "nanstr", "infstr", "sign", "floatmode")


def _host(value: Any) -> object:
    """A NumPy array or scalar, which supports formats, for an array or number; keys unchanged."""
    is_number = hasattr(value, "type") and value.type.dtype not in dtypes.KEYS
    return np.asarray(value)[()] if is_number else value


def _require_fit(fmt: str, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
    """Raise ArgumentError unless each field has an argument and each argument a field."""
    argument_names = [*map(str, range(len(args))), *kwargs]
    fields = list(_fields(fmt))
    lacking = [name for name in fields if name not in argument_names]
    extra_names = [name for name in argument_names if name not in fields]
    if lacking or extra_names:
        why = f"no argument {lacking[0]}" if lacking else f"no field for argument {extra_names[0]}"
        raise ArgumentError(f"debug.print: cannot fill {fmt!r} ({why})")


def _fields(fmt: str) -> Iterator[str]:
    """The arguments that a format uses: `0`, `x`; fields without a name get their number."""
    count = itertools.count()
    for _, name, spec, _ in string.Formatter().parse(fmt):
        if name is not None:
            yield re.split(r"[.\[]", name)[0] or str(next(count))
            yield from _fields(spec or "")


def visualize_sharding(shape: Sequence[int], sharding: Sharding) -> None:
    """Print which device would hold which block of an array of this shape.

    shape:   the shape of a vector or a matrix
    Errors:  ArgumentError for another rank, ShapeError if the blocks would not be equal.

    >>> import rune
    >>> from rune.sharding import Mesh, NamedSharding, P
    >>> mesh = Mesh([["cpu:0"], ["reference:0"]], ("data", "model"))
    >>> rune.debug.visualize_sharding((4, 6), NamedSharding(mesh, P("data")))
              0:6
        ┌─────────────┐
    0:2 │    cpu:0    │
        ├─────────────┤
    2:4 │ reference:0 │
        └─────────────┘
    """
    _draw("debug.visualize_sharding", shape, sharding)


def visualize_array_sharding(arr: Array) -> None:
    """Print which device holds which block of an array.

    arr:     a vector or a matrix; the picture of a traced one is printed once, before the program
             first runs on its devices, and under vmap it is that of all lanes
    Errors:  ArgumentError for another rank, and for a value that is not an array.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import Mesh, NamedSharding, P
    >>> halves = NamedSharding(Mesh(["cpu:0", "reference:0"], "data"), P("data"))
    >>> rune.debug.visualize_array_sharding(rune.device_put(rnp.arange(6), halves))
          0:3           3:6
    ┌─────────────┬─────────────┐
    │    cpu:0    │ reference:0 │
    └─────────────┴─────────────┘
    """
    name = "debug.visualize_array_sharding"
    if not isinstance(arr, Array | Tracer):
        raise ArgumentError(f"{name}: cannot draw the blocks of a {type(arr).__name__} (an Array required)")
    picture.require_drawable(name, arr.shape)
    inspect_layout(arr, lambda sharding, shape: _draw(name, _typing.cast("Sequence[int]", shape), sharding))


def _draw(operation: str, shape: Sequence[int], sharding: Sharding) -> None:
    if not isinstance(sharding, Sharding):
        raise ArgumentError(f"{operation}: cannot draw blocks by {type(sharding).__name__} (a Sharding required)")
    builtins.print(picture.text(picture.grid_of(operation, shape, sharding)))


if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
