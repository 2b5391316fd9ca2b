"""Families of integers, as records like those of family.py, with probability masses for densities.

Quantiles are searched for: the first integer at which the distribution function is large enough,
between bounds that double until they enclose it and are then halved, lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.control import while_loop
from rune.records import dataclass
from rune.scipy.special.arguments import rounded, undefined
from rune.scipy.stats.family import Family, Function, known
from rune.typing import ArrayLike


@dataclass(frozen=True, eq=False, repr=False)
class Discrete(Family):
    """A family with probability masses at integers. Its methods take k, the parameters, and loc =
    0.

    Shapes: all arguments broadcast. Types: f32 or f64; half types are computed in f32.
    Errors: NaN for invalid parameters; ArgumentError for parameters that are missing or unknown,
            and for quantities that have no formula. Not differentiable in k; the derivatives of ppf
            and isf are 0.

    >>> from rune.scipy.stats import poisson
    >>> poisson.pmf(0, 1.0)
    Array(0.3678794, f32*[], cpu:0)
    """

    moves = ("loc",)

    name: str
    about: str
    shapes: tuple[str, ...]
    log_mass: Function
    bounds: Function
    valid: Function
    mass: Function | None = None
    lower: Function | None = None
    upper: Function | None = None
    shares: Function | None = None  # both at once, for quantiles
    entropy_of: Function | None = None
    mean_of: Function | None = None
    variance_of: Function | None = None

    def logpmf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The logarithm of the probability of k; -inf where that is 0."""
        k, shapes, dtype, inside, bad = self._placed(k, args, kwargs)
        return _finished(self.log_mass(k, *shapes), inside, bad, -rnp.inf, dtype)

    def pmf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The probability of k; 0 if k is not an integer or is outside the support."""
        k, shapes, dtype, inside, bad = self._placed(k, args, kwargs)
        mass = self.mass or (lambda *v: rnp.exp(self.log_mass(*v)))
        return _finished(mass(k, *shapes), inside, bad, 0.0, dtype)

    def cdf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The probability of at most k."""
        return self._cumulative("cdf", k, args, kwargs)

    def sf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The probability of more than k."""
        return self._cumulative("sf", k, args, kwargs)

    def logcdf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The logarithm of cdf."""
        return self._log_share(self.cdf(k, *args, **kwargs), lambda: self.sf(k, *args, **kwargs))

    def logsf(self, k: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The logarithm of sf."""
        return self._log_share(self.sf(k, *args, **kwargs), lambda: self.cdf(k, *args, **kwargs))

    def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The smallest k with cdf(k) >= q; one below the support for q = 0, NaN outside [0, 1]."""
        return self._quantile("ppf", q, args, kwargs)

    def isf(self, q: ArrayLike, *args: ArrayLike, **kwargs: object) -> Array:
        """The smallest k with sf(k) <= q; one below the support for q = 1, NaN outside [0, 1]."""
        return self._quantile("isf", q, args, kwargs)

    def _quantile(self, quantity: str, q: ArrayLike, args: Sequence[ArrayLike], kwargs: dict) -> Array:
        operands, dtype = self._widened([q], args, kwargs)
        level, *shapes, loc = (ops.stop_gradient(v) for v in operands)
        good = self.valid(*shapes) & (level >= 0) & (level <= 1)
        low, high = (rnp.full_like(level, 0.0) + end for end in self.bounds(*shapes))
        complement, is_upper = 1.0 - level, quantity == "isf"
        below, above = (complement, level) if is_upper else (level, complement)

        def is_enough(k: Array) -> Array:
            inner = rnp.clip(k, low, high)
            lower, upper = self._shares(quantity, inner, shapes)
            # The smaller of the two probabilities, since the other has no digits there.
            suffices = rnp.where(below <= above, lower >= below, upper <= above)
            mass = rnp.exp(self.log_mass(inner, *shapes))
            suffices = suffices | _is_own(upper if is_upper else lower, level, mass)
            return ((k >= low) & suffices) | (k >= high)

        first, last = (level == 1, level == 0) if is_upper else (level == 0, level == 1)
        is_inner = good & ~first & ~last
        if isinstance(self.lower, Summed):
            quantile = self.lower.first_where(
                lambda walk: (
                    walk.reaches(below, above)
                    | _is_own(1.0 - walk.total if is_upper else walk.total, level, rnp.exp(walk.log))
                ),
                is_inner,
                *shapes,
            )
            inner = rnp.minimum(quantile, high)
        else:
            inner = _first_where(is_enough, low - 1.0, high, is_inner)
        out = rnp.where(first, low - 1.0, rnp.where(last, high, inner))
        return rounded(undefined(~good, out + loc), dtype)

    def _shares(self, quantity: str, k: Array, shapes: Sequence[Array]) -> tuple[Array, Array]:
        """The probabilities up to k, and beyond."""
        if self.shares is not None:
            return self.shares(k, *shapes)
        if self.lower is not None:
            lower = self.lower(k, *shapes)
            return lower, 1.0 - lower if self.upper is None else self.upper(k, *shapes)
        upper = known(self.name, quantity, self.upper)(k, *shapes)
        return 1.0 - upper, upper

    def _parameters(self, args: Sequence[ArrayLike], kwargs: dict) -> tuple[list[Array], Any, Any, np.dtype]:
        (*shapes, loc), dtype = self._widened([], args, kwargs)
        return shapes, undefined(rnp.logical_not(self.valid(*shapes)), loc), 1.0, dtype

    def _placed(
        self, k: ArrayLike, args: Sequence[ArrayLike], kwargs: dict
    ) -> tuple[Array, list[Array], np.dtype, Array, Array]:
        """k, parameters, the dtype of the result, where k has a mass, and where nothing is
        defined.
        """
        (k, *shapes, loc), dtype = self._widened([k], args, kwargs)
        k = k - loc
        low, high = self.bounds(*shapes)
        inside = (k >= low) & (k <= high) & (k == rnp.round(k))
        bad = rnp.isnan(k) | ~self.valid(*shapes)
        return rnp.where(inside & ~bad, k, low), shapes, dtype, inside, bad

    def _cumulative(self, quantity: str, k: ArrayLike, args: Sequence[ArrayLike], kwargs: dict) -> Array:
        functions, ends = (self.lower, self.upper), (0.0, 1.0)
        (share, other), (below, above) = (functions, ends) if quantity == "cdf" else (functions[::-1], ends[::-1])
        (k, *shapes, loc), dtype = self._widened([k], args, kwargs)
        k = rnp.floor(k - loc)
        low, high = self.bounds(*shapes)
        is_below, is_above = k < low, k >= high
        bad = rnp.isnan(k) | ~self.valid(*shapes)
        safe = rnp.where(is_below | is_above | bad, low, k)
        inner = share(safe, *shapes) if share else 1.0 - known(self.name, quantity, other)(safe, *shapes)
        out = rnp.where(is_below, below, rnp.where(is_above, above, inner))
        return rounded(undefined(bad, out), dtype)


def _is_own(share: Array, level: Array, mass: Array) -> Array:
    """Whether `share` is `level` up to rounding, and not that of another number."""
    return (share == level) & (mass > float(rnp.finfo(level.dtype).eps))


class _Walk(NamedTuple):
    """The state of a sum of masses: the last number, the logarithm of its mass, the sum."""

    at: Array
    log: Array
    log_rest: Array
    total: Array
    total_rest: Array

    @property
    def has_next(self) -> Array:
        """Whether there is a next integer in the dtype."""
        return self.at + 1.0 > self.at

    def reaches(self, below: Array, above: Array) -> Array:
        """Whether the probability is at least `below`, given its complement `above`; by all its
        digits.
        """
        missing = (1.0 - self.total) - self.total_rest
        return rnp.where(below <= above, self.total >= below, missing <= above)


TERMS = 8  # numbers in a step of a loop


@dataclass(frozen=True, eq=False)
class Summed:
    """The distribution function of masses whose sum has no closed form, from `first` on.

    log_mass: of the shapes alone, at `first`.
    growth:   the mass at k + 1 over that at k, minus 1: a ratio rounded near 1 would drift.
    reach:    of the shapes: masses beyond it add nothing.

    Cost: one mass for each number up to the largest k, and at most up to the largest reach. A
          quantile
    takes one such pass, since devices without loops of their own pay for each step.
    """

    first: float
    log_mass: Function
    growth: Function
    reach: Function

    def __call__(self, k: Array, *shapes: Array) -> Array:
        """The probability of the numbers up to k."""
        most = self._most(rnp.minimum(k, ops.stop_gradient(self.reach(*shapes))))
        last = ops.stop_gradient(rnp.max(most, initial=self.first))
        return while_loop(
            lambda walk: (walk.at < last) & walk.has_next,
            lambda walk: self._further(walk, most, shapes),
            self._start(most, shapes),
        ).total

    def first_where(self, is_enough: Function, is_searched: Array, *shapes: Array) -> Array:
        """The first number whose probability is enough, for the selected lanes, else inf."""
        most = self._most(rnp.where(is_searched, self.reach(*shapes), self.first))
        start = self._start(most, shapes)

        def first_at(walk: _Walk, first: Array) -> Array:
            is_new = rnp.isinf(first) & is_enough(walk)
            return rnp.where(is_new, walk.at, first)

        def goes_on(carry: tuple[_Walk, Array]) -> Array:
            walk, first = carry
            return rnp.any(rnp.isinf(first) & (walk.at < most)) & walk.has_next

        def again(carry: tuple[_Walk, Array]) -> tuple[_Walk, Array]:
            walk, first = carry
            for _ in range(TERMS):
                walk = self._next(walk, most, shapes)
                first = first_at(walk, first)
            return walk, first

        nothing = rnp.full_like(start.total, rnp.inf)
        return while_loop(goes_on, again, (start, first_at(start, nothing)))[1]

    def _most(self, reach: Array) -> Array:
        """The largest reach; a lane of NaN does not end the sum of another."""
        return rnp.where(rnp.isnan(reach), self.first, reach)

    def _start(self, most: Array, shapes: Sequence[Array]) -> _Walk:
        log = self.log_mass(*shapes)
        zero = rnp.zeros_like(log)
        return _Walk(rnp.asarray(self.first, most.dtype), log, zero, rnp.exp(log), zero)

    def _further(self, walk: _Walk, most: Array, shapes: Sequence[Array]) -> _Walk:
        for _ in range(TERMS):
            walk = self._next(walk, most, shapes)
        return walk

    def _next(self, walk: _Walk, most: Array, shapes: Sequence[Array]) -> _Walk:
        """The state after one number more, up to `most`."""
        is_on = (walk.at < most) & walk.has_next
        at = rnp.where(is_on, walk.at, self.first)
        growth = rnp.where(is_on, self.growth(at, *shapes), 0.0)
        log, log_rest = _compensated(walk.log, walk.log_rest, rnp.log1p(growth))
        mass = rnp.where(is_on, rnp.exp(log), 0.0)
        total = _compensated(walk.total, walk.total_rest, mass)
        return _Walk(walk.at + 1.0, log, log_rest, *total)


def _compensated(total: Array, correction: Array, term: Array) -> tuple[Array, Array]:
    """The sum with one more term, and its rounding error.

    Thousands of terms would drift by their roundings.
    Source: Kahan 1965, Further remarks on reducing truncation errors.
    """
    term = term + correction
    new = total + term
    return new, term - (new - total)


class _Search(NamedTuple):
    """No number up to `below` is enough, all from `enough` on are; the next stride while that is
    inf.
    """

    below: Array
    enough: Array
    stride: Array
    n: Array


STEPS = 400  # 106 reach every number below 2**53: strides double, then intervals halve


def _first_where(is_enough: Function, below: Array, enough: Array, is_searched: Array) -> Array:
    """The first integer that is enough, for the selected lanes.

    below, enough: bounds of the search; from 0 outwards where they are infinite.
    """

    def middle(s: _Search) -> Array:
        up = rnp.where(rnp.isinf(s.below), 0.0, s.below) + s.stride
        down = rnp.where(rnp.isinf(s.enough), 0.0, s.enough) - s.stride
        both = s.below + rnp.floor(0.5 * (s.enough - s.below))
        return rnp.where(rnp.isinf(s.enough), up, rnp.where(rnp.isinf(s.below), down, both))

    def goes_on(s: _Search) -> Array:
        # Beyond the integers of the dtype, the middle is one of the ends.
        at = middle(s)
        return rnp.any(is_searched & (at > s.below) & (at < s.enough)) & (s.n < STEPS)

    def again(s: _Search) -> _Search:
        at = middle(s)
        inside = (at > s.below) & (at < s.enough)
        suffices = is_enough(at)
        below = rnp.where(inside & ~suffices, at, s.below)
        return _Search(below, rnp.where(inside & suffices, at, s.enough), 2.0 * s.stride, s.n + 1)

    start = _Search(below, enough, rnp.ones_like(below), rnp.asarray(0))
    return while_loop(goes_on, again, start).enough


def _finished(value: Array, inside: Array, bad: Array, outside: float, dtype: np.dtype) -> Array:
    return rounded(undefined(bad, rnp.where(inside, value, outside)), dtype)
