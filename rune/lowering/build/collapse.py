"""Collapse: merge neighbouring axes that every access walks as one.

Before   for i in 512, j in 64: y[64*i + j] = x[64*i + j]
After    for i in 32768: y[i] = x[i]

Two axes can be merged if, in every index expression, the coefficient of the outer one is that of
the inner one times the size of the inner one. Invariant: the same points in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from rune import dims
from rune.dims import Dim, Size
from rune.lowering.build.flatten import map_sizes
from rune.lowering.kernel.rewrite import expr_sizes, walk_expr
from rune.lowering.kernels import Axis, Fill, Kernel, Reduce, Scan, Statement, Write, expressions, inner_axes
from rune.records import replace

Rename = Callable[[Size], Size]


def sizes_in(statements: Iterable[Statement]) -> Iterator[Size]:
    """Every index expression of some statements."""
    for statement in statements:
        if isinstance(statement, Write | Scan):
            yield from statement.indices
        for axis in inner_axes(statement):
            yield axis.size
        for expr in expressions(statement):
            for part in walk_expr(expr):
                yield from expr_sizes(part)


def collapse_domain(kernel: Kernel) -> Kernel:
    """The kernel with as few domain axes as its accesses allow."""
    domain, body = _collapse(kernel.domain, kernel.body)
    return replace(kernel, domain=domain, body=body)


def collapse_inner(statements: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """Statements that share their inner axes, with as few of them as accesses allow."""
    # The statements share one loop nest, so the accesses of all of them decide.
    first = statements[0]
    assert isinstance(first, Reduce | Fill | Write)
    axes, new_statements = _collapse(first.axes, statements)
    if axes == first.axes:
        return statements
    return tuple(replace(s, axes=axes) for s in new_statements if isinstance(s, Reduce | Fill | Write))


def _collapse(
    axes: tuple[Axis, ...], statements: tuple[Statement, ...]
) -> tuple[tuple[Axis, ...], tuple[Statement, ...]]:
    k = 0
    # A set, because many loads share an index expression.
    accesses = {x for x in sizes_in(statements) if isinstance(x, Dim)} if len(axes) > 1 else set()
    while k + 1 < len(axes):
        rename = _merge(axes[k], axes[k + 1], accesses)
        if rename is None:
            k += 1
            continue
        statements = tuple(map_sizes(s, rename) for s in statements)
        accesses = {y for x in accesses if isinstance(y := rename(x), Dim)}
        axes = (*axes[:k], _joined(axes[k], axes[k + 1]), *axes[k + 2 :])
        # The joined axis may now fit the one before it.
        k = max(0, k - 1)
    return axes, statements


def _joined(outer: Axis, inner: Axis) -> Axis:
    return Axis(outer.name, outer.size * inner.size)


def _merge(outer: Axis, inner: Axis, accesses: Iterable[Dim]) -> Rename | None:
    """How index expressions change when two axes are merged; None if they cannot be."""
    a, b, both = outer.symbol, inner.symbol, _joined(outer, inner).symbol
    new: dict[Dim, Size] = {}
    for x in accesses:
        names = {s.name for s in dims.symbols(x)}
        if not names & {outer.name, inner.name}:
            continue
        first, second = dims.coefficient(x, outer.name), dims.coefficient(x, inner.name)
        if first is None or second is None or first != second * inner.size:
            return None
        # first·a + second·b = second·(size·a + b), and size·a + b is the merged symbol.
        new[x] = x - first * a - second * b + second * both
    return lambda x: new.get(x, x) if isinstance(x, Dim) else x
