"""Which function serves a routine's arrays, compiled when the first plan needs it.

A function is of one dtype and takes the addresses of its arrays and sizes; what it calls is
compiled with it, but for the tiles of matrix products, which all share. Code lives as long as the
process.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler
from rune.backends.cpu.gemm import library as gemm
from rune.backends.cpu.gemm.tile import Shape, maker
from rune.backends.cpu.linalg import cholesky, lanes, lu, moves, reflections, triangular
from rune.backends.cpu.linalg.numbers import Complexes, Numbers, Reals
from rune.lowering.codegen.llvm_names import bits_type, suffix
from rune.lowering.codegen.llvm_text import Value
from rune.lowering.factors import Factor
from rune.ops.complex_numbers import real_dtype
from rune.ops.linalg.dense import MOST_ROWS, MOST_SMALL
from rune.records import dataclass

BLOCK = 32  # rows and columns of a diagonal block, a multiple of any vector's lanes
PANEL = 64  # parts of the right sides that are solved together
PARALLEL_OPERATIONS = 400_000  # multiply-adds from which cores share matrices, or columns
PIECES_PER_CORE = 4


@dataclass(frozen=True, slots=True)
class Task:
    """What a routine's arrays lead to: a function, its sizes, and how the work is divided."""

    function: str
    sizes: tuple[int, ...]
    total: int  # parts of the work
    operations: int  # of a part, about


def task_of(factor: Factor, shape: Shape) -> Task:
    """The function for a factorisation of these sizes."""
    batch, (m, n, k) = factor.batch, (factor.rows, factor.columns, factor.sides)
    few = max(m, n, k) <= MOST_SMALL and batch >= shape.lanes
    groups = -(-batch // shape.lanes)
    match factor.routine:
        case "cholesky":
            work = n**3 // 6
            if few:
                return Task("cholesky_lanes", (batch, n), groups, work)
            return Task("cholesky", (n,), batch, work)
        case "triangular_solve":
            flags, work = (factor.lower, factor.unit_diagonal), n * n * k // 2
            if few:
                return Task("solve_lanes", (batch, n, k, *flags), groups, work)
            if k == 1 and factor.parts == 1:
                return Task("solve_column", (n, k, *flags), batch, work)
            panels = -(-k // (PANEL // factor.parts))
            return Task("solve", (n, k, *flags, panels), batch * panels, work // panels)
        case "geqrf":
            return Task("geqrf", (m, n), batch, m * n * min(m, n))
        case "reflections_product":
            return Task("reflections_product", (m, n, k), batch, 2 * m * n * k)
        case _:
            work = m * n * min(m, n) // 3
            return Task("lu_lanes", (batch, m, n), groups, work) if few else Task("lu", (m, n), batch, work)


@dataclass(slots=True)
class Library:
    """The functions of one dtype and number of cores."""

    shape: Shape
    numbers: Numbers
    cores: int
    parallel: int  # the address of the pool's function, with several cores
    tiles: gemm.Library
    addresses: dict[str, int] = field(default_factory=dict)
    codes: list[compiler.Code] = field(default_factory=list)

    def need(self, factors: Sequence[Factor]) -> None:
        """Compile what these need and is not there; two threads may both, and either serves.

        Errors: CompileError.
        """
        tasks = [task_of(f, self.shape) for f in factors]
        self.tiles.need(set[str]().union(*(_tiles_of(f, t, self.shape) for f, t in zip(factors, tasks, strict=True))))
        names = sorted({t.function for t in tasks} - self.addresses.keys())
        if not names:
            return
        used = dict.fromkeys(piece for name in names for piece in self._pieces_of(name))
        texts = [_PIECES[piece](self.shape, self.numbers) for piece in used]
        texts += [_TASKS[name](self.shape, self.numbers) for name in names]
        texts += [_entry(self, name) for name in names]
        text = "\n\n".join([declarations(self.shape), *texts])
        code = compiler.compile_module("linalg", text, self.tiles.effort)
        self.codes.append(code)
        self.addresses.update((name, code.address(name)) for name in names)

    def _pieces_of(self, name: str) -> tuple[str, ...]:
        return _USES[name] if self.numbers.parts == 1 else (*_USES[name], *_TURNS.get(name, ()))

    def chunk(self, task: Task) -> int:
        """How many parts of the work a core takes at once."""
        if self.cores == 1 or task.total * task.operations < PARALLEL_OPERATIONS:
            return task.total
        return -(-task.total // (PIECES_PER_CORE * self.cores))


@functools.cache
def library(dtype: np.dtype, cores: int, parallel: int, effort: int) -> Library:
    """The functions of this process for f32, f64, c64 or c128."""
    tiles = gemm.library(real_dtype(dtype), cores, parallel, effort, "linalg")
    numbers = Complexes() if dtype in dtypes.COMPLEX else Reals()
    return Library(tiles.shape, numbers, cores, parallel, tiles)


def declarations(shape: Shape) -> str:
    """What the functions use of LLVM."""
    vector, scalar = shape.vector, shape.scalar
    name, one, integer = suffix(vector), suffix(scalar), bits_type(scalar)
    integers = f"v{shape.lanes}{integer}", f"<{shape.lanes} x {integer}>"
    return "\n".join(
        [
            gemm.declarations(shape),
            f"declare {scalar} @llvm.fma.{one}({scalar}, {scalar}, {scalar})",
            f"declare {scalar} @llvm.fabs.{one}({scalar})",
            f"declare {scalar} @llvm.sqrt.{one}({scalar})",
            f"declare {scalar} @llvm.copysign.{one}({scalar}, {scalar})",
            f"declare {vector} @llvm.fabs.{name}({vector})",
            f"declare {vector} @llvm.sqrt.{name}({vector})",
            f"declare i1 @llvm.vector.reduce.or.v{shape.lanes}i1(<{shape.lanes} x i1>)",
            *(f"declare {integer} @llvm.vector.reduce.{x}.{integers[0]}({integers[1]})" for x in ("umax", "umin")),
            f"declare {integers[1]} @llvm.umin.{integers[0]}({integers[1]}, {integers[1]})",
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        ]
    )


def _tiles_of(factor: Factor, task: Task, shape: Shape) -> set[str]:
    """The pieces of matrix products that a task may call."""
    if task.function not in _WIDTHS:
        return set()
    columns = factor.sides or factor.columns
    widest = _WIDTHS[task.function] * (factor.parts if task.function == "cholesky" else 1)
    padded = -(-min(columns * factor.parts, widest) // shape.lanes) * shape.lanes
    counts = {v for w in range(1, padded + 1) for v in gemm.panels_of(shape, w, shape.vectors)}
    return {"tiles", *(f"tile{v}" for v in counts)} | ({"row"} if shape.vectors in counts else set())


def _entry(of: Library, name: str) -> str:
    """The routine: its words, and its parts by one core or by all of them.

    void(ptr array..., i64 size..., i64 total, i64 chunk, ptr watch), where a chunk of all is for
    one core
    """
    make, (pointers, sizes) = maker(of.shape), _SIGNATURES[name]
    writer = make.writer
    names = [f"a{k}" for k in range(pointers)], [f"s{k}" for k in range(sizes)]
    (watch,) = make.pointers("watch")
    words = make.words(pointers + sizes, watch)
    values = [*make.pointers(" ".join(names[0])), *make.sizes(" ".join(names[1]))]
    for number, value in enumerate(values):
        writer.store(value, make.at(words, number, "i64"))
    total, chunk = make.sizes("total chunk")
    task = f"{name}_task"

    def shared() -> None:
        listed = f"ptr @{task}, ptr {words.text}, i64 {total.text}, i64 {chunk.text}"
        writer.do(f"call void inttoptr (i64 {of.parallel} to ptr)({listed})")

    def alone() -> None:
        make.call(task, words, make.number(0), total)

    if of.cores == 1:
        alone()
    else:
        writer.either(chunk < total, shared, alone)
    parameters = [f"{v.type} {v.text}" for v in (*values, total, chunk, watch)]
    return make.text(f"{name}({', '.join(parameters)})").replace("define internal", "define", 1)


_SIGNATURES = {  # arrays and sizes
    "cholesky": (2, 1),
    "cholesky_lanes": (2, 2),
    "solve": (3, 5),
    "solve_column": (3, 4),
    "solve_lanes": (3, 5),
    "lu": (4, 2),
    "lu_lanes": (4, 3),
    "geqrf": (3, 2),
    "reflections_product": (3, 3),
}
# Parts of a row of the widest product of tiles.
_WIDTHS = {
    "cholesky": BLOCK,  # numbers, of any parts
    "solve": PANEL,
    "lu": lu.WIDTH,
    "geqrf": reflections.WIDTH,
    "reflections_product": reflections.WIDTH,
}
Write = Callable[[Shape, Numbers], str]


def _of_parts(write: Callable[[Shape], str]) -> Write:
    """What moves parts, and knows no numbers."""
    return lambda shape, _: write(shape)


def _within(write: Callable[..., str], **limits: int) -> Write:
    """With limits in parts, for which there is scratch memory."""
    return lambda shape, numbers: write(shape, numbers, BLOCK, **{k: v // numbers.parts for k, v in limits.items()})


def _transposed(name: str, change: Callable[[Numbers, Value], Value]) -> Write:
    return lambda shape, numbers: moves.transposed_function(shape, numbers, name, partial(change, numbers))


_PIECES: dict[str, Write] = {
    "to_lanes": _of_parts(moves.to_lanes_function),
    "from_lanes": _of_parts(moves.from_lanes_function),
    "copied": _of_parts(partial(moves.copied_function, name="copied", sign=1)),
    "negated": _of_parts(partial(moves.copied_function, name="negated", sign=-1)),
    "transposed": _transposed("transposed", lambda _, row: row),
    "adjoint": _transposed("adjoint", lambda numbers, row: numbers.conjugates(row)),
    "negated_adjoint": _transposed("negated_adjoint", lambda numbers, row: -numbers.conjugates(row)),
    "turned": partial(moves.turned_function, name="turned", sign=1),
    "turned_back": partial(moves.turned_function, name="turned_back", sign=-1),
    "triangle": partial(cholesky.triangle_function, block=BLOCK),
    "inverse": partial(moves.inverse_function, block=BLOCK),
    "substitute_unless_finite": triangular.substitute_function,
    "eliminate": partial(lu.eliminate_function, block=BLOCK),
    "exchange": _of_parts(lu.exchange_function),
    "order": _of_parts(lu.order_function),
    "reflect": partial(reflections.reflect_function, block=BLOCK),
    "triangle_of_factors": partial(reflections.triangle_of_factors_function, block=BLOCK),
    "apply": _within(partial(reflections.apply_function, name="apply"), most=MOST_ROWS["geqrf"]),
    "apply_adjoint": _within(partial(reflections.apply_function, name="apply_adjoint"), most=MOST_ROWS["geqrf"]),
    "columns": reflections.columns_function,
}
_IN_LANES = ("to_lanes", "from_lanes")
_REFLECTING = ("copied", "negated", "transposed", "columns", "triangle_of_factors")
_USES = {
    "cholesky": ("copied", "adjoint", "negated_adjoint", "triangle", "inverse"),
    "cholesky_lanes": _IN_LANES,
    "solve": ("copied", "negated", "inverse", "substitute_unless_finite"),
    "solve_column": (),
    "solve_lanes": _IN_LANES,
    "lu": ("copied", "negated", "inverse", "eliminate", "exchange", "order"),
    "lu_lanes": (*_IN_LANES, "order"),
    "geqrf": (*_REFLECTING, "apply_adjoint", "reflect"),
    "reflections_product": (*_REFLECTING, "apply"),
}
# And what turns rows of complex numbers.
_TURNS = {
    "cholesky": ("turned",),
    "solve": ("turned",),
    "lu": ("turned",),
    "geqrf": ("turned", "turned_back"),
    "reflections_product": ("turned", "turned_back"),
}
_TASKS: dict[str, Write] = {
    "cholesky": partial(cholesky.cholesky_function, block=BLOCK),
    "cholesky_lanes": lanes.cholesky_lanes_function,
    "solve": _within(triangular.solve_function, width=PANEL, most=MOST_ROWS["triangular_solve"]),
    "solve_column": _of_parts(triangular.solve_column_function),
    "solve_lanes": lanes.solve_lanes_function,
    "lu": _within(lu.lu_function, most=MOST_ROWS["lu"]),
    "lu_lanes": lanes.lu_lanes_function,
    "geqrf": _within(reflections.geqrf_function, most=MOST_ROWS["geqrf"]),
    "reflections_product": _within(reflections.reflections_product_function, most=MOST_ROWS["reflections_product"]),
}
