"""Every primitive's lowering agrees with its reference: expansions, index maps, positions.

Index maps are evaluated element by element, for all samples and exhaustively for small shapes;
then compositions of two movements, where the map of the first is applied to the map of the
second; last, that simple maps come out simple.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from rune import dims, dtypes, ops
from rune.core.interpreter import type_of
from rune.core.lower import Position, Reduction, Scatter, View
from rune.core.primitive import Primitive
from tests.ops.calls import Operand
from tests.ops.samples import each_primitive, samples
from tests.support.close import close, same
from tests.support.oracle import reference
from tests.support.views import evaluate_position, evaluate_scatter, evaluate_view, fetch, source_of, symbolic_position

VIEWS = [p for p in ops.PRIMITIVES if isinstance(p.lower, View)]


@each_primitive
def test_an_expansion_equals_the_reference(primitive: Primitive):
    for sample in samples(primitive):
        if primitive.expand is None:
            return
        arrays = sample.draw()

        expansion = primitive.expand(*arrays, **sample.params)

        expected = reference(sample.primitive, *arrays, **sample.params)
        why = f"{sample}: products of powers round once each"
        close(expected, expansion, ulps=64 if expected.dtype in dtypes.INEXACT else 0, why=why)


@pytest.mark.parametrize("primitive", VIEWS, ids=str)
def test_a_view_rule_reads_what_the_reference_reads(primitive: Primitive):
    for sample in samples(primitive):
        arrays = sample.draw()

        expected = reference(primitive, *arrays, **sample.params)
        same(expected, evaluate_view(primitive, arrays, sample.params))


@each_primitive
def test_a_position_rule_counts_as_the_reference_counts(primitive: Primitive):
    for sample in samples(primitive) if isinstance(primitive.lower, Position) else ():
        same(reference(primitive, **sample.params), evaluate_position(primitive, sample.params))


@each_primitive
def test_a_scatter_rule_writes_what_the_reference_writes(primitive: Primitive):
    for sample in samples(primitive) if isinstance(primitive.lower, Scatter) else ():
        arrays = sample.draw()

        result = evaluate_scatter(primitive, arrays, sample.params)

        expected = reference(primitive, *arrays, **sample.params)
        ulps = 64 if result.dtype in dtypes.COMPLEX else 2
        close(expected, result, ulps=ulps, why="the same order; complex products cancel")


@pytest.mark.parametrize("primitive", [ops.reduce_and, ops.reduce_or], ids=str)
def test_reducing_no_elements_gives_the_identity_of_the_operation(primitive: Primitive):
    assert isinstance(primitive.lower, Reduction)
    expected = {"and": -1, "or": 0}[primitive.lower.combine]

    for dtype in (dtypes.i32, dtypes.u8, dtypes.bool_):
        identity = reference(primitive, np.zeros((0, 2), dtype), axes=(0,))
        assert (identity == np.array(expected).astype(dtype)).all()


# --- exhaustive, small ------------------------------------------------------------------------

SIZES = (0, 1, 2, 3)
MATRICES = list(itertools.product(SIZES, repeat=2))


def filled(*shape: int) -> np.ndarray:
    """Every element different."""
    return np.arange(1, np.prod(shape, dtype=int) + 1, dtype=np.float64).reshape(shape)


def agrees(primitive: Primitive, *arrays: np.ndarray, **params: Any) -> None:
    """The view rule and the reference give the same."""
    expected = reference(primitive, *arrays, **params)
    same(expected, evaluate_view(primitive, arrays, params))


@pytest.mark.parametrize("shape", MATRICES, ids=str)
def test_every_slice_of_a_small_matrix_reads_the_right_elements(shape: tuple[int, int]):
    def cuts(size: int) -> list[tuple[int, int, int]]:
        return [(a, b, s) for a in range(size + 1) for b in range(a, size + 1) for s in (1, 2)]

    for bounds in itertools.product(*map(cuts, shape)):
        start, limit, stride = zip(*bounds)
        agrees(ops.slice_, filled(*shape), start=start, limit=limit, stride=stride)


@pytest.mark.parametrize("shape", MATRICES, ids=str)
def test_every_small_padding_negative_and_interior_reads_the_right_elements(shape: tuple[int, int]):
    amounts = [(lo, hi, gap) for lo in (-2, 0, 1) for hi in (-1, 0, 2) for gap in (0, 2)]
    value = np.array(-7.0)
    for rows, columns in itertools.product(amounts, repeat=2):
        low, high, interior = zip(rows, columns)
        spread = [d + max(d - 1, 0) * g for d, g in zip(shape, interior)]
        if min(lo + n + hi for lo, n, hi in zip(low, spread, high)) < 0:
            continue
        agrees(ops.pad, filled(*shape), value, low=low, high=high, interior=interior)


@pytest.mark.parametrize("total", [1, 4, 6, 8, 12, 0])
def test_every_reshape_of_small_arrays_reads_the_right_elements(total: int):
    ranks = [1, 2, 3]
    sizes = range(total + 1) if total else (0, 1, 2)
    shapes = [s for r in ranks for s in itertools.product(sizes, repeat=r) if np.prod(s) == total]
    for old, new in itertools.product(shapes, repeat=2):
        agrees(ops.reshape, filled(*old), shape=new)


@pytest.mark.parametrize("axis", [0, 1])
def test_every_concatenation_of_two_small_matrices_reads_the_right_elements(axis: int):
    for a, b, other in itertools.product(SIZES, repeat=3):
        shapes = [(a, other), (b, other)] if axis == 0 else [(other, a), (other, b)]
        agrees(ops.concatenate, filled(*shapes[0]), -filled(*shapes[1]), axis=axis)


# --- two movements ----------------------------------------------------------------------------


def movements(shape: tuple[int, ...]) -> list[tuple[Primitive, dict[str, Any]]]:
    """Some of every kind, for arrays of this shape."""
    rank, total = len(shape), int(np.prod(shape))
    flat = [(total,), (1, total), (total, 1)] + ([(2, total // 2)] if total % 2 == 0 else [])
    ones = (1,) * rank
    cut = tuple(min(1, d) for d in shape)
    return [
        *((ops.reshape, {"shape": s}) for s in flat),
        (ops.transpose, {"permutation": tuple(range(rank))[::-1]}),
        (ops.reverse, {"axes": (rank - 1,)}),
        (ops.slice_, {"start": cut, "limit": shape, "stride": ones}),
        (ops.slice_, {"start": (0,) * rank, "limit": shape, "stride": (2,) * rank}),
        (ops.pad, {"low": ones, "high": (2,) * rank, "interior": (0,) * rank}),
        (ops.pad, {"low": (-1,) * rank, "high": ones, "interior": ones}),
        (ops.broadcast, {"shape": (2, *shape), "axes": tuple(range(1, rank + 1))}),
        (ops.concatenate, {"axis": rank - 1}),
    ]


def operands(primitive: Primitive, x: Any) -> tuple[Any, ...]:
    """The operands of a movement of x."""
    if primitive is ops.pad:
        return x, np.array(-7.0)
    return (x, x) if primitive is ops.concatenate else (x,)


@pytest.mark.parametrize("shape", [(2, 3), (4,), (2, 1, 3)], ids=str)
def test_the_map_of_two_movements_is_the_composition_of_their_maps(shape: tuple[int, ...]):
    x = filled(*shape)
    for first, p in movements(shape):
        between = reference(first, *operands(first, x), **p)
        for second, q in movements(between.shape):
            last = reference(second, *operands(second, between), **q)

            assert np.array_equal(last, through_both(x, between, (first, p), (second, q), last))


def through_both(x: np.ndarray, between: np.ndarray, first: Any, second: Any, last: np.ndarray) -> np.ndarray:
    """Every element of the last array, fetched from x by substituting one map into the other."""
    position = symbolic_position(last.shape)
    arrays = operands(second[0], between)
    outer = source_of(second[0], position, *map(type_of, arrays), **second[1])
    view_elements = np.empty_like(last)
    for at in np.ndindex(*last.shape):
        view_elements[at] = _through(outer, at, x, first)
    return view_elements


def _through(outer: Any, at: tuple[int, ...], x: np.ndarray, first: Any) -> Any:
    env = {f"i{axis}": p for axis, p in enumerate(at)}
    for piece in outer.pieces:
        if all(_holds(b, env) for b in piece.where):
            sources = operands(first[0], x)
            inner = source_of(first[0], piece.indices, *map(type_of, sources), **first[1])
            return fetch(inner, at, sources)
    return -7.0


def _holds(bounds: Any, env: dict[str, int]) -> bool:
    low, index, high = (dims.evaluate(v, env) for v in (bounds.low, bounds.index, bounds.high))
    return low <= index < high


# --- simple maps come out simple --------------------------------------------------------------


def reshape_map(old: tuple[int, ...], new: tuple[int, ...]) -> list[str]:
    """The index expressions of a reshape."""
    (piece,) = source_of(ops.reshape, symbolic_position(new), Operand(old).type, shape=new).pieces
    return list(map(str, piece.indices))


def test_a_reshape_that_splits_an_axis_needs_no_division():
    assert reshape_map((6, 4), (2, 3, 4)) == ["3*i0 + i1", "i2"]


def test_a_reshape_that_merges_axes_divides_only_by_the_inner_size():
    assert reshape_map((6, 4), (24,)) == ["i0//4", "i0 % 4"]


def test_a_reshape_to_the_same_shape_is_the_identity():
    assert reshape_map((6, 4), (6, 4)) == ["i0", "i1"]


def test_an_unmoved_axis_is_not_divided_even_if_bounds_do_not_limit_the_others():
    a, b, c = dims.symbol("a", 0, 3), dims.symbol("b", -1, 5), dims.symbol("c", 0, 5)

    (piece,) = source_of(ops.reshape, (a, b, c), Operand((4, 30)).type, shape=(4, 5, 6)).pieces

    assert piece.indices[0] is a


def test_a_symbolic_batch_axis_passes_through_a_reshape_untouched():
    n = dims.symbol("n", 1, 64)
    x = Operand((2, 6)).type.with_shape((n, 6))
    position = (dims.symbol("i0", 0, n - 1), dims.symbol("i1", 0, 1), dims.symbol("i2", 0, 2))

    (piece,) = source_of(ops.reshape, position, x, shape=(n, 2, 3)).pieces

    assert list(map(str, piece.indices)) == ["i0", "3*i1 + i2"]
