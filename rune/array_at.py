"""`x.at[index]` with `out_sharding`: elements and updated copies laid out on the devices of a mesh.

The updates themselves are in rune.ops.at, in a layer below meshes; `rune` gives `at` to arrays when
it is imported (array_methods.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from rune.array_functions import namespace
from rune.core.values import Operand
from rune.ops.at import A, At, AtIndex

if TYPE_CHECKING:
    from rune.sharding.shardings import Sharding

Method = TypeVar("Method", bound=Callable[..., object])


def _laid_out(method: Method) -> Method:
    """The method, with its result laid out by `out_sharding`."""

    @functools.wraps(method)
    def of_array(self: object, *args: object, out_sharding: Sharding | None = None, **how: object) -> object:
        if out_sharding is None:
            return method(self, *args, **how)
        return namespace().arguments.resolved(method, out_sharding, self, *args, **how)

    return cast(Method, of_array)


class AtOnDevices(At[A]):
    """x.at."""

    __slots__ = ()

    def __getitem__(self, index: object) -> AtIndexOnDevices[A]:
        return AtIndexOnDevices(self._x, index)


class AtIndexOnDevices(AtIndex[A]):
    """x.at[index].

    out_sharding: of each method, the sharding of the result; None leaves the choice to rune
    Errors: those of AtIndex, ShapeError for an axis that the mesh does not divide.
    """

    __slots__ = ()

    get = _laid_out(AtIndex.get)
    set = _laid_out(AtIndex.set)
    add = _laid_out(AtIndex.add)
    subtract = _laid_out(AtIndex.subtract)
    multiply = mul = _laid_out(AtIndex.multiply)
    min = _laid_out(AtIndex.min)
    max = _laid_out(AtIndex.max)
    divide = _laid_out(AtIndex.divide)
    power = _laid_out(AtIndex.power)
    apply = _laid_out(AtIndex.apply)


@property
def at(self: Operand) -> AtOnDevices[Operand]:
    """`x.at[index].set(v)`, .add(v), .multiply(v), …: updated copies."""
    return AtOnDevices(self)
