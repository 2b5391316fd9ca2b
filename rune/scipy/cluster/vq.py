"""Vector quantisation: the nearest code of each observation.

Source: Gersho & Gray 1992, Vector Quantization and Signal Compression.
"""

from __future__ import annotations

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ShapeError
from rune.listing import names as _names
from rune.ops import conventions as c
from rune.scipy.special.arguments import reals, rounded, widened
from rune.typing import ArrayLike, Nested

__all__ = ["vq", "whiten"]


def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """(the number of the nearest code, the distance to it) for each observation.

    Shapes: obs [M, N], code_book [K, N] (or both of rank 1, for N = 1) -> [M], [M].
    Types:  i32, and the common floating dtype. Ties take the first code.
    Errors: ShapeError if the shapes do not match, and for no codes.
    Source: Lloyd 1982, IEEE Transactions on Information Theory 28(2).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.cluster.vq import vq
    >>> vq(rnp.array([0.9, 0.2]), rnp.array([0.0, 1.0]))[0]
    Array([1, 0], i32[2], cpu:0)
    """
    points, codes = (reals("vq", v)[0] for v in c.same_dtype("vq", obs, code_book))
    if points.ndim == codes.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    if points.ndim != 2 or codes.ndim != 2 or points.shape[1] != codes.shape[1]:
        raise ShapeError(f"vq: cannot compare observations {points.shape} with codes {codes.shape}")
    if codes.shape[0] == 0:
        raise ShapeError(f"vq: cannot find the nearest of no codes (codes of shape {codes.shape})")
    (points, dtype), (codes, _) = widened(points), widened(codes)
    square = rnp.sum(rnp.square(points[:, None, :] - codes[None, :, :]), -1)
    nearest = rnp.argmin(square, axis=1)
    least = rnp.take_along_axis(square, nearest[:, None], 1)[:, 0]
    return nearest.astype(rnp.int32), rounded(rnp.sqrt(least), dtype)


def whiten(obs: Nested, check_finite: bool = True) -> Array:
    """Observations [M, N] over the standard deviation of each column; constant columns are
    unchanged.

    Shapes: any, unchanged. Types: bools and integers become floats.
    Errors: DtypeError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.cluster.vq import whiten
    >>> whiten(rnp.array([[2.0], [4.0]]))
    Array([[2.],
           [4.]], f32[2,1], cpu:0)
    """
    points = rnp.asarray(obs)
    if not rnp.issubdtype(points.dtype, rnp.complexfloating):
        (points,) = reals("whiten", points)
    spread = rnp.std(points, 0)
    return points / rnp.where(spread == 0, 1.0, spread)


__dir__ = _names(globals())
