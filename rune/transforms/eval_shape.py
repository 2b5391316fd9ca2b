"""Shapes without values: what a function would return, and arguments that are only types.

Nothing is computed and no array is allocated; the function is traced and its program dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rune import dtypes, tree
from rune.core.interpreter import current, type_of
from rune.core.staging import stage
from rune.core.types import ArrayType, Shape
from rune.core.values import Value
from rune.dims import Size, product
from rune.transforms.arguments import function_name, require_callable, value_leaves
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.effect_boundaries import recorder


@dataclass(frozen=True, slots=True, init=False)
class ShapeDtypeStruct:
    """The shape and dtype of an array that need not exist; usable where only these matter.

    >>> import rune
    >>> rune.ShapeDtypeStruct((3,), "f32")
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    shape: Shape
    dtype: Any  # a NumPy dtype, or the KeyDtype of keys
    weak_type: bool

    def __init__(self, shape: Sequence[Size], dtype: object, weak_type: bool = False):
        object.__setattr__(self, "shape", tuple(shape))
        object.__setattr__(self, "dtype", dtypes.public(dtypes.named(dtype)))
        object.__setattr__(self, "weak_type", weak_type)

    @property
    def type(self) -> ArrayType:
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
            raise TypeError("len() of a ShapeDtypeStruct without axes")
        return self.shape[0]  # type: ignore[return-value]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype}{weak})"


def abstract(type: ArrayType) -> ShapeDtypeStruct:
    """The struct that says what a type says."""
    return ShapeDtypeStruct(type.shape, type.dtype, type.weak)


def leaf_types(name: str, leaves: Sequence[Any], treedef: tree.TreeDef) -> list[ArrayType]:
    """The types of leaves that are arrays, numbers, ShapeDtypeStructs or ArrayTypes.

    Errors: ArgumentError names the path of any other leaf.
    """
    # Types are replaced by a number that passes, so that `value_leaves` rejects every other leaf
    # with its path.
    stand_in = [0.0 if isinstance(x, ArrayType | ShapeDtypeStruct) else x for x in leaves]
    values = value_leaves(name, stand_in, treedef)
    return [_type(x, v) for x, v in zip(leaves, values, strict=True)]


def _type(leaf: object, value: Value) -> ArrayType:
    return leaf if isinstance(leaf, ArrayType) else type_of(leaf if isinstance(leaf, ShapeDtypeStruct) else value)


def eval_shape(function: Callable[..., object], *args: object, **kwargs: object) -> Any:
    """The tree of results of `function` as ShapeDtypeStructs; nothing is computed.

    Arguments are arrays, numbers, ShapeDtypeStructs, or ArrayTypes (whose sizes may be symbolic).
    Errors: TransformError if an argument is not a function; else those of the function.

    >>> import rune, rune.numpy as rnp
    >>> rune.eval_shape(lambda a, b: a @ b, rnp.ones((2, 3)), rune.ShapeDtypeStruct((3, 4), "f32"))
    ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """
    require_callable("eval_shape", function)
    leaves, treedef = tree.flatten((args, kwargs))
    types = leaf_types("eval_shape", leaves, treedef)
    flat = Flat("eval_shape", lambda a, k: function(*a, **k), treedef)

    def unheard(*values: Value) -> Any:
        with recorder(current()):  # what it draws is recorded and dropped
            return flat(*values)

    staged = stage(unheard, types, function_name(function))
    return tree.unflatten(flat.out_tree, map(abstract, staged.program.output_types))


def typeof(x: object) -> ArrayType:
    """The type of an array, of a traced value, or of what would become one: a number, NumPy data.

    Errors: ArgumentError for anything else.

    >>> import rune, rune.numpy as rnp
    >>> rune.typeof(rnp.ones(3)), rune.typeof(2.0), rune.typeof(2.0).weak_type
    (f32[3], f32*[], True)
    """
    return leaf_types("typeof", [x], tree.structure(0))[0]
