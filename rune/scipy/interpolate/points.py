"""Interpolation between points of a line or of a grid, and the polynomial through points."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.ops.conventions import normalised_axis
from rune.ops.promote import promoted
from rune.records import dataclass
from rune.scipy.interpolate.bsplines import make_interp_spline
from rune.scipy.interpolate.piecewise import points_at, require_rising, samples
from rune.scipy.special.arguments import concrete, reals
from rune.typing import ArrayLike, Nested

_DEGREES = {"slinear": 1, "quadratic": 2, "cubic": 3}


def interp1d(
    x: ArrayLike,
    y: Nested,
    kind: str = "linear",
    axis: int = -1,
    *,
    fill_value: ArrayLike = rnp.nan,
    assume_sorted: bool = False,
) -> Callable[[ArrayLike], Array]:
    """A function through y at x.

    Shapes: x [N]; y with N along the axis, where the axes of the points go in results.
    kind:   "linear", "nearest", "previous", "next", "slinear", "quadratic", "cubic".
    fill_value: the value outside x, a pair of values below and above, or "extrapolate".
    assume_sorted: x rises; otherwise it is sorted first.
    Errors: ShapeError; ArgumentError for an unknown kind, and if a spline is to go through two
            equal x whose values are known.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import interp1d
    >>> interp1d(rnp.arange(3.0), rnp.array([0.0, 2.0, 2.0]))(0.5)
    Array(1., f32[], cpu:0)
    """
    if kind not in ("linear", "nearest", "previous", "next", *_DEGREES):
        raise ArgumentError(
            f"interp1d: cannot use kind={kind!r}",
            hint="'linear', 'nearest', 'previous', 'next', 'slinear', 'quadratic' or 'cubic'",
        )
    at_axis = normalised_axis("interp1d", axis, type_of(rnp.asarray(y)))
    x, y = _sorted(x, y, axis, assume_sorted)
    inner = make_interp_spline(x, y, _DEGREES[kind]) if kind in _DEGREES else None

    def interpolant(at: ArrayLike) -> Array:
        (points,) = reals("interp1d", at)
        values = _between_points(x, y, points, kind) if inner is None else inner(points)
        if isinstance(fill_value, str):
            return points_at(values, points.ndim, at_axis)
        below, above = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
        shape = (*points.shape, *(1,) * (y.ndim - 1))
        is_below, is_above = (rnp.reshape(v, shape) for v in (points < x[0], points > x[-1]))
        values = rnp.where(is_below, below, rnp.where(is_above, above, values))
        return points_at(values, points.ndim, at_axis)

    return interpolant


def _sorted(x: ArrayLike, y: Nested, axis: int, is_sorted: bool) -> tuple[Array, Array]:
    """Points [N] that do not fall, and values [N, *S]."""
    x, y = samples("interp1d", x, y, axis, 1)
    if is_sorted:
        return x, y
    order = rnp.argsort(x, stable=True)
    return x[order], y[order]


def _between_points(x: Array, y: Array, points: Array, kind: str) -> Array:
    last = x.shape[0] - 1
    if kind == "linear" and last > 0:
        piece = rnp.clip(rnp.searchsorted(x, points, side="right") - 1, 0, last - 1)
        share = (points - x[piece]) / (x[piece + 1] - x[piece])
        share = rnp.reshape(share, (*points.shape, *(1,) * (y.ndim - 1)))
        return y[piece] + share * (y[piece + 1] - y[piece])
    if kind == "nearest":  # halves go down
        place = rnp.searchsorted(0.5 * (x[1:] + x[:-1]), points, side="left")
    elif kind == "previous":
        place = rnp.searchsorted(x, points, side="right") - 1
    else:
        place = rnp.searchsorted(x, points, side="left")
    return y[rnp.clip(place, 0, last)]


@dataclass(frozen=True)
class RegularGridInterpolator:
    """Values between the points of a grid, linear in each axis or those of the nearest point.

    points: one array for each of the first D axes, rising, or falling where it is not traced;
            values: [N1, …, ND, *S], real or complex.
    method: "linear" or "nearest".   bounds_error: must be False; there are no errors under jit.
    fill_value: outside the grid; None extrapolates.
    Errors: ShapeError; ArgumentError for an unknown method, and for known points that neither rise
            nor fall.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import RegularGridInterpolator
    >>> grid = RegularGridInterpolator((rnp.arange(2.0), rnp.arange(2.0)), rnp.eye(2))
    >>> grid(rnp.array([[0.5, 0.5]]))
    Array([0.5], f32[1], cpu:0)
    """

    points: tuple[Any, ...]
    values: Array
    method: str = "linear"
    bounds_error: bool = False
    fill_value: Any = rnp.nan

    def __post_init__(self) -> None:
        if self.method not in ("linear", "nearest"):
            raise ArgumentError(
                f"RegularGridInterpolator: cannot use method={self.method!r}", hint="'linear' or 'nearest'"
            )
        if self.bounds_error:
            raise ArgumentError("RegularGridInterpolator: cannot use bounds_error=True")
        points = [reals("RegularGridInterpolator", p)[0] for p in self.points]
        values = rnp.asarray(*promoted("RegularGridInterpolator", self.values, kind="inexact"))
        sizes = tuple(p.size for p in points)
        if any(p.ndim != 1 for p in points) or 0 in sizes or values.shape[: len(sizes)] != sizes:
            raise ShapeError(f"RegularGridInterpolator: cannot use values {values.shape} on a grid {sizes}")
        for axis, at in enumerate(points):
            if _is_falling(at):
                points[axis], values = at[::-1], rnp.flip(values, axis)
            require_rising("RegularGridInterpolator", points[axis])
        object.__setattr__(self, "points", tuple(points))
        object.__setattr__(self, "values", values)

    def __call__(self, xi: Array | tuple[Array, ...], method: str | None = None) -> Array:
        """The values at points [*T, D], [T D], or a tuple of D arrays [*T] -> [*T, *S]."""
        where = self._coordinates(xi)
        cells, shares, is_outside, is_nan = [], [], False, False
        for grid, at in zip(self.points, where):
            cell, share = _cell(grid, at)
            cells.append(cell)
            shares.append(share)
            is_outside = is_outside | (at < grid[0]) | (at > grid[-1])
            is_nan = is_nan | rnp.isnan(at)
        value_axes = (1,) * (self.values.ndim - len(self.points))
        values = self._near(cells, shares, value_axes, method or self.method)
        shape = (*where[0].shape, *value_axes)
        if self.fill_value is not None:
            values = rnp.where(rnp.reshape(is_outside, shape), self.fill_value, values)
        return rnp.where(rnp.reshape(is_nan, shape), rnp.nan, values)

    def _near(self, cells: list, shares: list, value_axes: tuple[int, ...], method: str) -> Array:
        if method == "nearest":
            places = (rnp.where(s <= 0.5, c, c + 1) for c, s in zip(cells, shares))
            return self.values[tuple(self._within(places))]
        total: Any = 0.0
        for corner in product((0, 1), repeat=len(cells)):
            weight: Any = 1.0
            for side, share in zip(corner, shares):
                weight = weight * (share if side else 1.0 - share)
            places = (c + side for c, side in zip(cells, corner))
            value = self.values[tuple(self._within(places))]
            total = total + value * rnp.reshape(weight, (*weight.shape, *value_axes))
        return total

    def _within(self, places: Iterable[Any]) -> list[Array]:
        """The positions, with a second neighbour only along axes of more than one point."""
        return [rnp.minimum(p, n - 1) for p, n in zip(places, self.values.shape)]

    def _coordinates(self, xi: Array | tuple[Array, ...]) -> list[Array]:
        if isinstance(xi, tuple | list):
            return reals("RegularGridInterpolator", *xi)
        (at,) = reals("RegularGridInterpolator", xi)
        axes = len(self.points)
        if at.ndim == 0 or at.shape[-1] % axes != 0 or (at.ndim > 1 and at.shape[-1] != axes):
            raise ShapeError(f"RegularGridInterpolator: cannot take points {at.shape} on a grid of {axes} axes")
        at = rnp.reshape(at, (-1, axes)) if at.ndim == 1 else at
        return [at[..., i] for i in range(axes)]


def _is_falling(at: Array) -> bool:
    points = concrete(at)
    return points is not None and points.size > 1 and bool((points[1:] < points[:-1]).all())


def _cell(grid: Array, at: Array) -> tuple[Array, Array]:
    """The cell of the grid in which a point is, and how far in it; 0 for a single point."""
    last = max(grid.shape[0] - 2, 0)
    cell = rnp.clip(rnp.searchsorted(grid, at) - 1, 0, last)
    if grid.shape[0] <= 1:
        return cell, rnp.zeros_like(at)
    return cell, (at - grid[cell]) / (grid[cell + 1] - grid[cell])


@dataclass(frozen=True)
class BarycentricInterpolator:
    """The polynomial through y at x, by the second barycentric formula.

    xi: [N], distinct;  yi: [N, *S].  Well-conditioned at Chebyshev points alone.
    Source: Berrut & Trefethen 2004, SIAM Review 46(3).
    Errors: ArgumentError if an argument is not an array; ShapeError for values that are not as many
            as points.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import BarycentricInterpolator
    >>> BarycentricInterpolator(rnp.arange(3.0), rnp.arange(3.0) ** 2)(1.5)
    Array(2.2500002, f32[], cpu:0)
    """

    xi: Any
    yi: Any
    weights: Any = None

    def __post_init__(self) -> None:
        x, y = samples("BarycentricInterpolator", self.xi, self.yi, 0, 1)
        # The interval is scaled to length 4, whose capacity is 1, so that no product overflows.
        size = rnp.maximum(rnp.max(x) - rnp.min(x), rnp.finfo(x.dtype).tiny)
        apart = (x[:, None] - x[None, :]) * (4.0 / size)
        apart = rnp.where(rnp.eye(x.shape[0], dtype=bool), 1.0, apart)
        for name, value in (("xi", x), ("yi", y), ("weights", 1.0 / rnp.prod(apart, 1))):
            object.__setattr__(self, name, value)

    def __call__(self, x: ArrayLike) -> Array:
        """The value at points [*T] -> [*T, *S]."""
        (points,) = reals("BarycentricInterpolator", x)
        apart = points[..., None] - self.xi
        is_hit = apart == 0
        terms = rnp.where(is_hit, 0.0, self.weights / rnp.where(is_hit, 1.0, apart))
        # At one of the given points only its term counts.
        is_any = rnp.any(is_hit, -1, keepdims=True)
        terms = rnp.where(is_any, is_hit.astype(terms.dtype), terms)
        shares = terms / rnp.sum(terms, -1, keepdims=True)
        return rnp.tensordot(shares, self.yi, axes=1)


def barycentric_interpolate(xi: ArrayLike, yi: Nested, x: ArrayLike) -> Array:
    """The polynomial through yi at xi, at x.

    Shapes: xi [N], yi [N, *V], x [*S] -> [*S, *V].
    Types:  real, the common dtype of all three; bools and integers become f32.
    Errors: ArgumentError if an argument is not an array; DtypeError if an argument is not an array
            or is complex; ShapeError if the shapes do not match; AxisError for an axis out of
            range.
    Source: Berrut & Trefethen 2004, SIAM Review 46(3).

    >>> import rune.numpy as rnp
    >>> from rune.scipy.interpolate import barycentric_interpolate
    >>> barycentric_interpolate(rnp.arange(2.0), rnp.arange(2.0), 0.5)
    Array(0.5, f32[], cpu:0)
    """
    return BarycentricInterpolator(xi, yi)(x)


def _grid_of(static: tuple[str, bool, Any], kids: Any) -> RegularGridInterpolator:
    interpolator = object.__new__(RegularGridInterpolator)
    names = ("points", "values", "method", "bounds_error", "fill_value")
    for name, value in zip(names, (kids[0], kids[1], *static)):
        object.__setattr__(interpolator, name, value)
    return interpolator


def _polynomial_of(_: None, kids: Any) -> BarycentricInterpolator:
    interpolator = object.__new__(BarycentricInterpolator)
    for name, value in zip(("xi", "yi", "weights"), kids):
        object.__setattr__(interpolator, name, value)
    return interpolator


tree.register_node(
    RegularGridInterpolator, lambda g: ((g.points, g.values), (g.method, g.bounds_error, g.fill_value)), _grid_of
)
tree.register_node(BarycentricInterpolator, lambda p: ((p.xi, p.yi, p.weights), None), _polynomial_of)
