"""Shapes without values: the result types of a function, and arguments that are only types.

Nothing is computed and no array is allocated; the function is traced and its program dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from rune import dtypes, tree
from rune.core.interpreter import Tracer, current, type_of
from rune.core.no_sharding import is_unsaid
from rune.core.staging import stage
from rune.core.types import ArrayType, Shape
from rune.core.values import Operand, Value
from rune.dims import Size, product
from rune.errors import ArgumentError
from rune.ops.operators import Operators
from rune.ops.promote import operand
from rune.records import dataclass
from rune.sharding import Mesh
from rune.sharding.shardings import Sharding
from rune.transforms import references
from rune.transforms.arguments import (
    array_leaves,
    function_name,
    is_float0,
    refuse_other,
    require_callable,
    value_leaves,
)
from rune.transforms.effect_boundaries import recorder
from rune.transforms.sharding.explicit.stage import public_type
from rune.transforms.sharding.localize import output_shardings


@dataclass(frozen=True, slots=True, init=False)
class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist; usable where only these matter.

    sharding: which block each device would hold; optional.
    Errors: DtypeError for an unknown dtype; ArgumentError without a dtype, and for a sharding that
            is not a Sharding.

    >>> import rune
    >>> rune.ShapeDtypeStruct((3,), "f32")
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    shape: Shape
    dtype: Any  # a NumPy dtype, or the KeyDtype of keys
    weak_type: bool
    sharding: Sharding | None

    def __init__(
        self,
        shape: Sequence[Size],
        dtype: object,
        *,
        sharding: Sharding | None = None,
        weak_type: bool = False,
        manual_axis_type: None = None,
        is_ref: bool = False,
    ):
        if dtype is None:
            raise ArgumentError("ShapeDtypeStruct: cannot describe an array without a dtype")
        sharding = None if is_unsaid(sharding) else sharding
        if not isinstance(sharding, Sharding | None):
            raise ArgumentError(f"ShapeDtypeStruct: cannot use sharding={sharding!r} (a Sharding required)")
        refuse_other("ShapeDtypeStruct", manual_axis_type=(manual_axis_type, None), is_ref=(is_ref, False))
        # The class is frozen, since structs are parts of keys; so fields are set in this way.
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", dtypes.public(dtypes.named(dtype)))
        object.__setattr__(self, "weak_type", weak_type)
        object.__setattr__(self, "sharding", sharding)

    @classmethod
    def like(cls, x: Operand) -> ShapeDtypeStruct:
        """The struct of an array, a number, or an object with shape and dtype; its sharding if
        committed.

        Errors: ArgumentError for anything else.

        >>> import rune
        >>> rune.ShapeDtypeStruct.like(1.5)
        ShapeDtypeStruct(shape=(), dtype=float32, weak_type=True)
        """
        type = described(x)
        if type is None:
            type = type_of(operand("ShapeDtypeStruct.like", x))
        sharding = getattr(x, "sharding", None) if getattr(x, "committed", True) else None
        return cls(type.shape, type.dtype, sharding=sharding, weak_type=type.weak)

    def update(self, **changes: object) -> ShapeDtypeStruct:
        """The same with other fields. Errors: TypeError for an unknown field.

        >>> import rune
        >>> rune.ShapeDtypeStruct((3,), "f32").update(shape=(2, 2))
        ShapeDtypeStruct(shape=(2, 2), dtype=float32)
        """
        current_fields = {f.name: getattr(self, f.name) for f in fields(self)}
        return ShapeDtypeStruct(**{**current_fields, **changes})  # type: ignore[arg-type]

    @property
    def array_type(self) -> ArrayType:
        """The same as the type of an array."""
        return ArrayType(self.shape, dtypes.available(dtypes.named(self.dtype)), self.weak_type)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        return product(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            # The error that an array without axes raises.
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]  # type: ignore[return-value]

    def __repr__(self) -> str:
        sharding = f", sharding={self.sharding}" if self.sharding else ""
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{sharding}{weak})"


def abstract(type: ArrayType, sharding: Sharding | None = None) -> ShapeDtypeStruct:
    """The struct equivalent to a type."""
    return ShapeDtypeStruct(type.shape, type.dtype, weak_type=type.weak, sharding=sharding)


def described(x: object) -> ArrayType | None:
    """The type of an object that describes an array: it has a shape and a dtype, or is float0.

    None for arrays, traced values, numbers, and anything else.
    """
    if isinstance(x, ArrayType):
        return x.plain
    if isinstance(x, ShapeDtypeStruct):
        return x.array_type
    if is_float0(x):
        return ArrayType(x.shape, dtypes.float0)
    # Arrays have a shape and a dtype too, but their own type, with weakness.
    if isinstance(x, Operators | Tracer | np.ndarray | np.generic) or hasattr(type(x), "__rune_array__"):
        return None
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None or dtype is None:
        return None
    return ArrayType(tuple(shape), dtypes.available(dtypes.named(dtype)), bool(getattr(x, "weak_type", False)))


def leaf_types(name: str, leaves: Sequence[Any], treedef: tree.TreeDef) -> list[ArrayType]:
    """The types of leaves that are arrays, numbers, or objects that describe arrays.

    Errors: ArgumentError names the path of any other leaf.
    """
    # `value_leaves` rejects leaves, with their paths; a number, which passes, stands for each type.
    types = [described(x) for x in leaves]
    values = value_leaves(name, [x if t is None else 0.0 for x, t in zip(leaves, types)], treedef)
    return [type_of(v) if t is None else t for v, t in zip(values, types)]


def eval_shape(function: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """The tree of results of `function` as ShapeDtypeStructs; nothing is computed.

    Arguments are arrays, numbers, ShapeDtypeStructs, ArrayTypes (whose sizes may be symbolic), or
    any other object with a shape and a dtype; so are results. In place of a reference the function
    gets a new one, so the caller's reference is not written. A result that the function lays out,
    as by `out_shardings` of jit, has that sharding.
    Errors: TransformError if an argument is not a function; otherwise those of the function.

    >>> import rune, rune.numpy as rnp
    >>> rune.eval_shape(lambda a, b: a @ b, rnp.ones((2, 3)), rune.ShapeDtypeStruct((3, 4), "f32"))
    ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    require_callable("eval_shape", function)
    # The values of references are traced like arguments, and what is written to them is dropped.
    leaves, treedef = tree.flatten(references.boxed("eval_shape", (args, kwargs))[0])
    types = leaf_types("eval_shape", leaves, treedef)
    results: list[tuple[tree.TreeDef, list[ArrayType | None]]] = []

    def flat(*values: Value) -> Any:
        (positional, keywords), _ = references.unboxed(tree.unflatten(treedef, values))
        with recorder(current()):  # its effects are recorded in the program, which is dropped
            outs, out_tree = tree.flatten(function(*positional, **keywords))
        struct_types = [described(x) for x in outs]
        results.append((out_tree, struct_types))
        return array_leaves("eval_shape", [x if t is None else 0.0 for x, t in zip(outs, struct_types)], out_tree)

    closure = stage(flat, types, function_name(function))
    out_tree, struct_types = results[-1]
    out_types = [traced_type if t is None else t for traced_type, t in zip(closure.program.output_types, struct_types)]
    return tree.unflatten(out_tree, map(abstract, out_types, output_shardings(closure.program)))


def typeof(x: object) -> ArrayType:
    """The type of an array or a traced value, or of a number or NumPy data as an array.

    On a mesh with Explicit axes it says how these split the array, as in `f32[8@data]`, if that is
    known: `typeof(x).sharding.spec`.
    Errors: ArgumentError for any other object.

    >>> import rune, rune.numpy as rnp
    >>> rune.typeof(rnp.ones(3)), rune.typeof(2.0), rune.typeof(2.0).weak_type
    (f32[3], f32*[], True)
    """
    type = leaf_types("typeof", [x], tree.structure(0))[0]
    return public_type(x, type) if Mesh.has_explicit else type
