"""explain: every stage that one call goes through, from the traced program to each kernel's source.

    trace -> program -> simplified -> kernels -> plan -> code -> source

Each stage is text that parses back; beside it stand the costs (kernels, bytes moved, FLOPs, arena
bytes, seconds per stage) and why two kernels were not fused. In a notebook the memory plan is
drawn: a row of bytes by steps.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rune.array import on
from rune.config import current
from rune.lowering.pipeline import Lowered, stages
from rune.transforms.compile import device_for
from rune.transforms.jit import Jitted, jit
from rune.transforms.plan_picture import plan_svg

_WIDTH = 78


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stages of one call by name, in order, and their costs."""

    name: str
    device: str
    stages: Mapping[str, str]
    sources: Mapping[str, str]
    lowered: Lowered

    def __getitem__(self, stage: str) -> str:
        """The text of one stage: "program", "simplified", "kernels", "plan", "code", "source"."""
        return "\n\n".join(self.sources.values()) if stage == "source" else self.stages[stage]

    def __str__(self) -> str:
        parts = [f"explain {self.name} on {self.device}", self.lowered.summary()]
        parts += [_section(title, text) for title, text in self.stages.items()]
        parts += [_section(f"source {name}", text) for name, text in self.sources.items()]
        return "\n\n".join(parts)

    __repr__ = __str__

    def to_dot(self) -> dict[str, str]:
        """Graphviz text of the program, the kernels and the plan."""
        return self.lowered.to_dot()

    def _repr_html_(self) -> str:
        title = f"<h4>explain {html.escape(self.name)} on {html.escape(self.device)}</h4>"
        summary = f"<pre>{html.escape(self.lowered.summary())}</pre>"
        folded = [_fold(name, text) for name, text in self.stages.items()]
        folded += [_fold(f"source {name}", text) for name, text in self.sources.items()]
        return title + summary + plan_svg(self.lowered.plan) + "".join(folded)


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
        lowered = stages(program, where.target, ())
        executable = where.backend.record(lowered.plan)
        texts = {"program": program.text(frames=True), **lowered.texts()}
        return Explanation(program.name, where.name, texts, executable.sources(), lowered)

    return of_call
