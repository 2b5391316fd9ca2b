"""B-splines: sums of basis functions of a knot vector, and the one through given values.

Source: de Boor 2001, A Practical Guide to Splines, chapters IX, X and XIII.
"""

from __future__ import annotations

from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.records import dataclass
from rune.scipy import linalg
from rune.scipy.interpolate.piecewise import points_at, rising_samples, unchecked
from rune.scipy.special.arguments import concrete, reals
from rune.typing import ArrayLike, Nested


def _basis(t: Array, k: int, points: Array, count: Size) -> tuple[Array, list[Array]]:
    """The knot interval of each point, and the k + 1 basis functions that are not 0 there."""
    interval = rnp.clip(rnp.searchsorted(t, points, side="right") - 1, k, count - 1)
    values = [rnp.ones_like(points)]
    for degree in range(1, k + 1):
        higher_degree: list[Array] = [rnp.zeros_like(points)] * (degree + 1)
        for j in range(degree):
            high, low = t[interval + j + 1], t[interval + j + 1 - degree]
            gap = high - low
            share = values[j] / rnp.where(gap == 0, 1.0, gap)
            higher_degree[j] = higher_degree[j] + (high - points) * share
            higher_degree[j + 1] = higher_degree[j + 1] + (points - low) * share
        values = higher_degree
    return interval, values


@dataclass(frozen=True)
class BSpline:
    """Σ c[i] B_i(x), B_i of degree k over the knots t.

    t: [N + k + 1], not falling;  c: [N, *S], N at `axis`;  k: the degree.
    extrapolate: True continues the first and last piece, False gives NaN outside of
          [t[k], t[N]], "periodic" repeats.
    axis: where the axes of the points go in a result; the field c has N in front.
    Errors: ShapeError for fewer than 2k + 2 knots, or coefficients that do not fit;
            ArgumentError for a negative degree, and for known knots that fall.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import BSpline
    >>> BSpline(rnp.array([0.0, 0.0, 1.0, 1.0]), rnp.array([1.0, 3.0]), 1)(0.5)
    Array(2., f32[], cpu:0)
    """

    t: Array
    c: Any
    k: int
    extrapolate: bool | str = True
    axis: int = 0

    def __post_init__(self) -> None:
        if self.k < 0:
            raise ArgumentError(f"BSpline: cannot use the degree {self.k}")
        t, c = rnp.asarray(self.t), rnp.asarray(self.c)
        if self.axis != 0:
            c = rnp.moveaxis(c, self.axis, 0)
        if t.ndim != 1 or t.shape[0] < 2 * self.k + 2:
            raise ShapeError(f"BSpline: cannot use knots {t.shape} (at least {2 * self.k + 2} for degree {self.k})")
        if c.ndim == 0 or c.shape[0] < t.shape[0] - self.k - 1:
            raise ShapeError(
                f"BSpline: cannot use coefficients {c.shape} for {t.shape[0] - self.k - 1} basis functions"
            )
        known = concrete(t)
        if known is not None and not (known[1:] >= known[:-1]).all():
            raise ArgumentError(f"BSpline: cannot use knots that fall ({t.shape})")
        object.__setattr__(self, "t", t)
        object.__setattr__(self, "c", c)

    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: bool | str | None = None) -> Array:
        """The value at points [*T] -> [*T, *S], or the nu-th derivative there."""
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        (points,) = reals("BSpline", x)
        count = self.t.shape[0] - self.k - 1
        beyond = self.extrapolate if extrapolate is None else extrapolate
        first, last = self.t[self.k], self.t[count]
        if beyond == "periodic":
            points = first + rnp.remainder(points - first, last - first)
        interval, values = _basis(self.t, self.k, points, count)
        shape = (*points.shape, *(1,) * (self.c.ndim - 1))
        out: Any = sum(self.c[interval - self.k + j] * rnp.reshape(v, shape) for j, v in enumerate(values))
        if not beyond:
            is_inside = (points >= first) & (points <= last)
            out = rnp.where(rnp.reshape(is_inside, shape), out, rnp.nan)
        return points_at(out, points.ndim, self.axis)

    def derivative(self, nu: int = 1) -> BSpline:
        """The nu-th derivative, of degree k - nu."""
        spline = self
        for _ in range(nu):
            spline = spline._derived()
        return spline

    def _derived(self) -> BSpline:
        if self.k == 0:
            return unchecked(BSpline, (self.t, rnp.zeros_like(self.c), 0, self.extrapolate, self.axis))
        count = self.t.shape[0] - self.k - 1
        gaps = self.t[self.k + 1 : self.k + count] - self.t[1:count]
        columns = rnp.reshape(gaps, (-1, *(1,) * (self.c.ndim - 1)))
        change = (self.c[1:count] - self.c[: count - 1]) * self.k
        c = rnp.where(columns == 0, 0.0, change / rnp.where(columns == 0, 1.0, columns))
        return unchecked(BSpline, (self.t[1:-1], c, self.k - 1, self.extrapolate, self.axis))


tree.register_node(
    BSpline,
    lambda b: ((b.t, b.c), (b.k, b.extrapolate, b.axis)),
    lambda static, kids: unchecked(BSpline, (*kids, *static)),
)


def make_interp_spline(x: ArrayLike, y: Nested, k: int = 3, t: ArrayLike | None = None, axis: int = 0) -> BSpline:
    """The B-spline of degree k through y at x.

    Shapes: x [N], N > k, rising; y with N along the axis, where the axes of the points go in
            results.
    t:      knots [N + k + 1]; by default those of "not a knot".
    Cost:   one system of 2 k + 1 diagonals. Differentiable in x and y.
    Errors: ShapeError if x, y and t do not match; ArgumentError for known x that do not rise.
    Source: de Boor 2001, A Practical Guide to Splines, chapter XIII.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import make_interp_spline
    >>> make_interp_spline(rnp.arange(4.0), rnp.arange(4.0) ** 3)(1.5)
    Array(3.3749998, f32[], cpu:0)
    """
    x, y = rising_samples("make_interp_spline", x, y, axis, k + 1)
    n = x.shape[0]
    knots = _knots(x, k) if t is None else rnp.astype(rnp.asarray(t), x.dtype)
    if knots.shape != (n + k + 1,):
        raise ShapeError(f"make_interp_spline: cannot use {knots.shape[0]} knots for {n} points of degree {k}")
    interval, values = _basis(knots, k, x, n)
    bands = _bands(interval - k - rnp.arange(n), rnp.stack(values), k)
    coefficients = linalg.solve_banded((k, k), bands, rnp.reshape(y, (n, -1)))
    return unchecked(BSpline, (knots, rnp.reshape(coefficients, y.shape), k, True, axis % y.ndim))


def _bands(first: Array, values: Array, k: int) -> Array:
    """The diagonals [2 k + 1, N] of a matrix, of which row i is values[:, i] from i + first[i] on.

    Values outside the band would mean that a point lies outside the support of its function, and
    that the matrix is singular: they are NaN.
    """
    row = rnp.arange(values.shape[1])
    fits = (first >= -k) & (first <= 0)
    offset = rnp.arange(k + 1)[:, None] + rnp.where(fits, first, 0)
    bands = rnp.zeros((2 * k + 1, values.shape[1]), values.dtype)
    return bands.at[k - offset, row + offset].set(rnp.where(fits, values, rnp.nan), mode="drop")


def _knots(x: Array, k: int) -> Array:
    """Ends k + 1 times; between them the points (odd k) or the middles (even k), less the knots
    that would be next to the ends."""
    if k == 0:
        return rnp.concatenate([x, x[-1:]])
    inner = x if k % 2 == 1 else 0.5 * (x[1:] + x[:-1])
    skip = (k + 1) // 2 if k % 2 == 1 else k // 2
    inner = inner[skip : inner.shape[0] - skip]
    first, last = rnp.full((k + 1,), x[0]), rnp.full((k + 1,), x[-1])
    return rnp.concatenate([first, inner, last])
