"""What jit does beside looking up traces: a run on the CPU, donated arrays, its own text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from rune import counts
from rune.array import COMMITTED_CPU, CPU, Array, Place
from rune.backends import Device
from rune.backends.shared.protocol import Executable
from rune.core.values import Value
from rune.errors import LayoutError
from rune.profiling import counted
from rune.sharding.memory import Spread
from rune.transforms.compile.executables import compiled_on, sized
from rune.transforms.compile.trace_cache import Traced

PUBLIC = ("cache_size", "clear_cache", "eval_shape", "lower", "program", "trace")  # of jitted functions


def run_on_cpu(executable: Executable, traced: Traced, values: Sequence[Value], place: Place) -> list[Array] | None:
    """The results for arrays on the CPU; None if the general way has to prepare them first.

    Calls of small programs spend their time here, so it does only what it must.
    """
    buffers = [v.buffer for v in values if type(v) is Array and v.place is CPU]
    if len(buffers) < len(values):
        place = COMMITTED_CPU
        buffers = [v.buffer for v in values if type(v) is Array and v.place.device is None]
        if len(buffers) < len(values):
            return None
    try:
        outs = executable(buffers)
    except LayoutError:  # a strided view, which the general way makes dense
        return None
    next(counts.runs)
    types = traced.out_types
    if traced.is_symbolic:
        types = sized(types, outs)
    return [*map(Array, outs, types, repeat(place))]


def release(value: Value, device: Device | None) -> None:
    """Delete a donated array that is where the call ran; of one elsewhere it had a copy."""
    if type(value) is Array and (value.place.device is device or _share_mesh(value.place.device, device)):
        value.delete()


def _share_mesh(a: Device | None, b: Device | None) -> bool:
    return isinstance(a, Spread) and isinstance(b, Spread) and a.sharding.device_set == b.sharding.device_set


def jitted_text(name: str, traces: Iterable[Traced]) -> str:
    """`jit(f: 3 traces, 2 programs, cpu:0)`: what was traced and compiled, and where."""
    known = list(traces)
    devices = [d.name for t in known for d in compiled_on(t.program)]
    counts = [counted(len(known), "trace"), *([counted(len(devices), "program")] if devices else [])]
    return f"jit({name}: {', '.join([*counts, *dict.fromkeys(devices)])})"


class Bound:
    """A jitted method bound to its instance."""

    def __init__(self, jitted: Callable[..., object], instance: object):
        self.jitted, self.instance = jitted, instance

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call with the instance first."""
        return self.jitted(self.instance, *args, **kwargs)
