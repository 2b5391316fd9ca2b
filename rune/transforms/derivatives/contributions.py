"""Contributions of the readers of a value to its cotangent, in a program run backwards.

In a typed body of a shard_map (core/varying.py) a reader may contribute a share per device to the
cotangent of a value that is the same on all of them. Each device adds up its shares before they are
summed over the devices, so the gradient of a weight needs one sum for all its readers together.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from rune import dims
from rune.array import Array
from rune.core.interpreter import type_of
from rune.core.primitive import Collective
from rune.core.program import Equation, Var
from rune.core.types import NONE, Axes
from rune.core.values import Value
from rune.ops import add
from rune.ops.collectives import cotangent


class Contributions(dict[Var, Any]):
    """The sum of contributions to each variable's cotangent."""

    def add(self, variable: Var, ct: Value) -> None:
        """Add the contribution of one reader."""
        self[variable] = add(self[variable], ct) if variable in self else ct

    def take(self, variable: Var) -> Array | None:
        """The complete cotangent; None if nothing was added."""
        # Removed, so that the memory of a cotangent is free once its equation has been transposed.
        return self.pop(variable, None)

    def of_results(self, equation: Equation, linear: Sequence[bool]) -> list[Array | None]:
        """The cotangents of the results of an equation. linear: which operands have a cotangent."""
        return [self.take(v) for v in equation.results]


class Shares(Contributions):
    """The sums of contributions to each variable's cotangent, grouped by how they vary."""

    def add(self, variable: Var, ct: Value) -> None:
        """Add the contribution of one reader."""
        sums: dict[Axes, Value] = self.setdefault(variable, {})
        # Shares along different axes need different sums, so they are not added to each other.
        axes = type_of(ct).varying
        sums[axes] = add(sums[axes], ct) if axes in sums else ct

    def take(self, variable: Var) -> Array | None:
        """The complete cotangent; None if nothing was added."""
        sums = self.pop(variable, {}).values()
        return functools.reduce(add, (cotangent(ct, variable.type.varying) for ct in sums)) if sums else None

    def of_results(self, equation: Equation, linear: Sequence[bool]) -> list[Array | None]:
        """The cotangents of the results of an equation; shares that may be summed later as shares.

        linear: which operands have a cotangent; with several, each would need a sum of its own
        """
        sums = self.get(equation.results[0], {}) if len(equation.results) == 1 else {}
        if len(sums) == 1 and NONE not in sums and sum(linear) == 1 and _passes_shares_on(equation):
            return [*self.pop(equation.results[0]).values()]
        return super().of_results(equation, linear)


def _passes_shares_on(equation: Equation) -> bool:
    """Whether shares of a cotangent are better summed after the equation than before it.

    The result is the same for an operation that all devices do alike, on operands of at most that
    size.
    """
    is_same = not equation.results[0].type.varying and not equation.primitive.multiple_results
    if not is_same or isinstance(equation.primitive, Collective):
        return False
    # Where symbolic sizes leave the comparison open, `at_most` is None, which counts as no.
    size = dims.product(equation.results[0].type.shape)
    return all(dims.at_most(dims.product(a.type.shape), size) for a in equation.operands)
