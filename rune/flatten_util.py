"""rune.flatten_util: converts a tree of arrays to one vector, and back.

It serves algorithms for vectors: line searches, solvers, samplers. The functions back to a tree
compare equal for equal structures, so code that closes over one is traced once.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

import rune.numpy as rnp
from rune import tree
from rune.array import Array
from rune.core.types import ArrayType
from rune.errors import DtypeError, ShapeError
from rune.listing import names as _names
from rune.records import dataclass
from rune.transforms.arguments import value_leaves
from rune.typing import ArrayLike

__all__ = ["Unravel", "ravel_pytree"]


@dataclass(frozen=True, slots=True)
class Unravel:
    """The function from a vector back to a tree; `ravel_pytree` makes it.

    treedef:  the structure of the tree
    types:    of its leaves
    dtype:    of the vector, if leaves have several dtypes; None if they have one, which lets the
              vector have any dtype

    Shapes: [N] -> a tree of arrays of N elements in all.
    Errors: ShapeError for another number of elements; DtypeError for a dtype that is not the
            vector's, if leaves have several.

    >>> import rune.numpy as rnp
    >>> vector, back = ravel_pytree({"a": rnp.zeros(2), "b": 1.0})
    >>> back(vector + 1)
    {'a': Array([1., 1.], f32[2], cpu:0), 'b': Array(2., f32[], cpu:0)}
    """

    treedef: tree.TreeDef
    types: tuple[ArrayType, ...]
    dtype: object

    def __call__(self, vector: ArrayLike) -> Any:
        """The tree that consists of these elements."""
        flat = rnp.asarray(vector)
        sizes = [prod(t.shape) for t in self.types]
        if flat.size != sum(sizes):
            raise ShapeError(f"ravel_pytree: cannot take {flat.type} apart (f[{sum(sizes)}] required)")
        if self.dtype is not None and flat.dtype != self.dtype:
            raise DtypeError(f"ravel_pytree: cannot take {flat.type} apart ({self.dtype} required)")
        parts = rnp.split(rnp.ravel(flat), [*accumulate(sizes[:-1])]) if sizes else []
        return tree.unflatten(self.treedef, [self._leaf(p, t) for p, t in zip(parts, self.types, strict=True)])

    def _leaf(self, part: Array, type: ArrayType) -> Array:
        leaf = rnp.reshape(part, type.shape)
        if self.dtype is None:
            return leaf
        is_real = not rnp.issubdtype(type.dtype, rnp.complexfloating)
        return rnp.astype(rnp.real(leaf) if is_real else leaf, type.dtype)


def ravel_pytree(pytree: object) -> tuple[Array, Unravel]:
    """(the elements of all leaves in one vector, the function back to a tree).

    Shapes: leaves of N elements in all -> [N].
    Types:  the dtype to which the leaves promote; float32 for a tree without leaves.
    Errors: ArgumentError if a leaf is not an array.

    >>> import rune.numpy as rnp
    >>> vector, back = ravel_pytree({"a": rnp.arange(3), "b": (2.0,)})
    >>> vector
    Array([0., 1., 2., 2.], f32[4], cpu:0)
    >>> back(vector)["a"]
    Array([0, 1, 2], i32[3], cpu:0)
    """
    leaves, treedef = tree.flatten(pytree)
    arrays = [rnp.asarray(x) for x in value_leaves("ravel_pytree", leaves, treedef)]
    types = tuple(a.type for a in arrays)
    if not arrays:
        return rnp.zeros(0, rnp.float32), Unravel(treedef, (), None)
    parts, dtypes = [rnp.ravel(a) for a in arrays], {a.dtype for a in arrays}
    if len(dtypes) == 1:
        return rnp.concatenate(parts) if len(parts) > 1 else parts[0], Unravel(treedef, types, None)
    dtype = rnp.result_type(*dtypes)  # accepts Python numbers as well as arrays
    return rnp.concatenate([p.astype(dtype) for p in parts]), Unravel(treedef, types, dtype)


__dir__ = _names(globals())
