"""Arrays that can be assigned to, as the array API standard has them, over arrays that are values.

`x.__array_namespace__()` is `NAMESPACE`: rune.numpy, but what its functions make is in a box; an
assignment puts a changed array into the box. So libraries of the standard write x[i] = v, on
concrete arrays and on traced ones, and no array of the user's ever changes. A basic index of a box,
or a movement of its axes, is a view of it, as in NumPy: writing one writes the other. All of rune
takes a box as the array in it now. What this does not do: memory that several boxes share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from types import EllipsisType, ModuleType
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.core.interpreter import type_of
from rune.errors import BoundsError, DtypeError, ShapeError
from rune.numpy.arguments import value
from rune.numpy.array_api_info import Limits, limits
from rune.numpy.types import ScalarType, can_cast
from rune.ops import conventions as c
from rune.ops.namespace_methods import namespace
from rune.ops.operators import Operators
from rune.ops.promote import as_type, operand


def _is_box(x: Any) -> bool:
    return isinstance(x, Box)


def _opened(values: Any) -> Any:
    """A tree with the arrays out of their boxes."""
    return tree.map(lambda x: x.value if isinstance(x, Box) else x, values, is_leaf=_is_box)


def _boxed(values: Any) -> Any:
    """A tree with its arrays in new boxes."""
    if isinstance(values, Operators):
        return Box(values)
    return tree.map(lambda x: Box(x) if isinstance(x, Operators) else x, values)


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function from boxes to boxes."""

    @wraps(function)
    def through(*args: Any, **kwargs: Any) -> Any:
        return _boxed(function(*map(_opened, args), **_opened(kwargs)))

    return through


class Namespace(ModuleType):
    """A module of rune whose functions take boxes and give boxes."""

    def __init__(self, module: ModuleType):
        super().__init__(f"{module.__name__}.mutable", module.__doc__)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            made = Namespace(found)
        elif name in _MOVEMENTS and isinstance(self, Standard):
            made = _movement(found)
        elif callable(found) and not isinstance(found, ScalarType | type):
            made = _through(found)
        else:
            made = found
        setattr(self, name, made)
        return made

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<namespace {self.__name__}>"

    def __reduce__(self) -> tuple:
        return _namespace_of, (self._module.__name__,)


class Standard(Namespace):
    """rune.numpy, where it is wider than the standard and libraries notice."""

    def asarray(
        self, obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        """`rune.numpy.asarray`, but NumPy data keep 64 bits: libraries compute parts in NumPy.

        A box that need not be copied is itself.
        """
        if dtype is None and isinstance(obj, np.ndarray | np.generic) and obj.dtype in dtypes.ANY:
            dtype = obj.dtype
        made = namespace().asarray(_opened(obj), dtype, copy=copy, device=device)
        return obj if isinstance(obj, Box) and made is obj.value and not copy else Box(made)

    def astype(self, x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
        """`rune.numpy.astype`; with copy=False a box that has the dtype is itself."""
        made = namespace().astype(_opened(x), dtype, device=device)
        return x if isinstance(x, Box) and made is x.value and not copy else Box(made)

    def finfo(self, type: Any, /) -> Limits:
        """`rune.numpy.finfo` in Python's numbers."""
        return limits(_opened(type))


# --- views --------------------------------------------------------------------------------------

# What NumPy answers with a view of all elements.
_MOVEMENTS = frozenset(
    "expand_dims flip matrix_transpose moveaxis permute_dims reshape squeeze swapaxes transpose"
    " T mT".split()
)


@dataclass(frozen=True, slots=True)
class Part:
    """The elements that a basic index names."""

    index: Any

    def read(self, whole: Any) -> Any:
        return whole[self.index]

    def written(self, whole: Any, new: Any) -> Any:
        return whole.at[self.index].set(new)


@dataclass(frozen=True, slots=True)
class Moved:
    """All elements, each at another place."""

    move: Callable[[Any], Any]

    def read(self, whole: Any) -> Any:
        return self.move(whole)

    def written(self, whole: Any, new: Any) -> Any:
        places = self.move(namespace().arange(whole.size).reshape(whole.shape))
        return whole.ravel().at[places.ravel()].set(new.ravel()).reshape(whole.shape)


def _movement(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function from a box to a view of it."""

    @wraps(function)
    def moved(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _opened(args), _opened(kwargs)
        if not isinstance(x, Box) or kwargs.get("copy"):
            return _boxed(function(_opened(x), *args, **kwargs))
        return x._seen_by(Moved(lambda whole: function(whole, *args, **kwargs)))

    return moved


def _is_basic(index: Any) -> bool:
    """Whether NumPy gives a view for an index: numbers, slices, ellipsis and new axes."""
    entries = index if isinstance(index, tuple) else (index,)
    return all(type(e) is int or isinstance(e, slice | EllipsisType | None) for e in entries)


def _require_within(x: Any, index: Any) -> None:
    """Raise for a number out of bounds, which rune.numpy clamps and libraries do not expect."""
    entries = index if isinstance(index, tuple) else (index,)
    named = sum(type(e) is int or isinstance(e, slice) for e in entries)
    axis = 0
    for entry in entries:
        if entry is Ellipsis:
            axis += x.ndim - named
        elif type(entry) is int or isinstance(entry, slice):
            size = x.shape[axis] if axis < x.ndim else None
            if type(entry) is int and type(size) is int and not -size <= entry < size:
                raise BoundsError(f"mutable: cannot index axis {axis} of {x.type} by {entry}")
            axis += 1


def _written(x: Any, index: Any, new: Any) -> Any:
    """`x` with `new` at `index`; one number under a mask, which may be traced, is selected."""
    if isinstance(index, Operators) and index.dtype == dtypes.bool_ and index.ndim:
        number = as_type(operand("mutable", new), x.dtype)
        if not type_of(number).shape and index.shape == x.shape[: index.ndim]:
            missing = tuple(range(index.ndim, x.ndim))
            return namespace().where(c.expand_dims(index, missing), number, x)
    return x.at[index].set(new)


class Box:
    """An array in a box: it has what the standard's array has, assignment included.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.arange(3))
    >>> x[1] = 7
    >>> x *= 2
    >>> x.value
    Array([ 0, 14,  4], i32[3], cpu:0)
    """

    __slots__ = ("__weakref__", "_array", "_base", "_seen", "_view")
    __array_priority__ = 2000  # NumPy arrays and rune's on the left defer to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any):
        self._array = value
        self._base: Box | None = None
        self._view: Part | Moved | None = None
        self._seen: Any = None  # what the base held when `_array` was read

    @property
    def value(self) -> Any:
        """The array in the box now; a view reads its base again when that has changed."""
        if self._base is None:
            return self._array
        views, box = [], self
        while box._base is not None:
            views.append(box)
            box = box._base
        whole = box._array
        for view in reversed(views):
            if view._seen is not whole:
                view._seen, view._array = whole, view._view.read(whole)
            whole = view._array
        return whole

    def _seen_by(self, view: Part | Moved) -> Box:
        """The box of a view of this one."""
        whole = self.value
        made = Box(view.read(whole))
        made._base, made._view, made._seen = self, view, whole
        return made

    def _put(self, new: Any) -> None:
        """Let `new`, which has the box's type, be its array, and that of all that share it."""
        box = self
        while box._base is not None:
            assert box._view is not None
            box, new = box._base, box._view.written(box._base.value, new)
        box._array = new

    def __rune_array__(self) -> Any:
        """What every function of rune takes the box for."""
        return self.value

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """rune.numpy for boxes. Errors: ArgumentError for a version that is not there."""
        return self.value.__array_namespace__(api_version=api_version)

    def __getattr__(self, name: str) -> Any:
        if name in _INSIDE:
            raise AttributeError(f"mutable: a box has no {name} (its .value has)")
        found = getattr(self.value, name)
        if not callable(found):
            moved = name in _MOVEMENTS
            return self._seen_by(Moved(lambda x: getattr(x, name))) if moved else _boxed(found)
        if name in _MOVEMENTS:
            return partial(_movement(lambda x, *a, **k: getattr(x, name)(*a, **k)), self)
        return _through(found)

    def __getitem__(self, index: Any) -> Any:
        if _is_basic(index):
            _require_within(self.value, index)
            return self._seen_by(Part(index))
        return Box(self.value[_opened(index)])

    def __setitem__(self, index: Any, new: Any) -> None:
        # x[i] += 1 reads a view, adds to it, which writes x, and assigns that view to x[i].
        if isinstance(new, Box) and new._base is self and isinstance(new._view, Part):
            if new._view.index is index:
                return
        if _is_basic(index):
            _require_within(self.value, index)
        self._put(_written(self.value, _opened(index), _opened(new)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # Writing what NumPy makes of a box must not change the array in it.
        if copy is False:
            raise ValueError("mutable: cannot keep copy=False (a box is copied for NumPy)")
        return np.array(self.value, dtype=dtype)

    def __dlpack__(self, **how: Any) -> Any:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self.value)))

    def __copy__(self) -> Box:
        return Box(self.value)

    def __deepcopy__(self, memo: Any) -> Box:
        return Box(self.value)

    def __reduce__(self) -> tuple:
        return Box, (self.value,)

    def __repr__(self) -> str:
        return f"mutable({self.value!r})"

    def __str__(self) -> str:
        return str(self.value)


# What arrays have for rune's own use: a box is none of them.
_INSIDE = frozenset({"buffer", "buffer_on", "place", "rank0", "type"})


def _unary(name: str) -> Any:
    return lambda self: _boxed(getattr(self.value, name)())


def _converted(name: str) -> Any:
    return lambda self, *args: getattr(self.value, name)(*map(_opened, args))


def _binary(name: str) -> Any:
    def method(self: Box, other: Any) -> Any:
        found = getattr(self.value, name)(_opened(other))
        return NotImplemented if found is NotImplemented else _boxed(found)

    return method


def _in_place(name: str) -> Any:
    def method(self: Box, other: Any) -> Any:
        old = self.value
        new = getattr(old, name)(_opened(other))
        if new is NotImplemented:
            return NotImplemented
        if new.shape != old.shape:
            raise ShapeError(f"mutable: cannot keep {new.type} in a box of {old.type}")
        if not can_cast(new.dtype, old.dtype, "same_kind"):
            raise DtypeError(
                f"mutable: cannot keep {new.type} in a box of {old.type}",
                hint="write x = x + y, which makes a new box",
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

NAMESPACE = Standard(namespace())


def _namespace_of(name: str) -> Any:
    """The namespace over a module, by the module's name."""
    found = NAMESPACE
    for part in name.removeprefix("rune.numpy").split(".")[1:]:
        found = getattr(found, part)
    return found


def mutable(x: Any) -> Box:
    """`x` in a box that can be assigned to: what libraries of the array API standard work on.

    Shapes, dtypes and devices are those of the array, which is `.value` of the box at any time.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.zeros(2))
    >>> x[0] = 1
    >>> x.value, rnp.sum(x)
    (Array([1., 0.], f32[2], cpu:0), Array(1., f32[], cpu:0))
    """
    return Box(value("mutable", _opened(x)))


__all__ = ["Box", "mutable"]
