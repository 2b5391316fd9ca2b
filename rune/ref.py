"""rune.ref: references, which are mutable boxes for an array (decision 0080).

    ref = rune.new_ref(x);  ref[i] = y;  ref[...] += z;  rune.freeze(ref)

They serve code that changes a state in many places. The arrays themselves never change: loops and
branches carry the values, jit updates memory in place if it can, and derivatives see arrays.
"""

from __future__ import annotations

from typing import Protocol

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.transforms.arguments import value_leaves
from rune.transforms.references import Ref
from rune.typing import ArrayLike, DTypeLike, Shape

__all__ = ["Ref", "addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "set", "swap"]


class HasType(Protocol):
    """An array, or an object that describes one."""

    @property
    def shape(self) -> Shape:
        """The shape of the array."""
        ...

    @property
    def dtype(self) -> DTypeLike:
        """The dtype of the array."""
        ...


def new_ref(init_val: ArrayLike, *, memory_space: object = None, kind: object = None) -> Ref:
    """A reference that holds this array.

    memory_space, kind: JAX's, for its kernels and its recomputation; refused
    A transformed function or the body of a loop can create, read and write references; the body can
    also use those of the enclosing function. A value of an inner transformation (a tangent of grad,
    a lane of vmap) cannot be written to a reference from outside it. `jit`, `vmap` and the branches
    of a cond take references as arguments, each at most once, and the steps of a scan take their
    rows; a jitted function may close over references. No transformed function can return one.

    Shapes: those of the array, kept.
    Types:  those of the array, kept.
    Errors: ArgumentError if it is not an array.

    >>> import rune, rune.numpy as rnp
    >>> @rune.jit
    ... def powers(x):
    ...     ref = rune.new_ref(rnp.ones(4))
    ...     def step(i, power):
    ...         ref[i] = power
    ...         return power * x
    ...     rune.fori_loop(0, 4, step, 1.0)
    ...     return ref[...]
    >>> powers(2.0), rune.grad(lambda x: powers(x)[3])(2.0)
    (Array([1., 2., 4., 8.], f32[4], cpu:0), Array(12., f32*[], cpu:0))
    """
    if memory_space is not None or kind is not None:
        name = "memory_space" if memory_space is not None else "kind"
        raise ArgumentError(f"new_ref: cannot take {name}=", hint="leave it out: there is one kind of reference")
    if isinstance(init_val, Ref):
        raise ArgumentError("new_ref: cannot hold a reference", hint="read it: ref[...]")
    (value,) = value_leaves("new_ref", [init_val], tree.structure(0))
    return Ref(rnp.array(value))


def empty_ref(ty: HasType, memory_space: object = None) -> Ref:
    """A reference to an array of zeros with the shape and dtype of `ty`.

    Shapes: those of `ty`. Types: those of `ty`.
    Errors: as for `new_ref`.

    >>> import rune
    >>> rune.ref.empty_ref(rune.ShapeDtypeStruct((2,), "float32"))
    Ref([0., 0.], f32[2], cpu:0)
    """
    return new_ref(rnp.zeros(ty.shape, ty.dtype), memory_space=memory_space)


def freeze(ref: Ref) -> Array:
    """The last value of a reference, which must not be used afterwards.

    Shapes: those of the array. Types: those of the array.
    Errors: ArgumentError if it is not a reference.

    >>> import rune
    >>> rune.freeze(rune.new_ref(3.0))
    Array(3., f32*[], cpu:0)
    """
    return _ref("freeze", ref)[...]


def free_ref(ref: Ref) -> None:
    """Declare that a reference is no longer used; has no effect, as memory is freed anyway.

    Shapes: any. Errors: ArgumentError if it is not a reference.

    >>> import rune
    >>> rune.ref.free_ref(rune.new_ref(3.0))
    """
    _ref("free_ref", ref)


def get(ref: Ref, idx: object = ...) -> Array:
    """ref[idx].

    Shapes: of the part. Types: of the array.
    Errors: ArgumentError if it is not a reference; those of indexing.

    >>> import rune
    >>> rune.ref.get(rune.new_ref(rune.numpy.arange(3.0)), 1)
    Array(1., f32[], cpu:0)
    """
    return _ref("get", ref)[idx]


def set(ref: Ref, idx: object, value: ArrayLike) -> None:
    """ref[idx] = value.

    Shapes: value as the part. Types: value as the array.
    Errors: ArgumentError if it is not a reference; those of `Ref`.

    >>> import rune
    >>> ref = rune.new_ref(rune.numpy.arange(3.0))
    >>> rune.ref.set(ref, 1, 7.0)
    >>> ref
    Ref([0., 7., 2.], f32[3], cpu:0)
    """
    _ref("set", ref)[idx] = value


def swap(ref: Ref, idx: object, value: ArrayLike) -> Array:
    """ref[idx] = value; returns the previous value.

    Shapes: value as the part. Types: value as the array.
    Errors: as for `set`.

    >>> import rune
    >>> rune.ref.swap(rune.new_ref(rune.numpy.arange(3.0)), 1, 7.0)
    Array(1., f32[], cpu:0)
    """
    return _ref("swap", ref).swap(value, idx)


def addupdate(ref: Ref, idx: object, x: ArrayLike) -> None:
    """ref[idx] += x; if an index occurs several times, all its values are added.

    Shapes: x as the part. Types: x as the array.
    Errors: as for `set`.

    >>> import rune, rune.numpy as rnp
    >>> ref = rune.new_ref(rnp.zeros(3))
    >>> rune.ref.addupdate(ref, rnp.array([1, 1]), rnp.ones(2))
    >>> ref
    Ref([0., 2., 0.], f32[3], cpu:0)
    """
    _ref("addupdate", ref).addupdate(x, idx)


def _ref(name: str, ref: Ref) -> Ref:
    if not isinstance(ref, Ref):
        raise ArgumentError(f"{name}: cannot take {type(ref).__name__} (a reference required)", hint="rune.new_ref")
    return ref


__dir__ = _names(globals())
