"""Kernel code: the loop language that renderers turn into source. A closed set of frozen nodes.

    code   := "code" name "(" params ")" ["sizes" names] "{" stmt* "}"
    stmt   := name ":" dtype "=" expr                    Let: an immutable scalar
            | "var" name ":" dtype "=" expr              Var: a mutable scalar
            | name "=" expr                              Assign to a Var
            | name combine"=" expr                       Accumulate: order of evaluation is free
            | "store" buffer "[" dim "]" "=" expr        Store
            | "update" buffer "[" dim "]" combine "=" expr   Store with `combine`: read-modify-write
            | "atomic" buffer "[" dim "]" combine "=" expr   ... as one, whatever other threads do
            | "for" name "in" size kind "{" stmt* "}"    For: 0 <= name < size
            | "if" expr "{" stmt* "}" ["else" "{" stmt* "}"]
            | "alloc" name ":" dtype "[" size "]" space  Alloc: scratch of this thread or workgroup
            | "barrier" [", of" count]                  Barrier: of all threads, or of each subgroup
            | "barrier, behind" count [", summed"]      ... with work in flight afterwards
            | "fetch" count "of" buffer "[" dim ["if" expr] "]" "into" buffer "[" dim "]"
            | "multiply" factor "by" factor "into" row {"," row}       MatrixProduct

Buffers are flat; a Load or Store has exactly one index. GRID loops are outermost, perfectly nested
and independent of each other; their extents are sizes alone. WORKGROUP loops are the threads of
one group: only Let and SHARED Alloc stand before them. Iterations of a VECTOR loop are independent
except for Accumulate. An index may mention an integer Let by a symbol of its name; the bounds of
that symbol are a promise, and passes rely on it. Scratch and buffers never alias, except for
parameters that `aliases` names: such a pair is one allocation, and every point reads its own
element before it writes it. text.py has the whole grammar, check.py the rules.
"""

from __future__ import annotations

from enum import Enum

import numpy as np

from rune.dims import Size
from rune.lowering.kernel.expr import Expr, Local
from rune.records import dataclass

# Reduction operators and their identities are given in kernel/check.py's table COMBINE.
COMBINES = ("add", "mul", "max", "min", "and", "or", "xor")
ATOMICS = ("add", "max", "min")  # those that a Store may do as one atomic operation


class Kind(Enum):
    """How a loop runs."""

    GRID = "grid"
    WORKGROUP = "workgroup"
    SERIAL = "serial"
    VECTOR = "vector"
    UNROLLED = "unrolled"


class AddressSpace(Enum):
    """Where an allocation lives: shared by a workgroup, or local to a thread (registers, stack)."""

    SHARED = "shared"
    LOCAL = "local"


class Access(Enum):
    """What a kernel does with a parameter. WRITE: its previous contents are undefined."""

    READ = "read"
    WRITE = "write"
    READ_WRITE = "readwrite"


@dataclass(frozen=True, slots=True)
class Param:
    """A buffer parameter: `size` elements of `dtype` in global memory."""

    name: str
    dtype: np.dtype
    size: Size
    access: Access


@dataclass(frozen=True, slots=True)
class Let:
    """Bind an immutable scalar."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Var:
    """Declare a mutable scalar."""

    name: str
    init: Expr


@dataclass(frozen=True, slots=True)
class Assign:
    """Give a Var a new value."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Accumulate:
    """Combine a value into a Var; iterations may be combined in any fixed order.

    `contract`: the product in `value` may be fused into the addition (dots, never user code).
    """

    name: str
    combine: str
    value: Expr
    contract: bool = False


@dataclass(frozen=True, slots=True)
class Store:
    """Write one element of a buffer or allocation; with `combine`, read-modify-write.

    `atomic`: other threads may do the same to the element, in any order, and no update is lost.
    """

    buffer: str
    index: Size
    value: Expr
    combine: str | None = None
    contract: bool = False
    atomic: bool = False


@dataclass(frozen=True, slots=True)
class For:
    """Run the body for 0 <= var < extent. Inside, `var` is the symbol with those bounds."""

    var: str
    extent: Size
    kind: Kind
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class If:
    """Run the body where the condition holds."""

    condition: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()


@dataclass(frozen=True, slots=True)
class Alloc:
    """Uninitialised scratch of `size` elements, valid to the end of the enclosing body."""

    name: str
    dtype: np.dtype
    size: int
    space: AddressSpace


@dataclass(frozen=True, slots=True)
class Barrier:
    """Wait for all threads of the workgroup; writes before it are seen after it.

    threads:   if not None, the size of a subgroup: a thread waits for those of its subgroup only
    in_flight: how many of the last intervals between barriers, up to this one, may have fetches in
               flight afterwards; if not 0, products of four subgroups since the barrier before, too
    waits_for_products: whether to wait for these products all the same
    """

    threads: int | None = None
    in_flight: int = 0
    waits_for_products: bool = False

    @property
    def ends_sums(self) -> bool:
        """Whether no product is in flight afterwards."""
        return self.waits_for_products or not self.in_flight


@dataclass(frozen=True, slots=True)
class Fetch:
    """Copy `count` neighbours of a parameter into shared memory, or zeros where the guard fails.

    All threads see them after the next barrier that does not leave them in flight; they may arrive
    at any time before it.
    """

    target: str
    target_index: Size
    source: str
    source_index: Size
    count: int
    guard: Expr | None = None


@dataclass(frozen=True, slots=True)
class Factor:
    """A matrix in shared memory: (i, k) is at index + i * position_stride + k * depth_stride.

    One of the strides is 1. The index is the same for the threads of a subgroup, or of four that
    multiply together. Only those four may have a block stride: the distance between blocks of 64
    positions.
    """

    buffer: str
    index: Size
    position_stride: int
    depth_stride: int
    dtype: np.dtype
    block_stride: int = 0


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """C += A Bᵀ over a depth of 16 if the threads of one subgroup hold C, or of 64 if four do.

    accumulators: the f32 Vars of a thread by row and column; the r-th row of thread t is row
                  8 * r + t % 32 // 4 of A, its c-th column 8 * (c // 2) + 2 * (t % 4) + c % 2 of B.
                  Products are those of f32, added in any order. With four subgroups it is row
                  64 * (r // 2) + 8 * (r % 2) + t % 128 // 32 * 16 + t % 32 // 4.
    subgroups:    1 or 4. Four read A and B, and add, until a barrier that leaves no product
                  in flight, or the second one that does.
    """

    a: Factor
    b: Factor
    accumulators: tuple[tuple[str, ...], ...]
    subgroups: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The accumulators, row by row."""
        return tuple(name for row in self.accumulators for name in row)


Stmt = Let | Var | Assign | Accumulate | Store | For | If | Alloc | Barrier | Fetch | MatrixProduct


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar operation in terms of others: statements over the parameters, then its value."""

    name: str
    params: tuple[Local, ...]
    body: tuple[Stmt, ...]
    result: Expr


@dataclass(frozen=True, slots=True, repr=False)
class KernelCode:
    """One kernel as loops. `sizes` are the symbolic sizes it takes as i64 arguments, by name.

    `functions` define the operations that the rendered language lacks, each after those that it
    calls (legalize/scalars.py). The text leaves them out: an operation means the same, whatever
    computes it.
    """

    name: str
    params: tuple[Param, ...]
    sizes: tuple[str, ...]
    body: tuple[Stmt, ...]
    aliases: tuple[tuple[str, str], ...] = ()
    # The names of loops that a renderer must not spread over vector lanes; `ordered` in the text.
    scalar_loops: tuple[str, ...] = ()
    # Empty until a renderer attaches them; passes never see them.
    functions: tuple[Function, ...] = ()

    def __repr__(self) -> str:
        params = ", ".join(f"{p.name}: {p.access.value} {p.dtype}[{p.size}]" for p in self.params)
        return f"KernelCode({self.name}({params}))"

    def buffers_at(self, name: str) -> frozenset[str]:
        """The buffer with this name, and all that may share memory with it."""
        # Not those that share with these: an output takes the memory of one input of several.
        return frozenset((name, *(other for pair in self.aliases if name in pair for other in pair)))
