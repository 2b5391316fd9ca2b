"""Operands as NumPy and JAX take them: Python scalars, NumPy arrays, mixed dtypes, broadcasting.

Primitives take operands of one dtype and one shape; `promoted` converts them. Operands of equal
types, the common case, pass unchanged.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import config, dtypes, tree
from rune.core.interpreter import Tracer, type_of
from rune.core.no_sharding import is_unsaid
from rune.core.primitive import Primitive
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, DtypeError, ShapeError, with_context
from rune.ops.arithmetic import add, convert, logical_and, logical_or, mul, select
from rune.ops.family import broadcast, reshape, size_value
from rune.ops.scalars import holds, int_bounds, wrapped

Scalar = bool | int | float | complex
_SCALARS = (bool, int, float, complex)
NUMPY = (np.ndarray, np.generic)  # a tuple, since a union would be built at each call


def operand(name: str, value: Operand) -> Value:
    """`value` if it is an array, tracer or Python scalar; NumPy data in its canonical dtype.

    A symbolic size counts as a Python integer; an object that stands for an array becomes it.
    Errors: ArgumentError for anything else, lists included.
    """
    exact = unrounded(name, value)
    if isinstance(exact, Dim):
        return as_type(exact, *scalar_kind(exact))
    if isinstance(exact, NUMPY):
        return _in_numpy(exact, dtypes.canonical(exact.dtype))
    return exact


def unrounded(name: str, value: Operand) -> Any:
    """An operand with all its digits: NumPy data and symbolic sizes are not rounded.

    `as_type` rounds it once, to the dtype of the result; `scalar_kind` gives the dtype with which
    it promotes.
    Errors: ArgumentError if it is not an array.
    """
    if isinstance(value, Tracer) or hasattr(type(value), "rank0"):
        return value
    if type(value) in _SCALARS or isinstance(value, Dim):
        return value
    if (number := dtypes.plain_number(value)) is not None:
        return number
    if isinstance(value, NUMPY) and value.dtype in dtypes.ANY:
        refuse_mask(name, value)
        return np.asarray(value)
    if isinstance(value, NUMPY) and not value.dtype.isnative:
        return unrounded(name, dtypes.native(value))
    if stands_for_array(value):
        return unrounded(name, opened(value))
    raise ArgumentError(f"{name}: cannot take {type(value).__name__} as an array", _hint(value))


def _in_numpy(value: Value, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype, copy=False)


def refuse_mask(name: str, value: object) -> None:
    """Errors: ArgumentError for a NumPy masked array in which any element is hidden."""
    if type(value) is not np.ndarray and hasattr(value, "filled") and np.any(getattr(value, "mask", True)):
        raise ArgumentError(
            f"{name}: cannot take {type(value).__name__} as an array (its mask would be lost)",
            hint="fill it, as x.filled(0.0), or hand over x.data and x.mask",
        )


def refuse_sharding(name: str, out_sharding: object) -> None:
    """Errors: ArgumentError for any sharding: this layer lies below the one that has meshes."""
    if not is_unsaid(out_sharding):
        raise ArgumentError(
            f"{name}: cannot use out_sharding={out_sharding!r} (None alone)",
            hint="rune.lax.with_sharding_constraint lays a result out",
        )


def stands_for_array(value: object) -> bool:
    """Whether an object gives an array by `__rune_array__`, or by JAX's `__jax_array__`."""
    return hasattr(type(value), "__rune_array__") or hasattr(type(value), "__jax_array__")


def opened(value: Any) -> Any:
    """The array that a leaf stands for (`__rune_array__`, `__jax_array__`); anything else
    unchanged.
    """
    cls = type(value)
    stands_for = getattr(cls, "__rune_array__", None) or getattr(cls, "__jax_array__", None)
    return value if stands_for is None else stands_for(value)


def _dtype_beside_numbers(values: Sequence[Operand]) -> np.dtype | None:
    """The dtype in the second common case: floating arrays of one type beside Python numbers."""
    types: list[object] = [_NUMBERS if v.__class__ in _NUMBERS else getattr(v, "type", v) for v in values]
    first = next((t for t in types if isinstance(t, ArrayType)), None)
    if first is None or first.weak or first.dtype not in dtypes.FLOATING:
        return None
    return first.dtype if all([t is first or t is _NUMBERS for t in types]) else None


_NUMBERS = (float, int)  # Python's numbers


def _hint(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return "convert with rune.numpy.array(...)"
    if value is None or tree.all_leaves([value]):
        return None
    return "it is a tree of arrays: rune.tree.map applies a function to each of them"


def scalar_kind(value: object) -> tuple[np.dtype, bool]:
    """(dtype, weak) with which an operand promotes: 64-bit NumPy data count as 32 bits, a symbolic
    size as a Python integer.
    """
    scalar = dtypes.scalar_type(0 if isinstance(value, Dim) else value)
    if scalar is not None:
        return scalar
    if isinstance(value, NUMPY):
        return dtypes.canonical(value.dtype), False
    type = type_of(value)
    return type.dtype, getattr(type, "weak", False)


def promoted(name: str, *values: Operand, kind: str = "any") -> list[Any]:
    """Operands of one dtype and one shape (or rank 0).

    Python numbers and 64-bit NumPy data are rounded once, to that dtype; if all operands are weak,
    they remain Python numbers, so that promoting them again loses nothing.

    kind: "any", "numeric" (bools become i32) or "inexact" (integers and bools become f32,
          64-bit integers f64).
    Errors: ShapeError names the axis that conflicts; DtypeError if there is no common dtype.
    """
    if fit_together(values, kind):
        return list(values)
    dtype = _dtype_beside_numbers(values)
    if dtype is not None:
        return [as_type(v, dtype, name=name) for v in values]
    operands = [unrounded(name, v) for v in values]
    dtype, weak = dtypes.promote(*[scalar_kind(v) for v in operands])
    if kind != "any" and dtype in dtypes.KEYS:
        raise DtypeError(f"{name}: cannot take {dtypes.short(dtype)} ({kind} dtype required)")
    if kind == "inexact" and dtype not in dtypes.INEXACT:
        dtype = dtypes.default_float(dtype)
    if kind == "numeric" and dtype == dtypes.bool_:
        dtype = dtypes.i32
    return broadcast_together(name, [as_type(v, dtype, weak, name) for v in operands])


def fit_together(values: Sequence[Operand], kind: str = "any") -> bool:
    """The common case: arrays of one type that is of the required kind."""
    first = getattr(values[0], "type", None)
    if type(first) is not ArrayType or any([getattr(v, "type", None) is not first for v in values]):
        return False
    return kind == "any" or first.dtype in dtypes.FLOATING


def as_type(value: Any, dtype: np.dtype, weak: bool = False, name: str = "convert") -> Any:
    """`value` in `dtype`. A Python scalar becomes a literal, or stays weak if `weak`; a symbolic
    size is computed in `dtype`, never in a narrower dtype first.

    name:   the calling operation
    Errors: OverflowError for a Python integer that the dtype cannot hold, unless
            python_integers="wrapped" is set and the default integer holds it; DtypeError for a
            complex number where the dtype is real.
    """
    if isinstance(value, Dim):
        size = size_value(value, dtype)
        return convert(size, dtype=dtype, weak=True) if weak else size
    if dtypes.scalar_type(value) is not None:
        if dtype in dtypes.KEYS:
            dtype_name = dtypes.short(dtype)
            raise DtypeError(f"{name}: cannot use {value!r} as {dtype_name} (a key required)")
        number = _checked(name, value, dtype)
        return _weak(number, dtype) if weak else _typed(number, dtype)
    source = type_of(value).dtype
    if source is dtype or source == dtype:
        return value
    if isinstance(value, NUMPY) and dtypes.KEYS.isdisjoint((source, dtype)):
        if not weak and _kind(source) <= _kind(dtype):
            return _in_numpy(value, dtype)
        value = _in_numpy(value, dtypes.canonical(source))
    return convert(value, dtype=dtype, weak=weak)


def takes_real_part(dtype: np.dtype, target: np.dtype) -> bool:
    """Whether a user's conversion of numbers is one of their real parts; if so, it warns.

    That is a setting: without complex_to_real="warned" nothing drops an imaginary part.
    """
    if (
        dtype not in dtypes.COMPLEX
        or target in dtypes.COMPLEX | {dtypes.bool_}
        or config.current().complex_to_real == "refused"
    ):
        return False
    text = (
        f"Casting complex values to real discards the imaginary part ({dtypes.short(dtype)} to {dtypes.short(target)})"
    )
    dtypes.warn_user(f"{text}; take .real first", np.exceptions.ComplexWarning)
    return True


def _kind(dtype: np.dtype) -> int:
    """0 to 3 for bools, integers, floats, complex numbers: each kind includes those before it."""
    return sum(dtype in above for above in (dtypes.NUMERIC, dtypes.INEXACT, dtypes.COMPLEX))


def _weak(number: Any, dtype: np.dtype) -> Value:
    """A Python number of the kind of `dtype`, with all its digits; an array if the width
    differs.
    """
    scalar = _SCALARS[_kind(dtype)](number)
    if dtypes.scalar_type(scalar) == (dtype, True):
        return scalar
    return convert(_typed(number, dtype), dtype=dtype, weak=True)


def _typed(scalar: Scalar, dtype: np.dtype) -> np.ndarray:
    """A rank-0 constant; a number too large for a floating dtype becomes infinite, without a
    warning.
    """
    if type(scalar) is float and not -400 < scalar < 400:
        with np.errstate(all="ignore"):
            return np.asarray(scalar).astype(dtype)
    return np.asarray(scalar).astype(dtype)


def constant(number: float, like: object) -> Value:
    """`number` in the dtype of `like`, and weak where `like` is weak."""
    type = type_of(like)
    if not type.weak or type.dtype in dtypes.COMPLEX:
        return _typed(number, type.dtype)
    return _weak(number, type.dtype)


def _checked(name: str, value: Scalar, dtype: np.dtype) -> Scalar:
    if type(value) is int:
        if dtype in dtypes.INTEGER:
            return value if holds(dtype, value) else _wrapped(name, value, dtype)
        if abs(value) > _TOO_LARGE:
            raise unfit(name, value, dtype)
    if type(value) is complex:
        dtypes.require_whole(name, dtypes.c64, dtype)
    return value


def _wrapped(name: str, number: int, dtype: np.dtype) -> int:
    """The number modulo 2**bits of a dtype that cannot hold it, if the settings request that."""
    default = dtypes.canonical(dtypes.i64)
    if config.current().python_integers == "checked" or not holds(default, number):
        raise unfit(name, number, dtype)
    return wrapped(number, dtype)


_TOO_LARGE = 2**1024 - 2**970  # Python cannot convert larger integers to float


def unfit(name: str, number: int, dtype: np.dtype) -> OverflowError:
    """The error for an integer that `dtype` cannot hold, with advice."""
    integers = sorted(dtypes.INTEGER, key=lambda d: (int_bounds(d)[1], d.kind))
    wider = [d for d in integers if holds(d, number)]
    number_text = str(number) if number.bit_length() <= 256 else f"a number of {number.bit_length()} bits"
    hint = f"an explicit {wider[0].name} holds it" if wider else "no integer has more than 64 bits"
    message = f"{name}: cannot hold {number_text} in {dtypes.short(dtype)}"
    return OverflowError(with_context(message, hint if dtype in dtypes.INTEGER else None))


@functools.lru_cache(maxsize=4096)
def broadcast_shape(name: str, *shapes: Shape) -> Shape:
    """The common shape by NumPy's rules. Errors: ShapeError names the axis and both sizes."""
    rank = max(map(len, shapes))
    full_shapes = [(1,) * (rank - len(s)) + tuple(s) for s in shapes]
    return tuple(_common(name, shapes, axis, [s[axis] for s in full_shapes]) for axis in range(rank))


def _common(name: str, shapes: Sequence[Shape], axis: int, sizes: Sequence[Size]) -> Size:
    wide = [s for s in sizes if s != 1]
    for other in wide[1:]:
        if other != wide[0]:
            text = " and ".join("[" + ",".join(map(str, s)) + "]" for s in shapes)
            raise ShapeError(
                f"{name}: cannot broadcast shapes {text} (axis {axis}: {wide[0]} against {other})",
                hint="sizes must be equal or 1, aligned at the last axis",
            )
    return wide[0] if wide else 1


def broadcast_to(name: str, value: Operand, shape: Shape) -> Any:
    """`value` with leading axes added and size-1 axes stretched to `shape`."""
    current = type_of(value).shape
    if current == shape:
        return value
    if broadcast_shape(name, current, shape) != shape:
        raise ShapeError(f"{name}: cannot broadcast {type_of(value)} to {shape}")
    core_shape, axes = _stretch(current, shape)
    if core_shape != current:
        value = reshape(value, shape=core_shape)
    return broadcast(value, shape=shape, axes=axes)


@functools.lru_cache(maxsize=4096)
def _stretch(current: Shape, shape: Shape) -> tuple[Shape, tuple[int, ...]]:
    """The shape without the axes to stretch, and the positions of its axes in `shape`."""
    offset = len(shape) - len(current)
    axes = tuple(i for i, d in enumerate(current) if d != 1 or shape[offset + i] == 1)
    return tuple(current[i] for i in axes), tuple(offset + i for i in axes)


def broadcast_together(name: str, values: Sequence[Operand]) -> list[Any]:
    """Operands of one shape; rank-0 operands are unchanged."""
    shapes = [() if dtypes.scalar_type(v) else type_of(v).shape for v in values]
    distinct = {s for s in shapes if s}
    if len(distinct) <= 1:
        return list(values)
    if config.current().rank_promotion != "allow" and len({len(s) for s in distinct}) > 1:
        _report_ranks(name, shapes, config.current().rank_promotion)
    shape = broadcast_shape(name, *shapes)
    return [v if not s else broadcast_to(name, v, shape) for v, s in zip(values, shapes)]


def _report_ranks(name: str, shapes: Sequence[Shape], how: str) -> None:
    """Errors: ShapeError if ranks may not be promoted; otherwise warns."""
    text = " and ".join("[" + ",".join(map(str, s)) + "]" for s in shapes)
    message = f"{name}: cannot promote the ranks of {text} (rank_promotion={how!r})"
    if how == "raise":
        raise ShapeError(message, hint="reshape the operand of lower rank, or rank_promotion='allow'")
    warnings.warn(message.replace("cannot promote", "promotes"), stacklevel=6)


def apply(primitive: Primitive, *values: Any) -> Any:
    """An elementwise primitive on promoted operands."""
    if len(values) == 2:
        a, b = values
        if type(b) in (int, float):
            scalar = _adapted(primitive.name, b, getattr(a, "type", None))
            if scalar is not None:
                return primitive(a, scalar)
        else:
            type_of_a = getattr(a, "type", None)
            is_same = isinstance(type_of_a, ArrayType) and type_of_a is getattr(b, "type", None)
            if is_same and type_of_a.dtype is not dtypes.bool_:  # type: ignore[union-attr]
                return primitive(a, b)
    operands = promoted(primitive.name, *values)
    if primitive is mul and config.current().bools_select and type_of(operands[0]).dtype in dtypes.INEXACT:
        for mask, number in zip(values, reversed(operands)):
            if getattr(mask, "dtype", None) == dtypes.bool_:
                return _selected(mask, number)
    if primitive in _OF_BOOL and type_of(operands[0]).dtype == dtypes.bool_:
        primitive = _OF_BOOL[primitive]
    return primitive(*operands)


def _selected(mask: Operand, number: Value) -> Value:
    """A number where the mask is True, else 0."""
    condition, numbers = broadcast_together("mul", [unrounded("mul", mask), number])
    kind = type_of(numbers)
    return select(condition, numbers, as_type(0, kind.dtype, kind.weak))


# As in NumPy, the sum of two bools is their "or" and the product their "and".
_OF_BOOL = {add: logical_or, mul: logical_and}


def _adapted(name: str, scalar: Scalar, type: object) -> np.ndarray | None:
    """The common case of a number beside an array of its kind: a literal of the array's dtype."""
    if not isinstance(type, ArrayType) or type.weak:
        return None
    if type.dtype in dtypes.FLOATING:
        is_integer = scalar.__class__ is int
        return _typed(_checked(name, scalar, type.dtype) if is_integer else scalar, type.dtype)
    if scalar.__class__ is int and type.dtype in dtypes.INTEGER:
        return np.array(_checked(name, scalar, type.dtype)).astype(type.dtype)
    return None
