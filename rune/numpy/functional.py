"""Functions of functions: over slices, over indices, by cases, and lifted to whole arrays.

Where NumPy loops in Python, these use `vmap`, so a function is traced once, and everything here can
be compiled and differentiated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import partial, wraps
from typing import Any

from rune import dtypes, ops, tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.types import Shape
from rune.core.values import Value
from rune.errors import ArgumentError, ShapeError
from rune.numpy.arguments import listed, rank, shape_of, value
from rune.numpy.logic import where
from rune.numpy.ufuncs import ufunc
from rune.ops import conventions as c
from rune.ops.family import fit
from rune.ops.promote import broadcast_shape
from rune.transforms.batching.vmap import vmap
from rune.typing import ArrayLike, Axis, DTypeLike

Function = Callable[..., Any]


def apply_along_axis(func1d: Function, axis: int, arr: ArrayLike, *args: object, **kwargs: object) -> Array:
    """func1d(slice, *args, **kwargs) for every slice along an axis; its results replace the slices.

    Shapes: arr [*A, N, *B], func1d [N] -> [*C] gives [*A, *C, *B]. Types: those of its results.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.apply_along_axis(lambda row: row[::-1].cumsum(), 1, rnp.array([[1, 2], [3, 4]]))
    Array([[2, 3],
           [4, 7]], i32[2,2], cpu:0)
    """
    x = value("apply_along_axis", arr)
    at = c.normalised_axis("apply_along_axis", axis, type_of(x))

    def of_slice(row: ArrayLike) -> Array:
        return func1d(row, *args, **kwargs)

    for _ in range(at):
        of_slice = vmap(of_slice)
    for _ in range(rank(x) - 1 - at):
        of_slice = vmap(of_slice, in_axes=-1, out_axes=-1)
    return of_slice(x)


def apply_over_axes(func: Function, a: ArrayLike, axes: Axis) -> Array:
    """func(a, axis) for one axis after another; axes that func removes are restored.

    Shapes: any -> the same rank; func determines the sizes of `axes`, or they are 1.
    Types:  those of func's results.
    Errors: ShapeError when a result has another rank.

    >>> import rune.numpy as rnp
    >>> rnp.apply_over_axes(rnp.sum, rnp.ones((2, 3, 4)), (0, 2)).shape
    (1, 3, 1)
    """
    x = value("apply_over_axes", a)
    for axis in c.normalised_axes("apply_over_axes", axes, type_of(x)):
        out = func(x, axis)
        if rank(out) not in (rank(x), rank(x) - 1):
            raise ShapeError(
                f"apply_over_axes: cannot use {type_of(out)}, made of {type_of(x)} along "
                f"axis {axis} (rank {rank(x)} or {rank(x) - 1} required)"
            )
        x = out if rank(out) == rank(x) else c.expand_dims(out, axis)
    return x


def fromfunction(function: Function, shape: int | Shape, *, dtype: DTypeLike = float, **kwargs: object) -> Any:
    """function(i, j, ...) of the positions in an array of a shape; elementwise in its arguments.

    Shapes: the function is called on scalars and mapped over each axis, as in JAX.
    Types:  those of the function's results; positions are f32 unless dtype is given.
    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int)
    Array([[ 0, 10],
           [ 1, 11]], i32[2,2], cpu:0)
    """
    sizes, position_dtype = shape_of("fromfunction", shape), dtypes.as_dtype(dtype)
    call = partial(function, **kwargs)
    for axis in reversed(range(len(sizes))):
        call = vmap(call, in_axes=tuple(0 if i == axis else None for i in range(len(sizes))))
    return call(*(ops.iota(shape=(size,), axis=0, dtype=position_dtype) for size in sizes))


def piecewise(
    x: ArrayLike,
    condlist: object,
    funclist: Sequence[ArrayLike | Callable[..., ArrayLike]],
    *args: object,
    **kw: object,
) -> Array:
    """For each element, the function (or number) of the last condition that holds; otherwise 0.

    One more function than conditions is used where none holds. All functions are evaluated
    everywhere; where a function is not selected, it contributes no derivative, not even NaN.

    Shapes: x [*A], conditions that broadcast to it -> [*A]. Types: as x.
    Errors: ArgumentError for too few or too many functions.

    >>> import rune.numpy as rnp
    >>> x = rnp.array([-2.0, 0.0, 3.0])
    >>> rnp.piecewise(x, [x < 0, x > 0], [lambda v: -v, 10.0, 5.0])
    Array([ 2.,  5., 10.], f32[3], cpu:0)
    """
    x = value("piecewise", x)
    conditions = [value("piecewise", v) for v in _conditions(condlist, x)]
    funclist = listed("piecewise", "funclist", funclist)
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ArgumentError(f"piecewise: cannot match {len(conditions)} conditions to {len(funclist)} functions")
    out, any_condition = c.astype(_zero(x), type_of(x).dtype), None
    for condition, function in zip(conditions, funclist):
        out = where(condition, _on(function, x, condition, args, kw), out)
        any_condition = condition if any_condition is None else ops.logical_or(any_condition, condition)
    if len(funclist) > len(conditions):
        is_default = ops.logical_not(any_condition) if any_condition is not None else value("piecewise", True)
        out = where(is_default, _on(funclist[-1], x, is_default, args, kw), out)
    return out


def _conditions(condlist: object, x: ArrayLike) -> list[Array]:
    """One condition, or several, as a list of masks."""
    if isinstance(condlist, list | tuple):
        if condlist and isinstance(condlist[0], bool | int) and rank(x):
            raise ArgumentError("piecewise: cannot take a list of truths (use rune.numpy.array)")
        conditions = list(condlist)
    else:
        of_all = rank(condlist) == rank(x) and type_of(value("piecewise", condlist)).shape == type_of(x).shape
        conditions = [condlist] if of_all else listed("piecewise", "condlist", condlist)
    return [c.astype(value("piecewise", v), dtypes.bool_) for v in conditions]


def _zero(x: ArrayLike) -> Value:
    return fit(value("piecewise", 0), type_of(x).shape)


def _on(function: object, x: ArrayLike, condition: ArrayLike, args: tuple, kw: dict) -> Array:
    """A function of the selected elements; the others are constants for it."""
    dtype = type_of(x).dtype
    if not callable(function):
        return c.astype(value("piecewise", function), dtype)
    is_floating = dtype in dtypes.INEXACT
    operand = where(condition, x, ops.stop_gradient(x)) if is_floating else x
    return c.astype(value("piecewise", function(operand, *args, **kw)), dtype)


# --- vectorize --------------------------------------------------------------------------------

_NAMES = r"\((?:\s*\w+\s*(?:,\s*\w+\s*)*)?\)"
_SIGNATURE = re.compile(rf"{_NAMES}(?:\s*,\s*{_NAMES})*")


def vectorize(
    pyfunc: Function, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Function:
    """A function that broadcasts a function of scalars, or of the core shapes in a signature.

    Shapes:    core shapes by the signature, [] without one; the axes before them broadcast.
    Types:     those of the function's results.
    signature: like "(n,m),(m)->(n)", as for NumPy's generalised ufuncs.
    excluded:  positions and names of arguments that are passed on unchanged.
    Errors:    ShapeError when core sizes disagree; ArgumentError for an invalid signature.

    >>> import rune.numpy as rnp
    >>> lengths = rnp.vectorize(lambda v: (v @ v) ** 0.5, signature="(n)->()")
    >>> lengths(rnp.array([[3.0, 4.0], [6.0, 8.0]]))
    Array([ 5., 10.], f32[2], cpu:0)
    """
    cores = _parsed(signature) if signature is not None else None

    @wraps(pyfunc)
    def lifted(*args: ArrayLike, **kwargs: object) -> Array | None:
        names = {k: v for k, v in kwargs.items() if k in excluded}
        free = [i for i in range(len(args)) if i not in excluded]
        keys = [k for k in kwargs if k not in names]

        def of_arrays(*arrays: ArrayLike) -> Array:
            by_argument = dict(zip((*free, *keys), arrays, strict=True))
            positional = [by_argument.get(i, a) for i, a in enumerate(args)]
            return pyfunc(*positional, **names, **{k: by_argument[k] for k in keys})

        arrays = [value("vectorize", args[i]).copy() for i in free]  # which `pyfunc` may return
        arrays += [value("vectorize", kwargs[k]).copy() for k in keys]
        return _mapped(of_arrays, arrays, *(cores or ([()] * len(arrays), None)))

    return lifted


Cores = list[tuple[str, ...]]


def _parsed(signature: str) -> tuple[Cores, Cores]:
    """The names of the core axes of every argument and result."""
    sides = signature.split("->") if isinstance(signature, str) else ()
    if len(sides) != 2 or not all(_SIGNATURE.fullmatch(s.strip()) for s in sides):
        raise ArgumentError(f"vectorize: cannot read the signature {signature!r}")
    inputs, outputs = ([tuple(re.findall(r"\w+", group)) for group in re.findall(_NAMES, s)] for s in sides)
    return inputs, outputs


def _mapped(function: Function, arrays: list[Array], cores: Cores, outs: Cores | None) -> Array:
    if len(arrays) != len(cores):
        raise ArgumentError(f"vectorize: cannot call with {len(arrays)} arrays (the signature has {len(cores)})")
    sizes: dict[str, object] = {}
    loops = [_loop_shape(x, core, sizes) for x, core in zip(arrays, cores, strict=True)]
    common = broadcast_shape("vectorize", *loops) if loops else ()
    arrays = [_without_ones(x, loop) for x, loop in zip(arrays, loops, strict=True)]
    call = partial(_checked, function, outs, sizes)
    for axis in range(1, len(common) + 1):  # from the last loop axis outwards
        maps = tuple(0 if axis <= len(s) and s[-axis] != 1 else None for s in loops)
        lanes: Any = common[-axis]
        call = vmap(call, in_axes=maps, axis_size=lanes)
    return call(*arrays)


def _loop_shape(x: ArrayLike, core: tuple[str, ...], sizes: dict[str, object]) -> Shape:
    """The axes in front of the core axes; the sizes of the core axes are recorded by name."""
    shape = type_of(x).shape
    if len(shape) < len(core):
        raise ShapeError(f"vectorize: cannot use {type_of(x)} for ({','.join(core)})")
    first = len(shape) - len(core)
    _note(core, shape[first:], sizes)
    return shape[:first]


def _note(core: tuple[str, ...], shape: Shape, sizes: dict[str, object]) -> None:
    for name, size in zip(core, shape, strict=True):
        known = int(name) if name.isdigit() else sizes.setdefault(name, size)
        if known != size:
            raise ShapeError(f"vectorize: cannot use size {size} for {name} (it is {known})")


def _without_ones(x: ArrayLike, loop: Shape) -> Array:
    lanes = tuple(d for d in loop if d != 1)
    return c.reshape(x, (*lanes, *type_of(x).shape[len(loop) :]))


def _checked(function: Function, outs: Cores | None, sizes: dict[str, object], *xs: ArrayLike) -> Array:
    """The core call. Errors: ShapeError if a result does not match the signature."""
    out = function(*xs)
    if outs is None:
        return out
    leaves = tree.leaves(out)
    if len(leaves) != len(outs):
        raise ArgumentError(f"vectorize: cannot return {len(leaves)} arrays (the signature has {len(outs)})")
    for leaf, core in zip(leaves, outs, strict=True):
        shape = type_of(value("vectorize", leaf)).shape
        if len(shape) != len(core):
            raise ShapeError(f"vectorize: cannot return the shape {shape} for ({','.join(core)})")
        _note(core, shape, sizes)
    return out


def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: ArrayLike | None = None) -> ufunc:
    """A ufunc from a function of scalars, which is broadcast over arrays.

    Shapes: arguments broadcast together. Types: those of func's results.
    Errors: ArgumentError for no arguments or no results.

    >>> import rune.numpy as rnp
    >>> length = rnp.frompyfunc(lambda x, y: (x * x + y * y) ** 0.5, 2, 1, identity=0.0)
    >>> length.reduce(rnp.array([1.0, 2.0, 2.0]))
    Array(3., f32[], cpu:0)
    """
    if nin < 1 or nout < 1:
        raise ArgumentError(f"frompyfunc: cannot take {nin} arguments to {nout} results")
    return ufunc(vectorize(func), nin, nout, identity=identity)


__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "frompyfunc", "piecewise", "vectorize"]
