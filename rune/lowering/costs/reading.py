"""Kernel code as rounds and touches: what a thread does, how often, and where in memory.

    for k in 64 serial {               Block k, 64 rounds: 1 multiply-add of f32
      s add= x[64*i + k] * w[k]          Touch x[64*i + k], Touch w[k]
    }

Conditions are shares: of the threads and rounds that come to a branch. Where memory decides, both
branches count as taken. Loops in the lanes of a processor's vectors have as many rounds fewer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from rune import dims, dtypes
from rune.dims import Size, Symbol
from rune.dims.factors import terms_of
from rune.lowering.costs.launch import number
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.costs.samples import Requests, Samples
from rune.lowering.kernel.expr import Cast, Expr, Index, Load, Op
from rune.lowering.kernel.nodes import (
    Accumulate,
    AddressSpace,
    Alloc,
    Assign,
    Barrier,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import expr_sizes, expressions, names_in, size_names, stmt_sizes, walk, walk_expr
from rune.lowering.scalar.table import ROWS

ADDRESS = 1 / 3  # instructions for the address of an access: most differ from another by a constant
DIVISION = 4.0  # instructions of a // or % in an index, beside its multiplications
SPECIAL = frozenset({"div", "sqrt", "rsqrt"})  # operations on floats that have units of their own


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """A load or a store of all threads.

    space:   None for a parameter
    share:   of the subgroups and rounds around it;  threads: of all threads
    depth:   loads whose values its index needs, one after the other
    origins: the loops behind each name of its index
    """

    buffer: str
    itemsize: int
    index: Size
    writes: bool
    space: AddressSpace | None
    share: float
    threads: float
    requests: Requests
    depth: int
    origins: Mapping[str, frozenset[str]]


@dataclass(slots=True)
class Work:
    """What a thread does in a round: instructions by the dtype whose units run them."""

    instructions: dict[np.dtype, float] = field(default_factory=dict)
    special: float = 0.0
    barriers: float = 0.0
    flops: float = 0.0  # a multiply-add as two

    def add(self, dtype: np.dtype, count: float) -> None:
        """Count instructions on numbers of a dtype."""
        self.instructions[dtype] = self.instructions.get(dtype, 0.0) + count


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Statements one after the other, for some rounds of a loop (`var`), or once.

    extent: values that `var` takes in all;  lanes: at the same time
    share:  of the subgroups around it that come here
    """

    var: str | None
    rounds: int
    extent: int
    lanes: int
    share: float
    touches: tuple[Touch, ...]
    inner: tuple[Block, ...]
    work: Work
    is_unrolled: bool = False


@dataclass(slots=True)
class Reader:
    """Reads statements of one kernel for one device."""

    record: DeviceRecord
    memory: Mapping[str, tuple[np.dtype, AddressSpace | None]]
    sizes: Mapping[str, int]
    in_lanes: Collection[int] = ()  # loops that run in lanes, by identity
    lanes: int = 1
    depths: dict[str, int] = field(default_factory=dict)  # loads behind a local
    origins: dict[str, frozenset[str]] = field(default_factory=dict)  # loops behind a local
    places: dict[str, Size] = field(default_factory=dict)  # locals that are indices alone

    def block(self, body: Iterable[Stmt], samples: Samples) -> Block:
        """The statements, once."""
        touches: list[Touch] = []
        inner: list[Block] = []
        work = Work()
        self._body(body, samples, 1.0, touches, inner, work)
        return Block(None, 1, 1, 1, 1.0, tuple(touches), tuple(inner), work)

    def _body(
        self, body: Iterable[Stmt], samples: Samples, share: float, touches: list[Touch], inner: list[Block], work: Work
    ) -> None:
        for stmt in body:
            touches += self._touches(stmt, samples, share)
            _count(stmt, work, share)
            match stmt:
                case Let(name=name, value=value):
                    samples.lets[name] = value
                    self._bind(name, value)
                case Var(name=name, init=value) | Assign(name=name, value=value) | Accumulate(name=name, value=value):
                    self._bind(name, value)
                case If(condition=condition, body=then, orelse=orelse):
                    # Where memory decides, both branches may be taken.
                    branches = self._branches(condition, samples)
                    for (part, inside), statements in zip(branches, (then, orelse), strict=True):
                        self._body(statements, inside, share * part, touches, inner, work)
                case For():
                    inner.append(self._loop(stmt, samples, share))
                case _:
                    pass

    def _loop(self, loop: For, samples: Samples, share: float) -> Block:
        extent = number(loop.extent, self.sizes)
        lanes = min(self.lanes, max(1, extent)) if id(loop) in self.in_lanes else 1
        self.origins[loop.var] = frozenset({loop.var})
        block = self.block(loop.body, samples.inside(loop.var, extent, lanes))
        return replace(
            block,
            var=loop.var,
            rounds=-(-extent // lanes),
            extent=extent,
            lanes=lanes,
            share=share,
            is_unrolled=loop.kind is Kind.UNROLLED,
        )

    def _branches(self, condition: Expr, samples: Samples) -> tuple[tuple[float, Samples], tuple[float, Samples]]:
        parts = list(walk_expr(condition))
        is_of_memory = any(isinstance(part, Load) for part in parts)
        if is_of_memory or any(self.depths.get(n, 0) for n in names_in(condition)):
            return (1.0, samples), (1.0, samples)
        return samples.where(condition)

    def _bind(self, name: str, value: Expr) -> None:
        names = names_in(value)
        loads = any(isinstance(part, Load) for part in walk_expr(value))
        behind = max((self.depths.get(n, 0) for n in names), default=0)
        self.depths[name] = max(self.depths.get(name, 0), behind + loads)
        self.origins[name] = self.origins.get(name, frozenset()) | self._origins(names)
        if isinstance(value, Index):
            self.places[name] = dims.substitute(value.dim, self.places)

    def _origins(self, names: Iterable[str]) -> frozenset[str]:
        """The loops on which these names depend."""
        return frozenset[str]().union(*(self.origins.get(n, frozenset()) for n in names))

    def _touches(self, stmt: Stmt, samples: Samples, share: float) -> Iterator[Touch]:
        loads = (part for e in expressions(stmt) for part in walk_expr(e) if isinstance(part, Load))
        for load in loads:
            yield self._touch(load.buffer, load.indices[0], False, samples, share)
        if isinstance(stmt, Store):
            if stmt.combine is not None:
                yield self._touch(stmt.buffer, stmt.index, False, samples, share)
            yield self._touch(stmt.buffer, stmt.index, True, samples, share)

    def _touch(self, buffer: str, index: Size, writes: bool, samples: Samples, share: float) -> Touch:
        dtype, space = self.memory[buffer]
        names = size_names(index)
        # Of a local that is an index, its own place tells more than its name.
        place = dims.substitute(index, self.places) if names & self.places.keys() else index
        match space:
            case AddressSpace.LOCAL:
                requests = _of_threads(samples.lanes * dtype.itemsize, self.record)
            case AddressSpace.SHARED:
                requests = samples.shared_requests(place, dtype.itemsize, self.record)
            case None:
                requests = samples.requests(place, dtype.itemsize, self.record)
        depth = max((self.depths.get(n, 0) for n in names), default=0)
        origins = {n: self._origins((n,)) for n in size_names(place)}
        return Touch(buffer, dtype.itemsize, place, writes, space, share, samples.threads, requests, depth, origins)


def _of_threads(size: int, record: DeviceRecord) -> Requests:
    """What lanes touch of memory of their own: the same element of each lies side by side."""
    return Requests(-(-size // record.sector_bytes), -(-size // record.line_bytes), 1.0)


def _count(stmt: Stmt, work: Work, share: float) -> None:
    """Count what the statement itself does."""
    parts = [part for e in expressions(stmt) for part in walk_expr(e)]
    for part in parts:
        _count_part(part, work, share)
    match stmt:
        case Accumulate(value=value, contract=contract):
            _count_combination(value, contract, work, share)
        case Store(combine=combine, value=value, contract=contract) if combine is not None:
            _count_combination(value, contract, work, share)
        case Barrier():
            work.barriers += share
        case _:
            pass
    accesses = sum(isinstance(part, Load) for part in parts) + isinstance(stmt, Store)
    divisions = sum(map(_divisions, (*stmt_sizes(stmt), *(size for part in parts for size in expr_sizes(part)))))
    work.add(dtypes.i32, share * (ADDRESS * accesses + DIVISION * divisions))


def _count_part(part: Expr, work: Work, share: float) -> None:
    match part:
        case Op(name=name, args=args):
            dtype = args[-1].dtype
            work.add(dtype, share * ROWS[name].instructions)
            if dtype in dtypes.FLOATING:
                work.flops += share * (2 if name == "fma" else 1)
                work.special += share * (name in SPECIAL)
        case Cast(dtype=dtype):
            work.add(dtype, share)
        case _:
            pass


def _count_combination(value: Expr, contract: bool, work: Work, share: float) -> None:
    """Count `acc += value`; a product that may be fused into it takes the same instruction."""
    if value.dtype in dtypes.FLOATING:
        work.flops += share
    if not (contract and isinstance(value, Op) and value.name == "mul"):
        work.add(value.dtype, share)


def _divisions(size: Size) -> int:
    return sum(not isinstance(f, Symbol) for term in terms_of(size) for f in term.factors)


def memory_of(code: KernelCode) -> dict[str, tuple[np.dtype, AddressSpace | None]]:
    """The dtype of every buffer and allocation, and where it lies."""
    memory: dict[str, tuple[np.dtype, AddressSpace | None]] = {p.name: (p.dtype, None) for p in code.params}
    memory.update((s.name, (s.dtype, s.space)) for s in walk(code.body) if isinstance(s, Alloc))
    return memory
