"""Target: what a device can run, as pure data, so that no other code asks for the vendor."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import numpy as np

from rune import dtypes
from rune.lowering.scalar.number import Ability
from rune.lowering.scalar.table import ROWS
from rune.records import dataclass

# The dtypes that lowering/legalize computes with in place of one that a renderer lacks.
LEGALISED: dict[np.dtype, frozenset[np.dtype]] = {
    **dict.fromkeys((dtypes.i4, dtypes.u4), frozenset({dtypes.i8, dtypes.u8, dtypes.u32})),
    **dict.fromkeys((dtypes.f8_e4m3, dtypes.f8_e5m2), frozenset({dtypes.f32, dtypes.u8, dtypes.u32})),
    **dict.fromkeys((dtypes.f16, dtypes.bf16), frozenset({dtypes.f32, dtypes.u16, dtypes.u32})),
    dtypes.c64: frozenset({dtypes.f32}),
    dtypes.c128: frozenset({dtypes.f64}),
    **dict.fromkeys(dtypes.KEYS, frozenset({dtypes.u32})),
}


LLVMPIPE_ROUNDS = 65_535  # loop_rounds of Mesa's CPU device
# submission_work of GPUs: Windows resets a GPU that does not answer for 2 s, and after a tenth of
# that the screen freezes. The slowest GPUs are assumed to run 1.1e11 instructions a second
# (decision 0057).
INTEGRATED_WORK = 1 << 34
DISCRETE_WORK = 1 << 36
PROCESSOR_WORK = 1 << 28  # each submission awaits the one before; signals are handled in between


@dataclass(frozen=True, slots=True)
class Native:
    """The scalar operations that a language has; legalize/scalars.py implements the others.

    registers: for a dtype, the one that computes the operations it lacks
    conversions: those of the language for which most need a function
    loose: operations that a device does less exactly than defined, such as "to_f64" of f32
    """

    operations: frozenset[tuple[str, np.dtype]]
    registers: Mapping[np.dtype, np.dtype] = field(default_factory=dict)
    conversions: frozenset[tuple[np.dtype, np.dtype]] = frozenset()
    abilities: frozenset[Ability] = frozenset()
    loose: frozenset[tuple[str, np.dtype]] = frozenset()

    def register(self, operation: str, dtype: np.dtype) -> np.dtype:
        """The dtype in which an operation on operands of `dtype` is computed."""
        is_spelled = (operation, dtype) in self.operations
        return dtype if is_spelled or ROWS[operation].of_bits else self.registers.get(dtype, dtype)

    def less(self, loose: frozenset[tuple[str, np.dtype]]) -> Native:
        """The same record for a device that does these operations too loosely."""
        return replace(self, loose=self.loose | loose)

    def lacks(self, operation: str, dtype: np.dtype) -> bool:
        """Whether the operation has to be written in terms of others."""
        row = operation, self.register(operation, dtype)
        return row not in self.operations or row in self.loose


def every(operations: Iterable[str], operand_dtypes: Iterable[np.dtype]) -> frozenset[tuple[str, np.dtype]]:
    """Each operation on each dtype.

    >>> sorted(name for name, _ in every(["add", "sub"], [dtypes.f32]))
    ['add', 'sub']
    """
    return frozenset(itertools.product(operations, operand_dtypes))


@dataclass(frozen=True, slots=True)
class Target:
    """What a device can run. Comparing two targets never touches a driver."""

    name: str  # backend and device number, "cpu:0"
    backend: str  # the backend file that serves it
    language: str  # the renderer: "llvm", "opencl"
    description: str  # the device as its driver names it
    dtypes: frozenset[np.dtype]  # element types that its renderer computes with
    vector_bytes: int  # natural width of one vector register [B]
    cores: int  # processors that run grid points side by side
    threads_per_workgroup: int  # upper limit, all axes multiplied [threads]
    shared_bytes: int  # on-chip memory of one workgroup [B]
    scratch_bytes: int  # private memory that one grid point may hold cheaply [B]
    routines: frozenset[str]  # library routines that a plan may call: {"dot"}
    launch_groups: int = 65535  # workgroups along one dimension of a launch [groups]
    # What can be requested of a float type, by its bits: ("denormals", 32), ("specials", 16)
    # for NaN, infinity and -0, ("nearest", 64) for rounding to nearest even.
    float_controls: frozenset[tuple[str, int]] = frozenset()
    # What the device does less exactly with f32 than IEEE 754 says: "div", "sqrt" (the scalar
    # library corrects them), "comparisons" and conversions that take denormals for 0 (done by
    # bits), and "denormals" if all arithmetic may. See docs/accuracy.md.
    loose: frozenset[str] = frozenset()
    subgroup_threads: int = 32  # threads that run in step: a workgroup has no fewer, if it can
    # (operation, dtype) that the device itself has, where its driver reports them: "fma",
    # "arithmetic", "atomic_add", "atomic_min", "matrix" (units for small matrix products),
    # "shuffle" (threads of a subgroup are neighbours, and can read each other's values), "line"
    # (they read neighbours at once by an address computed from push constants). Empty: unknown.
    # "multiply", "multiply_together", "fetch": its language has MatrixProduct by one subgroup, by
    # four, and Fetch (kernel/nodes.py); legalize writes out those that are missing here.
    native: frozenset[tuple[str, np.dtype]] = frozenset()
    # Rounds of all loops together after which the driver silently stops; None: it never does.
    loop_rounds: int | None = None
    # The most work (kernel/work.py) in one submission; a launch with more is split, so that no
    # watchdog takes the device for hung. None: there is no watchdog.
    submission_work: int | None = None
    driver: str = ""  # its version, where it has one of its own
    is_processor: bool = False  # a CPU, which runs the threads of a group one after another or in lanes

    def has(self, operation: str, dtype: np.dtype) -> bool:
        """Whether the device itself does the operation; assumed if `native` is empty."""
        return not self.native or (operation, dtype) in self.native

    @property
    def is_gpu(self) -> bool:
        """Whether groups of threads run in step, and share memory of their own."""
        return self.threads_per_workgroup > 1 and self.shared_bytes > 0 and not self.is_processor

    @property
    def has_lines(self) -> bool:
        """Whether it is Mesa's processor, where subgroups read lines (codegen/mesa/lines.py)."""
        return ("line", dtypes.f32) in self.native

    @property
    def program_dtypes(self) -> frozenset[np.dtype]:
        """What programs may compute with: the renderer's dtypes, and those legalised to them."""
        return self.dtypes | {d for d, substitutes in LEGALISED.items() if substitutes <= self.dtypes}


def natively(**dtypes_of: Iterable[np.dtype]) -> frozenset[tuple[str, np.dtype]]:
    """The record of what a device itself has, from the dtypes of each operation.

    >>> sorted(operation for operation, _ in natively(fma=[dtypes.f32], atomic_add=[dtypes.i32]))
    ['atomic_add', 'fma']
    """
    return frozenset((name, dtype) for name, kinds in dtypes_of.items() for dtype in kinds)
