"""Dtypes under NumPy's names, their properties, and JAX's promotion.

`rnp.float32` can be used wherever a dtype is expected, equals NumPy's, and is a constructor of
arrays: `rnp.float32(1)`. Python's `int`, `float` and `complex` count as weak types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from rune import dtypes
from rune.array import Array
from rune.backends import Device
from rune.errors import ArgumentError, DtypeError
from rune.numpy.arguments import placed, type_like, value
from rune.numpy.creation import from_object
from rune.ops import conventions as c
from rune.ops.operators import Operators
from rune.typing import ArrayLike, Axis, DTypeLike

if TYPE_CHECKING:
    from rune.array import Array as ndarray  # in annotations this means an array, traced or not
else:
    ndarray = Operators  # the base class of concrete and traced arrays


class ScalarType(type):
    """A dtype as a class, which also makes arrays from a number, a list, NumPy data or an array.

    Shapes: those of the data, [] of 0 for none. Types: the dtype itself, NumPy's `dtype` of it.
    Errors: OverflowError for a Python integer that the dtype does not hold; ValueError for text.

    >>> import rune.numpy as rnp
    >>> rnp.bfloat16(1.5), rnp.float32 == rnp.dtype("float32"), rnp.float32.__name__
    (Array(1.5, bf16[], cpu:0), True, 'float32')
    """

    dtype: np.dtype

    def __call__(cls, x: ArrayLike = 0) -> Array:
        """`x` as an array of this dtype."""
        return from_object(x, dtypes.as_dtype(cls.dtype))

    def __eq__(cls, other: object) -> bool:
        return bool(cls.dtype == other)

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)  # as for NumPy's class, which it equals

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)

    def __repr__(cls) -> str:
        return f"rune.numpy.{cls.dtype.name}"


_DOC = """The dtype {dtype}, which also makes arrays: of a number, a list, NumPy data or an array.

Shapes: those of the data, [] of 0 for none. Types: {dtype}.
Errors: OverflowError for a Python integer that the dtype does not hold; ValueError for text.

>>> import rune.numpy as rnp
>>> rnp.{name}(1).dtype == rnp.{name}
True
"""


def _class_of(dtype: np.dtype) -> ScalarType:
    """The class that stands for a dtype; there is one for each."""
    name = "bool_" if dtype == dtypes.bool_ else dtype.name
    doc = _DOC.format(name=name, dtype=dtype.name)
    return ScalarType(name, (), {"dtype": dtype, "__module__": "rune.numpy", "__doc__": doc, "__slots__": ()})


bool_ = _class_of(dtypes.bool_)
int4, int8, int16, int32, int64 = map(_class_of, (dtypes.i4, dtypes.i8, dtypes.i16, dtypes.i32, dtypes.i64))
uint4, uint8, uint16, uint32, uint64 = map(_class_of, (dtypes.u4, dtypes.u8, dtypes.u16, dtypes.u32, dtypes.u64))
float8_e4m3fn, float8_e5m2 = _class_of(dtypes.f8_e4m3), _class_of(dtypes.f8_e5m2)
bfloat16, float16, float32, float64 = map(_class_of, (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64))
complex64, complex128 = _class_of(dtypes.c64), _class_of(dtypes.c128)
half, single, double = float16, float32, float64
csingle, cdouble = complex64, complex128
# Names without a width are 32-bit here; in NumPy they are wider.
int_, uint, float_, complex_ = int32, uint32, float32, complex64

generic, number, inexact, floating = np.generic, np.number, np.inexact, np.floating
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
complexfloating, flexible, character = np.complexfloating, np.flexible, np.character
object_ = np.object_

_ISDTYPE: dict[str, frozenset[np.dtype]] = {
    "bool": frozenset({dtypes.bool_}),
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.INTEGER,
    "real floating": dtypes.FLOATING,
    "complex floating": dtypes.COMPLEX,
    "numeric": dtypes.NUMERIC,
}
_PYTHON = frozenset({bool, int, float, complex})


def dtype(x: str) -> np.dtype:
    """The dtype object for a name, type or dtype.

    Errors: DtypeError if `x` is not a dtype.

    >>> import rune.numpy as rnp
    >>> rnp.dtype("bfloat16") == rnp.bfloat16
    True
    """
    return dtypes.public(dtypes.named(x))


def _type(x: object) -> tuple[np.dtype, bool]:
    """(dtype, weak) of an array, Python scalar, dtype, or Python type."""
    if x is None:  # as NumPy reads it: the default, a float
        return type_like("result_type", 0.0).dtype, False
    if isinstance(x, type) and x in _PYTHON:
        x = x()
    elif isinstance(x, str | type | np.dtype | dtypes.KeyDtype | ScalarType):
        return dtypes.available(dtypes.named(x)), False
    if not hasattr(x, "shape") and isinstance(getattr(x, "dtype", None), np.dtype):  # Penzai's NamedArray
        return dtypes.available(x.dtype), False  # type: ignore[attr-defined]
    x_type = type_like("result_type", x)
    return x_type.dtype, x_type.weak


def result_type(*args: object) -> np.dtype:
    """The dtype that an operation on these arrays, scalars and dtypes has.

    Types:  JAX's lattice, see rune.dtypes; None is the dtype of a Python float.
    Errors: DtypeError where it has no least upper bound; ArgumentError without operands.

    >>> import rune.numpy as rnp
    >>> rnp.result_type(rnp.int32, rnp.bfloat16, 2.0)
    dtype(bfloat16)
    """
    if not args:
        raise ArgumentError("result_type: cannot find the dtype of no operands")
    return dtypes.public(dtypes.promote(*map(_type, args))[0])


def promote_types(a: object, b: object) -> np.dtype:
    """The dtype to which two dtypes promote, or those of arrays.

    Errors: DtypeError if `a` or `b` has no dtype.

    >>> import rune.numpy as rnp
    >>> rnp.promote_types("int8", "uint8")
    dtype('int16')
    """
    pair = (_type(x) if isinstance(x, type) and x in _PYTHON else (_dtype_of(x), False) for x in (a, b))
    return dtypes.public(dtypes.promote(*pair)[0])


def can_cast(from_: object, to: object, casting: Any = "safe") -> bool:
    """Whether a cast is allowed by NumPy's rule `casting`.

    Types:  from_ is a dtype, its name, or an array, whose dtype counts.
    Errors: DtypeError if `from_` or `to` has no dtype.

    >>> import rune.numpy as rnp
    >>> rnp.can_cast("bfloat16", "float32"), rnp.can_cast("int32", "int8")
    (True, False)
    """
    return np.can_cast(_dtype_of(from_), dtypes.named(to), casting=casting)


def issubdtype(arg1: object, arg2: object) -> bool:
    """Whether a dtype belongs to an abstract kind such as `rnp.floating`, or is the same dtype.

    Errors: DtypeError for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.issubdtype(rnp.bfloat16, rnp.floating), rnp.issubdtype(int, rnp.floating)
    (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a dtype is of a kind, or one of several kinds, of the array API standard.

    Errors: DtypeError for an unknown kind.

    >>> import rune.numpy as rnp
    >>> rnp.isdtype(rnp.float16, ("bool", "real floating"))
    True
    """
    concrete_dtype = dtypes.named(dtype)
    return any(_is_kind(concrete_dtype, k) for k in (kind if isinstance(kind, tuple) else (kind,)))


def _is_kind(dtype: np.dtype, kind: str) -> bool:
    if kind in _ISDTYPE:
        return dtype in _ISDTYPE[kind]
    if isinstance(kind, str) and kind not in dtypes.FROM_SHORT:
        raise DtypeError(f"isdtype: cannot use the kind {kind!r} (one of {', '.join(_ISDTYPE)})")
    return dtype == dtypes.named(kind)


def _dtype_of(x: object) -> np.dtype:
    return x.dtype if isinstance(x, Operators) else dtypes.named(x)


def finfo(dtype: DTypeLike) -> Any:
    """Limits of a floating dtype: bits, eps, max, min, tiny.

    Types:  a dtype, its name, or an array, whose dtype counts.
    Errors: DtypeError if an argument is not a floating dtype.

    >>> import rune.numpy as rnp
    >>> float(rnp.finfo(rnp.bfloat16).eps)
    0.0078125
    """
    float_dtype = _dtype_of(dtype)
    if float_dtype not in dtypes.INEXACT:
        raise DtypeError(f"finfo: cannot describe {dtypes.short(float_dtype)} (floating dtype required)")
    return np.finfo(float_dtype) if float_dtype in dtypes.COMPLEX else ml_dtypes.finfo(float_dtype)


def iinfo(int_type: DTypeLike) -> Any:
    """Limits of an integer dtype: bits, min, max.

    Types:  a dtype, its name, or an array, whose dtype counts.
    Errors: DtypeError if an argument is not an integer dtype.

    >>> import rune.numpy as rnp
    >>> rnp.iinfo(rnp.int8).max
    127
    """
    integer_dtype = _dtype_of(int_type)
    if integer_dtype not in dtypes.INTEGER:
        raise DtypeError(f"iinfo: cannot describe {dtypes.short(integer_dtype)} (integer dtype required)")
    return ml_dtypes.iinfo(integer_dtype)


def astype(x: Any, dtype: DTypeLike, /, *, copy: bool = False, device: str | Device | None = None) -> Array:
    """`x` converted; float to integer saturates and NaN becomes 0. None means the default float.

    Shapes: any, unchanged. Types: the dtype given.
    Errors: ArgumentError if an argument is not an array; DtypeError for complex numbers and an
            unknown dtype.

    >>> import rune.numpy as rnp
    >>> rnp.astype(rnp.array([1.7, -300.0]), "int8")
    Array([   1, -128], i8[2], cpu:0)
    """
    array = c.converted(value("astype", x), dtypes.as_dtype(float if dtype is None else dtype))
    return c.distinct(placed(array, device), x) if copy else placed(array, device)


def shape(a: ArrayLike) -> tuple:
    """Sizes of the axes.

    Shapes: any -> a tuple of integers, or of symbolic sizes.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.shape(rnp.zeros((2, 3)))
    (2, 3)
    """
    return type_like("shape", a).shape


def ndim(a: ArrayLike) -> int:
    """Number of axes.

    Shapes: any -> a Python integer.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> rnp.ndim(1.0)
    0
    """
    return len(shape(a))


def size(a: ArrayLike, axis: Axis = None) -> Any:
    """Number of elements, in total or along some axes.

    Shapes: any -> an integer, or a symbolic size.
    Errors: ArgumentError if an argument is not an array; AxisError for an axis out of range.

    >>> import rune.numpy as rnp
    >>> rnp.size(rnp.zeros((2, 3))), rnp.size(rnp.zeros((2, 3)), 1)
    (6, 3)
    """
    a_type, total = type_like("size", a), 1
    for i in c.normalised_axes("size", axis, a_type):
        total = total * a_type.shape[i]
    return total


def iterable(y: Any) -> bool:
    """Whether `y` can be iterated over; an array of rank 0 cannot.

    Shapes: any -> a Python bool.
    Errors: none.

    >>> import rune.numpy as rnp
    >>> rnp.iterable(rnp.zeros(2)), rnp.iterable(rnp.float32(1))
    (True, False)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def common_type(*arrays: ArrayLike) -> np.dtype:
    """The inexact dtype in which arrays would be computed; for integers, a float.

    Shapes: any -> a dtype.
    Errors: DtypeError for bools, as in NumPy.

    >>> import rune.numpy as rnp
    >>> rnp.common_type(rnp.arange(2), rnp.ones(2, "bf16"))
    dtype(bfloat16)
    """
    kinds = [_type(a) for a in arrays]
    if any(dtype == dtypes.bool_ for dtype, _ in kinds):
        raise DtypeError("common_type: cannot compute with bools (numbers required)")
    common, weak = dtypes.promote(*kinds)
    return common if common in dtypes.INEXACT else dtypes.promote((common, weak), (dtypes.f32, True))[0]


def isscalar(element: ArrayLike) -> bool:
    """Whether `element` is a Python scalar, a string, or has rank 0.

    Shapes: any -> a Python bool.
    Errors: none.

    >>> import rune.numpy as rnp
    >>> rnp.isscalar(3.0), rnp.isscalar(rnp.zeros(1))
    (True, False)
    """
    if isinstance(element, Operators | np.ndarray | np.generic):
        return len(element.shape) == 0
    return isinstance(element, str | bytes) or dtypes.scalar_type(element) is not None
