"""Writes the functions of factorisations as IR text, with everything that they call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from rune.backends.cpu import conventions
from rune.backends.cpu.gemm import pieces
from rune.backends.cpu.gemm.shape import Shape
from rune.backends.cpu.gemm.tile import by_vectors, maker
from rune.backends.cpu.linalg import cholesky, lanes, lu, moves, reflections, triangular
from rune.backends.cpu.linalg.numbers import Complexes, Numbers, Reals
from rune.backends.cpu.linalg.tasks import BLOCK, PANEL, Task, task_of
from rune.lowering.codegen.llvm.ir.names import bits_type, pointer_to, suffix
from rune.lowering.codegen.llvm.ir.text import Value
from rune.lowering.factors import Factor
from rune.ops.linalg.dense import MOST_ROWS


def declarations(shape: Shape) -> str:
    """The declarations of LLVM's functions that these functions call."""
    vector, scalar = shape.vector, shape.scalar
    name, one, integer = suffix(vector), suffix(scalar), bits_type(scalar)
    integers = f"v{shape.lanes}{integer}", f"<{shape.lanes} x {integer}>"
    return "\n".join(
        [
            pieces.declarations(shape),
            f"declare {scalar} @llvm.fma.{one}({scalar}, {scalar}, {scalar})",
            f"declare {scalar} @llvm.fabs.{one}({scalar})",
            f"declare {scalar} @llvm.sqrt.{one}({scalar})",
            f"declare {scalar} @llvm.copysign.{one}({scalar}, {scalar})",
            f"declare {vector} @llvm.fabs.{name}({vector})",
            f"declare {vector} @llvm.sqrt.{name}({vector})",
            *(f"declare {integer} @llvm.vector.reduce.{x}.{integers[0]}({integers[1]})" for x in ("umax", "umin")),
            f"declare {integers[1]} @llvm.umin.{integers[0]}({integers[1]}, {integers[1]})",
        ]
    )


def _tiles_of(factor: Factor, task: Task, shape: Shape) -> set[str]:
    """The pieces of matrix products that a task may call."""
    if task.function not in _WIDTHS:
        return set()
    columns = factor.sides or factor.columns
    widest = _WIDTHS[task.function] * (factor.parts if task.function == "cholesky" else 1)
    parts = -(-min(columns * factor.parts, widest) // shape.lanes) * shape.lanes
    # Of all widths up to the widest: the last panel of a matrix may have any.
    counts = {v for w in range(1, parts + 1) for v in pieces.panels_of(shape, w, shape.vectors)}
    return {*pieces.tiles_of(shape), *(f"tile{v}" for v in counts)} | ({"row"} if shape.vectors in counts else set())


def module_text(shape: Shape, parts: int, pool: tuple[int, int], effort: int, names: Sequence[str]) -> str:
    """The module of these functions, with everything that they call.

    parts: the parts of a number;  pool: the number of cores, and the address of the pool's function
    """
    numbers: Numbers = Reals() if parts == 1 else Complexes()
    piece_names = dict.fromkeys(piece for name in names for piece in _pieces_of(name, parts))
    by_name = _PIECES | (_IN_A_HURRY if effort == conventions.HURRY else {})
    texts = [by_name[piece](shape, numbers) for piece in piece_names]
    texts += [_TASKS[name](shape, numbers) for name in names]
    texts += [_entry(shape, pool, name) for name in names]
    return "\n\n".join([declarations(shape), *texts])


def _pieces_of(name: str, parts: int) -> tuple[str, ...]:
    return _USES[name] if parts == 1 else (*_USES[name], *_TURNS.get(name, ()))


def functions_of(factors: Sequence[Factor], shape: Shape) -> tuple[set[str], set[str]]:
    """The functions for these factorisations, and the tiles that they call."""
    tasks = [task_of(f, shape) for f in factors]
    tiles = set[str]().union(*(_tiles_of(f, t, shape) for f, t in zip(factors, tasks, strict=True)))
    return {t.function for t in tasks}, tiles


def _entry(shape: Shape, pool: tuple[int, int], name: str) -> str:
    """The routine: it stores its words, then runs the task on one core, or in chunks on all.

    void(ptr array..., i64 size..., i64 total, i64 chunk, ptr watch). If chunk is total, one core
    does all.
    """
    make, (pointers, sizes), (cores, parallel) = maker(shape), _SIGNATURES[name], pool
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
        arguments = f"ptr @{task}, ptr {words.text}, i64 {total.text}, i64 {chunk.text}"
        writer.do(f"call void {pointer_to(parallel)}({arguments})")

    def alone() -> None:
        make.call(task, words, make.number(0), total)

    if cores == 1:
        alone()
    else:
        writer.either(chunk < total, shared, alone)
    parameters = [f"{v.type} {v.text}" for v in (*values, total, chunk, watch)]
    return make.text(f"{name}({', '.join(parameters)})").replace("define internal", "define", 1)


_SIGNATURES = {  # the numbers of arrays and sizes
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
# Parts in a row of the widest product of tiles.
_WIDTHS = {
    "cholesky": BLOCK,  # in numbers, not parts
    "solve": PANEL,
    "lu": lu.WIDTH,
    "geqrf": reflections.WIDTH,
    "reflections_product": reflections.WIDTH,
}
Write = Callable[[Shape, Numbers], str]


def _of_parts(write: Callable[[Shape], str]) -> Write:
    """A function that copies parts, and so is the same for real and complex numbers."""
    return lambda shape, _: write(shape)


def _within(write: Callable[..., str], **limits: int) -> Write:
    """A function with limits given in parts, so that both kinds use the same scratch memory."""
    return lambda shape, numbers: write(shape, numbers, BLOCK, **{k: v // numbers.parts for k, v in limits.items()})


Change = Callable[[Numbers, Value], Value]


def _changed(name: str, change: Change) -> Write:
    return lambda shape, numbers: moves.changed_function(shape, name, partial(change, numbers))


def _transposed(name: str, change: Change, by: moves.Walk = by_vectors) -> Write:
    return lambda shape, numbers: moves.transposed_function(shape, numbers, name, partial(change, numbers), by)


_CHANGES: dict[str, Change] = {
    "transposed": lambda _, row: row,
    "adjoint": lambda numbers, row: numbers.conjugates(row),
    "negated_adjoint": lambda numbers, row: -numbers.conjugates(row),
}
# Pieces that compile faster: their text contains each square of vectors only once.
_IN_A_HURRY = {name: _transposed(name, change, moves.by_parts) for name, change in _CHANGES.items()}
_PIECES: dict[str, Write] = {
    "to_lanes": _of_parts(moves.to_lanes_function),
    "from_lanes": _of_parts(moves.from_lanes_function),
    "copied": _changed("copied", lambda _, row: row),
    "negated": _changed("negated", lambda _, row: -row),
    **{name: _transposed(name, change) for name, change in _CHANGES.items()},
    # The rows times i, or times -i.
    "turned": _changed("turned", lambda numbers, row: numbers.turns(row)[-1]),
    "turned_back": _changed("turned_back", lambda numbers, row: -numbers.turns(row)[-1]),
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
    "lu": ("copied", "negated", "inverse", "substitute_unless_finite", "eliminate", "exchange", "order"),
    "lu_lanes": (*_IN_LANES, "order"),
    "geqrf": (*_REFLECTING, "apply_adjoint", "reflect"),
    "reflections_product": (*_REFLECTING, "apply"),
}
# Functions that are needed in addition for rows of complex numbers.
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
