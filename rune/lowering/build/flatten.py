"""Flatten: every access of a kernel gets one row-major position in place of one index per axis.

Before   y0[i0, j0] = x0[j0, i0]          x0: f32[3,5], y0: f32[5,3]
After    y0[3*i0 + j0] = x0[5*j0 + i0]

Axes of one point disappear on the way. Invariant: the same elements are read and written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rune import dims
from rune.dims import Dim, Size, flat_index
from rune.lowering.kernel.expr import Expr, Load
from rune.lowering.kernel.nodes import Let
from rune.lowering.kernel.rewrite import map_expr, with_sizes
from rune.lowering.kernels import Axis, Fill, Kernel, Reduce, Scan, Statement, Stream, Sum, Write, inner_axes
from rune.records import replace

Shapes = Mapping[str, tuple[Size, ...]]


def shapes_of(kernel: Kernel) -> dict[str, tuple[Size, ...]]:
    """The shape of every buffer and scratch row."""
    shapes = {b.name: b.type.shape for b in (*kernel.inputs, *kernel.outputs)}
    for statement in kernel.body:
        # Rows of a point are indexed like arrays.
        if isinstance(statement, Fill):
            shapes[statement.name] = tuple(axis.size for axis in statement.axes)
        elif isinstance(statement, Stream):
            shapes |= {s.name: tuple(axis.size for axis in s.columns) for s in statement.sums if s.columns}
    return shapes


def flatten(kernel: Kernel) -> Kernel:
    """The kernel with flat accesses and without axes of size 1."""
    shapes = shapes_of(kernel)
    single = {a.name: 0 for a in kernel.domain if a.size == 1}
    domain = tuple(a for a in kernel.domain if a.size != 1)
    body = tuple(_statement(s, shapes, single) for s in kernel.body)
    return replace(kernel, domain=domain, body=body)


def _statement(statement: Statement, shapes: Shapes, single: Mapping[str, Size]) -> Statement:
    # The only position on an axis of one point is 0.
    zeros: dict[str, Size] = {a.name: 0 for a in _droppable(statement) if a.size == 1}
    zeros |= single

    def on_size(x: Size) -> Size:
        return dims.substitute(x, zeros) if zeros and isinstance(x, Dim) else x

    def on_expr(expr: Expr) -> Expr:
        if isinstance(expr, Load):
            flat = flat_index(expr.indices, shapes[expr.buffer])
            return Load(expr.buffer, (on_size(flat),), expr.dtype, expr.guard)
        return with_sizes(on_size, expr)

    result = map_statement(statement, lambda e: map_expr(on_expr, e))
    match result:
        case Write(output=output, indices=indices) | Scan(output=output, indices=indices):
            result = replace(result, indices=(on_size(flat_index(indices, shapes[output])),))
    if isinstance(result, Stream):
        return _without_single(result)
    if isinstance(result, Reduce | Fill | Write):
        return replace(result, axes=tuple(a for a in result.axes if a.size != 1))
    return result


def _without_single(stream: Stream) -> Stream:
    """The stream without axes of size 1, whether of its own or of its scores."""

    def longer(part: Let | Reduce) -> Let | Reduce:
        return part if isinstance(part, Let) else replace(part, axes=tuple(a for a in part.axes if a.size != 1))

    axes = tuple(a for a in stream.axes if a.size != 1)
    return replace(
        stream, axes=axes, scores=tuple(map(longer, stream.scores)), weights=tuple(map(longer, stream.weights))
    )


def _droppable(statement: Statement) -> tuple[Axis, ...]:
    # A scan is a loop along its axis, even over one point.
    return () if isinstance(statement, Scan) else inner_axes(statement)


def map_statement(statement: Statement, on_expr: Callable[[Expr], Expr]) -> Statement:
    """The statement with every expression changed, except the indices of writes."""
    if isinstance(statement, Let):
        return Let(statement.name, on_expr(statement.value))
    if isinstance(statement, Stream):
        return _map_stream(statement, on_expr)
    lets = tuple(Let(let.name, on_expr(let.value)) for let in statement.lets)
    value = on_expr(statement.value)
    if isinstance(statement, Write) and statement.condition is not None:
        condition = on_expr(statement.condition)
        return replace(statement, lets=lets, value=value, condition=condition)
    return replace(statement, lets=lets, value=value)


def _map_stream(stream: Stream, on_expr: Callable[[Expr], Expr]) -> Stream:
    def on_part(part: Let | Reduce) -> Let | Reduce:
        result = map_statement(part, on_expr)
        assert isinstance(result, Let | Reduce)
        return result

    def on_sum(total: Sum) -> Sum:
        lets = tuple(Let(let.name, on_expr(let.value)) for let in total.lets)
        factor = None if total.factor is None else on_expr(total.factor)
        return replace(total, weight=on_expr(total.weight), lets=lets, factor=factor)

    return replace(
        stream,
        scores=tuple(map(on_part, stream.scores)),
        peak=None if stream.peak is None else replace(stream.peak, value=on_expr(stream.peak.value)),
        weights=tuple(map(on_part, stream.weights)),
        sums=tuple(map(on_sum, stream.sums)),
    )


def map_sizes(statement: Statement, function: Callable[[Size], Size]) -> Statement:
    """The statement with every index expression changed, including the indices of writes."""
    result = map_statement(statement, lambda e: map_expr(lambda part: with_sizes(function, part), e))
    if isinstance(result, Write | Scan):
        return replace(result, indices=tuple(map(function, result.indices)))
    return result
