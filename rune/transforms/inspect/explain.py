"""explain: every stage that one call goes through, from the traced program to each kernel's source.

    trace -> program -> simplified -> kernels -> plan -> code -> source

Each stage is text that can be parsed back; with it come the costs (kernels, bytes moved, FLOPs,
arena bytes, seconds per stage) and the reasons why kernels were not fused. The results and their
display are in explanations.py.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from rune import profiling
from rune.array import committed_to, default_place, on
from rune.backends import Device
from rune.core.program import Program
from rune.transforms.compile.executables import Schedules, device_for, lowered_by
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.partition import Segment
from rune.transforms.compile.run import OnMesh, on_mesh
from rune.transforms.compile.segments import partitioned
from rune.transforms.compile.transfer import has_moves
from rune.transforms.inspect.explanations import Explanation, MeshExplanation, SpanningExplanation


def explain(function: Callable[..., object], device: str | Device | None = None) -> Callable[..., Any]:
    """A function from arguments to the explanation of `function` compiled for them.

    The function is traced and compiled, not run. The result is an `Explanation`; for a function
    that moves values between devices a `SpanningExplanation`; and for a function on a mesh a
    `MeshExplanation`, with the splits of arrays, the data that devices send and, after
    `rune.measure_devices()`, predicted times.
    Errors: TransformError if an argument is not a function.

    >>> import rune, rune.numpy as rnp
    >>> e = rune.explain(lambda x: rnp.exp(x) * 2.0)(rnp.ones(8))
    >>> print(e["simplified"])
    program lambda(%0: f32[8]) {
      %1: f32[8] = exp %0
      %2: f32[8] = mul %1, 2.0: f32[]
      return %2
    }
    """
    # A jitted function is explained with its own trace, device and schedules.
    jitted = function if isinstance(function, Jitted) else jit(function)

    def of_call(*args: object, **kwargs: object) -> Explanation | SpanningExplanation | MeshExplanation:
        trace = jitted.traced(*args, **kwargs)
        inputs = jitted.inputs(*args, **kwargs)
        mesh_call = on_mesh(trace.program, inputs)
        if mesh_call is not None:
            return _on_mesh(trace.program, mesh_call, trace.donations)
        name = device or jitted.device
        place = committed_to(on(name)) if name else default_place()
        where = device_for(place.device)
        if not has_moves(trace.program):
            return _explained(trace.program, where, trace.donations, jitted.schedules)
        # Where parts run depends on the devices of the arguments, not on their types alone.
        parts = partitioned(trace.program, inputs, place)
        segments = [s for s in parts.steps if isinstance(s, Segment)]
        explanations = tuple(_explained(s.program, device_for(on(s.device)), ()) for s in segments)
        return SpanningExplanation(trace.program, parts, explanations)

    return of_call


def _on_mesh(program: Program, call: OnMesh, donations: tuple[int, ...]) -> MeshExplanation:
    # Devices of one kind run the same code. Reversed, so that the first of each kind remains.
    kinds = {d.name.partition(":")[0]: d for d in reversed(call.mesh.local_devices)}
    return MeshExplanation(program, call, tuple(_explained(call.local, d, donations) for d in kinds.values()))


def _explained(program: Program, where: Device, donations: tuple[int, ...], schedules: Schedules = ()) -> Explanation:
    lowering = lowered_by(program, where, donations, schedules)
    # `record` renders and compiles; the other stages were timed as they ran.
    start = perf_counter()
    executable = where.backend.record(lowering.plan)
    compile_seconds = perf_counter() - start
    return Explanation(program.name, where.name, lowering, executable.sources(), compile_seconds, profiling.current())
