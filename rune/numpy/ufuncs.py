"""ufunc: an elementwise function with reduce, accumulate, outer, at and reduceat, as in NumPy.

Those of rune.numpy are in standard_ufuncs.py and have their own reductions. `frompyfunc` makes one
from any function of scalars: it reduces by a `scan`, one element after another, since nothing is
known about its algebraic laws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any, NoReturn

from rune import dtypes, ops
from rune.array import Array
from rune.control import fori_loop, scan
from rune.core.interpreter import type_of
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import rank, refuse, value
from rune.numpy.operands import refuse_options
from rune.ops import conventions as c
from rune.ops.at import AtIndex
from rune.ops.conventions import Axis
from rune.ops.family import size_value
from rune.ops.movement import move_axis
from rune.ops.promote import as_type, broadcast_to, broadcast_together
from rune.ops.subscript import read
from rune.records import dataclass
from rune.transforms.arguments import SignatureOfWrapped
from rune.transforms.batching.vmap import vmap
from rune.transforms.eval_shape import ShapeDtypeStruct, eval_shape
from rune.typing import ArrayLike, DTypeLike

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Ways:
    """Faster ways for a ufunc to reduce than one element after another; None where there is none.

    reduce:     (x, axis, dtype, None, keepdims, initial, where) -> array
    accumulate: (x, axis, dtype) -> array
    at:         the method of x.at[index] of the same meaning
    """

    reduce: Function | None = None
    accumulate: Function | None = None
    at: str | None = None


class _SignatureOfOperands(SignatureOfWrapped):
    """The operands of the function, and `out` and `where`, which are None."""

    def __get__(self, instance: Callable[..., object] | None, owner: type) -> Signature:
        operands = super().__get__(instance, owner)
        nones = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in ("out", "where")]
        return operands.replace(parameters=[*operands.parameters.values(), *nones])


class ufunc:
    """An elementwise function of arrays that broadcast, with NumPy's methods.

    Shapes:   arguments broadcast together.
    Types:    those of func's results.
    func:     of arrays of one shape, or of scalars.
    identity: the value of a reduction over nothing; None where there is none.
    Errors:   ArgumentError from reduce and the like unless nin is 2 and nout is 1.

    >>> import rune.numpy as rnp
    >>> rnp.add.reduce(rnp.array([[1, 2], [3, 4]]))
    Array([4, 6], i32[2], cpu:0)
    >>> rnp.multiply.outer(rnp.arange(2), rnp.arange(2))
    Array([[0, 0],
           [0, 1]], i32[2,2], cpu:0)
    """

    def __init__(
        self,
        func: Function,
        /,
        nin: int,
        nout: int,
        *,
        name: str | None = None,
        nargs: int | None = None,
        identity: ArrayLike | None = None,
        ways: Ways | None = None,
    ):
        self.func, self.nin, self.nout = func, nin, nout
        self.nargs = nin + nout if nargs is None else nargs
        self.identity, self._ways = identity, ways or Ways()
        self.__name__ = self.__qualname__ = name or getattr(func, "__name__", "ufunc")
        self.__module__, self.__doc__, self.__wrapped__ = "rune.numpy", func.__doc__, func

    def __call__(self, *args: ArrayLike, out: None = None, where: None = None, **options: object) -> Array:
        if options or out is not None or where is not None:
            self._refuse({**options, **{name: x for name, x in (("out", out), ("where", where)) if x is not None}})
        return self.func(*args)

    def _refuse(self, options: Mapping[str, object]) -> NoReturn:
        refuse_options(self.__name__, options)
        raise ArgumentError(f"{self.__name__}: cannot use {next(iter(options))}= (operands alone, by position)")

    __signature__ = _SignatureOfOperands()

    def __repr__(self) -> str:
        return f"<ufunc {self.__name__!r}>"

    def __reduce__(self) -> str:
        return self.__qualname__

    def _binary(self, method: str) -> None:
        if (self.nin, self.nout) != (2, 1):
            raise ArgumentError(
                f"{self.__name__}.{method}: cannot combine pairs with {self.nin} arguments and "
                f"{self.nout} results (2 and 1 required)"
            )

    def reduce(
        self,
        a: ArrayLike,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        out: None = None,
        keepdims: bool = False,
        initial: ArrayLike | None = None,
        where: ArrayLike | None = None,
    ) -> Array:
        """All elements along axes combined, from first to last, row by row for None.

        Errors: ArgumentError for no elements without identity or `initial`; also for several axes
                if the function is not known to be associative.
        """
        self._binary("reduce")
        refuse(f"{self.__name__}.reduce", out=out)
        x = value(self.__name__, a)
        if self._ways.reduce is not None:
            return self._ways.reduce(x, axis, dtype, None, keepdims, initial, where)
        if axis is None:
            return self._reduced_flat(x, dtype, keepdims, initial, where)
        if not isinstance(axis, int):
            raise ArgumentError(
                f"{self.__name__}.reduce: cannot reduce {type_of(x)} over axis={axis!r} "
                "(one axis required: the function is not known to be associative)"
            )
        at = c.normalised_axis(self.__name__, axis, type_of(x))
        total = self._folded(self._in(x, dtype), at, initial, where)
        return c.expand_dims(total, at) if keepdims else total

    def _reduced_flat(
        self, x: Array, dtype: DTypeLike | None, keepdims: bool, initial: ArrayLike | None, where: ArrayLike | None
    ) -> Array:
        """All elements combined in row-major order."""
        mask = None if where is None else c.reshape(broadcast_to("where", value("where", where), type_of(x).shape), -1)
        total = self._folded(c.reshape(self._in(x, dtype), -1), 0, initial, mask)
        return c.reshape(total, (1,) * rank(x)) if keepdims else total

    def _folded(self, x: ArrayLike, axis: int, initial: ArrayLike | None, where: ArrayLike | None) -> Array:
        first = self.identity if initial is None else initial
        if first is None and where is not None:
            raise ArgumentError(
                f"{self.__name__}.reduce: cannot use where= without initial= "
                f"for {type_of(x)} (the function has no identity)"
            )
        rows, masks = move_axis(x, axis, 0), None
        if first is None:
            if type_of(rows).shape[0] == 0:
                raise ArgumentError(
                    f"{self.__name__}.reduce: cannot reduce {type_of(x)} without initial= "
                    f"(axis {axis} is empty, and the function has no identity)"
                )
            start, rows = read(rows, 0), read(rows, slice(1, None))
        else:
            shape, dtype = type_of(rows).shape[1:], type_of(rows).dtype
            start = broadcast_to(self.__name__, as_type(first, dtype), shape)
        if where is not None:
            masks = move_axis(broadcast_to(self.__name__, value("where", where), type_of(x).shape), axis, 0)

        def step(total: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
            new = self._like(total, total, row[0])
            return new if row[1] is None else _choose(row[1], new, total), None

        return scan(step, start, (rows, masks))[0]

    def _in(self, x: ArrayLike, dtype: DTypeLike | None) -> Array:
        """The operand, in the given dtype or that of the results."""
        if dtype is None and self._ways.reduce is not None:
            dtype = eval_shape(self.reduce, ShapeDtypeStruct((1,), type_of(x).dtype)).dtype
        elif dtype is None:
            scalar = ShapeDtypeStruct((), type_of(x).dtype)
            dtype = eval_shape(self.func, scalar, scalar).dtype
        return c.astype(x, dtypes.as_dtype(dtype))

    def _like(self, carry: ArrayLike, *args: ArrayLike) -> Array:
        """The function's value, in the dtype of the carried total."""
        return ops.convert(self.func(*args), dtype=type_of(carry).dtype, weak=type_of(carry).weak)

    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """All elements up to each one along an axis, combined."""
        self._binary("accumulate")
        refuse(f"{self.__name__}.accumulate", out=out)
        x = value(self.__name__, a)
        at = c.normalised_axis(self.__name__, axis, type_of(x))
        if self._ways.accumulate is not None:
            return self._ways.accumulate(x, at, dtype)
        rows = move_axis(self._in(x, dtype), at, 0)
        if type_of(rows).shape[0] == 0:
            return x

        def step(total: ArrayLike, row: ArrayLike) -> tuple[Array, Array]:
            new = self._like(total, total, row)
            return new, new

        first = read(rows, 0)
        later = scan(step, first, read(rows, slice(1, None)))[1]
        return move_axis(ops.concatenate(c.expand_dims(first, 0), later, axis=0), 0, at)

    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Array:
        """The function of every element of A with every element of B.

        Shapes: A [*M], B [*N] -> [*M, *N].
        """
        self._binary("outer")
        first, second = value(self.__name__, A), value(self.__name__, B)
        wide = c.reshape(first, (*type_of(first).shape, *(1,) * rank(second)))
        return self(wide, second)

    def at(self, a: ArrayLike, indices: ArrayLike, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """A copy in which a[indices] is combined with b once for every occurrence of an index.

        Errors: ArgumentError unless inplace=False: arrays are immutable.
        """
        if inplace:
            raise ArgumentError(
                f"{self.__name__}.at: cannot write into an array (arrays are immutable)",
                hint="at(..., inplace=False) returns a changed copy",
            )
        x = value(self.__name__, a)
        if self.nin == 1:
            return AtIndex(x, indices).apply(self.func)
        if self._ways.at is not None:
            return getattr(AtIndex(x, indices), self._ways.at)(value(self.__name__, b))
        self._binary("at")
        return self._one_by_one(x, indices, value(self.__name__, b))

    def _one_by_one(self, x: ArrayLike, indices: ArrayLike, b: ArrayLike) -> Array:
        """Element by element of b, since no scatter knows the function."""
        shape = type_of(x).shape
        places = read(c.reshape(ops.iota(shape=(c.size_of(x),), axis=0, dtype=dtypes.i32), shape), indices)
        flat, where_to = c.reshape(x, -1), c.reshape(places, -1)
        values = c.reshape(broadcast_to(self.__name__, b, type_of(places).shape), -1)

        def change(i: ArrayLike, array: ArrayLike) -> ArrayLike:
            place = read(where_to, i)
            old = read(array, place)
            return AtIndex(array, place).set(self._like(old, old, read(values, i)))

        return c.reshape(fori_loop(0, type_of(where_to).shape[0], change, flat), shape)

    def reduceat(
        self, a: ArrayLike, indices: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None
    ) -> Array:
        """Combine the elements from each index up to the next one; at least one element each.

        Shapes: a [*A, N, *B], indices [K] -> [*A, K, *B].
        """
        self._binary("reduceat")
        refuse(f"{self.__name__}.reduceat", out=out)
        x, starts = value(self.__name__, a), value(self.__name__, indices)
        if rank(starts) != 1:
            raise ShapeError(f"{self.__name__}.reduceat: cannot use indices {type_of(starts)} (rank 1 required)")
        at = c.normalised_axis(self.__name__, axis, type_of(x))
        rows = move_axis(self._in(x, dtype), at, 0)
        starts = c.astype(starts, dtypes.i32)
        size = size_value(type_of(rows).shape[0], dtypes.i32)
        ends = ops.concatenate(read(starts, slice(1, None)), c.expand_dims(size, 0), axis=0)

        def of_part(start: ArrayLike, end: ArrayLike) -> Array:
            def step(i: ArrayLike, total: ArrayLike) -> Array:
                step_at = c.astype(i, dtypes.i32)
                inside = ops.logical_and(ops.gt(step_at, start), ops.lt(step_at, end))
                return _choose(inside, self._like(total, total, read(rows, i)), total)

            return fori_loop(0, type_of(rows).shape[0], step, read(rows, start))

        return move_axis(vmap(of_part)(starts, ends), 0, at)


def _choose(mask: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    return ops.select(*broadcast_together("ufunc", [mask, x, y]))
