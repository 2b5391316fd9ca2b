"""A family of distributions as a record of functions, and what follows from them.

A record describes the standard member of a family, at y = (x - loc) / scale inside its support. All
else is derived here, once: location and scale, values outside the support, logarithms and
complements, NaN for invalid parameters. Functions of a record receive arrays of one floating dtype
and shape, at points inside the support, so that no derivative meets a NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack, cast

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.errors import ArgumentError
from rune.records import dataclass, replace
from rune.scipy.special.arguments import reals, rounded, undefined
from rune.typing import ArrayLike

Function = Callable[..., Any]


class _Place(NamedTuple):
    """A point of the support, the argument that it represents, a mask of points outside, and
    parameters.
    """

    y: Array
    argument: Array
    is_below: Array
    is_above: Array
    is_bad: Array
    shapes: list[Array]
    scale: Array
    dtype: Any


def arranged(family: str, names: Sequence[str], args: Sequence[ArrayLike], kwargs: dict) -> list[Any]:
    """Values of the named parameters; loc and scale are 0 and 1 by default.

    Errors: ArgumentError for one that is missing, repeated or unknown.
    """
    defaults: dict[str, object] = {"loc": 0, "scale": 1}
    by_name = dict(zip(names, args))
    wrong = [k for k in kwargs if k not in names or k in by_name]
    by_name |= kwargs
    missing = [n for n in names if n not in by_name and n not in defaults]
    if wrong or missing or len(args) > len(names):
        faults = [f"no {', '.join(missing)}"] if missing else []
        faults += [f"{', '.join(wrong)} unknown or given twice"] if wrong else []
        faults += ["too many"] if len(args) > len(names) else []
        raise ArgumentError(
            f"stats.{family}: cannot use these parameters ({'; '.join(faults)})", hint=f"they are {', '.join(names)}"
        )
    return [by_name.get(n, defaults.get(n)) for n in names]


def widened(name: str, values: Sequence[ArrayLike]) -> tuple[list[Array], np.dtype]:
    """Arrays of one floating dtype and shape, half types in f32; and the dtype of the result."""
    arrays = reals(name, *values)
    dtype = arrays[0].dtype
    if rnp.finfo(dtype).bits >= 32:
        return arrays, dtype
    return [rnp.astype(v, rnp.float32) for v in arrays], dtype


def positive(*shapes: Array) -> Array:
    """Whether all parameters are positive."""
    good = shapes[0] > 0
    for s in shapes[1:]:
        good = good & (s > 0)
    return good


def known(family: str, quantity: str, function: Function | None) -> Function:
    """A function of a record. Errors: ArgumentError if the record does not have it."""
    if function is None:
        raise ArgumentError(f"stats.{family}: cannot compute {quantity} (no closed form)")
    return function


def log_share(share: Array, complement: Array, log: Array | None = None) -> Array:
    """The logarithm of a probability, by its complement where that is smaller and has the digits.

    log: another formula's, where the probability is the smaller one.
    """
    is_most = share > 0.5
    # Each formula is at 0 or 1 where the other is used, so that its slope there is finite.
    by_complement = rnp.log1p(-rnp.where(is_most, complement, 0.0))
    log = rnp.log(rnp.where(is_most, 1.0, share)) if log is None else log
    return rnp.where(is_most, by_complement, log)


class Family(ABC):
    """What follows from a record's formulas for a distribution as a whole."""

    moves: ClassVar[tuple[str, ...]]  # the parameters that move and scale the standard member
    name: str
    about: str
    shapes: tuple[str, ...]
    bounds: Function
    lower: Function | None
    upper: Function | None
    entropy_of: Function | None
    mean_of: Function | None
    variance_of: Function | None

    @abstractmethod
    def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The inverse of cdf."""

    def __repr__(self) -> str:
        return f"stats.{self.name}({', '.join((*self.shapes, *self.moves))}): {self.about}"

    def _widened(
        self, operands: Sequence[ArrayLike], args: Sequence[ArrayLike], kwargs: dict
    ) -> tuple[list[Array], np.dtype]:
        """Operands and then the parameters, in the dtype to compute in; the dtype of the result."""
        values = arranged(self.name, (*self.shapes, *self.moves), args, kwargs)
        return widened(f"stats.{self.name}", [*operands, *values])

    def _log_share(self, share: Array, complement: Callable[[], Array]) -> Array:
        """The logarithm of a probability, by its complement if each has a formula of its own."""
        both = self.lower is not None and self.upper is not None
        return log_share(share, complement()) if both else rnp.log(share)

    @abstractmethod
    def _parameters(self, args: Sequence[ArrayLike], kwargs: dict) -> tuple[list[Array], Any, Any, np.dtype]:
        """Shape parameters, loc and scale, one of them NaN where parameters are invalid; dtype."""

    def mean(self, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The mean."""
        shapes, loc, scale, dtype = self._parameters(args, kwargs)
        return rounded(loc + scale * known(self.name, "mean", self.mean_of)(*shapes), dtype)

    def var(self, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The variance."""
        shapes, loc, scale, dtype = self._parameters(args, kwargs)
        variance = known(self.name, "var", self.variance_of)(*shapes)
        return rounded(_beside(loc, scale * scale * variance), dtype)

    def std(self, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The standard deviation."""
        return rnp.sqrt(self.var(*args, **kwargs))

    def entropy(self, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The entropy, in nats; of a density the differential entropy."""
        shapes, loc, scale, dtype = self._parameters(args, kwargs)
        entropy = known(self.name, "entropy", self.entropy_of)(*shapes)
        return rounded(_beside(loc, entropy + rnp.log(scale)), dtype)

    def median(self, *args: Any, **kwargs: Any) -> Array:
        """The smallest point where cdf is at least 1/2."""
        return self.ppf(0.5, *args, **kwargs)

    def interval(self, confidence: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> tuple[Array, Array]:
        """The ends of the interval that has probability `confidence`, with equal probabilities on
        both sides.
        """
        edge = (1.0 - rnp.asarray(confidence)) / 2.0
        return self.ppf(edge, *args, **kwargs), self.ppf(1.0 - edge, *args, **kwargs)

    def support(self, *args: ArrayLike, **kwargs: ArrayLike) -> tuple[Array, Array]:
        """The bounds of the support."""
        shapes, loc, scale, dtype = self._parameters(args, kwargs)
        low, high = (rounded(loc + scale * end, dtype) for end in self.bounds(*shapes))
        return low, high


def _beside(loc: Array, value: Array) -> Array:
    """A value that no location changes, not even an infinite one; NaN where that is NaN."""
    return rnp.where(rnp.isnan(loc), loc, value)


@dataclass(frozen=True, eq=False, repr=False)
class Continuous(Family):
    """A family with a density. Its methods take x, the shape parameters, loc = 0 and scale = 1.

    Shapes: all arguments broadcast. Types: f32 or f64; half types are computed in f32.
    Errors: NaN for invalid parameters; ArgumentError for parameters that are missing or unknown,
            and for quantities that have no formula.

    >>> from rune.scipy.stats import norm
    >>> norm.cdf(0.0, loc=0.0, scale=2.0)
    Array(0.5, f32*[], cpu:0)
    """

    moves = ("loc", "scale")

    name: str
    about: str
    shapes: tuple[str, ...]
    log_density: Function
    lower: Function | None = None  # the distribution function
    upper: Function | None = None  # its complement
    log_lower: Function | None = None
    log_upper: Function | None = None
    quantile: Function | None = None
    upper_quantile: Function | None = None
    density: Function | None = None
    bounds: Function = lambda *shapes: (-rnp.inf, rnp.inf)
    is_open: bool = False  # the density is 0 at the lower end, where its formula is undefined
    inside: Function = lambda *shapes: 0.5  # a point of the support
    valid: Function = lambda *shapes: True
    entropy_of: Function | None = None
    mean_of: Function | None = None
    variance_of: Function | None = None

    # --- at a point ---------------------------------------------------------------------------

    def logpdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The logarithm of the density; -inf outside the support."""
        p = self._placed(x, args, kwargs, self.is_open)
        value = self.log_density(p.y, *p.shapes) - rnp.log(p.scale)
        return self._finished(p, value, -rnp.inf, -rnp.inf)

    def pdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The density; 0 outside the support."""
        p = self._placed(x, args, kwargs, self.is_open)
        density = self.density or (lambda *v: rnp.exp(self.log_density(*v)))
        return self._finished(p, density(p.y, *p.shapes) / p.scale, 0.0, 0.0)

    def cdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The probability of at most x."""
        p = self._placed(x, args, kwargs)
        return self._finished(p, self._lower(p), 0.0, 1.0)

    def sf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The probability of more than x, accurate where that is small if the family allows."""
        p = self._placed(x, args, kwargs)
        return self._finished(p, self._upper(p), 1.0, 0.0)

    def logcdf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The logarithm of cdf."""
        p = self._placed(x, args, kwargs)
        log_lower = self.log_lower
        value = log_lower(p.y, *p.shapes) if log_lower else self._log_share(self._lower(p), lambda: self._upper(p))
        return self._finished(p, value, -rnp.inf, 0.0)

    def logsf(self, x: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The logarithm of sf."""
        p = self._placed(x, args, kwargs)
        log_upper = self.log_upper
        value = log_upper(p.y, *p.shapes) if log_upper else self._log_share(self._upper(p), lambda: self._lower(p))
        return self._finished(p, value, 0.0, -rnp.inf)

    def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The inverse of cdf; NaN outside [0, 1]."""
        return self._inverse("ppf", q, args, kwargs)

    def isf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
        """The inverse of sf; NaN outside [0, 1]."""
        return self._inverse("isf", q, args, kwargs)

    # --- how ----------------------------------------------------------------------------------

    def _parameters(self, args: Sequence[ArrayLike], kwargs: dict) -> tuple[list[Array], Array, Array, np.dtype]:
        """Shape parameters, loc, and scale with NaN where the parameters are invalid; the dtype."""
        (*shapes, loc, scale), dtype = self._widened([], args, kwargs)
        good = (scale > 0) & self.valid(*shapes)
        return shapes, loc, undefined(~good, scale), dtype

    def _placed(self, x: ArrayLike, args: Sequence[ArrayLike], kwargs: dict, is_open: bool = False) -> _Place:
        (x, *shapes, loc, scale), dtype = self._widened([x], args, kwargs)
        y = (x - loc) / scale
        low, high = self.bounds(*shapes)
        # At infinity the probability is 0, even where the formulas give inf - inf.
        is_below = (y <= low if is_open else y < low) | (y == -rnp.inf)
        is_above = (y > high) | (y == rnp.inf)
        is_bad = rnp.isnan(y) | ~((scale > 0) & self.valid(*shapes))
        inside = rnp.where(is_below | is_above | is_bad, self.inside(*shapes), y)
        return _Place(inside, y, is_below, is_above, is_bad, shapes, scale, dtype)

    def _finished(self, p: _Place, value: Array, below: float, above: float) -> Array:
        out = rnp.where(p.is_below, below, rnp.where(p.is_above, above, value))
        return rounded(undefined(p.is_bad, out, sum(p.shapes, p.argument)), p.dtype)

    def _lower(self, p: _Place) -> Array:
        if self.lower is None and self.upper is not None:
            return 1.0 - self.upper(p.y, *p.shapes)
        return known(self.name, "cdf", self.lower)(p.y, *p.shapes)

    def _upper(self, p: _Place) -> Array:
        if self.upper is None:
            return 1.0 - self._lower(p)
        return self.upper(p.y, *p.shapes)

    def _inverse(self, quantity: str, q: ArrayLike, args: Sequence[ArrayLike], kwargs: dict) -> Array:
        (q, *shapes, loc, scale), dtype = self._widened([q], args, kwargs)
        is_inside = (q > 0) & (q < 1)
        safe = rnp.where(is_inside, q, 0.5)
        functions, ends = (self.quantile, self.upper_quantile), self.bounds(*shapes)
        (inverse, other), (first, last) = (functions, ends) if quantity == "ppf" else (functions[::-1], ends[::-1])
        inner = inverse(safe, *shapes) if inverse else known(self.name, quantity, other)(1.0 - safe, *shapes)
        edge = rnp.where(q == 0, first, rnp.where(q == 1, last, rnp.nan))
        out = loc + scale * rnp.where(is_inside, inner, edge)
        good = (scale > 0) & self.valid(*shapes) & (q >= 0) & (q <= 1)
        return rounded(undefined(~good, out, sum(shapes, q)), dtype)


class Tails(TypedDict, total=False):
    """The functions of a record that belong to one side of a distribution."""

    lower: Function
    upper: Function
    log_lower: Function
    log_upper: Function
    quantile: Function
    upper_quantile: Function


# The function of a record for the other side: of a distribution that is mirrored at 0.
_OTHER_SIDE = {"lower": "upper", "log_lower": "log_upper", "quantile": "upper_quantile"}
_OTHER_SIDE |= {other: name for name, other in _OTHER_SIDE.items()}


def symmetric(**functions: Unpack[Tails]) -> Tails:
    """The functions of a family that is symmetric about 0, from those of one side."""
    others = {_OTHER_SIDE[name]: _reflected(name, cast("Function", f)) for name, f in functions.items()}
    return cast("Tails", {**functions, **others})


def _reflected(name: str, function: Function) -> Function:
    if "quantile" in name:
        return lambda q, *shapes: -function(q, *shapes)
    return lambda y, *shapes: function(-y, *shapes)


def mirrored(base: Continuous, name: str, about: str) -> Continuous:
    """The family of -x for the numbers x of another."""
    sides = {other: (f := getattr(base, side)) and _reflected(side, f) for side, other in _OTHER_SIDE.items()}
    return replace(
        base,
        name=name,
        about=about,
        log_density=lambda y, *shapes: base.log_density(-y, *shapes),
        bounds=lambda *shapes: tuple(0.0 - end for end in reversed(base.bounds(*shapes))),
        inside=lambda *shapes: -base.inside(*shapes),
        mean_of=base.mean_of and (lambda *shapes: -known(name, "mean", base.mean_of)(*shapes)),
        **sides,
    )


def rising(
    base: Continuous, argument: Function, value: Function, parameters: Function = lambda y, *shapes: ()
) -> Tails:
    """The distribution functions of value(x), which rises with the numbers x of another family.

    argument:   argument(y, *shapes), the x of which y is the value(x, *shapes)
    parameters: the other family's, from y and these
    """

    def through(name: str, function: Function) -> Function:
        if "quantile" in name:
            return lambda q, *shapes: value(function(q, *parameters(q, *shapes)), *shapes)
        return lambda y, *shapes: function(argument(y, *shapes), *parameters(y, *shapes))

    return cast("Tails", {name: through(name, f) for name in _OTHER_SIDE if (f := getattr(base, name))})


def falling(
    base: Continuous, argument: Function, value: Function, parameters: Function = lambda y, *shapes: ()
) -> Tails:
    """The same for a value that falls as x rises."""
    return cast("Tails", {_OTHER_SIDE[name]: f for name, f in rising(base, argument, value, parameters).items()})
