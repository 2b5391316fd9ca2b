"""The meanings of functions of rune.lax, under the same names, in NumPy and SciPy."""

from __future__ import annotations

import functools
import itertools
import operator
from typing import Any

import numpy as np
import scipy.special as special

from rune.lax import GatherDimensionNumbers, ScatterDimensionNumbers

_SAME = """sqrt cbrt exp exp2 expm1 log log1p sin cos tan sinh cosh tanh floor ceil abs sign square
reciprocal add multiply max min bitwise_not bitwise_and bitwise_or bitwise_xor real imag conj
transpose argmax argmin nextafter broadcast_shapes squeeze expand_dims tile stack unstack"""
globals().update({n: getattr(np, n) for n in _SAME.split() if hasattr(np, n)})
max, min, neg, sub, mul = np.maximum, np.minimum, np.negative, np.subtract, np.multiply
asin, acos, atan, atan2 = np.arcsin, np.arccos, np.arctan, np.arctan2
asinh, acosh, atanh = np.arcsinh, np.arccosh, np.arctanh
eq, ne, lt, le, gt, ge = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
is_finite, pow, rem, div = np.isfinite, np.power, np.fmod, np.divide
lgamma, digamma, zeta = special.gammaln, special.digamma, special.zeta
igamma, igammac, betainc = special.gammainc, special.gammaincc, special.betainc
bessel_i0e, bessel_i1e = special.i0e, special.i1e
erf, erfc, erf_inv, logistic = special.erf, special.erfc, special.erfinv, special.expit
population_count, shift_left = np.bitwise_count, np.left_shift
shift_right_arithmetic = np.right_shift


def polygamma(m: Any, x: Any) -> Any:
    return special.polygamma(np.rint(m).astype(int), x)


def fft(x: Any, kind: str, lengths: tuple[int, ...]) -> Any:
    transform = getattr(np.fft, f"{kind.lower()}n")
    return transform(x, lengths, axes=tuple(range(-len(lengths), 0)))


def igamma_grad_a(a: Any, x: Any) -> Any:
    step = 1e-5
    return (special.gammainc(a + step, x) - special.gammainc(a - step, x)) / (2 * step)


def random_gamma_grad(a: Any, x: Any) -> Any:
    density = np.exp((a - 1) * np.log(x) - x - special.gammaln(a))
    return -igamma_grad_a(a, x) / density


def rsqrt(x: Any) -> Any:
    return 1 / np.sqrt(x)


def integer_pow(x: Any, y: int) -> Any:
    return x ** float(y)


def clz(x: Any) -> Any:
    return np.array([32 - int(v).bit_length() for v in x.view(np.uint32).flat]).reshape(x.shape)


def mulhi(x: Any, y: Any) -> Any:
    wide = x.astype(object) * y.astype(object)
    return np.array([v >> 32 for v in wide.flat], np.int64).reshape(x.shape)


def shift_right_logical(x: Any, y: Any) -> Any:
    return np.right_shift(x.view(np.uint32), y.view(np.uint32)).view(np.int32)


def round(x: Any) -> Any:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


def clamp(low: Any, x: Any, high: Any) -> Any:
    return np.clip(x, low, high)


def select(pred: Any, a: Any, b: Any) -> Any:
    return np.where(pred, a, b)


def select_n(which: Any, *cases: Any) -> Any:
    return np.choose(which, cases)


def complex(x: Any, y: Any) -> Any:
    return x + 1j * y


def convert_element_type(x: Any, dtype: str) -> Any:
    return x.astype({"i32": np.int32, "f32": np.float32}[dtype])


def bitcast_convert_type(x: Any, dtype: str) -> Any:
    kind = {"uint8": np.uint8, "i32": np.int32, "u64": np.uint64}[dtype]
    bits = x.astype(np.int32).view(kind) if x.ndim == 1 else np.ascontiguousarray(x).view(kind)
    return bits.reshape(*x.shape, -1) if kind == np.uint8 else bits


def reduce_precision(x: Any, exponent_bits: int, mantissa_bits: int) -> Any:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 2.0 ** (mantissa_bits + 1)), exponent - mantissa_bits - 1)


# --- movement ---------------------------------------------------------------------------------


def broadcast(x: Any, sizes: Any) -> Any:
    return np.broadcast_to(x, (*sizes, *x.shape))


def broadcast_in_dim(x: Any, shape: Any, axes: Any) -> Any:
    full = [1] * len(shape)
    for axis, size in zip(axes, x.shape, strict=True):
        full[axis] = size
    return np.broadcast_to(x.reshape(full), shape)


def broadcast_to_rank(x: Any, rank: int) -> Any:
    return x.reshape((1,) * (rank - x.ndim) + x.shape)


def broadcast_like(x: Any, like: Any) -> Any:
    return np.broadcast_to(x, like.shape)


def reshape(x: Any, sizes: Any, dimensions: Any = None) -> Any:
    return np.transpose(x, dimensions or range(x.ndim)).reshape(sizes)


def collapse(x: Any, start: int, stop: int | None = None) -> Any:
    stop = x.ndim if stop is None else stop
    return x.reshape(*x.shape[:start], -1, *x.shape[stop:])


def rev(x: Any, axes: Any) -> Any:
    return np.flip(x, axes)


_python_slice = slice


def slice(x: Any, start: Any, limit: Any, strides: Any = None) -> Any:
    steps = strides or [1] * x.ndim
    return x[tuple(map(_python_slice, start, limit, steps))]


def slice_in_dim(x: Any, start: Any, limit: Any, stride: int = 1, axis: int = 0) -> Any:
    return x[(_python_slice(None),) * (axis % x.ndim) + (_python_slice(start, limit, stride),)]


def index_in_dim(x: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    element = np.take(x, index, axis)
    return np.expand_dims(element, axis) if keepdims else element


def pad(x: Any, value: Any, config: Any) -> Any:
    for axis, (low, high, interior) in enumerate(config):
        rows = list(np.moveaxis(x, axis, 0))
        blank = np.full_like(np.take(x, 0, axis), value)
        spread = [r for row in rows for r in (row, *[blank] * interior)]
        spread = spread[: len(spread) - interior]
        spread = [blank] * low + spread if low >= 0 else spread[-low:]
        spread = spread + [blank] * high if high >= 0 else spread[:high]
        x = np.moveaxis(np.array(spread), 0, axis)
    return x


def concatenate(xs: Any, dimension: int) -> Any:
    return np.concatenate(xs, dimension)


def split(x: Any, sizes: Any, axis: int = 0) -> Any:
    return np.split(x, list(itertools.accumulate(sizes))[:-1], axis)


def full(shape: Any, value: Any, dtype: Any = None) -> Any:
    return np.full(shape, value)


full_like = np.full_like


def iota(dtype: Any, size: int) -> Any:
    return np.arange(size)


def broadcasted_iota(dtype: Any, shape: Any, axis: int) -> Any:
    return np.indices(shape)[axis]


def empty(shape: Any, dtype: Any) -> Any:
    return np.zeros(shape)


# --- indexing ---------------------------------------------------------------------------------


def _clamped(start: Any, size: int, window: int) -> int:
    at = int(start) + (size if int(start) < 0 else 0)
    return int(np.clip(at, 0, size - window))


def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any:
    at = [_clamped(s, d, n) for s, d, n in zip(starts, x.shape, sizes, strict=True)]
    return x[tuple(_python_slice(a, a + n) for a, n in zip(at, sizes, strict=True))]


def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any:
    out = x.copy()
    dynamic_slice(out, starts, update.shape)[...] = update
    return out


def dynamic_slice_in_dim(x: Any, start: Any, size: int, axis: int = 0) -> Any:
    at = _clamped(start, x.shape[axis], size)
    return np.take(x, range(at, at + size), axis)


def dynamic_index_in_dim(x: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    element = dynamic_slice_in_dim(x, index, 1, axis)
    return element if keepdims else np.squeeze(element, axis)


def dynamic_update_slice_in_dim(x: Any, update: Any, start: Any, axis: int) -> Any:
    out = np.moveaxis(x.copy(), axis, 0)
    slices = np.moveaxis(update, axis, 0)
    at = _clamped(start, out.shape[0], slices.shape[0])
    out[at : at + slices.shape[0]] = slices
    return np.moveaxis(out, 0, axis)


def dynamic_update_index_in_dim(x: Any, update: Any, index: Any, axis: int) -> Any:
    return dynamic_update_slice_in_dim(x, np.expand_dims(update, axis), index, axis)


def _windows(x: Any, indices: Any, start_map: Any, sizes: Any, clip: bool) -> Any:
    """For each index vector, the window's slices, or None where it leaves the operand."""
    for where in np.ndindex(indices.shape[:-1]):
        start = [0] * x.ndim
        for axis, component in zip(start_map, indices[where], strict=True):
            start[axis] = int(component)
        inside = all(0 <= s <= d - n for s, d, n in zip(start, x.shape, sizes, strict=True))
        if clip:
            start = [int(np.clip(s, 0, d - n)) for s, d, n in zip(start, x.shape, sizes)]
        slices = tuple(_python_slice(s, s + n) for s, n in zip(start, sizes, strict=True))
        yield where, slices if inside or clip else None


def gather(x: Any, indices: Any, numbers: GatherDimensionNumbers, sizes: Any, mode: Any = None):
    shape = [n for a, n in enumerate(sizes) if a not in numbers.collapsed_slice_dims]
    out = np.full((*indices.shape[:-1], *shape), np.nan)
    for where, at in _windows(x, indices, numbers.start_index_map, sizes, mode != "fill"):
        if at is not None:
            out[where] = x[at].reshape(shape)
    last = range(indices.ndim - 1, out.ndim)
    return np.moveaxis(out, tuple(last), numbers.offset_dims)


def _scatter(combine: Any) -> Any:
    def function(x: Any, indices: Any, updates: Any, numbers: ScatterDimensionNumbers) -> Any:
        out = x.copy()
        axes = [a for a in range(x.ndim) if a not in numbers.inserted_window_dims]
        sizes = [1] * x.ndim
        for axis, at in zip(axes, numbers.update_window_dims, strict=True):
            sizes[axis] = updates.shape[at]
        last = tuple(range(indices.ndim - 1, updates.ndim))
        slices = np.moveaxis(updates, numbers.update_window_dims, last)
        to = numbers.scatter_dims_to_operand_dims
        for where, at in _windows(x, indices, to, sizes, False):
            if at is not None:
                out[at] = combine(out[at], slices[where].reshape(out[at].shape))
        return out

    return function


scatter = _scatter(lambda old, new: new)
scatter_add, scatter_sub = _scatter(np.add), _scatter(np.subtract)
scatter_mul = _scatter(np.multiply)
scatter_min, scatter_max = _scatter(np.minimum), _scatter(np.maximum)


def scatter_apply(x: Any, indices: Any, func: Any, numbers: Any, update_shape: Any) -> Any:
    return _scatter(lambda old, new: func(old))(x, indices, np.zeros(update_shape), numbers)


def index_take(x: Any, idxs: Any, axes: Any) -> Any:
    leading = np.moveaxis(x, axes, range(len(axes)))
    return leading[tuple(k % d for k, d in zip(idxs, leading.shape))]


# --- reductions and products ------------------------------------------------------------------


def _reduction(ufunc: Any) -> Any:
    return lambda x, axes: ufunc.reduce(x, axis=tuple(axes))


reduce_sum, reduce_prod = _reduction(np.add), _reduction(np.multiply)
reduce_max, reduce_min = _reduction(np.maximum), _reduction(np.minimum)
reduce_and, reduce_or = _reduction(np.bitwise_and), _reduction(np.bitwise_or)
reduce_xor = _reduction(np.bitwise_xor)


def reduce(x: Any, init: Any, computation: Any, axes: Any) -> Any:
    leading = np.moveaxis(x, axes, range(len(axes)))
    rows = leading.reshape(-1, *leading.shape[len(axes) :])
    return functools.reduce(computation, rows, np.full(rows.shape[1:], init))


def argmax(x: Any, axis: int, dtype: Any) -> Any:
    return np.argmax(x, axis)


def argmin(x: Any, axis: int, dtype: Any) -> Any:
    return np.argmin(x, axis)


def _cumulative(ufunc: Any) -> Any:
    def function(x: Any, axis: int = 0, reverse: bool = False) -> Any:
        operand = np.flip(x, axis) if reverse else x
        prefixes = ufunc.accumulate(operand, axis)
        return np.flip(prefixes, axis) if reverse else prefixes

    return function


cumsum, cumprod = _cumulative(np.add), _cumulative(np.multiply)
cummax, cummin = _cumulative(np.maximum), _cumulative(np.minimum)
cumlogsumexp = _cumulative(np.logaddexp)


def dot(x: Any, y: Any) -> Any:
    return np.dot(x, y)


def dot_general(x: Any, y: Any, numbers: Any) -> Any:
    (cx, cy), (bx, by) = numbers
    letters = iter("abcdefghijk")
    x_letters, y_letters = ([next(letters) for _ in range(x.ndim)], [next(letters) for _ in range(y.ndim)])
    for i, j in zip((*cx, *bx), (*cy, *by), strict=True):
        y_letters[j] = x_letters[i]
    batch = [x_letters[i] for i in bx]
    free = [c for c in x_letters if c not in y_letters] + [c for c in y_letters if c not in x_letters]
    return np.einsum(f"{''.join(x_letters)},{''.join(y_letters)}->{''.join(batch + free)}", x, y)


batch_matmul = np.matmul


def ragged_dot(x: Any, y: Any, sizes: Any) -> Any:
    out, at = np.zeros((x.shape[0], y.shape[2])), 0
    for matrix, size in zip(y, sizes, strict=True):
        out[at : at + size] = x[at : at + size] @ matrix
        at += size
    return out


add, reciprocal = operator.add, np.reciprocal
