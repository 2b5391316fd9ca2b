"""The backend protocol: one package per API, one object per device. Handles stay in the package.

A backend compiles a whole plan: `record(plan)` renders and compiles its kernels and returns an
`Executable`, one call of which runs every step. Buffers are opaque; memory comes from `alloc`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from rune.backends.shared.join import Join
from rune.backends.shared.pool import MemoryStats
from rune.backends.shared.work import WorkStats
from rune.core.types import ArrayType
from rune.lowering.codegen.target import Target
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.lowering.meetings import Grid
    from rune.lowering.plan import Plan

# What `alloc` returns; only the backend that made it knows what it is, but for its `shape`, the
# static shape as integers. On the CPU it is the NumPy array itself, so that arrays and NumPy share
# memory.
Buffer = Any


@dataclass(frozen=True, slots=True)
class Played:
    """A plan for arguments of certain shapes, all but the memory of one call.

    play:   the buffers of the results for buffers of such arguments; None, with nothing done, where
            `Executable.__call__` has to make the call: it knows what to do or what to raise
    shapes: of the results
    """

    play: Callable[..., tuple[Buffer, ...] | None]
    shapes: tuple[tuple[int, ...], ...]


@runtime_checkable
class Playable(Protocol):
    """An executable whose calls native code may make (transforms/compile/native_calls.py)."""

    def player(self, arguments: Sequence[Buffer]) -> Played | None:
        """The plan for calls with arguments like these; None if only general calls can be made."""
        ...


class Executable(Protocol):
    """A compiled plan. Calling it runs all steps; arguments and results are buffers."""

    plan: Plan

    def __call__(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> list[Buffer]:
        """Run the plan on `arguments`; the memory of the `donated` ones may be reused."""
        ...

    def sources(self) -> dict[str, str]:
        """The rendered source of each kernel, by name."""
        ...


class Backend(Protocol):
    """One device of one API."""

    target: Target

    def alloc(self, type: ArrayType) -> Buffer:
        """Uninitialised memory for one array of static shape.

        Errors: OutOfMemory says asked, used and the limit in bytes.
        """
        ...

    def copy_in(self, array: np.ndarray) -> Buffer:
        """Device memory with the contents of a host array; the host array may change afterwards."""
        ...

    def copy_out(self, buffer: Buffer, type: ArrayType) -> np.ndarray:
        """A host array with the contents; waits for pending work."""
        ...

    def record(self, plan: Plan) -> Executable:
        """Compile a plan. Errors: CompileError carries the numbered source."""
        ...

    def synchronize(self) -> None:
        """Wait until all submitted work has ended."""
        ...


@runtime_checkable
class ReadsAhead(Protocol):
    """A backend whose copies to the host can be under way while the host goes on."""

    def start_copy_out(self, buffer: Buffer, type: ArrayType) -> Callable[[], np.ndarray]:
        """Begin to copy the contents; what it gives waits for them, and is called once."""
        ...


@runtime_checkable
class CopiesAside(Protocol):
    """A backend with a queue for copies to the device beside that of its programs."""

    def copy_in_aside(self, array: np.ndarray) -> tuple[Buffer, Join]:
        """Device memory to which the contents are on their way; programs wait for them by the join.

        The buffer is used after that alone; both may be dropped at any time, and the host array
        may change at once.
        """
        ...


@runtime_checkable
class Drafts(Protocol):
    """A backend that has code sooner if it may be slower at first."""

    def draft(self, plan: Plan) -> Executable:
        """As `record`; the code becomes what that gives when calls are worth it."""
        ...


@runtime_checkable
class SharesCode(Protocol):
    """A backend whose devices can run each other's compiled code, where they are alike."""

    def adopted(self, executable: Executable) -> Executable | None:
        """The executable, as one of this device; None if that has to compile the plan itself."""
        ...

    def is_brief(self, executable: Executable) -> bool:
        """Whether a run is over before another thread would have begun it, and waits for none."""
        ...


@runtime_checkable
class KeepsCode(Protocol):
    """A backend that finds what an earlier process has compiled by the words of a program alone."""

    def keep(self, key: bytes, executable: Executable) -> None:
        """Keep a compiled plan on disk, if it can be kept."""
        ...

    def stored(self, key: bytes, lower: Callable[[], Plan]) -> Executable | None:
        """The executable that was kept under a key. lower: makes its plan, when it is wanted."""
        ...


class Together(Protocol):
    """Executables of several devices as one."""

    def __call__(self, blocks: Sequence[Sequence[Buffer]], donated: Sequence[int] = ()) -> list[list[Buffer]]:
        """The results of each device for its operands; memory of `donated` ones may be reused."""
        ...


@runtime_checkable
class RunsTogether(Protocol):
    """A backend whose devices can run one program together, without a thread for each of them."""

    def together(self, executables: Sequence[Executable], grid: Grid) -> Together | None:
        """The executables, one for each device of a grid, as one; None where that cannot be."""
        ...


@runtime_checkable
class SaysHowItMeets(Protocol):
    """A backend whose devices exchange values in a way that depends on what is installed."""

    def meetings(self) -> str:
        """The way, in words."""
        ...


@runtime_checkable
class SaysWhatItLacks(Protocol):
    """A backend that does something in another way where a driver cannot do it."""

    def lacks(self) -> tuple[str, ...]:
        """What the driver cannot do and what is done instead, a sentence each."""
        ...


@runtime_checkable
class SharesMemory(Protocol):
    """A backend whose arrays other libraries read where they are, and the other way round.

    A stream is the driver's handle of an order of work, as an integer.
    """

    def lend(self, buffer: Buffer, stream: int | None) -> int:
        """The address of an array, to be read in a stream that waits for it; None: at once.

        Whoever reads it holds the buffer meanwhile.
        """
        ...

    def reader(self) -> int:
        """The stream in which borrowed memory is read."""
        ...

    def borrow(self, address: int, type: ArrayType, loan: object) -> Buffer:
        """Dense memory there as an array, which is only read. The loan is held as long as it is."""
        ...

    def copied(self, buffer: Buffer) -> Buffer:
        """A copy on the device."""
        ...


@runtime_checkable
class CountsMemory(Protocol):
    """A backend that counts its memory; all of rune's own do."""

    def memory_stats(self) -> MemoryStats:
        """Bytes live and cached, the peak, and the allocations until now."""
        ...


@runtime_checkable
class CountsWork(Protocol):
    """A backend that counts its work; all of rune's own do."""

    def work_stats(self) -> WorkStats:
        """Calls of compiled programs until now, and how many of them have ended."""
        ...
