"""Functions of trees as functions of leaves, on which derivatives are defined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rune import tree
from rune.core.interpreter import current
from rune.core.values import Value
from rune.errors import TransformError
from rune.ops.promote import opened
from rune.transforms.arguments import array_leaves, flatten_values, require_callable, unshared
from rune.transforms.derivatives.jvp import Jvp
from rune.transforms.derivatives.tangents import number_as_array


class Flat:
    """A tree function as a flat one; remembers the tree of its last result."""

    def __init__(self, name: str, function: Callable[..., object], treedef: tree.TreeDef):
        self.name, self.function, self.treedef = name, function, treedef
        self.out_tree: Any = None

    def __call__(self, *leaves: Value) -> list[Value]:
        """Flat results of flat arguments."""
        outs, self.out_tree = flatten_values(self.function(*self.treedef.unflatten(leaves)))
        return array_leaves(self.name, outs, self.out_tree)


def flatten(name: str, function: Callable[..., object], args: Sequence[object]) -> tuple[list, Flat]:
    """The leaves of the arguments, and `function` as a function of these leaves."""
    require_callable(name, function)
    leaves, treedef = tree.flatten(tuple(args))
    values = [number_as_array(x) for x in array_leaves(name, leaves, treedef)]
    return values, Flat(name, function, treedef)


class Aux:
    """Splits (value, aux): differentiates the value, and keeps aux as plain values."""

    def __init__(self, function: Callable[..., object]):
        self.function = function
        self.leaves: list[Value] = []  # of the second part of the last result, without tangents
        self.treedef: Any = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The value alone."""
        result = self.function(*args, **kwargs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TransformError("has_aux: cannot split the result (a pair (value, aux) required)")
        # The pair is returned inside the derivative: aux leaves it as primals, without tangents.
        interpreter = current()
        assert isinstance(interpreter, Jvp)
        value, aux = result
        leaves, self.treedef = tree.flatten(aux)
        self.leaves = [unshared(interpreter.split(opened(x))[0]) for x in leaves]
        return value

    @property
    def aux(self) -> Any:
        """The second part. Users' nodes are built here, outside the trace of the derivative."""
        return tree.unflatten(self.treedef, self.leaves)
