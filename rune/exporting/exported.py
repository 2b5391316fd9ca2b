"""Exported: a function as a program and weights, which runs without its source.

    exported.call(*args)       the results, under jit, grad and vmap too
    exported.vjp()             the function from arguments and cotangents to cotangents
    exported.serialize()       the bytes of a file; exported.save(path) writes the file

A file stores each derivative as a program, because a function's own rules (custom_vjp) are Python
code, which a file cannot hold. `vjp_order` says how many derivatives to store.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rune import dtypes, tree
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.lists import pick, scatter
from rune.core.program import Program
from rune.core.sizes import match_sizes
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import ArgumentError, ShapeError, TransformError
from rune.exporting.file import StoredProgram, encode
from rune.files.atomic import replacing
from rune.records import dataclass
from rune.transforms.arguments import key_path, value_leaves
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.custom.vjp import custom_vjp
from rune.transforms.tree_difference import mismatch


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exported:
    """A function as a program: `rune.export(f)(*args)` or `rune.export.load(path)`.

    in_tree is the tree of (args, kwargs); `derivative` returns the program of the cotangents.
    Errors: `call` raises ArgumentError for another tree, ShapeError or DimensionError for other
            types.

    >>> import rune, rune.numpy as rnp
    >>> exported = rune.export(lambda x: rnp.sin(x) * 2.0)(rnp.ones(3))
    >>> exported, exported.call(rnp.zeros(3))
    (Exported(lambda: f32[3] -> f32[3]), Array([0., 0., 0.], f32[3], cpu:0))
    >>> rune.export.load(exported.serialize(vjp_order=1)).vjp().call(rnp.zeros(3), rnp.ones(3))
    [Array([2., 2., 2.], f32[3], cpu:0)]
    """

    program: Program  # its first inputs are the weights
    weights: tuple[Array, ...]
    in_tree: tree.TreeDef
    out_tree: tree.TreeDef
    derivative: Callable[[], Exported] | None

    @property
    def fun_name(self) -> str:
        """The name of the function, which is that of its program."""
        return self.program.name

    @property
    def in_avals(self) -> tuple[ArrayType, ...]:
        """The types of the leaves of the arguments."""
        return self.program.input_types[len(self.weights) :]

    @property
    def out_avals(self) -> tuple[ArrayType, ...]:
        """The types of the leaves of the results."""
        return self.program.output_types

    def __repr__(self) -> str:
        types = (", ".join(map(str, t)) for t in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: {' -> '.join(types)})"

    # --- calls --------------------------------------------------------------------------------

    def call(self, *args: object, **kwargs: object) -> Any:
        """The results of the function."""
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            words = "argument{} is missing".format, "it takes no argument{}".format, "{} required, not {}"
            raise ArgumentError(f"call: cannot call {self.fun_name} ({mismatch(self.in_tree, treedef, *words)})")
        values = value_leaves("call", leaves, treedef)
        self._require_types([type_of(v) for v in values])
        return tree.unflatten(self.out_tree, _differentiable(self)(*values))

    __call__ = call

    def _require_types(self, types: Sequence[ArrayType]) -> None:
        for number, (aval, actual) in enumerate(zip(self.in_avals, types, strict=True)):
            same_shape = aval.is_symbolic or aval.shape == actual.shape
            if (aval.dtype, aval.ndim) != (actual.dtype, actual.ndim) or not same_shape:
                where = key_path(number, self.in_tree)
                raise ShapeError(
                    f"call: cannot call {self.fun_name} with {actual} (argument{where} was exported as {aval})"
                )
        match_sizes(self.in_avals, types, f"call: cannot call {self.fun_name}")

    def run(self, *values: Value) -> list[Value]:
        """Call the program with the leaves of the arguments; returns the leaves of the results."""
        return jit_primitive(*self.weights, *values, program=self.program)

    # --- derivatives --------------------------------------------------------------------------

    def has_vjp(self) -> bool:
        """Whether `vjp` can return a function."""
        return self.derivative is not None

    def vjp(self) -> Exported:
        """The function that takes the leaves of the arguments, then the cotangents of the results,
        and returns a list with the cotangents of the arguments.

        Integers have no cotangents, neither among the arguments nor among the results.
        Errors: TransformError if the file holds no derivative.
        """
        if self.derivative is None:
            raise TransformError(
                f"vjp: cannot differentiate {self.fun_name} (the file holds no derivative of it)",
                hint="save with a larger vjp_order: exported.save(path, vjp_order=2) stores two derivatives",
            )
        return self.derivative()

    # --- files --------------------------------------------------------------------------------

    def serialize(self, vjp_order: int = 0) -> bytes:
        """The bytes of a file that `rune.export.load` reads.

        vjp_order: how many times the loaded function can be differentiated.
        Errors: TransformError for a higher order than a loaded file holds, or if a derivative does
                not exist.
        """
        if not isinstance(vjp_order, int) or vjp_order < 0:
            raise ArgumentError(f"serialize: cannot store vjp_order={vjp_order!r} (a number from 0 on required)")
        orders: list[Exported] = [self]
        for _ in range(vjp_order):
            orders.append(orders[-1].vjp())
        return encode([StoredProgram(e.program, e.weights, e.in_tree, e.out_tree) for e in orders])

    def save(self, path: str | os.PathLike[str], vjp_order: int = 0) -> None:
        """Write the file, completely or not at all. Errors: OSError, and those of `serialize`."""
        content = self.serialize(vjp_order)
        with replacing(Path(path)) as file:
            file.write(content)


def _differentiable(export: Exported) -> Callable[..., list[Value]]:
    """The program as a function whose reverse rule is the program of its cotangents."""

    def leaves(*values: Value) -> list[Value]:
        return export.run(*values)

    leaves.__name__ = export.fun_name  # in messages
    function = custom_vjp(leaves)

    def backward(values: Sequence[Value], cts: Sequence[Value]) -> tuple[Value | None, ...]:
        active_cts = pick(cts, (t.dtype in dtypes.INEXACT for t in export.out_avals))
        results = export.vjp().call(*values, *active_cts)
        return tuple(scatter(results, (t.dtype in dtypes.INEXACT for t in export.in_avals)))

    function.defvjp(lambda *values: (export.run(*values), values), backward)
    return function
