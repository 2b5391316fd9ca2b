"""The data that all functions of a plan's module share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from rune.backends.cpu.crew.messages import Talk
from rune.backends.cpu.host import Host
from rune.lowering.codegen.llvm.ir.names import identifier
from rune.lowering.codegen.llvm.ir.text import Writer
from rune.lowering.codegen.llvm.render import Rendered
from rune.lowering.plan import Plan
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.backends.cpu.gemm.small import Small
    from rune.backends.cpu.scratch import Scratch


def task_name(kernel: str) -> str:
    """The function that runs a part of a kernel's range for the worker pool."""
    return identifier(f"task.{kernel}")


@dataclass(slots=True)
class Module:
    """The data that all functions of a plan's module share, and the functions written so far."""

    plan: Plan
    host: Host
    kernels: Mapping[str, Rendered]
    talk: Talk
    scratch: Scratch | None  # after the values in the arena of @run
    split: set[str] = field(default_factory=set)  # kernels that the pool runs in some step
    asks: bool = False  # whether the plan checks for signals, whose handlers may raise
    gives_up: bool = False  # whether a loop may end early, so that better code begins again
    rounds: float = 1.0  # of the loops around the steps that are being written, at most, in a draft
    declarations: set[str] = field(default_factory=set)
    products: dict[Small, str] = field(default_factory=dict)  # the functions of small ones
    functions: list[str] = field(default_factory=list)  # each after those it calls

    def add(self, head: str, writer: Writer) -> None:
        """Add a function that was written."""
        self.functions.append(writer.definition(head))
        self.declarations |= writer.declarations
