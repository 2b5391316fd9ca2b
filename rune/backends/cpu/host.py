"""The process as the code of plans sees it: its processor, Python, pool and routines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.libraries import Libraries
from rune.lowering.codegen.machine import Machine
from rune.lowering.factors import ROUTINES as FACTORS
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.backends.cpu.clock import Clock
    from rune.lowering.plan import Call

ROUTINES = ("dot", "strided_dot", "line_fft", *FACTORS)  # besides Python


@dataclass(frozen=True, slots=True)
class Host:
    """The process for one device, with routines compiled at one effort."""

    machine: Machine
    abi: Abi
    cores: int
    parallel: Callable[[], int]  # address of void(ptr task, ptr words, i64 total, i64 chunk)
    libraries: Libraries  # of products, transforms and factorisations
    draft: Host | None = None  # the same with routines of the lowest effort (drafts.py)
    # Gives the Python function of a step, which takes the address of words (callbacks.py).
    call_back: Callable[[Call], Callable[[int], int]] | None = None
    meet: Callable[[], int] | None = None  # address of i1(ptr seat, i64 number, ptr row) (crew/)
    clock: Clock | None = None  # times every step
    flushes: bool = False  # plans take denormal numbers for 0 (float_mode.py)

    @property
    def effort(self) -> int:
        """LLVM's effort for plans and routines."""
        return self.libraries.effort

    def flushing(self) -> Host:
        """The host for plans that take denormal numbers for 0."""
        draft = None if self.draft is None else self.draft.flushing()
        machine = replace(self.machine, waits_for_denormals=False)  # while it flushes them
        return replace(self, machine=machine, flushes=True, draft=draft)

    def of_effort(self, effort: int) -> Host:
        """The host whose routines are compiled at this effort."""
        return self.draft if self.draft is not None and self.draft.effort == effort else self

    def on_one_core(self) -> Host:
        """The host for code on one core, which does not start the pool."""
        return replace(self, cores=1, libraries=replace(self.libraries, cores=1))
