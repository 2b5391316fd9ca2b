"""Calls of convolutions and window reductions that rune.lax and jax.lax share, by name.

make_conv_vectors.py stores what jax 0.10.2 answers; test_convolutions.py compares.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Shapes = tuple[tuple[int, ...], ...]
Call = tuple[Callable[..., Any], Shapes]  # call(lax, numpy of the library, *f32 arrays)


def draw(name: str, shapes: Shapes) -> list[np.ndarray]:
    """The operands of a call."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return [rng.uniform(-2, 2, shape).astype(np.float32) for shape in shapes]


NHWC = ("NHWC", "HWIO", "NHWC")
X, W = (2, 7, 6, 4), (3, 2, 4, 5)


def _conv(*args: Any, **options: Any) -> Callable[..., Any]:
    return lambda lax, np_, x, w: lax.conv_general_dilated(x, w, *args, **options)


def _up(*args: Any, **options: Any) -> Callable[..., Any]:
    return lambda lax, np_, x, w: lax.conv_transpose(x, w, *args, **options)


CONVOLUTIONS: dict[str, Call] = {
    "same": (_conv((1, 1), "SAME", dimension_numbers=NHWC), (X, W)),
    "same lower": (_conv((2, 2), "SAME_LOWER", dimension_numbers=NHWC), (X, W)),
    "same strided": (_conv((2, 3), "SAME", dimension_numbers=NHWC), (X, W)),
    "same dilated": (_conv((1, 1), "SAME", rhs_dilation=(2, 3), dimension_numbers=NHWC), (X, W)),
    "valid": (_conv((1, 2), "VALID", dimension_numbers=NHWC), (X, W)),
    "odd layout": (
        _conv((1, 1), ((1, 0), (2, 1)), (2, 1), (1, 2), ("HNCW", "WOHI", "CWNH")),
        ((5, 2, 3, 4), (2, 4, 2, 3)),
    ),
    "plain": (lambda lax, np_, x, w: lax.conv(x, w, (1, 2), "SAME"), ((2, 3, 6, 5), (4, 3, 2, 3))),
    "general padding": (
        lambda lax, np_, x, w: lax.conv_with_general_padding(x, w, (2, 1), ((1, 2), (-1, 1)), (1, 2), (2, 1)),
        ((2, 3, 6, 5), (4, 3, 2, 3)),
    ),
    "feature groups": (_conv((1,), "VALID", feature_group_count=2), ((2, 6, 7), (4, 3, 3))),
    "batch groups": (_conv((1,), "VALID", batch_group_count=2), ((4, 3, 7), (6, 3, 3))),
    **{
        f"transposed {padding} {strides}": (_up(strides, padding), (X, W))
        for padding in ("SAME", "VALID")
        for strides in ((1, 1), (2, 3), (4, 1))
    },
    "transposed pairs": (_up((2, 2), ((1, 0), (2, 1))), (X, W)),
    "transposed dilated": (_up((2, 1), "SAME", (1, 2)), (X, W)),
    "transposed kernel": (_up((2, 2), "SAME", transpose_kernel=True), (X, (3, 2, 5, 4))),
    "patches": (
        lambda lax, np_, x: lax.conv_general_dilated_patches(x, (2, 3), (1, 2), "SAME", rhs_dilation=(2, 1)),
        ((2, 3, 5, 6),),
    ),
    "patches, channels last": (
        lambda lax, np_, x: lax.conv_general_dilated_patches(x, (2, 3), (1, 1), "VALID", dimension_numbers=NHWC),
        ((2, 5, 6, 3),),
    ),
    "local": (
        lambda lax, np_, x, w: lax.conv_general_dilated_local(x, w, (1, 1), "VALID", (2, 2)),
        ((2, 3, 4, 5), (6, 12, 3, 4)),
    ),
}


def _window(init: float, name: str, *args: Any, **options: Any) -> Callable[..., Any]:
    def call(lax: Any, np_: Any, x: Any) -> Any:
        return lax.reduce_window(x, np.float32(init), getattr(lax, name), *args, **options)

    return call


WINDOWS: dict[str, Call] = {
    "sum": (_window(0, "add", (1, 3, 2), (1, 2, 1), "SAME"), ((2, 7, 5),)),
    "product": (_window(1, "mul", (1, 3, 2), (1, 2, 1), ((0, 0), (1, 2), (0, 1))), ((2, 7, 5),)),
    "max": (_window(-np.inf, "max", (2, 3), (1, 2), "SAME_LOWER"), ((7, 5),)),
    "min, dilated": (
        _window(np.inf, "min", (2, 3), None, "VALID", base_dilation=(2, 1), window_dilation=(1, 2)),
        ((7, 6),),
    ),
    "sum, same, dilated": (
        _window(0, "add", (2, 3), (3, 2), "SAME", base_dilation=(1, 2), window_dilation=(2, 1)),
        ((7, 6),),
    ),
    "max, same lower, dilated": (
        _window(-np.inf, "max", (2, 2), (2, 2), "SAME_LOWER", base_dilation=(3, 2)),
        ((5, 4),),
    ),
    "sum from two": (_window(2, "add", (3,), (2,), "SAME"), ((7,),)),
    "max from one half": (_window(0.5, "max", (3,), (2,), ((1, 1),)), ((7,),)),
    "folded, same, dilated": (
        lambda lax, np_, x: lax.reduce_window(
            x, np.float32(0), lambda a, b: a + b + 0 * a * b, (2, 3), (3, 2), "SAME", base_dilation=(1, 2)
        ),
        ((4, 4),),
    ),
    "of pairs": (
        lambda lax, np_, x, y: lax.reduce_window(
            (x, y),
            (np.float32(-np.inf), np.float32(0)),
            lambda a, b: (np_.maximum(a[0], b[0]), np_.where(a[0] >= b[0], a[1], b[1])),
            (3, 2),
            (2, 1),
            "VALID",
        ),
        ((7, 5), (7, 5)),
    ),
}
CALLS = CONVOLUTIONS | WINDOWS
