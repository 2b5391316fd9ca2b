"""Lowering rules evaluated element by element: what a View, Position or Scatter means.

The index map of every output element is evaluated with `rune.dims`, its data-dependent integers
are read from the operands, and the element is fetched. Reading outside an operand is an error, so
this checks bounds as well as values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune.core.interpreter import type_of
from rune.core.lower import Bounds, Element, Piece, Position, Scatter, Source, View
from rune.core.primitive import Primitive
from rune.dims import Size, evaluate, symbol

Arrays = Sequence[np.ndarray]
COMBINE = {None: lambda old, new: new, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def symbolic_position(shape: Sequence[int]) -> tuple[Size, ...]:
    """One symbol per axis, as loop variables are."""
    return tuple(symbol(f"i{axis}", 0, max(size - 1, 0)) for axis, size in enumerate(shape))


def source_of(primitive: Primitive, position: Sequence[Size], *types: Any, **params: Any) -> Source:
    """The source that a View rule gives for one position."""
    assert isinstance(primitive.lower, View)
    return primitive.lower.rule(position, *types, **params)


def evaluate_view(primitive: Primitive, arrays: Arrays, params: Mapping[str, Any]) -> np.ndarray:
    """The result of a movement primitive by its View rule."""
    types = [type_of(a) for a in arrays]
    out = primitive.type_rule(*types, **params)
    source = source_of(primitive, symbolic_position(out.shape), *types, **params)
    elements = np.empty(out.shape, out.dtype)
    for at in np.ndindex(*out.shape):
        elements[at] = fetch(source, at, arrays)
    return elements


def evaluate_position(primitive: Primitive, params: Mapping[str, Any]) -> np.ndarray:
    """The result of a primitive made from indices alone."""
    assert isinstance(primitive.lower, Position)
    out = primitive.type_rule(**params)
    size = primitive.lower.rule(symbolic_position(out.shape), **params)
    elements = np.empty(out.shape, out.dtype)
    for at in np.ndindex(*out.shape):
        elements[at] = np.asarray(evaluate(size, _named(at))).astype(out.dtype)
    return elements


def evaluate_scatter(primitive: Primitive, arrays: Arrays, params: Mapping[str, Any]) -> Any:
    """The result of a scatter, update after update in row-major order."""
    lowering = primitive.lower
    assert isinstance(lowering, Scatter)
    updates, out = arrays[lowering.updates], np.array(arrays[0])
    types = [type_of(a) for a in arrays]
    piece = lowering.rule(symbolic_position(updates.shape), *types, **params)
    for at in np.ndindex(*updates.shape):
        env = environment(piece, _named(at), arrays)
        if all(holds(b, env) for b in piece.where):
            target = tuple(evaluate(i, env) for i in piece.indices)
            out[target] = COMBINE[lowering.combine](out[target], updates[at])
    return out


def fetch(source: Source, at: tuple[int, ...], arrays: Arrays) -> Any:
    """The element that a source gives at one position."""
    for piece in source.pieces:
        env = environment(piece, _named(at), arrays)
        if all(holds(b, env) for b in piece.where):
            index = tuple(evaluate(i, env) for i in piece.indices)
            shape = arrays[piece.operand].shape
            assert all(0 <= i < d for i, d in zip(index, shape, strict=True)), (index, shape)
            return arrays[piece.operand][index]
    assert source.fill is not None, "no piece holds and there is no fill"
    return arrays[source.fill][()]


def environment(piece: Piece, env: dict[str, int], arrays: Arrays) -> dict[str, int]:
    """Values of all symbols of a piece, those read from operands included."""
    for element in piece.elements:
        env[element.name] = _read(element, env, arrays)
    return env


def _read(element: Element, env: Mapping[str, int], arrays: Arrays) -> int:
    position = int(arrays[element.operand][tuple(evaluate(i, env) for i in element.indices)])
    if element.clamp is None:
        return position
    low, high = (evaluate(b, env) for b in element.clamp)
    return min(max(position, low), high)


def holds(bounds: Bounds, env: Mapping[str, int]) -> bool:
    """Whether low <= index < high."""
    index = evaluate(bounds.index, env)
    return evaluate(bounds.low, env) <= index < evaluate(bounds.high, env)


def _named(at: tuple[int, ...]) -> dict[str, int]:
    return {f"i{axis}": position for axis, position in enumerate(at)}
