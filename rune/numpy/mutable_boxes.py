"""Mutable arrays for the array API standard, implemented on top of immutable arrays.

`x.__array_namespace__()` is `NAMESPACE`: rune.numpy, except that its functions return boxes; an
assignment puts a changed array into the box. So libraries written against the standard can write
x[i] = v, on concrete and traced arrays, and no array of the user ever changes. A basic index of a
box, or a permutation of its axes, is a view of it, as in NumPy: writing one writes the other. All
of rune treats a box as the array that it holds. Not done: memory shared by several boxes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from types import ModuleType
from typing import Any, cast

import numpy as np

from rune import dtypes, locks, tree
from rune.array import Array
from rune.backends import Device
from rune.core.interpreter import type_of
from rune.core.values import Value
from rune.errors import ArgumentError, DtypeError, ShapeError
from rune.numpy.arguments import value
from rune.numpy.array_api_info import Limits, limits
from rune.numpy.creation import asarray
from rune.numpy.joining import unstack
from rune.numpy.logic import where
from rune.numpy.mutable_views import MOVEMENTS, Movement, Part, is_basic, require_within
from rune.numpy.sorting import searchsorted
from rune.numpy.types import astype, can_cast
from rune.ops import conventions as c
from rune.ops.operators import Operators
from rune.ops.promote import as_type, unrounded
from rune.typing import ArrayLike, DTypeLike


def _opened(values: object) -> Any:
    """A tree with boxes replaced by their arrays."""
    return tree.map(_out, values, is_leaf=lambda x: isinstance(x, Box))


def _out(x: object) -> Any:
    """NumPy scalars that are also Python numbers, as Python numbers, which adapt to any dtype."""
    if isinstance(x, Box):
        return x.value
    return x.item() if isinstance(x, np.float64 | np.complex128) else x


def _with_its_bits(x: Array) -> Value:
    """NumPy data as an array of the same dtype, even 64-bit ones; everything else unchanged."""
    is_data = isinstance(x, np.ndarray | np.generic) and x.dtype in dtypes.ANY
    return asarray(x, x.dtype) if is_data else x


def _lent(x: Any) -> Any:
    """The memory of bytes, `array.array` and the like as NumPy data; everything else unchanged."""
    if isinstance(x, Box | Operators | np.ndarray | np.generic):
        return x
    try:
        return np.asarray(memoryview(x))
    except TypeError:  # it exports no memory
        return x


def _boxed(values: object) -> Any:
    """A tree with its arrays put into new boxes."""
    if isinstance(values, Operators):
        return Box(values)
    return tree.map(lambda x: Box(x) if isinstance(x, Operators) else x, values)


def _through(function: Callable[..., object]) -> Callable[..., Any]:
    """A function from boxes to boxes."""

    @wraps(function)
    def through(*args: object, **kwargs: object) -> Any:
        return _boxed(function(*map(_opened, args), **_opened(kwargs)))

    return through


# Tuples in the standard since 2025.12, lists in rune.numpy and JAX.
_TUPLES = frozenset({"broadcast_arrays", "meshgrid"})


def _in_tuple(function: Callable[..., object]) -> Callable[..., Any]:
    """A function from boxes to a tuple of boxes."""
    boxes = _through(function)
    return wraps(function)(lambda *args, **kwargs: tuple(boxes(*args, **kwargs)))


_WRITERS = frozenset({"fill_diagonal", "place", "put", "put_along_axis"})


def _writing(function: Callable[..., Array]) -> Callable[..., Any]:
    """A function that changes its first argument: a box takes the changed copy."""

    @wraps(function)
    def write(x: ArrayLike, /, *args: object, **kwargs: object) -> None:
        arguments, keywords = _opened(args), _opened(kwargs)
        if not isinstance(x, Box):
            function(x, *arguments, **keywords)  # refuses: only boxes can be written
        else:
            x._put(function(x.value, *arguments, **keywords, inplace=False))

    return write


class Namespace(ModuleType):
    """A module of rune whose functions take and return boxes."""

    def __init__(self, module: ModuleType):
        super().__init__(f"{module.__name__}.mutable", module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._module, name)
        if isinstance(attribute, ModuleType):
            wrapper = Namespace(attribute)
        elif name in MOVEMENTS:
            wrapper = _movement(attribute)
        elif name in _WRITERS:
            wrapper = _writing(attribute)
        elif name in _TUPLES:
            wrapper = _in_tuple(attribute)
        elif callable(attribute) and not isinstance(attribute, type):
            wrapper = _through(attribute)
        else:
            wrapper = attribute
        setattr(self, name, wrapper)
        return wrapper

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<namespace {self.__name__}>"

    def __reduce__(self) -> tuple:
        return _namespace_of, (self._module.__name__,)


class Standard(Namespace):
    """rune.numpy, adapted where it differs from the standard and libraries notice."""

    def asarray(
        self,
        obj: object,
        /,
        *,
        dtype: DTypeLike | None = None,
        device: str | Device | None = None,
        copy: bool | None = None,
    ) -> Any:
        """`rune.numpy.asarray`, except that NumPy data keep 64 bits: libraries compute parts in
        NumPy.

        Objects that export memory count as NumPy data. A box that need not be copied is returned.
        """
        obj = _lent(obj)
        if dtype is None and isinstance(obj, np.ndarray | np.generic) and obj.dtype in dtypes.ANY:
            dtype = obj.dtype
        array = asarray(_opened(obj), dtype, copy=copy, device=device)
        return obj if isinstance(obj, Box) and array is obj.value and not copy else Box(array)

    def astype(self, x: Any, dtype: Any, /, *, copy: bool = True, device: str | Device | None = None) -> Any:
        """`rune.numpy.astype`; with copy=False a box that already has the dtype is returned."""
        array = astype(_opened(x), dtype, device=device)
        return x if isinstance(x, Box) and array is x.value and not copy else Box(array)

    def unstack(self, x: Any, /, *, axis: int = 0) -> tuple[Box, ...]:
        """`rune.numpy.unstack`, which gives views of a box."""
        if not isinstance(x, Box):
            return _boxed(unstack(_opened(x), axis=axis))
        at = c.normalised_axis("unstack", axis, type_of(x.value))
        return tuple(self.moveaxis(x, at, 0))

    def searchsorted(self, x1: object, x2: object, /, *, side: str = "left", sorter: object = None) -> Box:
        """`rune.numpy.searchsorted` in the index dtype; JAX's is i32 even in 64-bit mode."""
        places = searchsorted(_opened(x1), _opened(x2), side, _opened(sorter))
        return Box(astype(places, dtypes.canonical(dtypes.i64)))

    def finfo(self, type: object, /) -> Limits:
        """`rune.numpy.finfo` with Python numbers."""
        return limits(_opened(type))


def _movement(function: Callable[..., Array]) -> Callable[..., Any]:
    """A function from a box to a view of it."""

    @wraps(function)
    def view_or_result(x: ArrayLike, /, *args: object, **kwargs: object) -> Any:
        args, kwargs = _opened(args), _opened(kwargs)
        if not isinstance(x, Box) or kwargs.get("copy"):
            return _boxed(function(_opened(x), *args, **kwargs))
        return x._view_through(Movement(lambda base: function(base, *args, **kwargs)))

    return view_or_result


def _index(index: object) -> Any:
    """An index without boxes; lists in it are arrays of positions, or masks, as in NumPy."""
    if isinstance(index, tuple):
        return tuple(map(_index, index))
    if not isinstance(index, list):
        return _out(index)
    positions = np.asarray(index)
    return positions if positions.size else positions.astype(np.int32)


def _written(x: Array, index: Array, new: ArrayLike | Value) -> Array:
    """`x` with `new` at `index`; a single number under a mask (traced or not) is selected."""
    if isinstance(index, Operators) and index.dtype == dtypes.bool_:
        number = _with_its_bits(as_type(unrounded("mutable", new), x.dtype, name="mutable"))
        if not type_of(number).shape and index.shape == x.shape[: index.ndim]:
            missing = tuple(range(index.ndim, x.ndim))
            return where(c.expand_dims(index, missing), cast(Array, number), x)
    return x.at[index].set(new)


class Box:
    """A mutable box for an array, with all attributes of the standard's array.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.arange(3))
    >>> x[1] = 7
    >>> x *= 2
    >>> x.value
    Array([ 0, 14,  4], i32[3], cpu:0)
    """

    __slots__ = ("__weakref__", "_base", "_root", "_snapshot", "_view")
    __array_priority__ = 2000  # NumPy arrays and rune's on the left defer to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any):
        # The root's array when this was last read, and what was read: one pair, so that no thread
        # sees half of it. In a box that is not a view they are the same.
        self._snapshot: tuple[Any, Any] = (value, value)
        self._root: Box | None = None
        self._base: Box | None = None
        self._view: Part | Movement | None = None

    @property
    def value(self) -> Any:
        """The array in the box now; a view reads its base again when the root has changed."""
        root_value, array = self._snapshot
        return array if self._root is None or root_value is self._root._snapshot[0] else self._read()

    def _read(self) -> Array:
        """The array of a view, with every view on the way read again."""
        root, views = self._chain()
        array = root_value = root._snapshot[0]
        for box in reversed(views):
            array = box._view.read(array)
            box._snapshot = root_value, array
        return array

    def _chain(self) -> tuple[Box, list[Any]]:
        """The box that is the root, not a view, and the views on the way to it, this one first."""
        views, box = [], self
        while box._base is not None:
            views.append(box)
            box = box._base
        return box, views

    def _view_through(self, view: Part | Movement) -> Box:
        """The box of a view of this one."""
        root = self if self._root is None else self._root
        root_value = root._snapshot[0]
        box = Box(view.read(self.value))
        box._base, box._view, box._root = self, view, root
        box._snapshot = root_value, box._snapshot[1]
        return box

    def _put(self, new: ArrayLike) -> None:
        """Make `new`, which has the box's type, the array of this box and of all that share it."""
        root, views = self._chain()
        for box in views:
            new = box._view.written(box._base.value, new)
        root._snapshot = new, new

    def __rune_array__(self) -> Array:
        """The array that every function of rune uses in place of the box."""
        return self.value

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """rune.numpy for boxes. Errors: ArgumentError for an unknown version."""
        return self.value.__array_namespace__(api_version=api_version)

    def __getattr__(self, name: str) -> Any:
        if name in _INSIDE:
            raise AttributeError(f"mutable: a box has no {name} (its .value has)")
        attribute = getattr(self.value, name)
        if not callable(attribute):
            is_movement = name in MOVEMENTS
            return self._view_through(Movement(lambda x: getattr(x, name))) if is_movement else _boxed(attribute)
        if name in MOVEMENTS:
            return partial(_movement(lambda x, *a, **k: getattr(x, name)(*a, **k)), self)
        return _through(attribute)

    def __getitem__(self, index: object) -> Any:
        if is_basic(index):
            require_within(self.value, index)
            return self._view_through(Part(index))
        index = _index(index)
        require_within(self.value, index)
        return Box(self.value[index])

    def __setitem__(self, index: Any, new: object) -> None:
        # x[i] += 1 reads a view, adds to it, which writes x, and then assigns that view to x[i].
        if isinstance(new, Box) and new._base is self and isinstance(new._view, Part):
            if is_basic(index) and new._view.index == index:
                return
        old, new, index = self.value, _with_its_bits(_opened(new)), _index(index)
        require_within(old, index)
        is_complex = isinstance(new, complex) or getattr(new, "dtype", None) in dtypes.COMPLEX
        if is_complex and old.dtype not in dtypes.COMPLEX:
            raise DtypeError(f"mutable: cannot keep {type_of(new)} in a box of {old.type}")
        self._put(_written(old, index, new))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        # Writing to the NumPy array of a box must not change the array in the box.
        if copy is False:
            raise ArgumentError("mutable: cannot keep copy=False (a box is copied for NumPy)")
        return np.array(self.value, dtype=dtype)

    def __dlpack__(self, **how: Any) -> object:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.value)))

    def __copy__(self) -> Box:
        return Box(self.value)

    def __deepcopy__(self, memo: object) -> Box:
        return Box(self.value)

    def __reduce__(self) -> tuple:
        return Box, (self.value,)

    def __repr__(self) -> str:
        return f"mutable({self.value!r})"

    def __str__(self) -> str:
        return str(self.value)


# Attributes of arrays for internal use, which boxes do not have.
_INSIDE = frozenset({"buffer", "buffer_on", "place", "rank0", "type"})


def _unary(name: str) -> Any:
    return lambda self: _boxed(getattr(self.value, name)())


def _converted(name: str) -> Any:
    return lambda self, *args: getattr(self.value, name)(*map(_opened, args))


def _binary(name: str) -> Any:
    def method(self: Box, other: ArrayLike) -> Any:
        out = getattr(self.value, name)(_opened(other))
        return NotImplemented if out is NotImplemented else _boxed(out)

    return method


def _in_place(name: str) -> Any:
    def method(self: Box, other: ArrayLike) -> Any:
        old = self.value
        new = getattr(old, name)(_opened(other))
        if new is NotImplemented:
            return NotImplemented
        if new.shape != old.shape:
            raise ShapeError(f"mutable: cannot keep {new.type} in a box of {old.type}")
        if not can_cast(new.dtype, old.dtype, "same_kind"):
            raise DtypeError(
                f"mutable: cannot keep {new.type} in a box of {old.type}", hint="write x = x + y, which makes a new box"
            )
        self._put(new.astype(old.dtype))
        return self

    return method


_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
for _name in _ARITHMETIC:
    setattr(Box, f"__{_name}__", _binary(f"__{_name}__"))
    setattr(Box, f"__r{_name}__", _binary(f"__r{_name}__"))
    setattr(Box, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "divmod", "rdivmod"):
    setattr(Box, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Box, f"__{_name}__", _unary(f"__{_name}__"))
for _name in ("bool", "int", "float", "complex", "index", "len", "contains", "format"):
    setattr(Box, f"__{_name}__", _converted(f"__{_name}__"))

NAMESPACE = Standard(locks.load("rune.numpy"))


def _namespace_of(name: str) -> Any:
    """The namespace over a module, by the module's name."""
    module = NAMESPACE
    for part in name.removeprefix("rune.numpy").split(".")[1:]:
        module = getattr(module, part)
    return module


def mutable(x: ArrayLike) -> Box:
    """A mutable box around `x`, for libraries written against the array API standard.

    Shape, dtype and device are those of the array, which `.value` of the box returns at any time.
    Shapes: any, unchanged. Types: that of `x`.
    Errors: ArgumentError if an argument is not an array.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.zeros(2))
    >>> x[0] = 1
    >>> x.value, rnp.sum(x)
    (Array([1., 0.], f32[2], cpu:0), Array(1., f32[], cpu:0))
    """
    return Box(value("mutable", _opened(x)))


__all__ = ["Box", "mutable"]
