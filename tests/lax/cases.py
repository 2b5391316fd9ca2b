"""Calls of rune.lax and of the meanings of its functions (meanings.py): one lambda serves both."""

from __future__ import annotations

import dataclasses

import numpy as np

from rune.lax import GatherDimensionNumbers, ScatterDimensionNumbers
from tests.numpy import spelling
from tests.numpy.spelling import Case, b, big, case, f, i, n, named, pos, unit

ROWS = GatherDimensionNumbers((1,), (0,), (0,))
ELEMENTS = GatherDimensionNumbers((), (0, 1), (0, 1))
INTO_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
AT = np.array([[2], [0], [2]])
PAIRS = np.array([[[0, 1], [2, 2]], [[1, 1], [0, 0]]])


def z(*shape: int) -> spelling.Spec:
    return spelling.Spec("z", shape)


def scatters(name: str, smooth: bool = True) -> Case:
    return case(name, lambda xp, x, u: getattr(xp, name)(x, _np(xp, AT), u, INTO_ROWS), f(4, 3), f(3, 3), smooth=smooth)


def _np(xp: object, data: np.ndarray) -> np.ndarray:
    """Indices, which both take as NumPy arrays of their canonical dtype."""
    return data.astype(np.int32)


ELEMENTWISE = [
    *named("exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan abs neg square erf erfc", f(2, 3)),
    *named("logistic cbrt reciprocal", f(2, 3)),
    *named("sqrt rsqrt log log1p", pos(2, 3)),
    *named("asin acos atanh erf_inv", unit(2, 3)),
    *named("acosh", big(2, 3)),
    *named("floor ceil sign is_finite round", f(2, 3), smooth=False),
    *named("add sub mul div atan2", f(2, 3), f(2, 3)),
    *named("max min", f(2, 3), f()),
    *named("rem nextafter eq ne lt le gt ge", f(2, 3), f(2, 3), smooth=False),
    *named("pow", pos(2, 3), f(2, 3)),
    *named("bitwise_and bitwise_or bitwise_xor mulhi", i(2, 3), i(2, 3), smooth=False),
    *named("bitwise_not clz", i(2, 3), smooth=False),
    *named("population_count", n(2, 3), smooth=False),
    *named("shift_left shift_right_logical shift_right_arithmetic", i(2, 3), n(2, 3), smooth=False),
    *named("real imag conj", z(2, 3), smooth=False),
    *named("complex", f(2, 3), f(2, 3), smooth=False),
    *named("lgamma digamma", pos(2, 3)),
    *named("igamma igammac", pos(2, 3), pos(2, 3)),
    *named("igamma_grad_a random_gamma_grad", pos(2, 3), pos(2, 3), smooth=False, slack=20.0),
    *named("bessel_i0e bessel_i1e", f(2, 3)),
    case("polygamma", lambda xp, x: xp.polygamma(1.0, x), pos(2, 3)),
    case("zeta", lambda xp, x: xp.zeta(2.5, x), pos(2, 3)),
    case("betainc", lambda xp, a, b, x: xp.betainc(a, b, (x + 1) / 2), pos(3), pos(3), unit(3)),
    *[
        case("fft", lambda xp, x, kind=kind, n=n: xp.fft(x, kind, n), z(2, 3, 4), smooth=False)
        for kind, n in (("FFT", (4,)), ("IFFT", (3, 4)), ("IRFFT", (3, 6)), ("irfft", (7,)))
    ],
    case("fft", lambda xp, x: xp.fft(x, "RFFT", (3, 4)), f(2, 3, 4)),
    case("integer_pow", lambda xp, x: xp.integer_pow(x, -2), f(2, 3)),
    case("pow by an integer", lambda xp, x: xp.pow(x, 3), f(2, 3)),
    case("clamp", lambda xp, x: xp.clamp(-1.0, x, 1.5), f(4, 5)),
    case("select", lambda xp, c, x, y: xp.select(c, x, y), b(2, 3), f(2, 3), f(2, 3)),
    case("select_n", lambda xp, k, x, y, v: xp.select_n(k, x, y, v), n(5), f(5), f(5), f(5)),
    case("convert_element_type", lambda xp, x: xp.convert_element_type(x, "i32"), f(5), smooth=False),
    case("bitcast to bytes", lambda xp, x: xp.bitcast_convert_type(x, "uint8"), i(2, 3), smooth=False),
    case(
        "bitcast of bytes",
        lambda xp, x: xp.bitcast_convert_type(xp.bitcast_convert_type(x, "uint8"), "i32").reshape(2, 3),
        i(2, 3),
        smooth=False,
    ),
    case("reduce_precision", lambda xp, x: xp.reduce_precision(x, 8, 7), f(20), smooth=False),
]

MOVEMENT = [
    case("broadcast", lambda xp, x: xp.broadcast(x, (2, 1)), f(3)),
    case("broadcast_in_dim", lambda xp, x: xp.broadcast_in_dim(x, (2, 3, 4), (0, 2)), f(2, 1)),
    case("broadcast_to_rank", lambda xp, x: xp.broadcast_to_rank(x, 3), f(2)),
    case("broadcast_like", lambda xp, x, y: xp.broadcast_like(x, y), f(2, 1), f(2, 3)),
    case("tile", lambda xp, x: xp.tile(x, (2, 3)), f(2, 3)),
    case("reshape", lambda xp, x: xp.reshape(x, (3, 2)), f(2, 3)),
    case("reshape of axes in another order", lambda xp, x: xp.reshape(x, (6,), (1, 0)), f(2, 3)),
    case("collapse", lambda xp, x: xp.collapse(x, 0, 2), f(2, 3, 4)),
    case("squeeze", lambda xp, x: xp.squeeze(x, (1,)), f(2, 1, 3)),
    case("expand_dims", lambda xp, x: xp.expand_dims(x, (0, 2)), f(2, 3)),
    case("transpose", lambda xp, x: xp.transpose(x, (2, 0, 1)), f(2, 3, 4)),
    case("rev", lambda xp, x: xp.rev(x, (0, 2)), f(2, 3, 4)),
    case("slice", lambda xp, x: xp.slice(x, (1, 0), (5, 3), (2, 1)), f(5, 4)),
    case("slice_in_dim", lambda xp, x: xp.slice_in_dim(x, -3, None, 2, axis=1), f(2, 5)),
    case("index_in_dim", lambda xp, x: xp.index_in_dim(x, -1, 1), f(2, 5)),
    case("index_in_dim without it", lambda xp, x: xp.index_in_dim(x, 1, 0, False), f(2, 5)),
    case("pad", lambda xp, x: xp.pad(x, 0.5, [(1, -1, 1), (0, 2, 0)]), f(3, 2)),
    case("concatenate", lambda xp, x, y: xp.concatenate([x, y], 1), f(2, 3), f(2, 1)),
    case("split", lambda xp, x: list(xp.split(x, (1, 3), 1)), f(2, 4)),
    case("stack", lambda xp, x, y: xp.stack([x, y], 1), f(2, 3), f(2, 3)),
    case("unstack", lambda xp, x: list(xp.unstack(x, axis=1)), f(2, 3)),
    case("full", lambda xp: xp.full((2, 3), 1.5)),
    case("full_like", lambda xp, x: xp.full_like(x, 2.5), f(2, 3)),
    case("empty", lambda xp: xp.empty((2, 3), "f32")),
    case("iota", lambda xp: xp.iota("i32", 4)),
    case("broadcasted_iota", lambda xp: xp.broadcasted_iota("i32", (2, 3), 1)),
]

INDEXING = [
    case("dynamic_slice", lambda xp, x, s: xp.dynamic_slice(x, (s[0], s[1]), (2, 3)), f(4, 5), n(2)),
    case("dynamic_slice moved inside", lambda xp, x: xp.dynamic_slice(x, (7, -2), (2, 3)), f(4, 5)),
    case(
        "dynamic_update_slice", lambda xp, x, u, s: xp.dynamic_update_slice(x, u, (s[0], s[1])), f(4, 5), f(2, 3), n(2)
    ),
    case("dynamic_slice_in_dim", lambda xp, x, s: xp.dynamic_slice_in_dim(x, s, 2, 1), f(3, 5), n()),
    case("dynamic_index_in_dim", lambda xp, x, s: xp.dynamic_index_in_dim(x, s, 1, False), f(3, 5), n()),
    case(
        "dynamic_update_slice_in_dim",
        lambda xp, x, u, s: xp.dynamic_update_slice_in_dim(x, u, s, 1),
        f(3, 5),
        f(3, 2),
        n(),
    ),
    case(
        "dynamic_update_index_in_dim",
        lambda xp, x, u, s: xp.dynamic_update_index_in_dim(x, u, s, 1),
        f(3, 5),
        f(3),
        n(),
    ),
    case("gather rows", lambda xp, x: xp.gather(x, _np(xp, AT), ROWS, (1, 3)), f(4, 3)),
    case("gather out of bounds", lambda xp, x: xp.gather(x, _np(xp, AT) + 2, ROWS, (1, 3)), f(4, 3), smooth=False),
    case(
        "gather filled out of bounds",
        lambda xp, x: xp.gather(x, _np(xp, AT) + 2, ROWS, (1, 3), mode="fill"),
        f(4, 3),
        smooth=False,
    ),
    case("gather moved inside", lambda xp, x: xp.gather(x, _np(xp, AT) + 2, ROWS, (1, 3), mode="clip"), f(4, 3)),
    case("gather elements", lambda xp, x: xp.gather(x, _np(xp, PAIRS), ELEMENTS, (1, 1)), f(3, 3)),
    *(scatters(name) for name in ("scatter", "scatter_add", "scatter_sub", "scatter_mul")),
    *(scatters(name) for name in ("scatter_min", "scatter_max")),
    case(
        "scatter_apply",
        lambda xp, x: xp.scatter_apply(x, _np(xp, AT), lambda v: v * v, INTO_ROWS, update_shape=(3, 3)),
        f(4, 3),
        smooth=False,
    ),
    case("index_take", lambda xp, x, k, m: xp.index_take(x, (k, m), (0, 2)), f(3, 4, 3), n(5), n(5)),
    case(
        "index_take round and round",
        lambda xp, x, k, m: xp.index_take(x, (k, 3 - 2 * m), (0, 2)),
        f(2, 4, 2),
        n(5),
        n(5),
    ),
]

_CONTRACTED = (((2, 1), (0, 3)), ((0,), (1,)))
REDUCTIONS = [
    *[
        case(name, lambda xp, x, name=name: getattr(xp, name)(x, (0, 2)), f(2, 3, 4))
        for name in ("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
    ],
    *[
        case(name, lambda xp, x, name=name: getattr(xp, name)(x, (1,)), i(3, 5), smooth=False)
        for name in ("reduce_and", "reduce_or", "reduce_xor")
    ],
    case("reduce", lambda xp, x: xp.reduce(x, 1.0, lambda a, b: a * b, (0, 2)), f(2, 3, 5)),
    case("reduce by a known monoid", lambda xp, x: xp.reduce(x, 2.0, xp.add, (1,)), f(3, 5)),
    case("argmax", lambda xp, x: xp.argmax(x, 1, "i32"), f(3, 5), smooth=False),
    case("argmin", lambda xp, x: xp.argmin(x, 0, "i32"), f(3, 5), smooth=False),
    *[
        case(name, lambda xp, x, name=name: getattr(xp, name)(x, 1, reverse=True), f(3, 5))
        for name in ("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
    ],
    case("dot", lambda xp, x, y: xp.dot(x, y), f(3, 4), f(4)),
    case("dot_general", lambda xp, x, y: xp.dot_general(x, y, _CONTRACTED), f(2, 3, 4), f(4, 2, 5, 3)),
    case("batch_matmul", lambda xp, x, y: xp.batch_matmul(x, y), f(2, 3, 4), f(2, 4, 5)),
    case("ragged_dot", lambda xp, x, y, k: xp.ragged_dot(x, y, k), f(7, 3), f(3, 3, 2), n(3)),
]

CASES = [dataclasses.replace(c, module="lax") for c in (*ELEMENTWISE, *MOVEMENT, *INDEXING, *REDUCTIONS)]
