"""The common part of the executors that check plans: `null`, which computes nothing, and
`reference`.

They run synchronously in this process, and count their calls.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from rune import dtypes
from rune.backends.shared.executor import Concretes
from rune.backends.shared.work import Work, WorkStats
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.text import to_text
from rune.lowering.plan import Plan
from rune.records import dataclass


def checking_target(backend: str, description: str) -> Target:
    """The one device of an executor that checks plans: it supports every dtype."""
    return Target(
        name=f"{backend}:0",
        backend=backend,
        language="none",
        description=description,
        # All dtypes, so that nothing is legalised and kernels are checked as they were built.
        dtypes=frozenset(dtypes.ANY),
        vector_bytes=16,
        cores=1,
        threads_per_workgroup=1024,
        shared_bytes=1 << 15,
        scratch_bytes=1 << 16,
        routines=frozenset({"dot"}),
    )


@dataclass(slots=True)
class CheckingExecutable(ABC):
    """A checked plan; subclasses define what a call does in `run`."""

    plan: Plan
    concretes: Concretes
    work: Work

    def __call__(self, arguments: Sequence[Any], donated: Sequence[int] = ()) -> list[Any]:
        """Run the plan, and count the call. Errors: those of `run`."""
        self.work.begin()
        try:
            return self.run(arguments, donated)
        finally:
            self.work.end()

    @abstractmethod
    def run(self, arguments: Sequence[Any], donated: Sequence[int]) -> list[Any]:
        """The results."""

    def sources(self) -> dict[str, str]:
        """The kernels as kernel code."""
        return {name: to_text(code) for name, code in self.plan.kernels.items()}


@dataclass(frozen=True, slots=True)
class CheckingBackend:
    """A device on which nothing is ever pending."""

    target: Target
    work: Work = field(default_factory=Work, compare=False)

    def synchronize(self) -> None:
        """Nothing is pending."""

    def work_stats(self) -> WorkStats:
        """Counts of calls until now."""
        return self.work.stats()
