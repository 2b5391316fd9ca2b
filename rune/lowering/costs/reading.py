"""Kernel code as rounds and touches: what a thread does, how often, and where in memory.

    for k in 64 serial {               Block k, 64 rounds: 1 multiply-add of f32
      s add= x[64*i + k] * w[k]          Touch x[64*i + k], Touch w[k]
    }

Conditions become shares of the threads and rounds that reach a branch. Where memory decides, both
branches count as taken. Loops in the lanes of a processor's vectors have fewer rounds by that
factor.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from rune import dims, dtypes
from rune.dims import FloorDiv, Mod, Size, Symbol
from rune.dims.factors import terms_of
from rune.lowering.codegen.runs import LoadRun, StoreRun, with_runs
from rune.lowering.costs.launch import number
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.costs.samples import Requests, Samples
from rune.lowering.kernel.expr import Cast, Expr, Index, Load, Op
from rune.lowering.kernel.matrices import ROWS as MATRIX_ROWS
from rune.lowering.kernel.matrices import SUBGROUP, depth
from rune.lowering.kernel.nodes import (
    Accumulate,
    AddressSpace,
    Alloc,
    Assign,
    Barrier,
    Fetch,
    For,
    If,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Stmt,
    Store,
    Var,
)
from rune.lowering.kernel.rewrite import expressions, loads, names_in, size_names, walk, walk_expr
from rune.lowering.scalar.table import ROWS
from rune.ops.ciphers import GENERATORS, PHILOX, THREEFRY, WORD_NAMES
from rune.records import dataclass

ADDRESS = 1 / 3  # instructions for the address of an access: most differ by a constant from another
DIVISION, SHIFT = 4.0, 1.0  # instructions of a // or % in an index, and of one by a power of two
SPECIAL = frozenset({"div", "sqrt", "rsqrt"})  # operations on floats that run in special units
# How many instructions a word of a cipher takes in a GPU's integer units, and in its multiply-add
# units, in machine code of sm_90: a rotation is one instruction; sums and products are
# multiply-adds.
CIPHERS = {THREEFRY: (47, 23), PHILOX: (20, 33)}
WORDS = {g.operation(number): CIPHERS[g] for g in GENERATORS.values() for number in range(len(WORD_NAMES))}
# The same for functions of f32, with a third count for the special units: their machine code of
# sm_90, if it has no branches. Comparisons and selects run in the integer units.
FUNCTIONS = {
    "exp": (1, 6, 1),
    "exp2": (1, 2, 1),
    "expm1": (8, 13, 0),
    "log": (11, 15, 0),
    "log2": (11, 17, 0),
    "sinh": (6, 14, 3),
    "cosh": (4, 8, 3),
    "tanh": (4, 9, 2),
    "asin": (7, 14, 1),
    "atan": (6, 11, 1),
    "erf": (11, 9, 1),
    "erfc": (7, 34, 4),
    "cbrt": (5, 9, 2),
}


@dataclass(frozen=True, slots=True, eq=False)
class Touch:
    """A load or a store of all threads.

    count:   neighbouring elements from the index on
    space:   None for a parameter
    share:   of the subgroups and rounds around it;  threads: of all threads
    depth:   loads whose values its index needs, one after the other
    origins: the loops on which each name of its index depends
    sources: for a name read from memory, the index of that element, if it is a single one
    is_fetch: whether the load goes to shared memory without registers
    """

    buffer: str
    itemsize: int
    count: int
    index: Size
    writes: bool
    space: AddressSpace | None
    share: float
    threads: float
    requests: Requests
    depth: int
    origins: Mapping[str, frozenset[str]]
    sources: Mapping[str, Size] = field(default_factory=dict)
    is_fetch: bool = False


@dataclass(slots=True)
class Work:
    """What a thread does in a round: instructions by the dtype whose units run them."""

    instructions: dict[np.dtype, float] = field(default_factory=dict)
    special: float = 0.0
    barriers: float = 0.0
    flops: float = 0.0  # a multiply-add as two
    sums: dict[str, np.dtype] = field(default_factory=dict)  # the variables that it accumulates
    # Operations of matrix units, by dtype and by how many subgroups compute together.
    products: dict[tuple[np.dtype, int], float] = field(default_factory=dict)

    def add(self, dtype: np.dtype, count: float) -> None:
        """Count instructions on numbers of a dtype."""
        self.instructions[dtype] = self.instructions.get(dtype, 0.0) + count


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Statements in sequence, for some rounds of a loop (`var`), or once.

    extent: values that `var` takes in all;  lanes: at the same time
    share:  of the subgroups around it that reach it
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


@dataclass(frozen=True, slots=True)
class Draft:
    """A block under construction, and the threads that run the statements read next.

    var: the variable of the innermost loop around it
    """

    samples: Samples
    var: str | None = None
    share: float = 1.0
    touches: list[Touch] = field(default_factory=list)
    inner: list[Block] = field(default_factory=list)
    work: Work = field(default_factory=Work)

    def part(self, share: float, samples: Samples) -> Draft:
        """The same block, for some of the threads."""
        return replace(self, share=self.share * share, samples=samples)


@dataclass(slots=True)
class Reader:
    """Reads statements of one kernel for one device.

    neighbours: gives the most elements of a dtype in one access
    in_lanes:   loops that run in lanes, by identity;  lanes: how many
    thread:     the number of a thread in its group, if it has one
    depths, origins: loads and loops on which a local depends;  places: locals that are only indices
    sources:    the index of the single element from which a local is computed
    """

    record: DeviceRecord
    memory: Mapping[str, tuple[np.dtype, AddressSpace | None]]
    sizes: Mapping[str, int]
    neighbours: Callable[[np.dtype], int]
    in_lanes: Collection[int] = ()
    lanes: int = 1
    thread: Size = 0
    depths: dict[str, int] = field(default_factory=dict)
    origins: dict[str, frozenset[str]] = field(default_factory=dict)
    places: dict[str, Size] = field(default_factory=dict)
    sources: dict[str, Size] = field(default_factory=dict)

    def block(self, body: Sequence[Stmt], samples: Samples, var: str | None = None) -> Block:
        """The statements, once, inside the loop of `var`."""
        draft = Draft(samples, var)
        self._body(body, draft)
        return Block(None, 1, 1, 1, 1.0, tuple(draft.touches), tuple(draft.inner), draft.work)

    def _body(self, body: Sequence[Stmt], draft: Draft) -> None:
        aligned_buffers = [name for name, (_, space) in self.memory.items() if space is not AddressSpace.LOCAL]
        for item in with_runs(body, self.neighbours, aligned_buffers):
            match item:
                case LoadRun(lets=lets, buffer=buffer, index=index, guard=guard):
                    self._load(buffer, index, guard, draft, len(lets))
                    for let in lets:
                        self._let(let, draft)
                case StoreRun(values=values, buffer=buffer, index=index):
                    for value in values:
                        self._expression(value, draft)
                    self._touch(buffer, index, True, draft, len(values))
                case _:
                    self._statement(item, draft)

    def _statement(self, stmt: Stmt, draft: Draft) -> None:
        for expr in expressions(stmt):
            self._expression(expr, draft)
        match stmt:
            case Let():
                self._let(stmt, draft)
            case Var(name=name, init=value) | Assign(name=name, value=value):
                self._bind(name, value)
            case Accumulate(name=name, value=value, contract=contract):
                self._bind(name, value)
                draft.work.sums[name] = value.dtype
                _count_combination(value, contract, draft)
            case Store():
                self._store(stmt, draft)
            case Barrier():
                draft.work.barriers += draft.share
            case If(condition=condition, body=body, orelse=orelse):
                # Where memory decides, both branches may be taken.
                branches = self._branches(condition, draft.samples)
                for (share, inside), statements in zip(branches, (body, orelse), strict=True):
                    self._body(statements, draft.part(share, inside))
            case For():
                draft.inner.append(self._loop(stmt, draft))
            case Fetch(source=source, source_index=at, count=count, guard=guard):
                self._load(source, at, guard, draft, count)
                draft.touches.append(replace(draft.touches.pop(), is_fetch=True))
                self._touch(stmt.target, stmt.target_index, True, draft, count)
            case MatrixProduct():
                self._multiply(stmt, draft)
            case Alloc():
                pass

    def _expression(self, expr: Expr, draft: Draft) -> None:
        has_subgroups = self.record.subgroup_threads > 1
        for part in walk_expr(expr):
            match part:
                case Op(name=name) if has_subgroups and name in WORDS:
                    _count_word(name, draft)
                case Op(name=name, dtype=dtypes.f32) if has_subgroups and name in FUNCTIONS:
                    _count_function(name, draft)
                case _:
                    _count(part, draft)
            match part:
                case Load(buffer=buffer, indices=(index,), guard=guard):
                    self._load(buffer, index, guard, draft)
                case Index(dim=dim):
                    draft.work.add(dtypes.i32, draft.share * self._divisions(dim, draft))
                case _:
                    pass

    def _let(self, let: Let, draft: Draft) -> None:
        draft.samples.lets[let.name] = let.value
        self._bind(let.name, let.value)

    def _loop(self, loop: For, draft: Draft) -> Block:
        extent = number(loop.extent, self.sizes)
        lanes = min(self.lanes, max(1, extent)) if id(loop) in self.in_lanes else 1
        self.origins[loop.var] = frozenset({loop.var})
        block = self.block(loop.body, draft.samples.inside(loop.var, extent, lanes), loop.var)
        return replace(
            block,
            var=loop.var,
            rounds=-(-extent // lanes),
            extent=extent,
            lanes=lanes,
            share=draft.share,
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
        reads_memory = any(loads((value,)))
        depth = max((self.depths.get(n, 0) for n in names), default=0)
        self.depths[name] = max(self.depths.get(name, 0), depth + reads_memory)
        self.origins[name] = self.origins.get(name, frozenset()) | self._origins(names)
        if isinstance(value, Index):
            self.places[name] = dims.substitute(value.dim, self.places)
        read = {load.indices[0] for load in loads((value,))}
        read |= {self.sources[n] for n in names if n in self.sources}
        # A local that several elements decide has no single source.
        if len(read) == 1:
            (self.sources[name],) = read

    def _origins(self, names: Iterable[str]) -> frozenset[str]:
        """The loops on which these names depend."""
        return frozenset[str]().union(*(self.origins.get(n, frozenset()) for n in names))

    def _load(self, buffer: str, index: Size, guard: Expr | None, draft: Draft, count: int = 1) -> None:
        if guard is not None:
            # The other threads read nothing.
            (share, inside), _ = self._branches(guard, draft.samples)
            draft = draft.part(share, inside)
        self._touch(buffer, index, False, draft, count)

    def _store(self, store: Store, draft: Draft) -> None:
        if store.combine is not None:
            self._touch(store.buffer, store.index, False, draft)
            _count_combination(store.value, store.contract, draft)
        self._touch(store.buffer, store.index, True, draft)

    def _multiply(self, stmt: MatrixProduct, draft: Draft) -> None:
        """A product of matrices: each thread addresses rows of 16 bytes of the factors.

        If four subgroups multiply together, the matrix units read the factors themselves.
        """
        flops = draft.share * 2 * depth(stmt) * len(stmt.names)
        kind = stmt.a.dtype, stmt.subgroups
        draft.work.products[kind] = draft.work.products.get(kind, 0.0) + flops
        draft.work.flops += flops
        if stmt.subgroups > 1:
            return
        lane = self.thread % SUBGROUP
        for factor, positions in ((stmt.a, 8 * len(stmt.accumulators)), (stmt.b, 4 * len(stmt.accumulators[0]))):
            stride = max(factor.position_stride, factor.depth_stride)
            row = factor.index + lane % 16 * stride + lane // 16 * 8
            for first in range(0, positions, MATRIX_ROWS):
                self._touch(factor.buffer, row + first * factor.position_stride, False, draft, 8)

    def _touch(self, buffer: str, index: Size, writes: bool, draft: Draft, count: int = 1) -> None:
        """Record that the threads touch this many neighbouring elements at once."""
        dtype, space = self.memory[buffer]
        samples, width = draft.samples, count * dtype.itemsize
        names = size_names(index)
        # For a local that is an index, the index expression tells more than the name.
        place = dims.substitute(index, self.places) if names & self.places.keys() else index
        match space:
            case AddressSpace.LOCAL:
                requests = _of_threads(samples.lanes * width, self.record)
            case AddressSpace.SHARED:
                requests = samples.shared_requests(place, dtype.itemsize, width, self.record)
            case None:
                requests = samples.requests(place, dtype.itemsize, width, self.record)
        depth = max((self.depths.get(n, 0) for n in names), default=0)
        origins = {n: self._origins((n,)) for n in size_names(place)}
        share, threads, item = draft.share, samples.threads, dtype.itemsize
        sources = {n: self.sources[n] for n in origins if n in self.sources}
        touch = Touch(buffer, item, count, place, writes, space, share, threads, requests, depth, origins, sources)
        draft.touches.append(touch)
        draft.work.add(dtypes.i32, draft.share * (ADDRESS + self._divisions(index, draft)))

    def _divisions(self, size: Size, draft: Draft) -> float:
        """Instructions of the divisions that change from round to round of the innermost loop."""
        factors = (f for term in terms_of(size) for f in term.factors if not isinstance(f, Symbol))
        return sum(_division(f) for f in factors if draft.var is None or self._varies(f, draft.var))

    def _varies(self, factor: FloorDiv | Mod, var: str) -> bool:
        return var in self._origins(s.name for s in dims.symbols(factor.numerator))


def _of_threads(size: int, record: DeviceRecord) -> Requests:
    """The requests of lanes to private memory, where an element is contiguous over lanes."""
    return Requests(-(-size // record.sector_bytes), -(-size // record.line_bytes), 1.0)


def _count(part: Expr, draft: Draft) -> None:
    """Count the work of one node of an expression, except loads and indices."""
    work, share = draft.work, draft.share
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


def _count_word(name: str, draft: Draft) -> None:
    """Count a word of a cipher as a GPU computes it."""
    integers, products = WORDS[name]
    draft.work.add(dtypes.i32, draft.share * integers)
    draft.work.add(dtypes.f32, draft.share * products)


def _count_function(name: str, draft: Draft) -> None:
    """Count a function of f32 as a GPU computes it; special units need an instruction, too."""
    integers, floats, special = FUNCTIONS[name]
    work, share = draft.work, draft.share
    work.add(dtypes.i32, share * integers)
    work.add(dtypes.f32, share * (floats + special))
    work.special += share * special
    work.flops += share


def _count_combination(value: Expr, contract: bool, draft: Draft) -> None:
    """Count `acc += value`; a product that may be fused into it takes the same instruction."""
    if value.dtype in dtypes.FLOATING:
        draft.work.flops += draft.share
    if not (contract and isinstance(value, Op) and value.name == "mul"):
        draft.work.add(value.dtype, draft.share)


def _division(factor: FloorDiv | Mod) -> float:
    by = factor.denominator
    return SHIFT if isinstance(by, int) and by & (by - 1) == 0 else DIVISION


def memory_of(code: KernelCode) -> dict[str, tuple[np.dtype, AddressSpace | None]]:
    """The dtype of every buffer and allocation, and the memory it lies in."""
    memory: dict[str, tuple[np.dtype, AddressSpace | None]] = {p.name: (p.dtype, None) for p in code.params}
    memory.update((s.name, (s.dtype, s.space)) for s in walk(code.body) if isinstance(s, Alloc))
    return memory
