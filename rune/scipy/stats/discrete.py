"""Families of whole numbers, as records like those of family.py, with masses for densities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import rune.numpy as rnp
from rune.scipy.special.arguments import rounded
from rune.scipy.stats.family import Function, arranged, known, widened


@dataclass(frozen=True, eq=False)
class Discrete:
    """A family with masses at whole numbers. Its methods take k, the parameters, and loc = 0.

    Shapes: all arguments broadcast. Types: f32 or f64; half types are computed in f32.
    Errors: NaN for parameters that make no sense; ArgumentError for parameters that are missing or
            unknown, and for what the family has no formula of. Not differentiable in k.

    >>> from rune.scipy.stats import poisson
    >>> poisson.pmf(0, 1.0)
    Array(0.3678794, f32*[], cpu:0)
    """

    name: str
    about: str
    shapes: tuple[str, ...]
    log_mass: Function
    support: Function
    valid: Function
    mass: Function | None = None
    lower: Function | None = None
    upper: Function | None = None
    entropy_of: Function | None = None
    mean_of: Function | None = None
    variance_of: Function | None = None

    def __repr__(self) -> str:
        return f"stats.{self.name}({', '.join((*self.shapes, 'loc'))}): {self.about}"

    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the probability of k; -inf where that is 0."""
        k, shapes, dtype, inside, bad = self._placed(k, args, kwargs)
        return _finished(self.log_mass(k, *shapes), inside, bad, -rnp.inf, dtype)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of k; 0 for what is not whole or outside of the support."""
        k, shapes, dtype, inside, bad = self._placed(k, args, kwargs)
        found = self.mass or (lambda *v: rnp.exp(self.log_mass(*v)))
        return _finished(found(k, *shapes), inside, bad, 0.0, dtype)

    def cdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of at most k."""
        return self._cumulative("cdf", self.lower, self.upper, 0.0, 1.0, k, args, kwargs)

    def sf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability of more than k."""
        return self._cumulative("sf", self.upper, self.lower, 1.0, 0.0, k, args, kwargs)

    def logcdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of cdf."""
        return rnp.log(self.cdf(k, *args, **kwargs))

    def logsf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of sf."""
        return rnp.log(self.sf(k, *args, **kwargs))

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """The mean."""
        shapes, loc, dtype = self._parameters(args, kwargs)
        return rounded(loc + known(self.name, "mean", self.mean_of)(*shapes), dtype)

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """The variance."""
        shapes, loc, dtype = self._parameters(args, kwargs)
        return rounded(known(self.name, "var", self.variance_of)(*shapes) + 0.0 * loc, dtype)

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """The standard deviation."""
        return rnp.sqrt(self.var(*args, **kwargs))

    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """The entropy, in nats."""
        shapes, loc, dtype = self._parameters(args, kwargs)
        return rounded(known(self.name, "entropy", self.entropy_of)(*shapes) + 0.0 * loc, dtype)

    def _parameters(self, args: Sequence[Any], kwargs: dict) -> tuple[list[Any], Any, Any]:
        values = arranged(self.name, (*self.shapes, "loc"), args, kwargs)
        (*shapes, loc), dtype = widened(f"stats.{self.name}", values)
        return shapes, rnp.where(self.valid(*shapes), loc, rnp.nan), dtype

    def _placed(self, k: Any, args: Sequence[Any], kwargs: dict) -> tuple[Any, ...]:
        """k, parameters, the dtype of the result, where k has a mass, where nothing is defined."""
        values = arranged(self.name, (*self.shapes, "loc"), args, kwargs)
        (k, *shapes, loc), dtype = widened(f"stats.{self.name}", [k, *values])
        k = k - loc
        low, high = self.support(*shapes)
        inside = (k >= low) & (k <= high) & (k == rnp.round(k))
        bad = rnp.isnan(k) | ~self.valid(*shapes)
        return rnp.where(inside & ~bad, k, low), shapes, dtype, inside, bad

    def _cumulative(
        self, what: str, own: Function | None, other: Function | None, below: float, above: float,
        k: Any, args: Sequence[Any], kwargs: dict,
    ) -> Any:  # fmt: skip
        values = arranged(self.name, (*self.shapes, "loc"), args, kwargs)
        (k, *shapes, loc), dtype = widened(f"stats.{self.name}", [k, *values])
        k = rnp.floor(k - loc)
        low, high = self.support(*shapes)
        is_below, is_above = k < low, k >= high
        bad = rnp.isnan(k) | ~self.valid(*shapes)
        safe = rnp.where(is_below | is_above | bad, low, k)
        found = own(safe, *shapes) if own else 1.0 - known(self.name, what, other)(safe, *shapes)
        out = rnp.where(is_below, below, rnp.where(is_above, above, found))
        return rounded(rnp.where(bad, rnp.nan, out), dtype)


def _finished(found: Any, inside: Any, bad: Any, outside: float, dtype: Any) -> Any:
    out = rnp.where(bad, rnp.nan, rnp.where(inside, found, outside))
    return rounded(out, dtype)
