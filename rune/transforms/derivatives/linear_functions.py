"""Linear functions as nodes of trees: the functions that `vjp` and `linearize` return.

The residuals are the leaves; the linear program, and the trees and types of inputs and outputs, are
static data. So jit, vmap and scan can take and return such a function, like its residuals. Two
functions have the same structure if they have the same program: a jitted function that takes a
linear function is traced once for each program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from rune.array import as_array
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.records import dataclass
from rune.transforms.derivatives.flat_functions import Flat
from rune.transforms.derivatives.linearize import LinearMap
from rune.tree import TreeDef


@dataclass(frozen=True, slots=True)
class Structure:
    """The static part: the types and trees of primals and outputs, and the linear program."""

    types: tuple[ArrayType, ...]
    treedef: TreeDef
    out_types: tuple[ArrayType, ...]
    out_tree: TreeDef
    program: Program
    nonzero: tuple[bool, ...]


class LinearNode:
    """A linear map between trees. It holds the residuals, so their memory is freed with it."""

    __slots__ = ("linear", "structure")

    def __init__(self, structure: Structure, residuals: Sequence[Value]):
        self.structure = structure
        # Built from the structure and the leaves alone: a transformation may have replaced the
        # residuals.
        self.linear = LinearMap(structure.program, tuple(residuals), structure.nonzero)

    @classmethod
    def of(cls, linear: LinearMap, primals: Sequence[Value], outs: Sequence[Value], flat: Flat) -> Self:
        """The map from linearizing a function at these primals."""
        types, out_types = tuple(map(type_of, primals)), tuple(map(type_of, outs))
        structure = Structure(types, flat.treedef, out_types, flat.out_tree, linear.program, linear.nonzero)
        return cls(structure, linear.residuals)

    def __repr__(self) -> str:
        types = (", ".join(map(str, types)) for types in self._ends())
        return f"{type(self).__name__}({' -> '.join(types)})"

    def _ends(self) -> tuple[Sequence[ArrayType], Sequence[ArrayType]]:
        """The types of the arguments and of the results of the map."""
        return self.structure.types, self.structure.out_types

    def tree_flatten(self) -> tuple[tuple[Value, ...], Structure]:
        """The residuals as arrays, and the static data."""
        return tuple(map(_as_leaf, self.linear.residuals)), self.structure

    @classmethod
    def tree_unflatten(cls, structure: Structure, residuals: Sequence[Value]) -> Self:
        """The map with these residuals."""
        return cls(structure, residuals)


def _as_leaf(residual: Value) -> Value:
    # NumPy data from a rule keeps its dtype as an array; as a NumPy leaf it would be canonicalised.
    is_constant = isinstance(residual, np.ndarray | np.generic | bool | int | float | complex)
    if not is_constant:
        return residual
    type = type_of(residual)
    return as_array(residual, type.dtype, type.weak)
