"""Arrays that can be assigned to, for libraries that are written against the array API standard.

SciPy and scikit-learn take any conforming array, but some of their functions write x[i] = v. A box
holds an array of rune, and an assignment puts a changed one into it. Its namespace is rune.numpy
with boxes going in and out. Inside of rune nothing changes: arrays stay values.
What this does not do: views. A part of a box is a box of its own, and writing it changes no other.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

import numpy as np

from rune import tree
from rune.numpy.arguments import value
from rune.numpy.types import ScalarType
from rune.ops.namespace_methods import namespace
from rune.ops.operators import Operators


def _is_box(x: Any) -> bool:
    return isinstance(x, Box)


def _opened(values: Any) -> Any:
    """A tree with the arrays out of their boxes."""
    return tree.map(lambda x: x.value if isinstance(x, Box) else x, values, is_leaf=_is_box)


def _boxed(values: Any) -> Any:
    """A tree with its arrays in new boxes."""
    return tree.map(lambda x: Box(x) if isinstance(x, Operators) else x, values)


def _through(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function from boxes to boxes."""

    @wraps(function)
    def through(*args: Any, **kwargs: Any) -> Any:
        return _boxed(function(*_opened(args), **_opened(kwargs)))

    return through


class Namespace:
    """A module of rune whose functions take boxes and give boxes."""

    def __init__(self, module: ModuleType):
        self._module = module
        self.__name__ = f"{module.__name__} (mutable)"

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if isinstance(found, ModuleType):
            made = Namespace(found)
        elif callable(found) and not isinstance(found, ScalarType | type):
            made = _through(found)
        else:
            made = found
        setattr(self, name, made)
        return made

    def __repr__(self) -> str:
        return f"<namespace {self.__name__}>"

    def asarray(self, obj: Any, /, *args: Any, copy: bool | None = None, **kwargs: Any) -> Any:
        """`rune.numpy.asarray`; a box that need not be copied is itself."""
        made = namespace().asarray(_opened(obj), *args, copy=copy, **kwargs)
        return obj if isinstance(obj, Box) and made is obj.value and not copy else Box(made)


class Box:
    """An array in a box: it has what the standard's array has, assignment included.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.arange(3))
    >>> x[1] = 7
    >>> x *= 2
    >>> x.value
    Array([ 0, 14,  4], i32[3], cpu:0)
    """

    __slots__ = ("__weakref__", "value")
    __array_priority__ = 2000  # NumPy arrays and rune's on the left defer to us
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any):
        self.value = value

    def __array_namespace__(self, *, api_version: str | None = None) -> Namespace:
        """rune.numpy for boxes. Errors: ArgumentError for a version that is not there."""
        self.value.__array_namespace__(api_version=api_version)
        return NAMESPACE

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.value, name)
        return _through(found) if callable(found) else _boxed(found)

    def __getitem__(self, index: Any) -> Any:
        return Box(self.value[_opened(index)])

    def __setitem__(self, index: Any, new: Any) -> None:
        self.value = self.value.at[_opened(index)].set(_opened(new))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        # Writing what NumPy makes of a box must not change the array in it.
        return np.array(self.value, dtype=dtype)

    def __dlpack__(self, **how: Any) -> Any:
        return self.value.__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.value.__dlpack_device__()

    def __iter__(self) -> Any:
        return map(Box, self.value)

    def __repr__(self) -> str:
        return f"mutable({self.value!r})"


def _unary(name: str) -> Any:
    return lambda self: _boxed(getattr(self.value, name)())


def _converted(name: str) -> Any:
    return lambda self, *args: getattr(operator.attrgetter("value")(self), name)(*args)


def _binary(name: str) -> Any:
    def method(self: Box, other: Any) -> Any:
        found = getattr(self.value, name)(_opened(other))
        return NotImplemented if found is NotImplemented else Box(found)

    return method


def _in_place(name: str) -> Any:
    def method(self: Box, other: Any) -> Any:
        new = getattr(self.value, name)(_opened(other))
        if new is NotImplemented:
            return NotImplemented
        self.value = new.astype(self.value.dtype)
        return self

    return method


_ARITHMETIC = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
for _name in _ARITHMETIC:
    setattr(Box, f"__{_name}__", _binary(f"__{_name}__"))
    setattr(Box, f"__r{_name}__", _binary(f"__r{_name}__"))
    setattr(Box, f"__i{_name}__", _in_place(f"__{_name}__"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Box, f"__{_name}__", _binary(f"__{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(Box, f"__{_name}__", _unary(f"__{_name}__"))
for _name in ("bool", "int", "float", "complex", "index", "len", "contains", "format"):
    setattr(Box, f"__{_name}__", _converted(f"__{_name}__"))

NAMESPACE = Namespace(namespace())


def mutable(x: Any) -> Box:
    """`x` in a box that can be assigned to, for libraries of the array API standard.

    Shapes, dtypes and devices are those of the array, which is `.value` of the box at any time.

    >>> import rune.numpy as rnp
    >>> x = rnp.mutable(rnp.zeros(2))
    >>> x[0] = 1
    >>> x.value, x.__array_namespace__().sum(x)
    (Array([1., 0.], f32[2], cpu:0), mutable(Array(1., f32[], cpu:0)))
    """
    return Box(value("mutable", _opened(x)))


__all__ = ["Box", "mutable"]
