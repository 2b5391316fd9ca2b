"""Calls that both NumPy and rune.numpy accept: one lambda serves both, and is the test."""

from __future__ import annotations

from typing import Any

from tests.numpy.complex_cases import COMPLEX
from tests.numpy.fourier_cases import SAMPLED
from tests.numpy.function_cases import CALLED
from tests.numpy.keyword_cases import KEYWORDS
from tests.numpy.linalg_cases import SOLVED
from tests.numpy.order_cases import ORDER
from tests.numpy.position_cases import POSITIONS
from tests.numpy.spectral_cases import SPECTRAL
from tests.numpy.spelling import Case, b, big, case, f, i, n, named, pos, unit
from tests.numpy.statistic_cases import STATISTICS


def _lifted(xp: Any, x: Any) -> Any:
    """NumPy has given up vectors of the plane; JAX and rune have not."""
    return xp.concatenate([x, 0 * x[..., :1]], -1) if xp.__name__ == "numpy" else x


def _cross_in_the_plane(xp: Any, x: Any, y: Any) -> Any:
    product = xp.cross(_lifted(xp, x), _lifted(xp, y))
    return product[..., 2] if xp.__name__ == "numpy" else product


ELEMENTWISE = [
    *named("positive negative abs absolute fabs square sin cos tan arctan sinh cosh tanh", f(2, 3)),
    *named("arcsinh exp exp2 expm1 cbrt deg2rad rad2deg radians degrees sinc reciprocal", f(2, 3)),
    *named("sqrt log log2 log10 log1p", pos(2, 3)),
    *named("arcsin arccos arctanh asin acos atanh", unit(2, 3)),
    *named("arccosh acosh", big(2, 3)),
    *named("sign floor ceil trunc fix rint round around", f(2, 3), smooth=False),
    *named("isnan isinf isfinite isposinf isneginf signbit logical_not", f(2, 3), smooth=False),
    *named("add subtract multiply divide true_divide maximum minimum fmax fmin", f(2, 3), f(3)),
    *named("hypot logaddexp logaddexp2 arctan2 copysign", f(2, 3), f(2, 1)),
    *named("power float_power", pos(2, 3), f(3)),
    *named("floor_divide remainder mod fmod heaviside nextafter", f(2, 3), pos(3), smooth=False),
    *named("equal not_equal less less_equal greater greater_equal", n(2, 3), n(3), smooth=False),
    *named("logical_and logical_or logical_xor", n(2, 3), n(3), smooth=False),
    *named("bitwise_and bitwise_or bitwise_xor", i(2, 3), i(3), smooth=False),
    *named("left_shift right_shift", i(2, 3), n(3), smooth=False),
    *named("invert bitwise_not bitwise_count", i(2, 3), smooth=False),
    *named("modf", f(2, 3), smooth=False),
    *named("divmod", f(2, 3), pos(3), smooth=False),
    case("power by 3", lambda xp, x: xp.power(x, 3), f(2, 3)),
    case("power by -2", lambda xp, x: xp.power(x, -2), f(2, 3)),
    case("integer power", lambda xp, x, y: xp.power(x, y), i(2, 3), n(3), smooth=False),
    case("integer floor_divide", lambda xp, x: xp.floor_divide(x, 3), i(20), smooth=False),
    case("integer remainder", lambda xp, x: xp.remainder(x, -3), i(20), smooth=False),
    case("round integers to tens", lambda xp, x: xp.round(x * 5, -1), i(4, 7)),
    case("round integers to hundreds", lambda xp, x: xp.around(x * 50, -2), i(4, 7)),
    case("round to 1", lambda xp, x: xp.round(x, 1), f(2, 3), smooth=False),
    case("clip", lambda xp, x: xp.clip(x, -1.0, 1.5), f(4, 5)),
    case("clip below", lambda xp, x, y: xp.clip(x, y, None), f(4, 5), f(5)),
    case("nan_to_num", lambda xp, x: xp.nan_to_num(x / x[0] * xp.inf, posinf=2.0), pos(3), smooth=False),
    case("where", lambda xp, c, x, y: xp.where(c, x, y), b(2, 3), f(3), f(2, 1)),
    case("select", lambda xp, x: xp.select([x > 1, x < -1], [x * x, -x], 3.0), f(4, 5)),
    case("isclose", lambda xp, x: xp.isclose(x, x + 1e-7), f(2, 3), smooth=False),
    case("allclose", lambda xp, x, y: xp.allclose(x, y), f(2, 3), f(3), smooth=False),
    case("array_equal", lambda xp, x: xp.array_equal(x, x), f(2, 3), smooth=False),
    case("array_equiv", lambda xp, x: xp.array_equiv(x, x[0]), f(2, 3), smooth=False),
]

_FOLDS = "sum prod max min amax amin ptp mean var std nansum nanprod nanmax nanmin nanmean nanstd"
REDUCTIONS = [
    *named(f"{_FOLDS} nanvar", f(3, 4)),
    *named("any all count_nonzero argmax argmin nanargmax nanargmin", i(3, 4), smooth=False),
    *named("cumsum cumprod nancumsum nancumprod ediff1d diff average", f(3, 4)),
    *[
        case(f"{name} over an axis", lambda xp, x, name=name: getattr(xp, name)(x, axis=1), f(2, 3, 4))
        for name in (*_FOLDS.split(), "cumsum", "cumprod", "diff", "average")
    ],
    *[
        case(
            f"{name} over two axes, kept",
            lambda xp, x, name=name: getattr(xp, name)(x, axis=(0, -1), keepdims=True),
            f(2, 3, 4),
        )
        for name in _FOLDS.split()
    ],
    *[
        case(
            f"{name} over an axis, kept",
            lambda xp, x, name=name: getattr(xp, name)(x, axis=-2, keepdims=True),
            i(2, 3, 4),
            smooth=False,
        )
        for name in ("argmax", "argmin", "any", "all", "count_nonzero")
    ],
    case("sum of no axes", lambda xp, x: xp.sum(x, axis=()), f(2, 3)),
    case("sum where", lambda xp, x, w: xp.sum(x, axis=0, where=w, initial=2.0), f(3, 4), b(4)),
    case("prod where", lambda xp, x, w: xp.prod(x, axis=0, where=w), f(3, 4), b(3, 4)),
    case("max where", lambda xp, x, w: xp.max(x, axis=0, where=w, initial=-9.0), f(3, 4), b(3, 4)),
    case("min initial", lambda xp, x: xp.min(x, initial=-9.0), f(3, 4)),
    case("mean where", lambda xp, x: xp.mean(x, axis=1, where=x > -9), f(3, 4)),
    case("var where", lambda xp, x: xp.var(x, axis=1, where=x > -9, ddof=1), f(3, 4)),
    case("std ddof", lambda xp, x: xp.std(x, axis=1, ddof=1), f(3, 4)),
    case("any where", lambda xp, x, w: xp.any(x, where=w), b(3, 4), b(4), smooth=False),
    case("all where", lambda xp, x, w: xp.all(x, axis=0, where=w), b(3, 4), b(3, 4), smooth=False),
    case("average weighted", lambda xp, x, w: xp.average(x, 1, w), f(3, 4), pos(4)),
    case("average returned", lambda xp, x, w: xp.average(x, 0, w, returned=True), f(3, 4), pos(3, 4)),
    case("diff twice", lambda xp, x: xp.diff(x, 2, axis=0), f(5, 2)),
    case("diff extended, of no order", lambda xp, x: xp.diff(x, 0, prepend=0.0, append=x[:, :2]), f(3, 4)),
    case("diff extended", lambda xp, x: xp.diff(x, prepend=0.0, append=x[:, :2]), f(3, 4)),
    case("cumulative_sum", lambda xp, x: xp.cumulative_sum(x, axis=1, include_initial=True), f(3, 4)),
    case("cumulative_prod", lambda xp, x: xp.cumulative_prod(x, axis=0), f(3, 4)),
    case("nan left out", lambda xp, x: xp.nanmean(xp.where(x > 2.5, xp.nan, x), axis=1), f(3, 9)),
    case("nanmax initial", lambda xp, x: xp.nanmax(xp.where(x > 2.5, xp.nan, x), axis=1, initial=-1.0), f(3, 9)),
    case(
        "nanmin where",
        lambda xp, x, w: xp.nanmin(xp.where(x > 2.5, xp.nan, x), axis=0, where=w, initial=9.0),
        f(3, 4),
        b(4),
    ),
    case("bool sum", lambda xp, x: xp.sum(x, axis=0), b(3, 4), smooth=False),
    case("bool diff", lambda xp, x: xp.diff(x), b(3, 4), smooth=False),
]

SHAPES = [
    *named("ravel transpose flip flipud fliplr matrix_transpose rot90 atleast_3d squeeze", f(2, 3)),
    *named("atleast_1d atleast_2d", f(2)),
    *named("atleast_1d atleast_2d atleast_3d", f()),
    case("atleast of several", lambda xp, x, y: xp.atleast_2d(x, y), f(), f(2)),
    case("reshape", lambda xp, x: xp.reshape(x, (4, -1)), f(2, 6)),
    case("reshape by columns", lambda xp, x: xp.reshape(x, (4, 3), order="F"), f(2, 6)),
    case("ravel by columns", lambda xp, x: xp.ravel(x, order="F"), f(2, 3)),
    case("transpose", lambda xp, x: xp.transpose(x, (2, 0, 1)), f(2, 3, 4)),
    case("permute_dims", lambda xp, x: xp.permute_dims(x, (1, 0, 2)), f(2, 3, 4)),
    case("swapaxes", lambda xp, x: xp.swapaxes(x, 0, -1), f(2, 3, 4)),
    case("moveaxis", lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)), f(2, 3, 4)),
    case("rollaxis", lambda xp, x: xp.rollaxis(x, 2, 1), f(2, 3, 4)),
    case("rollaxis forward", lambda xp, x: xp.rollaxis(x, 0, 3), f(2, 3, 4)),
    case("expand_dims", lambda xp, x: xp.expand_dims(x, (0, -1)), f(2, 3)),
    case("squeeze", lambda xp, x: xp.squeeze(x, 1), f(2, 1, 3)),
    case("broadcast_to", lambda xp, x: xp.broadcast_to(x, (4, 2, 3)), f(2, 1)),
    case("broadcast_arrays", lambda xp, x, y: list(xp.broadcast_arrays(x, y)), f(2, 1), f(3)),
    case("flip axes", lambda xp, x: xp.flip(x, (0, 2)), f(2, 3, 4)),
    case("rot90 twice", lambda xp, x: xp.rot90(x, 2, (1, 2)), f(2, 3, 4)),
    case("rot90 back", lambda xp, x: xp.rot90(x, -1, (2, 0)), f(2, 3, 4)),
    case("roll", lambda xp, x: xp.roll(x, 4), f(2, 3)),
    case("roll axes", lambda xp, x: xp.roll(x, (1, -2), axis=(0, 1)), f(2, 3)),
    case("roll one shift", lambda xp, x: xp.roll(x, 1, axis=(0, 1)), f(2, 3)),
    case("concatenate", lambda xp, x, y: xp.concatenate([x, y], axis=-1), f(2, 3), f(2, 1)),
    case("concatenate flat", lambda xp, x, y: xp.concatenate([x, y], axis=None), f(2, 3), f(2)),
    case("concat", lambda xp, x, y: xp.concat((x, y)), f(2), f(3)),
    case("stack", lambda xp, x, y: xp.stack([x, y], axis=-1), f(2, 3), f(2, 3)),
    case("unstack", lambda xp, x: list(xp.unstack(x, axis=1)), f(2, 3)),
    *named("append", f(2), f(3)),
    case("vstack", lambda xp, x, y: xp.vstack([x, y]), f(3), f(2, 3)),
    case("hstack", lambda xp, x, y: xp.hstack([x, y]), f(2, 1), f(2, 3)),
    case("hstack of vectors", lambda xp, x, y: xp.hstack([x, y]), f(2), f(3)),
    case("dstack", lambda xp, x, y: xp.dstack([x, y]), f(3), f(3)),
    case("column_stack", lambda xp, x, y: xp.column_stack([x, y]), f(3), f(3, 2)),
    case("split", lambda xp, x: xp.split(x, 3, axis=1), f(2, 6)),
    case("split at", lambda xp, x: xp.split(x, [1, 4], axis=1), f(2, 6)),
    case("array_split", lambda xp, x: xp.array_split(x, 4), f(7)),
    case("vsplit", lambda xp, x: xp.vsplit(x, 2), f(4, 2)),
    case("hsplit", lambda xp, x: xp.hsplit(x, 2), f(3, 4)),
    case("dsplit", lambda xp, x: xp.dsplit(x, 2), f(1, 2, 4)),
    case("repeat", lambda xp, x: xp.repeat(x, 2), f(2, 3)),
    case("repeat axis", lambda xp, x: xp.repeat(x, 3, axis=1), f(2, 3)),
    case("repeat each", lambda xp, x: xp.repeat(x, [2, 0, 1], axis=1), f(2, 3)),
    case("repeat each of many", lambda xp, x: xp.repeat(x, [n % 4 for n in range(17)], axis=0), f(17, 2)),
    case("tile", lambda xp, x: xp.tile(x, 2), f(2, 3)),
    case("tile axes", lambda xp, x: xp.tile(x, (2, 1, 3)), f(2, 3)),
    *[
        case(f"pad {mode}", lambda xp, x, mode=mode: xp.pad(x, ((1, 2), (0, 7)), mode=mode), f(3, 4))
        for mode in (
            "constant",
            "edge",
            "reflect",
            "symmetric",
            "wrap",
            "maximum",
            "mean",
            "median",
            "minimum",
            "linear_ramp",
        )
    ],
    *[
        case(
            f"pad {mode} odd",
            lambda xp, x, mode=mode: xp.pad(x, ((1, 2), (0, 9)), mode=mode, reflect_type="odd"),
            f(3, 4),
        )
        for mode in ("reflect", "symmetric")
    ],
    case(
        "pad with statistics of the ends",
        lambda xp, x: xp.pad(x, ((1, 2), (3, 0)), "mean", stat_length=((2, 1), (3, 9))),
        f(3, 4),
    ),
    case("pad with a ramp", lambda xp, x: xp.pad(x, 3, "linear_ramp", end_values=(2, -1)), f(2, 3)),
    case("pad integers with a ramp", lambda xp, x: xp.pad(x, (7, 3), "linear_ramp", end_values=(-3, 9)), i(5)),
    case("pad integers with a mean", lambda xp, x: xp.pad(x, 1, "mean"), i(5, 2)),
    case("pad with a number", lambda xp, x: xp.pad(x, 1, constant_values=5.0), f(2, 3)),
    case("pad with numbers", lambda xp, x: xp.pad(x, (1, 2), constant_values=((1.0, 2.0), (3.0, 4.0))), f(2, 3)),
]

INDEXING = [
    case("take", lambda xp, x, i: xp.take(x, i), f(3, 4), n(2, 2)),
    case("take axis", lambda xp, x, i: xp.take(x, i, axis=1), f(2, 3, 4), n(2, 2)),
    case("take wrap", lambda xp, x, i: xp.take(x, i, axis=0, mode="wrap"), f(3, 4), i(5)),
    case("take clip", lambda xp, x, i: xp.take(x, i, axis=0, mode="clip"), f(3, 4), i(5)),
    case("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, 1), f(2, 3, 4), n(2, 5, 4)),
    case("take_along_axis broadcast", lambda xp, x, i: xp.take_along_axis(x, i, 0), f(3, 4), n(2, 1)),
    *named("diag diagonal trace diagflat tril triu", f(3, 4)),
    case("diag of a vector", lambda xp, x: xp.diag(x, -2), f(3)),
    case("diag above", lambda xp, x: xp.diag(x, 1), f(3)),
    case("diagonal below", lambda xp, x: xp.diagonal(x, -1, 2, 0), f(3, 2, 4)),
    case("trace above", lambda xp, x: xp.trace(x, 1), f(3, 4)),
    case("tril", lambda xp, x: xp.tril(x, -1), f(2, 3, 4)),
    case("triu", lambda xp, x: xp.triu(x, 2), f(2, 3, 4)),
    case("integer rows", lambda xp, x, i: x[i], f(3, 4), n(5)),
    case("two integer arrays", lambda xp, x, i, j: x[i, :, j], f(3, 2, 4), n(5), n(5)),
    case("separated indices", lambda xp, x, i: x[0, :, i], f(3, 2, 4), n(5)),
    case("negative step", lambda xp, x: x[::-2, None, 1:], f(5, 3)),
    case("nonzero", lambda xp, x: list(xp.nonzero(x)), n(3, 4), smooth=False, static=True),
    case("flatnonzero", lambda xp, x: xp.flatnonzero(x), n(3, 4), smooth=False, static=True),
    case("argwhere", lambda xp, x: xp.argwhere(x), n(3, 4), smooth=False, static=True),
    case("boolean mask", lambda xp, x: x[x > 0], f(3, 4), smooth=False, static=True),
]

PRODUCTS = [
    *named("dot matmul inner outer vdot", f(3), f(3)),
    *named("dot matmul", f(2, 3), f(3, 4)),
    *named("dot matmul", f(2, 3), f(3)),
    *named("dot matmul", f(3), f(3, 2)),
    *named("dot", f(2, 3), f(4, 3, 5)),
    *named("dot inner outer kron", f(), f(2, 3)),
    *named("matmul", f(4, 2, 3), f(3, 5)),
    *named("matmul", f(2, 1, 2, 3), f(4, 3, 5)),
    *named("matmul", f(3), f(4, 3, 5)),
    *named("inner", f(2, 3), f(4, 3)),
    *named("kron", f(2, 3), f(3, 1, 2)),
    *named("cross", f(4, 3), f(3)),
    case("cross with the plane", lambda xp, x, y: xp.cross(x, _lifted(xp, y)), f(4, 3), f(2), plain=True),
    case("cross in the plane", _cross_in_the_plane, f(4, 2), f(2), plain=True),
    case("cross of columns", lambda xp, x, y: xp.cross(x, y, axis=0), f(3, 4), f(3, 4)),
    case("vecdot", lambda xp, x, y: xp.vecdot(x, y), f(4, 3), f(3)),
    case("matvec", lambda xp, x, y: xp.matvec(x, y), f(4, 2, 3), f(3)),
    case("vecmat", lambda xp, x, y: xp.vecmat(x, y), f(4, 2), f(2, 3)),
    case("tensordot", lambda xp, x, y: xp.tensordot(x, y), f(2, 3, 4), f(3, 4, 5)),
    case("tensordot outer", lambda xp, x, y: xp.tensordot(x, y, 0), f(2, 3), f(4)),
    case("tensordot axes", lambda xp, x, y: xp.tensordot(x, y, ([0, 2], [1, 0])), f(2, 3, 4), f(4, 2)),
    case("tensordot axis", lambda xp, x, y: xp.tensordot(x, y, (1, 0)), f(2, 3), f(3, 4)),
    case("bool matmul", lambda xp, x, y: xp.matmul(x, y), b(3, 4), b(4, 2), smooth=False),
    case("integer matmul", lambda xp, x, y: xp.matmul(x, y), i(3, 4), i(4, 2), smooth=False),
]

_EINSUM = {
    "ij->ji": (f(2, 3),),
    "ii->i": (f(3, 3),),
    "ii": (f(3, 3),),
    "ij->": (f(2, 3),),
    "iji->j": (f(2, 3, 2),),
    "iii->i": (f(3, 3, 3),),
    "...ij->...ji": (f(4, 2, 3),),
    "...->...": (f(2, 3),),
    "ij": (f(2, 3),),
    "ba": (f(2, 3),),
    "i,i": (f(3), f(3)),
    "i,j->ij": (f(2), f(3)),
    "i,i->i": (f(3), f(3)),
    "ij,jk->ik": (f(2, 3), f(3, 4)),
    "ij,jk": (f(2, 3), f(3, 4)),
    "ij,kj->ki": (f(2, 3), f(4, 3)),
    "bij,bjk->bik": (f(5, 2, 3), f(5, 3, 4)),
    "bij,bkj->bki": (f(5, 2, 3), f(5, 4, 3)),
    "...ij,...jk->...ik": (f(5, 1, 2, 3), f(4, 3, 4)),
    "...ij,j": (f(5, 2, 3), f(3)),
    "ij,ij->i": (f(2, 3), f(2, 3)),
    "ij,k->": (f(2, 3), f(4)),
    "ij,j->ij": (f(2, 3), f(3)),
    "ii,ij->j": (f(3, 3), f(3, 2)),
    "i...,i...->...": (f(2, 3), f(2, 3)),
    "ij,jk,kl->il": (f(2, 3), f(3, 4), f(4, 2)),
    "i,i,i->i": (f(3), f(3), f(3)),
    "ij,ik,il->jkl": (f(2, 3), f(2, 2), f(2, 4)),
    "a,b,c": (f(2), f(3), f(2)),
    "bqhd,bkhd->bhqk": (f(2, 3, 2, 4), f(2, 5, 2, 4)),
    " i j , j -> i ": (f(2, 3), f(3)),
}
EINSUM = [
    *[
        Case(f"einsum {text}", lambda xp, *xs, text=text: xp.einsum(text, *xs), specs)
        for text, specs in _EINSUM.items()
    ],
    case("einsum greedy", lambda xp, *xs: xp.einsum("ij,jk,kl->il", *xs, optimize="greedy"), f(5, 2), f(2, 6), f(6, 2)),
    case("einsum lists", lambda xp, x, y: xp.einsum(x, [0, 1], y, [1, 2], [2, 0]), f(2, 3), f(3, 4)),
    case("einsum lists with an ellipsis", lambda xp, x, y: xp.einsum(x, [..., 0, 1], y, [..., 1]), f(5, 2, 3), f(5, 3)),
    case(
        "einsum along a path",
        lambda xp, *xs: xp.einsum(
            "ij,jk,kl->il", *xs, optimize=xp.einsum_path("ij,jk,kl->il", *xs, optimize="greedy")[0]
        ),
        f(5, 2),
        f(2, 6),
        f(6, 2),
    ),
    case(
        "einsum of five", lambda xp, *xs: xp.einsum("ij,jk,kl,lm,m->i", *xs), f(2, 3), f(3, 4), f(4, 2), f(2, 5), f(5)
    ),
    case(
        "einsum left to right",
        lambda xp, *xs: xp.einsum("ij,jk,kl->il", *xs, optimize=False),
        f(5, 2),
        f(2, 6),
        f(6, 2),
    ),
    case(
        "einsum_path",
        lambda xp, *xs: len(xp.einsum_path("ij,jk,kl->il", *xs)[0]),
        f(5, 2),
        f(2, 6),
        f(6, 2),
        smooth=False,
        static=True,
    ),
    case("einsum of bools", lambda xp, x, y: xp.einsum("ij,jk", x, y), b(3, 4), b(4, 2), smooth=False),
]

CREATION = [
    case("zeros", lambda xp: xp.zeros((2, 3), "float32")),
    case("ones", lambda xp: xp.ones(3, "int32")),
    case("full", lambda xp: xp.full((2, 0, 3), 7, "int32")),
    case("full of an array", lambda xp, x: xp.full((2, 3), x), f(3)),
    *named("zeros_like ones_like", f(2, 3)),
    case("full_like", lambda xp, x: xp.full_like(x, 2, shape=(3,)), i(2), smooth=False),
    case("arange", lambda xp: xp.arange(2, 9, 3, dtype="int32")),
    case("arange down", lambda xp: xp.arange(9, 2, -2, dtype="int32")),
    case("arange of floats", lambda xp: xp.arange(0.5, 2.0, 0.25, dtype="float32")),
    case("arange empty", lambda xp: xp.arange(3, 3, dtype="int32")),
    case("arange by tenths", lambda xp: xp.arange(0, 1, 0.1, dtype="float32")),
    case("linspace", lambda xp, x, y: xp.linspace(x, y, 5), f(), f()),
    case("linspace of arrays", lambda xp, x, y: xp.linspace(x, y, 4, axis=-1), f(2, 1), f(3)),
    case("linspace open", lambda xp, x: xp.linspace(x, 5.0, 4, endpoint=False, retstep=True), f()),
    case("linspace of one", lambda xp, x: xp.linspace(x, 5.0, 1), f()),
    case("linspace of none", lambda xp, x: xp.linspace(x, 5.0, 0), f()),
    case("linspace of integers", lambda xp: xp.linspace(0, 10, 4, dtype="int32")),
    case("logspace", lambda xp, x: xp.logspace(x, 2.0, 4, base=3.0), f()),
    case("eye", lambda xp: xp.eye(3, 4, 1, dtype="float32")),
    case("eye below", lambda xp: xp.eye(3, k=-2, dtype="float32")),
    case("identity", lambda xp: xp.identity(3, "float32")),
    case("tri", lambda xp: xp.tri(3, 4, -1, dtype="float32")),
    case("meshgrid", lambda xp, x, y, z: list(xp.meshgrid(x, y, z)), f(2), f(3), f(4)),
    case("meshgrid ij", lambda xp, x, y: list(xp.meshgrid(x, y, indexing="ij")), f(2), f(3)),
    case("meshgrid sparse", lambda xp, x, y: list(xp.meshgrid(x, y, sparse=True)), f(2), f(3)),
    case("tril_indices", lambda xp: list(xp.tril_indices(3, -1, 4)), smooth=False),
    case("triu_indices", lambda xp: list(xp.triu_indices(3, 1)), smooth=False),
]

CASES = [
    *SOLVED,
    *SPECTRAL,
    *ELEMENTWISE,
    *REDUCTIONS,
    *SHAPES,
    *INDEXING,
    *PRODUCTS,
    *EINSUM,
    *CREATION,
    *COMPLEX,
    *POSITIONS,
    *CALLED,
    *STATISTICS,
    *SAMPLED,
    *ORDER,
    *KEYWORDS,
]
