"""What the code of plans needs to know of the process: its processor, Python, pool and routines."""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cpu import compiler
from rune.backends.cpu.clock import Clock
from rune.backends.cpu.dots import Address
from rune.backends.cpu.factors import Factors
from rune.backends.cpu.host_abi import Abi
from rune.backends.cpu.transforms import Transform
from rune.lowering.codegen.llvm import Machine
from rune.lowering.plan import Call
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """The process for one device, with routines made by one effort of LLVM's."""

    machine: Machine
    abi: Abi
    cores: int
    parallel: Callable[[], int]  # address of void(ptr task, ptr words, i64 total, i64 chunk)
    dot: Address  # of matrix products of a dtype (gemm/blocks.py), ...
    strided_dot: Address  # ... and of views (gemm/strided.py)
    transform: Transform  # of Fourier transforms (fft/library.py)
    factors: Factors  # of matrices (linalg/library.py)
    effort: int = compiler.EFFORT  # LLVM's, with which these are made
    draft: Host | None = None  # the same with routines made in a hurry (drafts.py)
    # The Python function of a step, which takes the address of words (callbacks.py).
    call_back: Callable[[Call], Callable[[int], int]] | None = None
    meet: Callable[[], int] | None = None  # address of i1(ptr seat, i64 number, ptr row) (crew/)
    clock: Clock | None = None  # times every step

    def of_effort(self, effort: int) -> Host:
        """The host whose routines are made by this effort."""
        return self.draft if self.draft is not None and self.draft.effort == effort else self
