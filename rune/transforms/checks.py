"""The NaN check: `with rune.configure(check_nans=True)` names the operation that makes a NaN.

A compiled call checks its results; only if one holds a NaN is the program evaluated again,
equation by equation, to find where it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rune import config, dtypes
from rune.array import Array
from rune.core.interpreter import bind, type_of
from rune.core.program import Atom, Literal, Program, Var, subprograms
from rune.core.sizes import match_sizes, params_with_sizes
from rune.errors import NaNError


def has_nan(value: Any) -> bool:
    """True for a floating or complex array that holds a NaN."""
    data = np.asarray(value)
    return data.dtype in dtypes.INEXACT and bool(np.isnan(data).any())


def check_results(program: Program, args: Sequence[Any], outs: Sequence[Array]) -> None:
    """When the check is on, raise NaNError naming the equation and the user's line."""
    if config.current().check_nans and any(map(has_nan, outs)):
        with config.configure(check_nans=False):
            _find(program, args)
        raise NaNError(f"{program.name}: found NaN in a result, made of inputs that held one")


def _find(program: Program, args: Sequence[Any]) -> None:
    env: dict[Var, Any] = dict(zip(program.inputs, args, strict=True))
    sizes = match_sizes(program.input_types, [type_of(a) for a in args])

    def read(atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else env[atom]

    for equation in program.equations:
        operands = [read(a) for a in equation.operands]
        for inner in subprograms(equation):
            _find(inner, operands)
        params = params_with_sizes(equation.params, sizes)
        out = bind(equation.primitive, *operands, **params)
        results = out if equation.primitive.multiple_results else [out]
        if any(map(has_nan, results)) and not any(map(has_nan, operands)):
            types = ", ".join(str(a.type) for a in equation.operands)
            raise NaNError(
                f"{equation.primitive}: found NaN in its result {equation.results[0].type} "
                f"(operands {types} hold none)",
                frame=equation.frame,
            )
        env.update(zip(equation.results, results, strict=True))
