"""Linear filters along one axis: by rational transfer functions, second-order sections, and local
polynomials.

A recursion is a scan over the samples, for all other axes at once; its compile time does not depend
on the number of samples. A filter without recursion is a convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.polynomial import legendre

from rune.array import Array, as_array
from rune.control import scan
from rune.core.interpreter import type_of
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import inexact, rank, static_count, static_int, value
from rune.numpy.creation import zeros, zeros_like
from rune.numpy.joining import concatenate
from rune.numpy.padding import pad
from rune.numpy.reductions import cumsum
from rune.numpy.shapes import broadcast_to, moveaxis
from rune.ops import conventions as c
from rune.ops.complex_numbers import real_dtype
from rune.ops.family import wide
from rune.ops.sliding import windows
from rune.typing import ArrayLike

_PAD_MODES = {"mirror": "reflect", "nearest": "edge", "wrap": "wrap", "constant": "constant"}


# --- transfer functions ---------------------------------------------------------------------------


def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """The signal filtered by B(z)/A(z): a[0] y[n] = sum_k b[k] x[n-k] - sum_k a[k] y[n-k].

    zi:     the initial state, max(len(a), len(b)) - 1 numbers along `axis`; the result is then
            (y, the final state).
    Shapes: b [K], a [L] -> as x.
    Types:  the common dtype of all, complex included; bools and integers become f32.
    Errors: ShapeError if the coefficients are not vectors, or the state has another size.
    Source: the transposed direct form II, Oppenheim & Schafer 3e, §6.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.lfilter(rnp.array([1.0]), rnp.array([1.0, -0.5]), rnp.array([1.0, 0.0, 0.0]))
    Array([1.  , 0.5 , 0.25], f32[3], cpu:0)
    """
    (above, below, signal), dtype = _widened("lfilter", b, a, x)
    is_finite_response = rank(below) == 1 and type_of(below).shape[0] <= 1  # by order: sizes may be symbolic
    above, below = _coefficients(above, below)
    if is_finite_response:
        below = below[:1]  # 0 times an infinite result would be NaN, for ever after
    axis = c.normalised_axis("lfilter", axis, type_of(signal))
    samples = moveaxis(signal, axis, 0)
    state = _initial_state("lfilter", samples, zi, type_of(above).shape[0] - 1, axis)
    (_, _, last), y = scan(_filter_step, (above, below, state), samples)
    y, last = (c.astype(moveaxis(v, 0, axis), dtype) for v in (y, last))
    return y if zi is None else (y, last)


def _widened(name: str, *xs: ArrayLike) -> tuple[list[Array], np.dtype]:
    """Arrays of one dtype, half types in f32, which recursions need; and that dtype."""
    arrays = c.same_dtype(name, *(inexact(name, value(name, x)) for x in xs))
    dtype = type_of(arrays[0]).dtype
    return [c.astype(x, wide(dtype)) for x in arrays], dtype


def _coefficients(b: Array, a: Array) -> tuple[Array, Array]:
    """Both divided by a[0], and padded to one size."""
    for vector in (b, a):
        if rank(vector) != 1 or type_of(vector).shape[0] == 0:
            quotient_text = f"{type_of(b)} over {type_of(a)}"
            raise ShapeError(f"lfilter: cannot filter by {quotient_text} (vectors with elements required)")
    first, size = a[:1], max(type_of(v).shape[0] for v in (b, a))
    coefficients = (pad(v, (0, size - type_of(v).shape[0])) / first for v in (b, a))
    return next(coefficients), next(coefficients)


def _initial_state(name: str, samples: Array, zi: ArrayLike | None, size: Size, axis: int) -> Array:
    shape = (size, *type_of(samples).shape[1:])
    dtype = type_of(samples).dtype
    if zi is None:
        return zeros(shape, dtype)
    state = moveaxis(c.astype(value(name, zi), dtype), axis, 0)
    if rank(state) != len(shape) or type_of(state).shape[0] != size:
        raise ShapeError(f"{name}: cannot begin with {type_of(zi)} ({size} numbers along the axis)")
    return broadcast_to(state, shape)


def _filter_step(carry: tuple[Array, Array, Array], x: Array) -> tuple[tuple[Array, Array, Array], Array]:
    """One sample: state[k] is the part of y[n+k] that is already known."""
    b, a, state = carry
    if type_of(state).shape[0] < 1:
        return carry, b[0] * x
    y = b[0] * x + state[0]
    column = (-1, *(1,) * rank(x))
    new_state = concatenate([state[1:], zeros_like(state[:1])]) + c.reshape(b[1:], column) * x
    if type_of(a).shape[0] > 1:
        new_state = new_state - c.reshape(a[1:], column) * y
    return (b, a, new_state), y


def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """The steady state of `lfilter` for an input of ones, that is of its step response.

    Shapes: b [K], a [L] -> [max(K, L) - 1].
    Types:  bools and integers become floats.
    Errors: ArgumentError if an argument is not an array; ShapeError if the shapes do not match.
    Source: the transposed direct form II, Oppenheim & Schafer 3e, §6.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.lfilter_zi(rnp.array([1.0]), rnp.array([1.0, -0.5]))
    Array([1.], f32[1], cpu:0)
    """
    (b, a), dtype = _widened("lfilter_zi", b, a)
    b, a = _coefficients(b, a)
    # y = sum(b)/sum(a) in the steady state; state[k] = sum over j > k of b[j] - a[j] y.
    y = b.sum() / a.sum()
    terms = (b - a * y)[1:]
    return c.astype(cumsum(terms[::-1])[::-1], dtype)


def filtfilt(
    b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd", padlen: int | None = None
) -> Array:
    """The signal filtered forwards and then backwards, so that no phase is shifted.

    padtype: how the signal is extended at both ends: "odd", "even", "constant", or None.
    padlen:  by how many samples; by default 3 max(len(a), len(b)).
    Shapes:  b [K], a [L] -> as x.
    Types:   the common dtype of all, complex included; bools and integers become f32.
    Errors:  ShapeError for a signal that is not longer than padlen.
    Source:  Gustafsson 1996, "Determining the initial states in forward-backward filtering", IEEE
             Trans. Signal Processing 44(4); its simple case with padding.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.filtfilt(rnp.array([0.5]), rnp.array([1.0, -0.5]), rnp.ones(9)).round(3)[:2]
    Array([1., 1.], f32[2], cpu:0)
    """
    (b, a, x), dtype = _widened("filtfilt", b, a, x)
    x = moveaxis(x, axis, -1)
    taps = [type_of(v) for v in (b, a)]
    if any(t.ndim != 1 for t in taps):
        raise ShapeError(f"filtfilt: cannot filter by {taps[0]} and {taps[1]} (vectors required)")
    sizes = (t.shape[0] for t in taps)
    most = max(static_int("filtfilt", "a size", size) for size in sizes)
    around = 0 if padtype is None else 3 * most if padlen is None else padlen
    extension = _extended(x, around, padtype)
    state = lfilter_zi(b, a)
    forward, _ = lfilter(b, a, extension, zi=state * extension[..., :1])
    forward = forward[..., ::-1]
    backward, _ = lfilter(b, a, forward, zi=state * forward[..., :1])
    result = backward[..., ::-1]
    result = result[..., around : around + type_of(x).shape[-1]]
    return c.astype(moveaxis(result, -1, axis), dtype)


def _extended(x: Array, around: int, padtype: str | None) -> Array:
    """The signal extended by `around` samples at both ends of the last axis."""
    if padtype not in ("odd", "even", "constant", None):
        raise ArgumentError(f"filtfilt: cannot use padtype={padtype!r} (odd, even, constant, None)")
    if around == 0:
        return x
    if type_of(x).shape[-1] <= around:
        raise ShapeError(f"filtfilt: cannot continue {type_of(x)} by {around} (it is too short)")
    widths = [(0, 0)] * (rank(x) - 1) + [(around, around)]
    if padtype == "constant":
        return pad(x, widths, mode="edge")
    even = pad(x, widths, mode="reflect")
    return even if padtype == "even" else oddly_continued(x, even, around)


def oddly_continued(x: Array, even: Array, by: int) -> Array:
    """The signal extended by odd reflection, from the same signal extended by even reflection."""
    head, tail = 2 * x[..., :1] - even[..., :by], 2 * x[..., -1:] - even[..., -by:]
    return concatenate([head, x, tail], axis=-1)


# --- second-order sections ----------------------------------------------------------------------


def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """The signal filtered by a cascade of second-order sections.

    Shapes: sos [S, 6], each row b0 b1 b2 a0 a1 a2; zi [S, ..., 2, ...], the 2 along `axis`.
    Result: y; with zi, (y, the final states).
    Errors: ShapeError for other shapes.
    Source: the transposed direct form II, Oppenheim & Schafer 3e, §6.3.

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> sos = rnp.array([[1.0, 0.0, 0.0, 1.0, -0.5, 0.0]])
    >>> signal.sosfilt(sos, rnp.array([1.0, 0.0, 0.0]))
    Array([1.  , 0.5 , 0.25], f32[3], cpu:0)
    """
    (rows, series), dtype = _widened("sosfilt", sos, x)
    if rank(rows) != 2 or type_of(rows).shape[1] != 6:
        raise ShapeError(f"sosfilt: cannot filter by {type_of(rows)} (shape [S, 6] required)")
    axis = c.normalised_axis("sosfilt", axis, type_of(series))
    samples = moveaxis(series, axis, 0)
    sections, lead = type_of(rows).shape[0], type_of(samples).shape[1:]
    states = zeros((sections, 2, *lead), type_of(series).dtype)
    if zi is not None:
        initial = moveaxis(c.astype(value("sosfilt", zi), type_of(series).dtype), axis + 1, 1)
        states = broadcast_to(initial, type_of(states).shape)
    y, last = scan(_section, samples, (rows, states))
    y, last = c.astype(moveaxis(y, 0, axis), dtype), c.astype(moveaxis(last, 1, axis + 1), dtype)
    return y if zi is None else (y, last)


def _section(samples: Array, section: tuple[Array, Array]) -> tuple[Array, Array]:
    """The signal through one section, and the state at its end."""
    row, state = section
    b, a = row[:3] / row[3], row[3:] / row[3]
    (_, _, last), y = scan(_filter_step, (b, a, state), samples)
    return y, last


# --- local polynomials --------------------------------------------------------------------------


def savgol_coeffs(
    window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0, pos: int | None = None, use: str = "conv"
) -> Array:
    """The weights whose sum gives the value, or a derivative, of the polynomial fitted to a window.

    pos: the position in the window, by default its middle
    use: "conv" for the order of a convolution, "dot" for that of the samples
    Shapes: [window_length]. Types: f32.
    Source: Savitzky & Golay 1964, Analytical Chemistry 36(8).
    Errors: ArgumentError if an argument is not an array; DtypeError for anything but integers as
            `window_length` and complex numbers as `polyorder`.

    >>> from rune.scipy import signal
    >>> signal.savgol_coeffs(5, 2).round(4)
    Array([-0.0857,  0.3429,  0.4857,  0.3429, -0.0857], f32[5], cpu:0)
    """
    size = static_count("savgol_coeffs", "a window length", window_length)
    at = (size - 1) / 2 if pos is None else pos
    weights = _fitted(size, polyorder, deriv, delta, np.asarray([at]))[0]
    if use not in ("conv", "dot"):
        raise ArgumentError(f"savgol_coeffs: cannot use use={use!r} (conv or dot)")
    return value("savgol_coeffs", weights[::-1].copy() if use == "conv" else weights)


def _fitted(size: int, order: int, deriv: int, delta: float, at: np.ndarray) -> np.ndarray:
    """The weights of a window's samples for each position in `at`, in f64."""
    if not 0 <= order < size:
        raise ArgumentError(f"savgol_filter: cannot fit order {order} to {size} samples (order below the length)")
    # In Legendre's polynomials: powers of the places are nearly dependent, and for 100 places those
    # above the eighth would be cut off as noise.
    middle = (size - 1) / 2
    scale = max(middle, 1.0)
    fit = np.linalg.pinv(legendre.legvander((np.arange(size) - middle) / scale, order))  # [order + 1, size]
    slopes = legendre.legder(np.eye(order + 1), deriv, scl=1 / scale)
    return legendre.legval((at - middle) / scale, slopes).T @ fit / delta**deriv


def savgol_filter(
    x: ArrayLike,
    window_length: int,
    polyorder: int,
    deriv: int = 0,
    delta: float = 1.0,
    axis: int = -1,
    mode: str = "interp",
    cval: float = 0.0,
) -> Array:
    """The signal, or a derivative, smoothed by the best-fitting polynomial of a moving window.

    mode:   at the ends: "interp" evaluates the polynomial of the last whole window; "mirror",
            "nearest", "wrap" and "constant" (cval) extend the signal.
    Shapes: as x. Types: as x, complex included; bools and integers become f32.
    Errors: ArgumentError for an even window or a window longer than the signal with "interp".
    Source: Savitzky & Golay 1964, Analytical Chemistry 36(8).

    >>> import rune.numpy as rnp
    >>> from rune.scipy import signal
    >>> signal.savgol_filter(rnp.arange(6.0) ** 2, 5, 2).round(3) + 0
    Array([ 0.,  1.,  4.,  9., 16., 25.], f32[6], cpu:0)
    """
    x = inexact("savgol_filter", value("savgol_filter", x))
    y, size = moveaxis(x, axis, -1), static_int("savgol_filter", "a window length", window_length)
    if size < 1 or size % 2 == 0:
        raise ArgumentError(f"savgol_filter: cannot use a window of {size} (an odd length)")
    half, places = size // 2, np.arange(size)
    weights = as_array(_fitted(size, polyorder, deriv, delta, places), real_dtype(type_of(x).dtype))
    if mode == "interp":
        result = _smoothed_within(y, weights, half)
    elif mode in _PAD_MODES:
        widths = [(0, 0)] * (rank(y) - 1) + [(half, half)]
        options = {"constant_values": cval} if mode == "constant" else {}
        result = _moving(pad(y, widths, mode=_PAD_MODES[mode], **options), weights[half])
    else:
        names = ", ".join(("interp", *_PAD_MODES))
        raise ArgumentError(f"savgol_filter: cannot use mode={mode!r} (one of {names})")
    return moveaxis(result, -1, axis)


def _smoothed_within(y: Array, weights: Array, half: int) -> Array:
    """Whole windows in the middle, and at the ends the polynomial of the last one."""
    size = 2 * half + 1
    if type_of(y).shape[-1] < size:
        problem = f"a window of {size} to {type_of(y)}"
        raise ArgumentError(f"savgol_filter: cannot fit {problem} (mode 'interp' needs a whole one)")
    first = c.matmul(y[..., :size], weights[:half].T)
    last = c.matmul(y[..., -size:], weights[half + 1 :].T)
    return concatenate([first, _moving(y, weights[half]), last], axis=-1)


def _moving(y: Array, weights: Array) -> Array:
    """The weighted sums of all windows along the last axis."""
    axis = rank(y) - 1
    segments = windows(y, (axis,), type_of(weights).shape, (1,), (1,))
    return c.matmul(segments, weights)
