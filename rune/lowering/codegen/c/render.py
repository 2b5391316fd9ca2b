"""Render kernel code in a language of the C family. What differs between them is the Dialect.

    for i in n grid {                     const long i = get_global_id(0);
      var s: f32 = 0.0_f32                if (i >= n) return;
      for j in 8 serial {          ->     float s = 0.0f;
        s add= x[8*i + j]                 for (long j = 0; j < 8; j++) {
      }                                     s = s + x[8 * i + j];
      store y[i] = s                      }
    }                                     y[i] = s;

GRID loops become the launch's dimensions, the innermost first (neighbouring threads then touch
neighbouring elements); those beyond the dialect's number are folded into the first by / and %.
WORKGROUP loops likewise become the threads of a group. Index arithmetic is 64-bit, or 32-bit where
the bounds show that all of it fits and the dialect asks for it; integers wrap in unsigned types;
division is plain where the bounds show non-negative operands, else it floors.

Invariant: the source means what interpret.py does, floats within the functions' ulps. Only `fma`,
and an Accumulate or a Store that says so, are contracted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from rune.dims import Size, product
from rune.lowering.codegen.ahead import copied_sums, rounds_ahead
from rune.lowering.codegen.braces import Statements, helpers
from rune.lowering.codegen.c.dialect import Dialect, Together
from rune.lowering.codegen.c.expr import Expressions
from rune.lowering.codegen.c.helpers import helper
from rune.lowering.codegen.index_width import fits_32_bits
from rune.lowering.codegen.infix import ascii_name
from rune.lowering.codegen.runs import LoadRun, StoreRun, with_runs
from rune.lowering.codegen.subgroups import Statement
from rune.lowering.codegen.units import product_lines, refuse_unit, swizzled_arrays, together_lines
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import (
    Access,
    AddressSpace,
    Alloc,
    Barrier,
    Fetch,
    For,
    Function,
    KernelCode,
    Kind,
    Let,
    MatrixProduct,
    Param,
    Store,
)
from rune.lowering.kernel.rewrite import (
    Body,
    buffers_read,
    buffers_written,
    perfect_nest,
    updated,
    walk,
    writes_computed_places,
)
from rune.lowering.legalize.scalars import attach_functions
from rune.records import dataclass

_KEYWORDS = frozenset(
    """auto bool break case char const continue default do double else enum extern false float for
    goto half if inline int long register restrict return short signed sizeof static struct switch
    true typedef uchar uint ulong union unsigned ushort void volatile while""".split()
)


_REGISTERS = 32  # the most elements of a thread's array that should be registers
_POOL_ALIGNMENT = 16  # of arrays in the pool of shared ones [B]
_SWIZZLED_ALIGNMENT = 1024  # ... of swizzled arrays, whose order depends on address bits [B]


@dataclass(frozen=True, slots=True)
class Rendered:
    """One kernel as source. A launch takes buffers in the order of `params`, then `sizes`.

    `grid` [grid points] and `workgroup` [threads] have one extent per launch dimension, the first
    varying fastest; an empty `workgroup` leaves the choice to the launch, which may round the
    number of threads up. `scratch_bytes` is what the arrays of one thread take; `functions` are
    those that the text calls and a program has to define; `shared_bytes` is what the launch has to
    give to a workgroup.
    """

    name: str
    text: str
    params: tuple[Param, ...]
    sizes: tuple[str, ...]
    grid: tuple[Size, ...]
    workgroup: tuple[int, ...]
    dtypes: frozenset[np.dtype]
    scratch_bytes: int
    functions: tuple[Function, ...] = ()
    shared_bytes: int = 0


def render(code: KernelCode, dialect: Dialect) -> Rendered:
    """One kernel's function.

    Errors: DtypeError "render: cannot use c64 in OpenCL C (no such type in the language)".
    """
    return _Renderer(attach_functions(code, dialect.native), dialect).kernel()


def assemble(kernels: Sequence[Rendered], dialect: Dialect) -> str:
    """A whole program: preamble, extensions, helper functions, rune's own functions, kernels."""
    dtypes_used = frozenset[np.dtype]().union(*(k.dtypes for k in kernels))
    extensions = dict.fromkeys(text for d, text in dialect.extensions.items() if d in dtypes_used)
    # Kernels of one program share functions: a dict keeps one of each, callees first.
    functions = {f"rune_{f.name}": f for k in kernels for f in k.functions}
    texts = [*(_function(f, dialect) for f in functions.values()), *(k.text for k in kernels)]
    helper_texts = helpers("\n\n".join(texts), functions, partial(helper, dialect=dialect)).values()
    head = "\n".join([dialect.preamble, *extensions])
    return "\n\n".join([head, *helper_texts, *texts]) + "\n"


def _function(function: Function, dialect: Dialect) -> str:
    renderer = _Renderer(KernelCode(function.name, (), (), function.body), dialect)
    return dialect.function + renderer.function(function)


@dataclass(slots=True)
class _Renderer(Statements[Expressions]):
    dialect: Dialect
    shared_arrays: frozenset[str] = field(init=False)
    copies: frozenset[str] = field(init=False)  # locals that copy sums before they are stored (ahead.py)
    pool_bytes: int = 0  # of the shared arrays cut from the pool so far
    runs: int = 0  # loads of neighbours so far
    aligned_buffers: frozenset[str] = field(init=False)  # those that begin at the alignment of the widest access
    swizzled_arrays: frozenset[str] = field(init=False)  # shared arrays whose pieces are in swizzled order

    def __post_init__(self) -> None:
        dialect, code = self.dialect, self.code
        self.reserved_words = _KEYWORDS | dialect.reserved_words
        # Per kernel, since all of its index arithmetic has one type.
        narrow = dialect.narrow_index if dialect.narrow_index and fits_32_bits(code) else ""
        alias_names = {name for pair in code.aliases for name in pair}
        read = (p.name for p in code.params if p.access is Access.READ)
        # Loads of these may use the read-only cache, which does not see writes through an alias.
        only = frozenset(read) - alias_names
        self.expressions = Expressions(self.names, dialect, narrow, only)
        shared_names = (s.name for s in walk(code.body) if isinstance(s, Alloc) and s.space is AddressSpace.SHARED)
        self.shared_arrays = frozenset(shared_names)
        self.aligned_buffers = self.shared_arrays | {p.name for p in code.params}
        self.copies = copied_sums(code.body, self.shared_arrays) if dialect.copy else frozenset()
        self.swizzled_arrays = swizzled_arrays(code)

    @property
    def index_type(self) -> str:
        return self.expressions.index_type

    @property
    def language(self) -> str:
        return self.dialect.name

    # --- the function ------------------------------------------------------------------------

    def kernel(self) -> Rendered:
        code, dialect = self.code, self.dialect
        pieces = [self.parameter(p, number) for number, p in enumerate(code.params)]
        pieces += [self.size(name, number) for number, name in enumerate(code.sizes)]
        pieces += [dialect.positions] if dialect.positions else []
        # Called even with a table: it then emits the lines that unpack the arguments.
        pieces = [dialect.argument_table] if dialect.argument_table else pieces
        grid_loops, body = perfect_nest(code.body, Kind.GRID)
        thread_loops = _threads(body)
        threads = tuple(_fold([loop.extent for loop in thread_loops], dialect.grid_dims))
        grid = _fold([loop.extent for loop in grid_loops], dialect.grid_dims)
        workgroup = tuple(int(str(t)) for t in threads)
        self.positions(grid_loops, dialect.group if thread_loops else dialect.grid_point, workgroup)
        # No check with workgroups: their number of threads is exact.
        if not thread_loops:
            self.bounds_check(grid_loops)
        if self.swizzled_arrays and dialect.together is not None:
            self.emit(f"{dialect.together.start};")
        self.body(body)
        name = f"run_{ascii_name(code.name)}"
        signature = ",\n".join(f"    {piece}" for piece in pieces)
        bound = dialect.thread_bound.format(math.prod(workgroup)) if workgroup else ""
        head = f"{dialect.kernel} {bound}{name}(\n{signature}) {{"
        text = "\n".join([head, *self.lines, "}"])
        dtypes_used = frozenset(self.expressions.dtypes_used)
        launch = code.params, code.sizes, grid, workgroup
        scratch_bytes = _bytes_in(code, AddressSpace.LOCAL)
        return Rendered(name, text, *launch, dtypes_used, scratch_bytes, code.functions, self.pool_bytes)

    def parameter(self, p: Param, number: int) -> str:
        dialect, name = self.dialect, self.name(p.name)
        has_alias = any(p.name in pair for pair in self.code.aliases)
        pointer = dialect.const_pointer if p.access is Access.READ else dialect.global_pointer
        type_ = self.expressions.scalar(p.dtype).storage
        # `restrict` promises that nothing else points there.
        restrict = "" if has_alias else dialect.restrict
        if dialect.argument_table:
            address = f"({pointer.format(type_, '').rstrip()})_table[{number}]"
            self.emit(f"{pointer.format(type_, restrict + name)} = {address};")
            # Without it, each access first finds out which memory its address is in.
            if dialect.in_memory:
                self.emit(f"{dialect.in_memory.format(name)};")
            return ""
        # Without pointer arithmetic on the host, the offset is a separate argument.
        if not dialect.pointer_offsets:
            return pointer.format(type_, restrict + name)
        self.emit(f"{pointer.format(type_, restrict + name)} = {name}_base + {name}_at;")
        base = pointer.format(type_, f"{name}_base")
        return f"{base}, const {dialect.index_type} {name}_at"

    def size(self, name: str, number: int) -> str:
        declaration = f"const {self.index_type} {self.name(name)}"
        if self.dialect.argument_table:
            at = len(self.code.params) + number
            self.emit(f"{declaration} = ({self.index_type})_table[{at}];")
        return declaration

    def positions(self, loops: Sequence[For], position: str, workgroup: Sequence[int] = ()) -> None:
        """Bind the variables of a nest to the launch's position."""
        dialect = self.dialect
        unfolded_count = dialect.grid_dims - 1 if len(loops) > dialect.grid_dims else len(loops) - 1
        # The outermost loops are folded into dimension 0 with the innermost; the others get
        # dimensions of their own.
        folded_loops = loops[: len(loops) - unfolded_count - 1]
        for dimension, loop in enumerate(reversed(loops[len(folded_loops) :])):
            threads = workgroup[dimension] if dimension < len(workgroup) else 1
            name, at = self.name(loop.var), position.format(dimension, self.index_type, threads)
            if dimension == 0 and folded_loops:
                joined_name = f"at_{'_'.join(self.name(x.var) for x in (*folded_loops, loop))}"
                self.declare_index(joined_name, at)
                self.unfold([*folded_loops, loop], joined_name)
            else:
                self.declare_index(name, at)

    def bounds_check(self, loops: Sequence[For]) -> None:
        """The launch may round the number of threads up."""
        outside = [f"{self.name(x.var)} >= {self.expressions.size(x.extent)}" for x in loops]
        if outside:
            self.emit(f"if ({' || '.join(outside)}) return;")

    # --- statements --------------------------------------------------------------------------

    def accesses(self, body: Body) -> Iterator[Statement]:
        has_pieces = self.dialect.pieces_for_sums or all(isinstance(s, Let | Store) for s in body)
        return with_runs(body, self.most_neighbours, self.aligned_buffers if has_pieces else frozenset())

    def most_neighbours(self, dtype: np.dtype) -> int:
        """How many elements one access may cover."""
        return self.dialect.pieces.get(dtype, ("", 1))[1]

    def load_run(self, run: LoadRun) -> None:
        name = f"_run_{self.runs}"
        self.runs += 1
        self.emit(
            f"const {self.expressions.piece(run.dtype, len(run.lets))} {name} = {self.expressions.neighbours(run)};"
        )
        scalar = self.expressions.scalar(run.dtype)
        for let, element in zip(run.lets, self.dialect.piece_elements, strict=False):
            self.emit(f"const {scalar.register} {self.name(let.name)} = {scalar.load.format(f'{name}.{element}')};")
            self.expressions.narrow.add(let.name)

    def store_run(self, run: StoreRun) -> None:
        piece = self.expressions.piece(run.values[0].dtype, len(run.values))
        values = ", ".join(self.expressions.stored(value) for value in run.values)
        address = f"&{self.element(run.buffer, run.index)}"
        self.emit(f"{self.dialect.piece_store.format(piece, address, values, len(run.values))};")
        self.record_store(run.buffer)

    def let(self, name: str, value: Expr) -> None:
        Statements.let(self, name, value)
        self.expressions.narrow.add(name)

    def barrier(self, stmt: Barrier) -> None:
        together = self.dialect.together
        if self.swizzled_arrays and together is not None:
            if stmt.ends_sums:
                self.emit(f"{together.product_wait.format(', '.join(self.accumulators()))};")
            self.emit(f"{together.barrier_wait.format(int(not stmt.ends_sums), stmt.in_flight)};")
        elif any(isinstance(s, Fetch) for s in walk(self.code.body)):
            self.emit(f"{self.dialect.fetch_wait};")
        self.emit(f"{self.dialect.barriers.get(stmt.threads, self.dialect.barrier)};")

    def fetch(self, stmt: Fetch) -> None:
        if not self.dialect.fetch:
            refuse_unit(stmt, self.dialect.name)
        dtype = next(p.dtype for p in self.code.params if p.name == stmt.source)
        target, source = self.element(stmt.target, stmt.target_index), self.element(stmt.source, stmt.source_index)
        guard = "true" if stmt.guard is None else self.expr(stmt.guard)
        size = stmt.count * dtype.itemsize
        call = together.fetch if (together := self.together_in(stmt.target)) else self.dialect.fetch
        self.emit(f"{call.format(size, f'&{target}', f'&{source}', guard)};")

    def multiply(self, stmt: MatrixProduct) -> None:
        lines, function = product_lines, self.dialect.multiply.get(stmt.a.dtype)
        if stmt.subgroups > 1:
            together = self.dialect.together
            lines, function = together_lines, together and together.multiply.get(stmt.a.dtype)
        if function is None:
            refuse_unit(stmt, self.dialect.name)
        self.emit("{")
        for line in lines(stmt, function, self.plain_element, self.name):
            self.emit(f"  {line}")
        self.emit("}")

    def accumulators(self) -> list[str]:
        """The accumulators of products of four subgroups."""
        teams = (s for s in walk(self.code.body) if isinstance(s, MatrixProduct) and s.subgroups > 1)
        return list(dict.fromkeys(self.name(name) for s in teams for name in s.names))

    def element(self, buffer: str, index: Size) -> str:
        """An element of a buffer in memory."""
        together = self.together_in(buffer)
        if together is None:
            return self.plain_element(buffer, index)
        return f"{self.name(buffer)}[{together.swizzle.format(self.expressions.size(index))}]"

    def together_in(self, buffer: str) -> Together | None:
        """How the language spells products of four subgroups, if these read the buffer."""
        return self.dialect.together if buffer in self.swizzled_arrays else None

    def plain_element(self, buffer: str, index: Size) -> str:
        """An element of a buffer that is not swizzled."""
        return f"{self.name(buffer)}[{self.expressions.size(index)}]"

    def text(self, name: str, value: Expr) -> str:
        text = self.expr(value)
        return self.dialect.copy.format(text) if name in self.copies else text

    def store(self, stmt: Store) -> None:
        element = self.element(stmt.buffer, stmt.index)
        if stmt.atomic:
            assert stmt.combine is not None
            call = self.dialect.atomics[stmt.combine, stmt.value.dtype]
            self.emit(f"{call.format(element, self.expr(stmt.value))};")
            return
        self.emit(f"{element} = {self.expressions.stored(updated(stmt))};")
        self.record_store(stmt.buffer)

    def record_store(self, buffer: str) -> None:
        """Record a store to an array that matrix units read: the thread must fence before the next
        barrier, or the units may miss it."""
        together = self.together_in(buffer)
        if together is not None:
            self.emit(f"{together.store_record};")

    def loop(self, loop: For) -> None:
        rounds = self.rounds_ahead(loop) if self.dialect.unroll else 1
        if rounds > 1:
            self.emit(self.dialect.unroll.format(rounds))
        is_written = loop.kind is not Kind.WORKGROUP  # one iteration for each thread, without a loop
        if self.dialect.one_by_one and is_written and writes_computed_places(loop.body):
            self.emit(self.dialect.one_by_one)
        Statements.loop(self, loop)

    def threads(self, nest: Sequence[For]) -> None:
        self.positions(nest, self.dialect.thread)

    def rounds_ahead(self, loop: For) -> int:
        """How many rounds of a loop the compiler should unroll."""
        # It keeps an array of a thread in registers only if it knows every index.
        if isinstance(loop.extent, int) and loop.extent in self.lengths(loop.body):
            return loop.extent
        return rounds_ahead(loop, self.shared_arrays)

    def lengths(self, body: Body) -> set[int]:
        """The lengths of the short arrays of one thread that a body uses."""
        arrays = (s for s in walk(self.code.body) if isinstance(s, Alloc) and s.space is AddressSpace.LOCAL)
        buffers = buffers_read(body) | buffers_written(body)
        return {s.size for s in arrays if s.size <= _REGISTERS and s.name in buffers}

    def alloc(self, stmt: Alloc) -> None:
        qualifier = self.dialect.shared_qualifier if stmt.space is AddressSpace.SHARED else ""
        type_ = self.expressions.scalar(stmt.dtype).storage
        if qualifier and self.is_pooled:
            alignment = _SWIZZLED_ALIGNMENT if stmt.name in self.swizzled_arrays else _POOL_ALIGNMENT
            self.cut(f"{type_}* {self.name(stmt.name)} = ({type_}*)", stmt.size * stmt.dtype.itemsize, alignment)
        else:
            self.emit(f"{qualifier}{type_} {self.name(stmt.name)}[{stmt.size}];")

    @property
    def is_pooled(self) -> bool:
        """Whether shared arrays are cut from a pool: they have more bytes than may be declared, or
        are swizzled and need aligned addresses."""
        most = self.dialect.static_shared_bytes
        return bool(self.swizzled_arrays) or (most is not None and _bytes_in(self.code, AddressSpace.SHARED) > most)

    def cut(self, declaration: str, nbytes: int, alignment: int) -> None:
        """Declare the next array of the pool."""
        pool = "_pool"
        if not self.pool_bytes:
            self.emit(f"{self.dialect.pool.format(pool)};")
        at = -(-self.pool_bytes // alignment) * alignment
        self.emit(f"{declaration}({pool} + {at});")
        self.pool_bytes = at + -(-nbytes // _POOL_ALIGNMENT) * _POOL_ALIGNMENT


def _bytes_in(code: KernelCode, space: AddressSpace) -> int:
    return sum(s.size * s.dtype.itemsize for s in walk(code.body) if isinstance(s, Alloc) and s.space is space)


def _threads(body: Body) -> list[For]:
    # Lets and shared scratch may precede the workgroup loops (kernel/check.py).
    return perfect_nest(body[-1:], Kind.WORKGROUP)[0]


def _fold(extents: Sequence[Size], dimensions: int) -> tuple[Size, ...]:
    """The extents by launch dimension, the innermost first; the rest multiply into the first."""
    first_to_last = list(reversed(extents))
    if len(first_to_last) <= dimensions:
        return tuple(first_to_last)
    separate, folded_extents = first_to_last[:dimensions], first_to_last[dimensions:]
    return product([separate[0], *folded_extents]), *separate[1:]
