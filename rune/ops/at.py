"""x.at[index].set(v) and its relatives: copies of x with the elements at an index changed.

Basic indices (integers, slices) select a window of distinct elements: it is read, changed and put
back by static movement. Index arrays become one scatter, which changes an element once for every
time that it is indexed (NumPy's ufunc.at). An update that a scatter cannot repeat is applied once,
where the elements are known to be distinct: the indices are known, or unique_indices=True promises
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypedDict, TypeVar, Unpack

import numpy as np

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.primitive import Primitive
from rune.core.values import Operand, V, Value
from rune.dims import Size
from rune.errors import ArgumentError, MissingRule
from rune.ops import arithmetic as a
from rune.ops import indexing, scatters
from rune.ops.conventions import distinct, power, true_divide
from rune.ops.family import fit, reshape
from rune.ops.nested import joined
from rune.ops.promote import apply, as_type, refuse_sharding, scalar_kind, unrounded
from rune.ops.subscript import absent, is_gathered, modular, parse, read, without_scalar_masks
from rune.ops.updates import change_window, most_times, scattered, writing_mode

if TYPE_CHECKING:
    from rune.array import Array
    from rune.sharding.shardings import Sharding

Values: TypeAlias = Operand | list | tuple  # arrays, numbers, or nested lists of them
MODES = {
    None: "promise_in_bounds",
    "promise_in_bounds": "promise_in_bounds",
    "clip": "clip",
    "fill": "fill",
    "drop": "fill",
    "wrap": "promise_in_bounds",
}
MOST_TIMES = 16  # how many times, at most, `apply` changes one element of a traced index array


A = TypeVar("A", bound=Operand)  # an array, or a tracer


class How(TypedDict, total=False):
    """Options of every update.

    mode: "drop" (the default; also "fill" and "promise_in_bounds") leaves elements out of bounds
          unwritten; "clip" writes the nearest element; "wrap" takes indices modulo the axis size
    unique_indices: a promise that no element is indexed twice
    indices_are_sorted: a promise, accepted for JAX's sake; it makes nothing faster
    wrap_negative_indices: whether a negative index counts from the end (True by default)
    out_sharding: the sharding of the result; None leaves the choice to rune
    """

    mode: str | None
    unique_indices: bool
    indices_are_sorted: bool
    wrap_negative_indices: bool
    out_sharding: Sharding | None


class At(Generic[A]):
    """x.at: `x.at[index]` selects elements to update in a copy.

    >>> import rune.numpy as rnp
    >>> rnp.zeros(3).at[1].set(2.0)
    Array([0., 2., 0.], f32[3], cpu:0)
    """

    __slots__ = ("_x",)

    def __init__(self, x: A):
        self._x = x

    def __repr__(self) -> str:
        return f"at({type_of(self._x)})"

    @property
    def array(self) -> A:
        """x."""
        return self._x

    def __getitem__(self, index: object) -> AtIndex[A]:
        return AtIndex(self._x, index)


class AtIndex(Generic[A]):
    """x.at[index]: a copy of x with the elements at `index` changed. Options: `How`.

    Values are broadcast to the shape of x[index]. The update is computed in the dtype that x and
    the values promote to; the result has the dtype of x. Values may also be nested lists.
    Errors: ArgumentError for an unknown mode or option, and the errors of x[index].
    """

    __slots__ = ("_index", "_x")

    def __init__(self, x: A, index: object):
        self._x, self._index = x, index

    def __repr__(self) -> str:
        return f"at({type_of(self._x)})[{self._index!r}]"

    @property
    def array(self) -> A:
        """The array x.

        >>> import rune.numpy as rnp
        >>> rnp.zeros(3).at[1].array
        Array([0., 0., 0.], f32[3], cpu:0)
        """
        return self._x

    @property
    def index(self) -> object:
        """The index.

        >>> import rune.numpy as rnp
        >>> rnp.zeros(3).at[1].index
        1
        """
        return self._index

    def get(
        self,
        *,
        mode: str | None = None,
        fill_value: Operand | None = None,
        unique_indices: bool = False,
        indices_are_sorted: bool = False,
        wrap_negative_indices: bool = True,
        out_sharding: Sharding | None = None,
    ) -> A:
        """x[index]. With mode "fill" (or "drop") an index out of bounds reads `fill_value`; with
        "wrap" it is taken modulo the size of its axis.

        The default `fill_value` is NaN, the least signed or the largest unsigned integer, or True.
        `out_sharding` is the sharding of the result; None leaves the choice to rune.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3.0).at[5].get(mode="fill", fill_value=-1.0)
        Array(-1., f32[], cpu:0)
        """
        refuse_sharding("at", out_sharding)
        fill = absent(self._x, fill_value)
        how: How = {"mode": mode, "wrap_negative_indices": wrap_negative_indices}
        return read(self._x, self._within(how), _mode(mode), fill, wrap_negative_indices)

    def set(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the elements replaced; for an element indexed twice, the last value wins.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[rnp.array([0, 0])].set(rnp.array([7, 8]))
        Array([8, 1, 2], i32[3], cpu:0)
        """
        _check(how)
        elements = as_type(unrounded("at", joined("at", values)), type_of(self._x).dtype, name="at")
        out = self._write(None, indexing.scatter, elements, how)
        return distinct(out, values)  # type: ignore[reportArgumentType]  # A stands for an array or a tracer

    def add(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with `values` added.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[rnp.array([0, 0])].add(5)
        Array([10,  1,  2], i32[3], cpu:0)
        """
        return self._combine(a.add, indexing.scatter_add, values, how)

    def subtract(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with `values` subtracted.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[1:].subtract(1)
        Array([0, 0, 1], i32[3], cpu:0)
        """
        return self._combine(a.sub, _scatter_sub, values, how)

    def multiply(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the elements multiplied.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[rnp.array([1, 1])].multiply(3)
        Array([0, 9, 2], i32[3], cpu:0)
        """
        if self._is_distinct(how):
            factors = joined("at", values)
            return self._changed(lambda old: apply(a.mul, old, factors), how)
        return self._combine(a.mul, scatters.multiply_at, values, how)

    mul = multiply

    def min(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the smaller of each element and its value; NaN propagates.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[:].min(1)
        Array([0, 1, 1], i32[3], cpu:0)
        """
        return self._combine(a.min, scatters.scatter_min, values, how)

    def max(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the larger of each element and its value; NaN propagates.

        >>> import rune.numpy as rnp
        >>> rnp.arange(3).at[:].max(1)
        Array([1, 1, 2], i32[3], cpu:0)
        """
        return self._combine(a.max, scatters.scatter_max, values, how)

    def divide(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the elements divided; an integer array becomes floating-point first.

        An element indexed several times is divided by the product of its values.

        >>> import rune.numpy as rnp
        >>> rnp.ones(2).at[0].divide(4.0)
        Array([0.25, 1.  ], f32[2], cpu:0)
        """
        if type_of(self._x).dtype in dtypes.INEXACT and self._is_distinct(how):
            divisors = joined("at", values)
            return self._changed(lambda old: true_divide(old, divisors), how)
        return true_divide(self._x, self._factors(values, how))

    def power(self, values: Values, **how: Unpack[How]) -> A:
        """A copy with the elements raised to a power.

        An element indexed several times is raised to the product of its values.

        >>> import rune.numpy as rnp
        >>> rnp.array([3, 2]).at[0].power(2)
        Array([9, 2], i32[2], cpu:0)
        """
        if self._is_distinct(how):
            exponents = joined("at", values)
            return self._changed(lambda old: power(old, exponents), how)
        return self._narrowed(power(self._x, self._factors(values, how)), how)

    def apply(self, function: Callable[[A], A], **how: Unpack[How]) -> A:
        """A copy with function(elements) in place of the elements; `function` must be elementwise.

        An element indexed k times is changed k times.
        Errors: MissingRule for more than MOST_TIMES traced indices, which might all be equal.

        >>> import rune.numpy as rnp
        >>> rnp.array([4.0, 9.0]).at[1].apply(rnp.sqrt)
        Array([4., 3.], f32[2], cpu:0)
        """
        if self._is_distinct(how):
            return self._changed(function, how)
        most, known = self._most_times(how)
        if not isinstance(most, int) or (most > MOST_TIMES and not known):
            raise MissingRule(
                f"at: cannot apply a function to {type_of(self._x)} at {most} traced indices "
                f"(more than {MOST_TIMES} may name one element)",
                hint="unique_indices=True promises that they are distinct",
            )
        zeros = fit(np.array(0, np.int32), type_of(self._x).shape)
        times = self._elements(AtIndex(zeros, self._index).add(1, **how), how)
        new = function(self._elements(self._x, how))
        for repetition in range(1, most):
            new = a.select(a.gt(times, np.array(repetition, np.int32)), function(new), new)
        return self.set(new, **how)

    # --- how an update is made -----------------------------------------------------------------

    def _within(self, how: How) -> Any:
        """The index; with mode "wrap" its positions modulo the sizes of the axes."""
        return modular(self._x, self._index) if how.get("mode") == "wrap" else self._index

    def _elements(self, x: V, how: How) -> V:
        """The elements to be changed; out of bounds 1, at which most functions are smooth."""
        mode = how.get("mode")
        if mode not in ("clip", "promise_in_bounds"):
            mode = "fill"
        return read(
            x, self._within(how), writing_mode(type_of(x).shape, mode), 1, how.get("wrap_negative_indices", True)
        )

    def _changed(self, function: Callable[[A], A], how: How) -> A:
        """function(elements) in place of distinct elements."""
        return self.set(function(self._elements(self._x, how)), **how)

    def _write(
        self, combine: Primitive | None, scatter: Primitive | Callable[..., Array], values: Operand, how: How
    ) -> A:
        """At a basic index, values or combine(elements, values); at other indices, a scatter of
        values.
        """
        kind = _check(how)
        x, index = without_scalar_masks(self._x, self._index)
        if x is not self._x:
            return reshape(AtIndex(x, index)._write(combine, scatter, values, how), shape=type_of(self._x).shape)
        wrap = how.get("wrap_negative_indices", True)
        entries = parse(
            self._x, self._within(how), wrap, outside=kind != "clip", is_promise=kind == "promise_in_bounds"
        )
        if not any(map(is_gathered, entries)):
            return change_window(self._x, entries, combine, values)
        return scattered(scatter, self._x, entries, values, kind)

    def _combine(self, combine: Primitive, scatter: Any, values: Values, how: How) -> A:
        """An update that combines the present elements with `values`, in their common dtype."""
        _check(how)
        values, dtype_of_x = unrounded("at", joined("at", values)), type_of(self._x).dtype
        dtype, _ = dtypes.promote(scalar_kind(self._x), scalar_kind(values))
        if dtype != dtype_of_x:
            wide = AtIndex(a.cast(self._x, dtype), self._index)
            return self._narrowed(wide._combine(combine, scatter, values, how), how)
        if dtype == dtypes.bool_:
            combine, scatter = _OF_BOOL.get(scatter, (combine, scatter))
        return self._write(combine, scatter, as_type(values, dtype, name="at"), how)

    def _narrowed(self, wide: A, how: How) -> A:
        """An updated array in the dtype of x; elements that are not indexed keep all their bits."""
        dtype = type_of(self._x).dtype
        if type_of(wide).dtype == dtype:
            return wide
        nowhere = fit(np.array(False), type_of(self._x).shape)
        mask = AtIndex(nowhere, self._index).set(True, **how)
        return a.select(mask, a.cast(wide, dtype), self._x)

    def _factors(self, values: Values, how: How) -> Any:
        """Ones, multiplied by the values at the indexed places; in the dtype of x and the
        values.
        """
        _check(how)
        values = joined("at", values)
        dtype, _ = dtypes.promote(scalar_kind(self._x), scalar_kind(unrounded("at", values)))
        ones = fit(np.array(1).astype(dtype), type_of(self._x).shape)
        return AtIndex(ones, self._index).multiply(values, **how)

    def _is_distinct(self, how: How) -> bool:
        """Whether no element is indexed twice, by promise or as far as is known."""
        return self._most_times(how)[0] == 1

    def _most_times(self, how: How) -> tuple[Size, bool]:
        """How often one element is indexed, at most, and whether that number is exact."""
        clip = _check(how) == "clip"
        x, index = without_scalar_masks(self._x, self._index)
        if x is not self._x:
            return AtIndex(x, index)._most_times(how)
        if how.get("unique_indices"):
            return 1, True
        return most_times(self._x, self._within(how), how.get("wrap_negative_indices", True), clip)


def _scatter_sub(x: Value, indices: Value, updates: Value, **params: object) -> Array:
    return indexing.scatter_add(x, indices, a.neg(updates), **params)


# As in NumPy, the sum of two bools is their "or" and the product their "and".
_OF_BOOL: dict[object, tuple[Primitive, Primitive]] = {
    indexing.scatter_add: (a.logical_or, scatters.scatter_max),
    scatters.multiply_at: (a.logical_and, scatters.scatter_min),
}


def _check(how: How) -> str:
    """The mode in which a gather reads the elements to update. Errors: ArgumentError."""
    unknown = how.keys() - How.__annotations__.keys()
    if unknown:
        names, known = ", ".join(sorted(unknown)), ", ".join(How.__annotations__)
        raise ArgumentError(f"at: cannot use {names}= (one of {known})")
    refuse_sharding("at", how.get("out_sharding"))
    return _mode(how.get("mode"))


def _mode(mode: str | None) -> str:
    if mode not in MODES:
        raise ArgumentError(f"at: cannot use mode={mode!r} (one of {', '.join(filter(None, MODES))})")
    return MODES[mode]
