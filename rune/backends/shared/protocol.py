"""The backend protocol: one package per API, one object per device. Handles never leave a package.

A backend compiles a whole plan: `record(plan)` renders and compiles its kernels and returns an
`Executable`: one call of it runs every step. Buffers are opaque; memory comes from `alloc`.
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

# The result of `alloc`. Only its backend knows its type; others may read its `shape`, a tuple of
# integers. On the CPU it is a NumPy array, so that rune and NumPy share memory without a copy.
Buffer = Any


@dataclass(frozen=True, slots=True)
class Played:
    """A plan prepared for arguments of certain shapes: all but the memory of one call.

    play:   takes the arguments' buffers and returns the results'; returns None, having done
            nothing, where `Executable.__call__` has to make the call or to raise the error
    shapes: of the results
    """

    play: Callable[..., tuple[Buffer, ...] | None]
    shapes: tuple[tuple[int, ...], ...]


@runtime_checkable
class Playable(Protocol):
    """An executable that native code can call (transforms/compile/native_calls.py)."""

    def player(self, arguments: Sequence[Buffer]) -> Played | None:
        """The plan prepared for arguments like these; None if `__call__` has to make every call."""
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

        Errors: OutOfMemory, with the bytes requested, used and the limit.
        """
        ...

    def copy_in(self, array: np.ndarray) -> Buffer:
        """Device memory with the contents of a host array, which may change after the return."""
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
    """A backend that copies to the host asynchronously."""

    def start_copy_out(self, buffer: Buffer, type: ArrayType) -> Callable[[], np.ndarray]:
        """Begin to copy the contents; the function returned waits for them, and is called once."""
        ...


@runtime_checkable
class CopiesAside(Protocol):
    """A backend with a separate queue for copies to the device."""

    def copy_in_aside(self, array: np.ndarray) -> tuple[Buffer, Join]:
        """Device memory to which the contents are being copied, and the join with that copy.

        The join must be called before a program uses the buffer. Both may be dropped at any time,
        and the host array may change at once.
        """
        ...


@runtime_checkable
class Drafts(Protocol):
    """A backend that can compile faster to slower code, which it replaces later."""

    def draft(self, plan: Plan) -> Executable:
        """As `record`, with draft code that is replaced when the plan is called often enough."""
        ...


@runtime_checkable
class SharesCode(Protocol):
    """A backend whose devices can run each other's compiled code, where they are of one kind."""

    def adopted(self, executable: Executable) -> Executable | None:
        """The executable, as one of this device; None if this device has to compile the plan."""
        ...

    def is_brief(self, executable: Executable) -> bool:
        """Whether a run takes less time than handing it to another thread, and waits for no
        device."""
        ...


@runtime_checkable
class KeepsCode(Protocol):
    """A backend that finds code of an earlier process by a program's text, without lowering it."""

    def keep(self, key: bytes, executable: Executable) -> None:
        """Store a compiled plan on disk, if its code can be stored."""
        ...

    def stored(self, key: bytes, lower: Callable[[], Plan]) -> Executable | None:
        """The executable stored under a key, or None. lower: makes its plan, if that is needed."""
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
    """A backend whose devices exchange values in a way that depends on the installed libraries."""

    def meetings(self) -> str:
        """The way, in words."""
        ...


@runtime_checkable
class SaysWhatItLacks(Protocol):
    """A backend that works around functions that a driver lacks."""

    def lacks(self) -> tuple[str, ...]:
        """A sentence for each function that the driver lacks, and its replacement."""
        ...


@runtime_checkable
class SharesMemory(Protocol):
    """A backend that shares arrays with other libraries without a copy, in both directions.

    A stream is the driver's handle of a queue, as an integer.
    """

    def lend(self, buffer: Buffer, stream: int | None) -> int:
        """The address of an array, for a reader whose stream is made to wait for it; None: at once.

        The reader must hold the buffer meanwhile.
        """
        ...

    def reader(self) -> int:
        """The stream in which this backend reads borrowed memory."""
        ...

    def borrow(self, address: int, type: ArrayType, loan: object) -> Buffer:
        """Dense memory at the address as a read-only array, which keeps the loan alive."""
        ...

    def copied(self, buffer: Buffer) -> Buffer:
        """A copy on the device."""
        ...


@runtime_checkable
class CountsMemory(Protocol):
    """A backend that counts its memory; all of rune's own do."""

    def memory_stats(self) -> MemoryStats:
        """Bytes live and cached, the peak, and the number of allocations so far."""
        ...


@runtime_checkable
class CountsWork(Protocol):
    """A backend that counts its work; all of rune's own do."""

    def work_stats(self) -> WorkStats:
        """The number of calls of compiled programs so far, and of those that have ended."""
        ...
