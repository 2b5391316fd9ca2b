"""Piecewise polynomials, and the interpolants made of them: cubic splines, PCHIP, Akima.

A piecewise polynomial is a tree: its coefficients may be traced and differentiated, so that a
spline of traced values can be made and evaluated inside a function. Breakpoints must rise: known
ones that do not are refused; with traced ones that do not, results are meaningless.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple, TypeVar

import numpy as np

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError, ShapeError
from rune.ops.family import wide
from rune.records import dataclass
from rune.scipy import linalg
from rune.scipy.special.arguments import concrete, reals
from rune.typing import ArrayLike, Nested

Curve = TypeVar("Curve")


@dataclass(frozen=True)
class PPoly:
    """Σ c[k] (t - x[i])**(K - 1 - k) on [x[i], x[i + 1]].

    c: [K, M, *S], highest power first, K and M at `axis`;  x: [M + 1], rising.
    extrapolate: True continues the first and last piece, False gives NaN outside, "periodic"
                 repeats.
    axis: where the axes of the points go in a result; the field c has K and M in front.
    Errors: ShapeError if c and x do not match; ArgumentError for known x that do not rise.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import PPoly
    >>> PPoly(rnp.array([[1.0], [0.0]]), rnp.array([0.0, 2.0]))(1.5)
    Array(1.5, f32[], cpu:0)
    """

    c: Array
    x: Array
    extrapolate: bool | str = True
    axis: int = 0

    def __post_init__(self) -> None:
        c, x = rnp.asarray(self.c), rnp.asarray(self.x)
        if self.axis != 0:
            c = rnp.moveaxis(c, (self.axis, self.axis + 1), (0, 1))
        if c.ndim < 2 or x.ndim != 1 or c.shape[0] == 0 or c.shape[1] + 1 != x.shape[0]:
            raise ShapeError(f"PPoly: cannot use coefficients {c.shape} between points {x.shape}")
        require_rising("PPoly", x)
        object.__setattr__(self, "c", c)
        object.__setattr__(self, "x", x)

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: bool | str | None = None) -> Array:
        """The value at points [*T] -> [*T, *S] (for axis 0), or the nu-th derivative there."""
        beyond = self.extrapolate if extrapolate is None else extrapolate
        coefficients = self.derivative(nu).c if nu else self.c
        (points,) = reals("PPoly", x)
        first, last = self.x[0], self.x[-1]
        if beyond == "periodic":
            points = first + rnp.remainder(points - first, last - first)
        piece = rnp.searchsorted(self.x[1:-1], points, side="right")
        apart = rnp.reshape(points - self.x[piece], (*points.shape, *(1,) * (self.c.ndim - 2)))
        out = coefficients[0][piece]
        for row in coefficients[1:]:
            out = out * apart + row[piece]
        if not beyond:
            is_inside = rnp.reshape((points >= first) & (points <= last), apart.shape)
            out = rnp.where(is_inside, out, rnp.nan)
        return points_at(out, points.ndim, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """The nu-th derivative; an antiderivative for negative nu."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            powers = rnp.arange(c.shape[0] - 1, 0, -1).astype(c.dtype)
            lower = c[:-1] * rnp.reshape(powers, (-1, *(1,) * (c.ndim - 1)))
            c = lower if c.shape[0] > 1 else rnp.zeros_like(c)
        return unchecked(PPoly, (c, self.x, self.extrapolate, self.axis))

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The nu-fold integral from x[0] on; that of a periodic function is not continued."""
        if nu < 0:
            return self.derivative(-nu)
        polynomial = self._extrapolated(self.extrapolate != "periodic" and self.extrapolate)
        for _ in range(nu):
            polynomial = polynomial._integrated()
        return polynomial

    def integrate(self, a: ArrayLike, b: ArrayLike) -> Array:
        """The integral from a to b."""
        if self.extrapolate != "periodic":
            primitive = self.antiderivative()
            return primitive(b) - primitive(a)
        first, last = self.x[0], self.x[-1]
        primitive = self._extrapolated(True).antiderivative()

        def until(point: ArrayLike) -> Array:
            periods = rnp.floor((point - first) / (last - first))
            return primitive(point - periods * (last - first)) + periods * primitive(last)

        return until(b) - until(a)

    def _extrapolated(self, extrapolate: bool | str) -> PPoly:
        return unchecked(PPoly, (self.c, self.x, extrapolate, self.axis))

    def _integrated(self) -> PPoly:
        powers = rnp.arange(self.c.shape[0], 0, -1).astype(self.c.dtype)
        shape = (-1, *(1,) * (self.c.ndim - 1))
        higher = self.c / rnp.reshape(powers, shape)
        gaps = rnp.reshape(rnp.diff(self.x), (-1, *(1,) * (self.c.ndim - 2)))
        total = higher[0] * gaps
        for row in higher[1:]:
            total = (total + row) * gaps
        before = rnp.concatenate([rnp.zeros_like(total[:1]), rnp.cumsum(total, 0)[:-1]])
        c = rnp.concatenate([higher, before[None]])
        return unchecked(PPoly, (c, self.x, self.extrapolate, self.axis))


def unchecked(kind: type[Curve], values: tuple[Array | int | str, ...]) -> Curve:
    """Any values for the fields of a dataclass: the leaves of a tree need not be arrays."""
    instance = object.__new__(kind)
    for field, value in zip(fields(kind), values, strict=True):  # type: ignore[arg-type]
        object.__setattr__(instance, field.name, value)
    return instance


tree.register_node(
    PPoly, lambda p: ((p.c, p.x), (p.extrapolate, p.axis)), lambda static, kids: unchecked(PPoly, (*kids, *static))
)


def require_rising(name: str, x: Array) -> None:
    """Errors: ArgumentError if points of known values do not increase or are not finite."""
    points = concrete(x)
    if points is None or (np.all(np.isfinite(points)) and np.all(points[1:] > points[:-1])):
        return
    raise ArgumentError(
        f"{name}: cannot use points that do not rise (or are not finite) ({x.shape})",
        hint="sort them and drop duplicates",
    )


def points_at(values: Array, rank: int, axis: int) -> Array:
    """The result with its first `rank` axes, those of the points, moved to `axis`."""
    if axis == 0:
        return values
    return rnp.moveaxis(values, tuple(range(rank)), tuple(range(axis, axis + rank)))


def samples(name: str, x: ArrayLike, y: Nested, axis: int, least: int) -> tuple[Array, Array]:
    """Points [N] and values [N, *S]. Errors: ShapeError if they do not match, or are too few."""
    (x,) = reals(name, x)
    (y,) = reals(name, rnp.moveaxis(rnp.asarray(y), axis, 0))
    if x.ndim != 1 or y.shape[0] != x.shape[0] or x.shape[0] < least:
        raise ShapeError(
            f"{name}: cannot interpolate values {y.shape} at points {x.shape} (as many, and at least {least})"
        )
    dtype = rnp.result_type(x, y)
    return rnp.astype(x, dtype), rnp.astype(y, dtype)


def rising_samples(name: str, x: ArrayLike, y: Nested, axis: int, least: int) -> tuple[Array, Array]:
    """Like `samples`, half types in f32, where slopes of close points do not overflow. Errors: also
    those of require_rising.
    """
    x, y = (rnp.astype(v, wide(v.dtype)) for v in samples(name, x, y, axis, least))
    require_rising(name, x)
    return x, y


def _columns(v: Array, like: Array) -> Array:
    """[N] with axes of size 1 appended, to the rank of `like`."""
    return rnp.reshape(v, (-1, *(1,) * (like.ndim - 1)))


def hermite(x: Array, y: Array, slopes: Array, extrapolate: bool | str, axis: int) -> PPoly:
    """The piecewise cubic of given values and slopes."""
    gaps = _columns(rnp.diff(x), y)
    chord = (y[1:] - y[:-1]) / gaps
    bend = (slopes[:-1] + slopes[1:] - 2.0 * chord) / gaps
    c = rnp.stack([bend / gaps, (chord - slopes[:-1]) / gaps - bend, slopes[:-1], y[:-1]])
    return unchecked(PPoly, (c, x, extrapolate, axis % y.ndim))


def CubicHermiteSpline(x: ArrayLike, y: Nested, dydx: Nested, axis: int = 0, extrapolate: bool | str = True) -> PPoly:
    """The piecewise cubic with values y and slopes dydx at x.

    Shapes: x [N], y and dydx with N along the axis, where the axes of the points go in results.
    Errors: ShapeError; ArgumentError for known x that do not rise.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import CubicHermiteSpline
    >>> CubicHermiteSpline(rnp.arange(2.0), rnp.array([0.0, 1.0]), rnp.ones(2))(0.5)
    Array(0.5, f32[], cpu:0)
    """
    x, y = rising_samples("CubicHermiteSpline", x, y, axis, 2)
    (slopes,) = reals("CubicHermiteSpline", rnp.moveaxis(rnp.asarray(dydx), axis, 0))
    if slopes.shape != y.shape:
        raise ShapeError(f"CubicHermiteSpline: cannot use slopes {slopes.shape} for {y.shape}")
    return hermite(x, y, slopes, extrapolate, axis)


# --- cubic splines ----------------------------------------------------------------------------


def CubicSpline(
    x: ArrayLike, y: Nested, axis: int = 0, bc_type: str = "not-a-knot", extrapolate: bool | str | None = None
) -> PPoly:
    """The cubic spline through y at x: two continuous derivatives.

    Shapes: x [N], N >= 2, rising; y with N along the axis, where the axes of the points go in
            results.
    bc_type: "not-a-knot" (the first two and last two pieces are one cubic each), "natural" (no
             curvature at the ends), "clamped" (no slope there) or "periodic" (y[0] == y[-1]).
    Cost:   one tridiagonal system. Differentiable in x and y.
    Errors: ShapeError; ArgumentError for an unknown bc_type, for known x that do not rise, and for
            known y that are periodic and end on another value. Of traced ones nothing is known:
            falling or repeated points give what means nothing, often NaN.
    Source: de Boor 2001, A Practical Guide to Splines, chapter IV.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import CubicSpline
    >>> CubicSpline(rnp.arange(4.0), rnp.arange(4.0) ** 3)(1.5)
    Array(3.375, f32[], cpu:0)
    """
    if bc_type not in ("not-a-knot", "natural", "clamped", "periodic"):
        raise ArgumentError(
            f"CubicSpline: cannot use bc_type={bc_type!r}", hint="'not-a-knot', 'natural', 'clamped' or 'periodic'"
        )
    x, y = rising_samples("CubicSpline", x, y, axis, 2)
    if bc_type == "periodic":
        _require_closed(y)
    beyond = (bc_type != "periodic" or "periodic") if extrapolate is None else extrapolate
    h, flat = rnp.diff(x), rnp.reshape(y, (y.shape[0], -1))
    slopes = _slopes(h, rnp.diff(flat, axis=0) / h[:, None], bc_type)
    return hermite(x, y, rnp.reshape(slopes, y.shape), beyond, axis)


def _require_closed(y: Array) -> None:
    values = concrete(y)
    # SciPy's 1e-15 in f64: a few roundings between equal values.
    limit = 8 * float(rnp.finfo(y.dtype).eps)
    if values is None or np.allclose(values[0], values[-1], rtol=limit, atol=limit):
        return
    raise ArgumentError("CubicSpline: cannot use bc_type='periodic' (the first and the last value differ)")


class _Equation(NamedTuple):
    """a s + b t = right [K] for the slopes s at an end and t next to it."""

    a: ArrayLike
    b: ArrayLike
    right: Array


def _slopes(h: Array, chords: Array, bc_type: str) -> Array:
    """The slopes [N, K] of continuous curvature, from gaps h [N - 1] and chords [N - 1, K].

    At an inner point h' s₋ + 2 (h + h') s + h s₊ = 3 (h' c + h c'): h and c of the piece before it,
    h' and c' of the one after it.
    """
    if bc_type == "periodic":
        return _closed_slopes(h, chords)
    first, last = _ends(h, chords, bc_type)
    before, after = h[:-1], h[1:]
    right = 3.0 * (after[:, None] * chords[:-1] + before[:, None] * chords[1:])
    return _solved(
        rnp.append(after, last.b),
        rnp.hstack([first.a, 2.0 * (before + after), last.a]),
        rnp.append(first.b, before),
        rnp.concatenate([first.right[None], right, last.right[None]]),
    )


def _solved(lower: Array, main: Array, upper: Array, right: Array) -> Array:
    """The solution of a tridiagonal system: diagonals [N - 1], [N] and [N - 1], right [N, K]."""
    bands = rnp.stack([rnp.pad(upper, (1, 0)), main, rnp.pad(lower, (0, 1))])
    return linalg.solve_banded((1, 1), bands.astype(right.dtype), right)


def _closed_slopes(h: Array, chords: Array) -> Array:
    """The same where the last piece is before the first one: the corners are a matrix of rank 1.

    Source: Press et al. 2007, Numerical Recipes, 3rd edition, §2.7.2 (Sherman and Morrison).
    """
    before, chords_before = rnp.roll(h, 1), rnp.roll(chords, 1, axis=0)
    main = 2.0 * (before + h)
    right = 3.0 * (h[:, None] * chords_before + before[:, None] * chords)
    above, below = h[0], before[-1]  # the corners
    ratio = -above / main[0]
    column = rnp.zeros_like(h).at[0].add(-main[0]).at[-1].add(below)
    inner = main.at[0].add(main[0]).at[-1].add(-below * ratio)
    both = _solved(h[1:], inner, before[:-1], rnp.column_stack([right, column]))
    solution, turn = both[:, :-1], both[:, -1:]
    share = (solution[0] + ratio * solution[-1]) / (1.0 + turn[0] + ratio * turn[-1])
    slopes = solution - turn * share
    return rnp.concatenate([slopes, slopes[:1]])


def _ends(h: Array, chords: Array, bc_type: str) -> tuple[_Equation, _Equation]:
    """The first and the last equation."""
    n = h.shape[0] + 1
    if bc_type == "clamped":
        zero = rnp.zeros_like(chords[0])
        return _Equation(1.0, 0.0, zero), _Equation(1.0, 0.0, zero)
    if bc_type == "natural":
        return _Equation(2.0, 1.0, 3.0 * chords[0]), _Equation(2.0, 1.0, 3.0 * chords[-1])
    # By order, which is refused for a symbolic size that may be 2 or 3: `==` would be false.
    if n <= 2:
        return _Equation(1.0, 0.0, chords[0]), _Equation(1.0, 0.0, chords[0])
    if n <= 3:  # one parabola through three points
        return _Equation(1.0, 1.0, 2.0 * chords[0]), _Equation(1.0, 1.0, 2.0 * chords[1])
    return _not_a_knot(h, chords, 0, 1), _not_a_knot(h, chords, -1, -2)


def _not_a_knot(h: Array, chords: Array, i: int, j: int) -> _Equation:
    """One cubic over the two pieces next to an end; i and j number these pieces."""
    both = h[i] + h[j]
    above = (h[i] + 2.0 * both) * h[j] * chords[i] + h[i] * h[i] * chords[j]
    return _Equation(h[j], both, above / both)


# --- local slopes -----------------------------------------------------------------------------


def _end_slope(h0: Array, h1: Array, d0: Array, d1: Array) -> Array:
    """The slope at an end, from three points, limited so that it does not overshoot."""
    slope = ((2.0 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
    turns = rnp.sign(slope) != rnp.sign(d0)
    steep = (rnp.sign(d0) != rnp.sign(d1)) & (rnp.abs(slope) > 3.0 * rnp.abs(d0))
    return rnp.where(turns, 0.0, rnp.where(steep, 3.0 * d0, slope))


def PchipInterpolator(x: ArrayLike, y: Nested, axis: int = 0, extrapolate: bool | None = None) -> PPoly:
    """The piecewise cubic through y at x that is monotone where y is.

    Shapes: x [N], N >= 2, rising; y with N along the axis, where the axes of the points go in
            results.
    Errors: ShapeError; ArgumentError for known x that do not rise.
    Source: Fritsch & Butland 1984, SIAM J. Sci. Stat. Comput. 5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import PchipInterpolator
    >>> PchipInterpolator(rnp.arange(3.0), rnp.array([0.0, 1.0, 1.0]))(1.5)
    Array(1., f32[], cpu:0)
    """
    x, y = rising_samples("PchipInterpolator", x, y, axis, 2)
    h = _columns(rnp.diff(x), y)
    d = (y[1:] - y[:-1]) / h
    if x.shape[0] <= 2:
        return hermite(x, y, rnp.concatenate([d, d]), extrapolate is not False, axis)
    w1, w2 = 2.0 * h[1:] + h[:-1], h[1:] + 2.0 * h[:-1]
    flat = (rnp.sign(d[1:]) != rnp.sign(d[:-1])) | (d[1:] == 0) | (d[:-1] == 0)
    low, high = rnp.where(flat, 1.0, d[:-1]), rnp.where(flat, 1.0, d[1:])
    inner = rnp.where(flat, 0.0, (w1 + w2) / (w1 / low + w2 / high))
    first, last = _end_slope(h[0], h[1], d[0], d[1]), _end_slope(h[-1], h[-2], d[-1], d[-2])
    slopes = rnp.concatenate([first[None], inner, last[None]])
    return hermite(x, y, slopes, extrapolate is not False, axis)


def Akima1DInterpolator(x: ArrayLike, y: Nested, axis: int = 0, *, extrapolate: bool | None = None) -> PPoly:
    """The piecewise cubic through y at x with Akima's slopes, which outliers disturb little.

    Shapes: x [N], N >= 2, rising; y with N along the axis, where the axes of the points go in
            results. NaN
    outside x, unless `extrapolate`.
    Errors: ShapeError; ArgumentError for known x that do not rise.
    Source: Akima 1970, Journal of the ACM 17.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import Akima1DInterpolator
    >>> Akima1DInterpolator(rnp.arange(4.0), rnp.arange(4.0))(1.5)
    Array(1.5, f32[], cpu:0)
    """
    x, y = rising_samples("Akima1DInterpolator", x, y, axis, 2)
    d = (y[1:] - y[:-1]) / _columns(rnp.diff(x), y)
    if x.shape[0] <= 2:
        return hermite(x, y, rnp.concatenate([d, d]), bool(extrapolate), axis)
    before = 2.0 * d[0] - d[1]
    after = 2.0 * d[-1] - d[-2]
    m = rnp.concatenate([(2.0 * before - d[0])[None], before[None], d, after[None], (2.0 * after - d[-1])[None]])
    change = rnp.abs(m[1:] - m[:-1])
    low, high = change[:-2], change[2:]
    total = low + high
    is_even = total <= 1e-9 * rnp.max(total, initial=0.0)
    share = low / rnp.where(is_even, 1.0, total)
    weighted_slopes = (1.0 - share) * m[1:-2] + share * m[2:-1]
    slopes = rnp.where(is_even, 0.5 * (m[3:] + m[:-3]), weighted_slopes)
    return hermite(x, y, slopes, bool(extrapolate), axis)
