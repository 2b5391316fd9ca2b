"""pad: constants around an array, a continuation of its elements, or a statistic of them.

Axes are padded one after another, so that corners continue what earlier axes have added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from rune import dtypes, ops
from rune.array import Array, as_array
from rune.core.interpreter import type_of
from rune.dims import Dim, Size, UndecidedComparison, at_most
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, value
from rune.numpy.averages import mean
from rune.numpy.creation import asarray
from rune.numpy.functional import apply_along_axis
from rune.numpy.joining import repeated
from rune.numpy.logic import where
from rune.numpy.order_statistics import median
from rune.numpy.reductions import max as amax
from rune.numpy.reductions import min as amin
from rune.numpy.sequences import linspace
from rune.ops import conventions as c
from rune.ops import promote
from rune.ops.movement import part
from rune.records import dataclass
from rune.transforms.compile.tiers import tiered
from rune.typing import ArrayLike, Nested

_STATISTICS = {"maximum": amax, "mean": mean, "median": median, "minimum": amin}
_OPTIONS: Mapping[str, frozenset[str]] = {
    "constant": frozenset({"constant_values"}),
    "edge": frozenset(),
    "empty": frozenset(),
    "linear_ramp": frozenset({"end_values"}),
    "reflect": frozenset({"reflect_type"}),
    "symmetric": frozenset({"reflect_type"}),
    "wrap": frozenset(),
    **dict.fromkeys(_STATISTICS, frozenset({"stat_length"})),
}


@dataclass(frozen=True, slots=True)
class _Place:
    """One axis, how much to add at its ends, and the option's value for either end."""

    axis: int
    low: Size
    high: Size
    options: tuple[Any, Any]


@tiered
def pad(array: ArrayLike, pad_width: object, mode: str | Callable[..., Array] = "constant", **kwargs: Any) -> Array:
    """`array` with elements added at both ends of each axis.

    Shapes:    N along an axis becomes before + N + after.
    Types:     that of `array`.
    pad_width: an integer, (before, after), one such pair per axis, or a dict from axes to these.
    mode:      constant (constant_values=0), edge, empty (zeros, here), linear_ramp (end_values=0),
               maximum, mean, median, minimum (stat_length=None: how many elements from the end),
               reflect, symmetric (reflect_type="even" or "odd": the latter keeps on rising), wrap;
               or a function that takes each vector along an axis, with zeros at its ends, (before,
               after), the axis and the options, and returns the padded vector.
    Errors:    ArgumentError for an unknown mode or option, or a negative width.

    >>> import rune.numpy as rnp
    >>> rnp.pad(rnp.arange(3), (1, 2)), rnp.pad(rnp.arange(3), 2, mode="reflect")
    (Array([0, 0, 1, 2, 0, 0], i32[6], cpu:0), Array([2, 1, 0, 1, 2, 1, 0], i32[7], cpu:0))
    >>> rnp.pad(rnp.arange(3), 2, mode="maximum")
    Array([2, 2, 0, 1, 2, 2, 2], i32[7], cpu:0)
    """
    x = value("pad", array)
    if callable(mode):
        return _pad_by(mode, x, _pairs("pad_width", pad_width, x), kwargs)
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ArgumentError(f"pad: cannot use mode={mode!r} (one of {', '.join(_OPTIONS)})")
    unknown = set(kwargs) - _OPTIONS[mode]
    if unknown:
        raise ArgumentError(f"pad: cannot use {', '.join(sorted(unknown))} with mode={mode!r}")
    widths = _pairs("pad_width", pad_width, x)
    if any(w < 0 for pair in widths for w in pair):
        raise ArgumentError(f"pad: cannot pad by {pad_width} (a width is negative)")
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    for place in _places(widths, kwargs, x):
        if not (place.low == place.high == 0):
            x = _pad_axis(x, place, mode, kwargs.get("reflect_type", "even"))
    return x


def _pad_by(function: Callable[..., Array], x: Array, widths: list[list[Size]], options: dict[str, Any]) -> Array:
    """Zeros at all ends, and then the function along one axis after the other."""
    x = _pad_constant(x, widths, 0)
    for axis, (before, after) in enumerate(widths):
        x = apply_along_axis(function, axis, x, (before, after), axis, options)
    return x


def _places(widths: list[list[Size]], options: Mapping[str, object], x: ArrayLike) -> list[_Place]:
    ends = [(None, None)] * rank(x)
    if "end_values" in options:
        ends = np.broadcast_to(np.asarray(options["end_values"]), (rank(x), 2)).tolist()
    if options.get("stat_length") is not None:
        ends = _pairs("stat_length", options["stat_length"], x)
        if any(at_most(n, 0) is True for pair in ends for n in pair):
            length = options["stat_length"]
            raise ArgumentError(f"pad: cannot use stat_length={length!r} (at least one element required)")
    return [_Place(i, widths[i][0], widths[i][1], (ends[i][0], ends[i][1])) for i in range(rank(x))]


def _pairs(name: str, pad_width: object, x: ArrayLike) -> list[list[Size]]:
    """(before, after) for each axis of x."""
    if isinstance(pad_width, dict):
        by_axis = {c.normalised_axis("pad", k, type_of(x)): w for k, w in pad_width.items()}
        pad_width = [np.broadcast_to(by_axis.get(i, 0), 2).tolist() for i in range(rank(x))]
    widths = np.asarray(pad_width)
    symbolic = widths.dtype == object and all(isinstance(w, int | Dim) for w in widths.flat)
    if widths.dtype.kind not in "iu" and not symbolic:
        raise ArgumentError(f"pad: cannot use {name}={pad_width!r} (integers required)")
    if widths.shape not in {(), (1,), (2,), (1, 1), (1, 2), (rank(x), 1), (rank(x), 2)}:
        raise ArgumentError(
            f"pad: cannot pad {type_of(x)} by {name}={pad_width!r} (a number, a pair, or a pair per axis required)"
        )
    return np.broadcast_to(widths, (rank(x), 2)).tolist()


def _fills(fill: Nested) -> ArrayLike:
    """Fill values: host numbers with full precision, or an array. Errors: ArgumentError."""
    if isinstance(fill, list | tuple):
        return np.asarray(fill) if _are_numbers(fill) else asarray(fill)
    return fill if _are_numbers(fill) else value("pad", fill)


def _are_numbers(fill: object) -> bool:
    if isinstance(fill, list | tuple):
        return all(map(_are_numbers, fill))
    return isinstance(fill, bool | int | float | complex | np.generic | np.ndarray)


def _pad_constant(x: ArrayLike, widths: list, fill: Nested) -> Any:
    x_type = type_of(x)
    zeros = (0,) * x_type.ndim
    fills = _fills(fill)
    if rank(fills) == 0:
        low, high = (tuple(pair[side] for pair in widths) for side in (0, 1))
        number = promote.as_type(fills, x_type.dtype, x_type.weak, "pad")
        return ops.pad(x, number, low=low, high=high, interior=zeros)
    if isinstance(fills, np.ndarray):
        fills = np.broadcast_to(fills, (x_type.ndim, 2))
    else:
        fills = promote.broadcast_to("pad", fills, (x_type.ndim, 2))
    for axis, pair in enumerate(widths):
        for side, width in enumerate(pair):
            at = tuple(width if i == axis else 0 for i in range(x_type.ndim))
            low, high = (at, zeros) if side == 0 else (zeros, at)
            number = promote.as_type(fills[axis, side], x_type.dtype, name="pad")
            x = ops.pad(x, number, low=low, high=high, interior=zeros)
    return x


def _pad_axis(x: ArrayLike, place: _Place, mode: str, reflect_type: str) -> Array:
    """x with one axis padded, by a statistic, by a ramp, or by its own elements."""
    size = type_of(x).shape[place.axis]
    if size == 0:
        raise ShapeError(f"pad: cannot pad {type_of(x)} with mode={mode!r} (axis {place.axis} is empty)")
    if mode == "linear_ramp":
        return _joined(x, place, _ramp)
    if mode in _STATISTICS:
        return _joined(x, place, _statistic(_STATISTICS[mode]))
    if reflect_type not in ("even", "odd"):
        raise ArgumentError(f"pad: cannot use reflect_type={reflect_type!r} (even or odd)")
    symbolic = any(isinstance(n, Dim) for n in (size, place.low, place.high))
    if symbolic and reflect_type == "even":
        return _pad_once(x, place.axis, place.low, place.high, mode)
    if symbolic:
        raise ArgumentError(
            f"pad: cannot use reflect_type='odd' for {type_of(x)} "
            f"(axis {place.axis} and its widths must have known sizes)"
        )
    return (_pad_by_slices if reflect_type == "even" else _odd)(x, place, mode)


def _known(x: ArrayLike, place: _Place) -> tuple[int, int, int, int]:
    """The axis, its size and the two widths, none of them symbolic."""
    size = type_of(x).shape[place.axis]
    return place.axis, int(size), int(place.low), int(place.high)


def _pad_by_slices(x: ArrayLike, place: _Place, mode: str) -> Array:
    """Pad with slices of x, one for each run of consecutive source elements."""
    axis, size, low, high = _known(x, place)
    before, after = (_runs(_source(at, size, mode)) for at in (np.arange(-low, 0), np.arange(size, size + high)))
    parts = [_run(x, axis, run) for run in (*before, (0, 1, size), *after)]
    return parts[0] if len(parts) == 1 else ops.concatenate(*parts, axis=axis)


def _odd(x: ArrayLike, place: _Place, mode: str) -> Array:
    """Point reflections at both ends, 2·edge - element, of all complete copies so far."""
    axis, size, low, high = _known(x, place)
    inner = 1 if mode == "reflect" else 0  # the edge itself is not repeated
    if size == inner:
        return _pad_by_slices(x, place, mode)
    extension: Array = value("pad", x)
    while low or high:
        end = int(type_of(extension).shape[axis])
        reach = (end - inner) // (size - inner) * (size - inner)
        before, after = min(low, reach), min(high, reach)
        # Each by its own edge: sums with the other one might lose digits, or be infinite.
        extension = ops.concatenate(
            _reflected(extension, inner, before, 0, axis),
            extension,
            _reflected(extension, end - inner - after, after, end - 1, axis),
            axis=axis,
        )
        low, high = low - before, high - after
    return extension


def _reflected(x: ArrayLike, start: int, count: int, edge: int, axis: int) -> Array:
    """`count` elements from a start on, reflected about another one."""
    dtype = type_of(x).dtype
    number = c.astype(x, dtypes.i32 if dtype == dtypes.bool_ else dtype)
    middle, mirrored = (
        part(number, axis, edge, edge + 1),
        ops.reverse(part(number, axis, start, start + count), axes=(axis,)),
    )
    return c.astype(middle + middle - mirrored, dtype)


def _joined(x: ArrayLike, place: _Place, end: Callable[[Any, _Place, int], Any]) -> Array:
    """x between the padding that `end` makes for the low side, 0, and for the high side, 1."""
    widths = (place.low, place.high)
    sides = [end(x, place, side) if widths[side] != 0 else None for side in (0, 1)]
    parts = [v for v in (sides[0], x, sides[1]) if v is not None]
    return ops.concatenate(*parts, axis=place.axis)


def _ramp(x: ArrayLike, place: _Place, side: int) -> Array:
    axis, size = place.axis, type_of(x).shape[place.axis]
    start = 0 if side == 0 else size - 1
    edge = part(x, axis, start, start + 1)
    width, dtype = (place.low, place.high)[side], type_of(x).dtype
    number = place.options[side]
    end = promote.as_type(0 if number is None else number, dtype, False, "pad")
    if dtype in dtypes.INTEGER and not isinstance(width, Dim):
        ramp = _integer_ramp(as_array(end, dtype), edge, width, axis)
    else:
        edge = c.squeeze(edge, axis)
        ramp = linspace(end, edge, width, endpoint=False, dtype=dtype, axis=axis)
    return ramp if side == 0 else ops.reverse(ramp, axes=(axis,))


def _integer_ramp(end: Array, edge: Array, width: int, axis: int) -> Array:
    """floor(end + (edge - end) * k / width), by distances without a sign, which do not overflow."""
    dtype = type_of(edge).dtype
    wide = dtypes.u64 if dtype.itemsize == 8 else dtypes.u32
    shape = tuple(width if i == axis else 1 for i in range(rank(edge)))
    k = ops.iota(shape=shape, axis=axis, dtype=wide)
    is_up, start, stop = edge >= end, c.astype(end, wide), c.astype(edge, wide)
    way = where(is_up, stop - start, start - stop)
    steps, part = way // width * k, way % width * k
    up, down = start + steps + part // width, start - steps - (part + (width - 1)) // width
    return c.astype(where(is_up, up, down), dtype)


def _statistic(reduce: Callable[..., Array]) -> Callable[[Array, _Place, int], Array]:
    def end(x: ArrayLike, place: _Place, side: int) -> Array:
        axis, size = place.axis, type_of(x).shape[place.axis]
        count = size if place.options[side] is None else place.options[side]
        count = count if isinstance(size, Dim) else min(count, size)
        start = 0 if side == 0 else size - count
        statistic = reduce(part(x, axis, start, start + count), axis=axis, keepdims=True)
        if type_of(x).dtype in dtypes.INTEGER:
            statistic = c.round(statistic)
        return repeated(c.astype(statistic, type_of(x).dtype), (place.low, place.high)[side], axis)

    return end


def _pad_once(x: ArrayLike, axis: int, low: Size, high: Size, mode: str) -> Array:
    """For symbolic sizes: the padding must come from the array without repeating it."""
    size = type_of(x).shape[axis]
    if mode == "edge":
        first, last = part(x, axis, 0, 1), part(x, axis, size - 1, size)
        return ops.concatenate(repeated(first, low, axis), x, repeated(last, high, axis), axis=axis)
    inner = 1 if mode == "reflect" else 0  # the edge itself is not repeated
    if not (at_most(low + inner, size) and at_most(high + inner, size)):
        raise UndecidedComparison(
            f"pad: cannot pad {type_of(x)} with mode={mode!r} "
            f"(axis {axis}: by {low} and {high}, which may be more than {size - inner})",
            f"declare a larger lower bound of the size of axis {axis} in dims",
            (low if at_most(high, low) else high, "<=", size - inner),
        )
    if mode == "wrap":
        before, after = part(x, axis, size - low, size), part(x, axis, 0, high)
    else:
        before, after = (
            ops.reverse(part(x, axis, start, start + width), axes=(axis,))
            for start, width in ((inner, low), (size - inner - high, high))
        )
    return ops.concatenate(before, x, after, axis=axis)


def _source(at: np.ndarray, size: int, mode: str) -> np.ndarray:
    """Which element fills each place beyond the ends."""
    if mode == "edge":
        return np.clip(at, 0, size - 1)
    if mode == "wrap":
        return at % size
    period = 2 * size if mode == "symmetric" else max(1, 2 * (size - 1))
    phase = at % period
    return np.minimum(phase, period - (mode == "symmetric") - phase) % size


def _runs(source: np.ndarray) -> list[tuple[int, int, int]]:
    """(first, step, count) of maximal runs with a step of 1, -1 or 0."""
    gaps = np.diff(source)
    bends = np.flatnonzero(np.diff(gaps)) + 1  # where the step changes
    ends = [*bends.tolist(), len(gaps)]
    runs: list[tuple[int, int, int]] = []
    at, bend = 0, 0
    while at < len(source):
        step = int(gaps[at]) if at < len(gaps) else 1
        while bend < len(bends) and ends[bend] <= at:
            bend += 1
        is_run = at < len(gaps) and abs(step) <= 1
        count = ends[bend] - at + 1 if is_run else 1
        runs.append((int(source[at]), step if is_run else 1, count))
        at += count
    return runs


def _run(x: ArrayLike, axis: int, run: tuple[int, int, int]) -> Array:
    first, step, count = run
    if step == 0:
        return repeated(part(x, axis, first, first + 1), count, axis)
    if step == 1 or count == 1:
        return part(x, axis, first, first + count)
    return ops.reverse(part(x, axis, first - count + 1, first + 1), axes=(axis,))
