"""Uses of sort, top_k and search_sorted: by one key and by two, with values along, with ties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.ops.sorting import search_sorted, sort, top_k
from tests.ops.calls import Operand
from tests.ops.use import Use


def _sorted(*operands: np.ndarray) -> list[np.ndarray]:
    return [np.sort(operands[0])]


def _sorted_together(num_keys: int):
    def expected(*operands: np.ndarray) -> Sequence[np.ndarray]:
        positions = np.lexsort(operands[:num_keys][::-1], axis=-1)
        return [np.take_along_axis(x, positions, -1) for x in operands]

    return expected


def _last(k: int):
    def expected(x: np.ndarray) -> Sequence[np.ndarray]:
        positions = np.argsort(-x.astype(float), axis=-1, kind="stable")[..., :k]
        return np.take_along_axis(x, positions, -1), positions.astype(np.int32)

    return expected


def _searched(side: str):
    def expected(x: np.ndarray, values: np.ndarray) -> Sequence[np.ndarray]:
        below = np.less if side == "left" else np.less_equal
        return [below(x[..., None, :], values[..., None]).sum(-1).astype(np.int32)]

    return expected


def _in_order(x: Any, values: Any) -> Sequence[Any]:
    return rnp.cumsum(rnp.abs(x), -1), values


def _as_numbers(outputs: Sequence[Any], x: Any, values: Any) -> Sequence[Any]:
    """Positions as numbers, so that their derivative can be checked to be zero."""
    return [outputs[0].astype(x.dtype)]


_SEARCHES = [
    Use(
        search_sorted,
        (x, values),
        _searched(side),
        _as_numbers,
        {"side": side},
        _in_order,
        smooth=x.dtype == dtypes.f64,
    )
    for side in ("left", "right")
    for x, values in (
        (Operand((9,)), Operand((4,), high=9.0)),
        (Operand((2, 8)), Operand((2, 3), high=9.0)),
        (Operand((7,), dtypes.i32, 0, 1), Operand((5,), dtypes.i32, -1, 5)),
    )
]
_TIED = Operand((2, 7), dtypes.i32, -1, 1)
USES = (
    Use(sort, (Operand((7,)),), _sorted, params={"num_keys": 1}),
    Use(sort, (Operand((2, 8)),), _sorted, params={"num_keys": 1}),
    Use(sort, (_TIED,), _sorted, params={"num_keys": 1}),
    Use(sort, (Operand((3, 1)),), _sorted, params={"num_keys": 1}),
    Use(sort, (Operand((3, 5), dtypes.c128),), _sorted, params={"num_keys": 1}),
    Use(sort, (_TIED, Operand((2, 7))), _sorted_together(1), params={"num_keys": 1}),
    Use(sort, (_TIED, Operand((2, 7)), Operand((2, 7), dtypes.bool_)), _sorted_together(2), params={"num_keys": 2}),
    Use(top_k, (Operand((2, 7)),), _last(3), params={"k": 3}),
    Use(top_k, (_TIED,), _last(4), params={"k": 4}),
    Use(top_k, (Operand((5,)),), _last(5), params={"k": 5}),
    Use(top_k, (Operand((5,)),), _last(0), params={"k": 0}),
    *_SEARCHES,
)
