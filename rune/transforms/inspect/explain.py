"""explain: every stage that one call goes through, from the traced program to each kernel's source.

    trace -> program -> simplified -> kernels -> plan -> code -> source

Each stage is text that parses back; with it come the costs (kernels, bytes moved, FLOPs, arena
bytes, seconds per stage) and the reasons why kernels were not fused. In a notebook it is laid out
by `explain_view.py`, and graphs of stages are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rune.array import committed_to, default_place, on
from rune.backends import Device
from rune.core.graph import Graph
from rune.core.program import Program
from rune.lowering.explain import STAGES, Costs, Lowered, costs_text
from rune.lowering.pipeline import stages
from rune.lowering.plan import Plan
from rune.transforms.compile.executables import device_for
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.partition import Partition, Segment
from rune.transforms.compile.segments import partitioned
from rune.transforms.compile.transfer import has_moves
from rune.transforms.inspect.explain_view import view

_WIDTH = 78


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stages of one call, their costs, and the source of every kernel."""

    name: str
    device: str
    lowered: Lowered
    sources: Mapping[str, str]
    compile_seconds: float

    def __getitem__(self, stage: str) -> str:
        """The text of "program", "simplified", "kernels", "code", "plan", "costs" or "source"."""
        if stage == "source":
            return "\n\n".join(self.sources.values())
        return self.lowered.text(stage)

    @property
    def costs(self) -> Costs:
        """Kernels, calls, bytes moved, FLOPs and arena bytes of one run."""
        return self.lowered.costs()

    @property
    def plan(self) -> Plan:
        """The memory plan and its steps."""
        return self.lowered.plan

    @property
    def seconds(self) -> Mapping[str, float]:
        """The time of each stage of the compilation."""
        return {**self.lowered.seconds, "source": self.compile_seconds}

    def summary(self) -> str:
        """The costs of a run, and the time of each stage."""
        spent = ", ".join(f"{stage} {1e3 * t:.1f} ms" for stage, t in self.seconds.items())
        return f"{costs_text(self.costs)}\n{spent}"

    def graph(self, stage: str) -> Graph:
        """The graph of "program", "simplified", "kernels" or "plan".

        `.to_dot()` is its text for graphviz; a notebook draws it if `dot` is installed.
        """
        return self.lowered.graph(stage)

    def _sections(self) -> Iterator[tuple[str, str]]:
        yield from ((stage, self.lowered.text(stage)) for stage in STAGES)
        yield from ((f"source {name}", text) for name, text in self.sources.items())

    def __str__(self) -> str:
        head = f"explain {self.name} on {self.device}\n{self.summary()}"
        return "\n\n".join([head, *(_section(*part) for part in self._sections())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{self.name} on {self.device}"
        return view(title, self.lowered, self.seconds, self._sections())


@dataclass(frozen=True, slots=True)
class SpanningExplanation:
    """A call that runs on several devices: the parts, the copies between them, each part's stages.

    >>> import rune, rune.numpy as rnp
    >>> f = lambda x: rnp.exp(rune.device_put(rnp.sin(x), "reference"))
    >>> print(rune.explain(f)(rnp.ones(8)).partition)
    partition lambda at home on cpu:0 {
      cpu:0: %1 = lambda.0 %0  # equations: 1
      copy %1 from cpu:0 to reference:0
      reference:0: %2 = lambda.1 %1  # equations: 1
      return %2 on reference:0
    }
    """

    program: Program
    partition: Partition
    parts: tuple[Explanation, ...]

    def __getitem__(self, stage: str) -> str:
        """The text of "program" or "partition", or a stage of all parts."""
        call_stages = {"program": self.program, "partition": self.partition}
        if stage in call_stages:
            return str(call_stages[stage])
        return "\n\n".join(part[stage] for part in self.parts)

    def __str__(self) -> str:
        title = f"explain {self.program.name} on {', '.join(self.partition.devices)}"
        sections = (_section(stage, self[stage]) for stage in ("program", "partition"))
        return "\n\n".join([title, *sections, *map(str, self.parts)])

    __repr__ = __str__


def _section(title: str, text: str) -> str:
    return f"--- {title} {'-' * max(0, _WIDTH - len(title))}\n{text}"


def explain(function: Callable[..., object], device: str | Device | None = None) -> Callable[..., Any]:
    """A function from arguments to the explanation of `function` compiled for them.

    The function is traced and compiled, not run. The result is an `Explanation`, or for a
    function that moves values between devices a `SpanningExplanation`.
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
    jitted = function if isinstance(function, Jitted) else jit(function)

    def of_call(*args: object, **kwargs: object) -> Explanation | SpanningExplanation:
        traced = jitted.traced(*args, **kwargs)
        name = device or jitted.device
        place = committed_to(on(name)) if name else default_place()
        where = device_for(place.device)
        if not has_moves(traced.program):
            return _explained(traced.program, where, traced.donated)
        # Where parts run depends on the devices of the arguments, not on their types alone.
        inputs = jitted.inputs(*args, **kwargs)
        parts = partitioned(traced.program, inputs, place)
        segments = [s for s in parts.steps if isinstance(s, Segment)]
        explanations = tuple(_explained(s.program, device_for(on(s.device)), ()) for s in segments)
        return SpanningExplanation(traced.program, parts, explanations)

    return of_call


def _explained(program: Program, where: Device, donated: tuple[int, ...]) -> Explanation:
    lowered = stages(program, where.target, donated)
    # `record` renders and compiles; the other stages were timed as they ran.
    start = perf_counter()
    executable = where.backend.record(lowered.plan)
    spent = perf_counter() - start
    return Explanation(program.name, where.name, lowered, executable.sources(), spent)
