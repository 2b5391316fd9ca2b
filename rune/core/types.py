"""ArrayType: shape, dtype, weakness and variation, all that tracing knows of an array."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol
from weakref import WeakValueDictionary

import numpy as np

from rune import dtypes, locks
from rune.core.no_sharding import NoSharding, is_unsaid
from rune.core.partition_spec import Part, PartitionSpec
from rune.dims import Dim, Size, product
from rune.errors import ArgumentError, ShapeError

Shape = tuple[Size, ...]
Axes = frozenset[Hashable]  # names of axes of a mesh
NONE: Axes = frozenset()


class Layout(Protocol):
    """The sharding of a type: a mesh without devices, and how its axes split an array."""

    @property
    def spec(self) -> PartitionSpec: ...

    @property
    def mesh(self) -> object: ...

    @property
    def is_fully_replicated(self) -> bool: ...

    @property
    def update(self) -> Callable[..., Layout]: ...


class ArrayType:
    """The type of an array: dimensions (integers or symbolic), dtype, weak, varying.

    A weak type is that of a Python scalar: it adapts to the dtype of other operands. In the body of
    a shard_map an array may differ between the devices along the axes `varying` of the mesh, and is
    the same along the others: `f32[3]{data}`. Instances are interned, so that equality is identity
    and hashing is free on jit's call path.
    Errors: none: operations check the types of their operands.

    >>> row = ArrayType((3,), dtypes.f32)
    >>> str(row), row is ArrayType((3,), dtypes.f32)
    ('f32[3]', True)
    """

    __slots__ = ("__weakref__", "dtype", "is_symbolic", "layout", "public_dtype", "shape", "varying", "weak")
    shape: Shape
    dtype: np.dtype
    public_dtype: Any  # as users see it: that of keys has a name of its own
    weak: bool
    varying: Axes
    is_symbolic: bool  # some dimension is symbolic
    layout: Layout | None  # along Explicit axes of a mesh; only types that users get have one

    def __new__(cls, shape: Shape, dtype: np.dtype, weak: bool = False, varying: Axes = NONE) -> ArrayType:
        """The one instance for these four."""
        return _intern(shape, dtype, weak, varying)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ArrayType is immutable (cannot set {name})")

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Size:
        """Number of elements."""
        return product(self.shape)

    @property
    def weak_type(self) -> bool:
        """JAX's name of `weak`."""
        return self.weak

    def update(self, **changes: Any) -> ArrayType:
        """The type with another shape, dtype, weak_type, vma. Errors: ArgumentError for others."""
        sharding = changes.pop("sharding", self.layout)
        unknown = changes.keys() - set(_UPDATES)
        if unknown:
            raise ArgumentError(f"ArrayType: cannot update {', '.join(sorted(unknown))} ({', '.join(_UPDATES)})")
        dtype = dtypes.as_dtype(changes["dtype"]) if "dtype" in changes else self.dtype
        shape, weak = changes.get("shape", self.shape), changes.get("weak_type", self.weak)
        plain = _intern(tuple(shape), dtype, bool(weak), changes.get("vma", self.varying))
        return plain if is_unsaid(sharding) else plain.laid_out(sharding)

    def str_short(self, short_dtypes: bool = False) -> str:
        """`float32[3]`; `f32[3]` with `short_dtypes`."""
        dtype = dtypes.short(self.dtype) if short_dtypes else str(self.public_dtype)
        return f"{dtype}[{self._sizes()}]"

    def strip_weak_type(self) -> ArrayType:
        """JAX's name of `strong`."""
        return self.strong()

    def with_shape(self, shape: Shape) -> ArrayType:
        """The same dtype, weakness and variation with another shape."""
        return _intern(tuple(shape), self.dtype, self.weak, self.varying)

    def with_dtype(self, dtype: np.dtype) -> ArrayType:
        """The same shape and variation with another dtype, not weak."""
        return _intern(self.shape, dtype, False, self.varying)

    def along(self, varying: Axes) -> ArrayType:
        """The same type of an array that varies along these axes and no others."""
        return self if varying == self.varying else _intern(self.shape, self.dtype, self.weak, varying)

    def strong(self) -> ArrayType:
        """The type without weakness."""
        return _intern(self.shape, self.dtype, False, self.varying) if self.weak else self

    def to_tangent(self) -> ArrayType:
        """The type of its tangents: as weak as it is, and float0 for a type without derivatives."""
        if self.dtype not in dtypes.INEXACT:
            return _intern(self.shape, dtypes.float0, False)
        return _intern(self.shape, self.dtype, self.weak)

    to_tangent_aval = to_ct_aval = to_cotangent_aval = at_least_vspace = to_tangent  # JAX's names

    @property
    def vma(self) -> Axes:
        """JAX's name of `varying`."""
        return self.varying

    @property
    def sharding(self) -> NoSharding | Layout:
        """The layout along Explicit axes of a mesh; no sharding for a type without one."""
        return NoSharding.of_rank(self.ndim) if self.layout is None else self.layout

    def laid_out(self, layout: Layout) -> ArrayType:
        """The type that says, to users, how an array is split along Explicit axes: `f32[8@a]`.

        layout: a NamedSharding on an AbstractMesh. Equal types are one object.
        Errors: ArgumentError for a sharding that does not name the axes of a mesh.
        """
        if not hasattr(layout, "spec"):
            raise ArgumentError(
                f"ShapedArray: cannot lay out {self} by {layout!r} (a NamedSharding required)",
                hint="a type says how the axes of a mesh split an array, not on which devices it is",
            )
        plain = self.plain
        with _lock:
            known = _laid_out.get((plain, layout))
            return _laid_out.setdefault((plain, layout), _make(*plain._key(), layout)) if known is None else known

    @property
    def plain(self) -> ArrayType:
        """The type without the layout, as operations have it."""
        return self if self.layout is None else _intern(*self._key())

    def _key(self) -> _Key:
        return self.shape, self.dtype, self.weak, self.varying

    def _sizes(self) -> str:
        spec = () if self.layout is None else self.layout.spec
        return ",".join(f"{d}{split_text(spec[n]) if n < len(spec) else ''}" for n, d in enumerate(self.shape))

    @property
    def memory_space(self) -> None:
        """None: a type names no kind of memory, of which a device has one."""
        return None

    def __str__(self) -> str:
        dims = self._sizes() if self.layout is not None else ",".join(str(d) for d in self.shape)
        axes = f"{{{','.join(sorted(map(str, self.varying)))}}}" if self.varying else ""
        return f"{dtypes.short(self.dtype)}{'*' if self.weak else ''}[{dims}]{axes}"

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return ArrayType, (self.shape, self.dtype, self.weak, self.varying)


def split_text(part: Part) -> str:
    """The mesh axes that split an axis of an array, in the text of its type: `@a`, `@(a,b)`."""
    if part is None:
        return ""
    return f"@({','.join(map(str, part))})" if isinstance(part, tuple) else f"@{part}"


def same_layout(a: ArrayType, b: ArrayType) -> bool:
    """Whether two types have the same shape and dtype; weakness does not matter."""
    return a.shape == b.shape and a.dtype == b.dtype


_UPDATES = ("shape", "dtype", "weak_type", "vma")
MOST_RECENT = 1 << 14  # the most types that are cached without another reference, 450 B each
_Key = tuple[Shape, np.dtype, bool, Axes]
_recent: dict[_Key, ArrayType] = {}
_laid_out: WeakValueDictionary[tuple[ArrayType, Layout], ArrayType] = WeakValueDictionary()
_older: WeakValueDictionary[_Key, ArrayType] = WeakValueDictionary()
_lock = locks.reentrant()  # the collector may run code that asks for a type


def _intern(shape: Shape, dtype: np.dtype, weak: bool, varying: Axes = NONE) -> ArrayType:
    key = (shape, dtype, weak, varying)
    interned = _recent.get(key)
    return _remembered(key) if interned is None else interned


def _remembered(key: _Key) -> ArrayType:
    """An older type, or a new one. Two threads that ask for a type get the same object."""
    new = _make(*key)
    with _lock:
        interned = _recent.setdefault(key, _older.get(key, new))
        if len(_recent) > MOST_RECENT:
            # Each type is in one of the two at all times: the collector may run code that needs it.
            for other, type in [*_recent.items()]:
                _older[other] = type
                _recent.pop(other, None)
        return interned


LARGEST_SIZE = 2**63 - 1  # of one axis: what an index can hold


def _make(shape: Shape, dtype: np.dtype, weak: bool, varying: Axes, layout: Layout | None = None) -> ArrayType:
    large = [d for d in shape if isinstance(d, int) and d > LARGEST_SIZE]
    if large:
        raise ShapeError(
            f"array: cannot have an axis of {large[0]} elements (2**63 - 1 is the most; shape "
            f"({', '.join(map(str, shape))}))"
        )
    self = object.__new__(ArrayType)
    object.__setattr__(self, "shape", shape)
    object.__setattr__(self, "dtype", dtypes.one_of(np.dtype(dtype)))
    object.__setattr__(self, "public_dtype", dtypes.public(self.dtype))
    object.__setattr__(self, "weak", weak)
    object.__setattr__(self, "varying", varying)
    object.__setattr__(self, "layout", layout)
    object.__setattr__(self, "is_symbolic", any(isinstance(d, Dim) for d in shape))
    return self
