"""explain: every stage that one call goes through, from the traced program to each kernel's source.

    trace -> program -> simplified -> kernels -> plan -> code -> source

Each stage is text that parses back; beside it stand the costs (kernels, bytes moved, FLOPs, arena
bytes, seconds per stage) and why two kernels were not fused. In a notebook the memory plan is
drawn: a row of bytes by steps.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from rune.array import on
from rune.config import current
from rune.lowering.explain import STAGES, Costs, Lowered, kernels_dot, plan_dot, program_dot
from rune.lowering.pipeline import stages
from rune.lowering.plan import Plan
from rune.transforms.compile import device_for
from rune.transforms.jit import Jitted, jit
from rune.transforms.plan_picture import plan_svg

_WIDTH = 78


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stages of one call, what they cost, and the source of every kernel."""

    name: str
    device: str
    lowered: Lowered
    sources: Mapping[str, str]
    compile_seconds: float

    def __getitem__(self, stage: str) -> str:
        """The text of a stage: "program", "simplified", "kernels", "code", "plan" or "source"."""
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

    def summary(self) -> str:
        """The costs of a run, and the seconds that each stage took."""
        costs = self.costs
        times = {**self.lowered.seconds, "source": self.compile_seconds}
        spent = ", ".join(f"{stage} {1e3 * t:.1f} ms" for stage, t in times.items())
        return (
            f"{costs.launches} kernels, {costs.calls} calls, {costs.copies} copies; "
            f"{costs.bytes_moved} bytes moved, {costs.flops} operations; "
            f"arena {costs.arena_bytes} bytes, {costs.live_peak_bytes} alive at once\n{spent}"
        )

    def _sections(self) -> Iterator[tuple[str, str]]:
        yield from ((stage, self.lowered.text(stage)) for stage in STAGES)
        yield from ((f"source {name}", text) for name, text in self.sources.items())

    def __str__(self) -> str:
        head = f"explain {self.name} on {self.device}\n{self.summary()}"
        return "\n\n".join([head, *(_section(*part) for part in self._sections())])

    __repr__ = __str__

    def to_dot(self) -> dict[str, str]:
        """Graphviz text of the simplified program, the kernels and the plan."""
        return {
            "program": program_dot(self.lowered.simplified),
            "kernels": kernels_dot(self.lowered.kernels),
            "plan": plan_dot(self.lowered.plan),
        }

    def _repr_html_(self) -> str:
        title = f"<h4>explain {html.escape(self.name)} on {html.escape(self.device)}</h4>"
        summary = f"<pre>{html.escape(self.summary())}</pre>"
        folded = "".join(_fold(*part) for part in self._sections())
        return title + summary + plan_svg(self.lowered.plan) + folded


def _section(title: str, text: str) -> str:
    return f"--- {title} {'-' * max(0, _WIDTH - len(title))}\n{text}"


def _fold(title: str, text: str) -> str:
    body = f"<pre>{html.escape(text)}</pre>"
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


def explain(function: Callable[..., Any], device: str | None = None) -> Callable[..., Explanation]:
    """A function from arguments to the explanation of `function` compiled for them.

    The function is traced and compiled, not run.

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

    def of_call(*args: Any, **kwargs: Any) -> Explanation:
        program = jitted.program(*args, **kwargs)
        name = device or jitted.device or current().device
        where = device_for(on(name) if name else None)
        lowered = stages(program, where.target)
        start = perf_counter()
        executable = where.backend.record(lowered.plan)
        spent = perf_counter() - start
        return Explanation(program.name, where.name, lowered, executable.sources(), spent)

    return of_call
