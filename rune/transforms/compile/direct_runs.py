"""Parts of jit besides the look-up of traces: direct runs on the CPU, donated arrays, its repr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from rune import config, counts
from rune.array import COMMITTED_CPU, CPU, Array, Place, default_place
from rune.backends import Device
from rune.backends.shared.protocol import Executable
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import LayoutError
from rune.profiling import counted
from rune.records import dataclass
from rune.sharding.memory import Spread
from rune.transforms.compile.executables import compiled, compiled_on, device_for, sized
from rune.transforms.compile.placement import arriving, place_of_call
from rune.transforms.compile.run import needs_stages, run_program
from rune.transforms.compile.trace_cache import Traced

PUBLIC = ("cache_size", "clear_cache", "eval_shape", "lower", "program", "trace")  # of jitted functions


@dataclass(frozen=True, slots=True)
class Code:
    """A program's compiled code for the CPU, for runs that consist of nothing else."""

    executable: Executable
    out_types: tuple[ArrayType, ...]
    is_symbolic: bool  # whether the size of a result depends on the arguments


def run_call(name: str, program: Program, args: Sequence[Value]) -> list[Array]:
    """The results of a program held by an equation, computed where its arguments are.

    The checks and moves that a run needs besides compiled code are determined once per settings.
    Errors: DeviceError for arguments that are committed to different devices.
    """
    codes, settings = program.derived.setdefault(Code, {}), config.current()
    code: Code | None = codes.get(settings)
    outs = None if code is None else run_on_cpu(code.executable, code, args, CPU)
    if outs is not None:
        return outs
    args = arriving(program, args)
    place = place_of_call(name, program, args)
    results = run_program(program, args, place)
    # If this run needed nothing but compiled code on the CPU, the next ones may skip the rest.
    if place.device is None and default_place() is CPU and not needs_stages(program):
        types = program.output_types
        is_symbolic = any(t.is_symbolic for t in types)
        codes[settings] = Code(compiled(program, device_for(None)), types, is_symbolic)
    return results


def run_on_cpu(
    executable: Executable, traced: Traced | Code, values: Sequence[Value], place: Place
) -> list[Array] | None:
    """The results for arrays on the CPU; None if the general way has to prepare them first.

    Calls of small programs spend their time here, so this does nothing that is not necessary.
    """
    buffers = [v.buffer for v in values if type(v) is Array and v.place is CPU]
    # An array committed to the CPU commits the results; all arrays are checked again for that.
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
    """Delete a donated array that is on the device of the call; of any other a copy was used."""
    if type(value) is Array and (value.place.device is device or _share_mesh(value.place.device, device)):
        value.delete()


def _share_mesh(a: Device | None, b: Device | None) -> bool:
    return isinstance(a, Spread) and isinstance(b, Spread) and a.sharding.device_set == b.sharding.device_set


def jitted_text(name: str, traces: Iterable[Traced]) -> str:
    """`jit(f: 3 traces, 2 programs, cpu:0)`: what was traced and compiled, and where."""
    trace_list = list(traces)
    devices = [d.name for t in trace_list for d in compiled_on(t.program)]
    counts = [counted(len(trace_list), "trace"), *([counted(len(devices), "program")] if devices else [])]
    return f"jit({name}: {', '.join([*counts, *dict.fromkeys(devices)])})"


class Bound:
    """A jitted method bound to its instance."""

    def __init__(self, jitted: Callable[..., object], instance: object):
        self.jitted, self.instance = jitted, instance

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call with the instance first."""
        return self.jitted(self.instance, *args, **kwargs)
