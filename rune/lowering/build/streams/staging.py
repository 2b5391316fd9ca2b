"""Put what dots read into shared memory, so that neighbouring threads read neighbours.

Row operands are put there once, key operands for every tile of keys. An operand lies there by
products first: what threads of neighbouring keys read for one product are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune import dims
from rune.dims import Size
from rune.lowering.build.conditions import less
from rune.lowering.build.streams.frame import Frame, Place
from rune.lowering.build.streams.tile import slice_of
from rune.lowering.kernel.expr import Expr
from rune.lowering.kernel.nodes import For, If, Kind, Let, Stmt, Store
from rune.lowering.kernels import Axis, Reduce


def staged_rows(frame: Frame) -> list[Stmt]:
    """What dots read by row, put into shared memory once."""
    out: list[Stmt] = []
    for dot, operand in frame.tile.staged_rows:
        needed = slice_of(operand, (*frame.before, *dot.lets))
        where = Place({}, {let.name: f"{let.name}_{dot.name}_row" for let in needed})
        out += _stage(
            frame, dot, operand, needed, where, frame.row_axis, frame.first_row, frame.tile.rows, f"{dot.name}_rows"
        )
    return out


def staged_keys(frame: Frame) -> list[Stmt]:
    """What dots read by key, put into shared memory for a tile of keys."""
    out: list[Stmt] = []
    lets = [p for p in frame.parts() if isinstance(p, Let)]
    for dot, operand in frame.tile.staged_keys:
        needed = slice_of(operand, (*frame.before, *lets, *dot.lets))
        where = Place({}, {let.name: f"{let.name}_{dot.name}_key" for let in needed})
        out += _stage(
            frame, dot, operand, needed, where, frame.key_axis, frame.first_key, frame.tile.keys, f"{dot.name}_keys"
        )
    return out


def _stage(
    frame: Frame,
    dot: Reduce,
    operand: Expr,
    lets: Sequence[Let],
    where: Place,
    axis: Axis,
    first: Size,
    count: int,
    name: str,
) -> list[Stmt]:
    """`count` rows or keys of an operand, its products along the other side of an array."""
    (along,) = dot.axes
    assert isinstance(along.size, int)
    total, threads = along.size * count, frame.tile.threads
    memory = frame.memory(name, along.size * (count + 1), operand.dtype)
    round_name = f"{name}_round"
    rounds = -(-total // threads)
    number = dims.symbol(round_name, 0, rounds - 1) * threads + frame.thread if rounds > 1 else frame.thread
    one, k = number // along.size, number % along.size
    clamp, position = frame.inside(f"{name}_at", first + one, axis, count)
    place = Place({axis.name: position, along.name: k}, where.names)
    body: tuple[Stmt, ...] = (*clamp, *place.lets(lets), Store(memory, k * (count + 1) + one, place.expr(operand)))
    if total % threads:
        # Beyond the end nothing is read, so nothing is clamped twice.
        body = (If(less(number, total), body),)
    return [For(round_name, rounds, Kind.SERIAL, body)] if rounds > 1 else list(body)
