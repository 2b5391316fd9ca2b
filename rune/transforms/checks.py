"""The checks for NaN and infinity: which operation makes one, at which line, seen in which result.

    with rune.configure(check_nans=True, check_infs=True): ...

Eager operations are looked at one by one. A compiled call checks its results; only if one is not
finite is the program evaluated again, equation by equation and into the programs that equations
hold, to find where it came from. What a program computes and drops again is not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune import config, dtypes
from rune.array import Array
from rune.core.interpreter import bind, type_of
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Literal, Program, Var
from rune.core.sizes import match_sizes, params_with_sizes
from rune.errors import NaNError
from rune.transforms.arguments import key_path


def is_checking() -> bool:
    """Whether one of the checks of results is on."""
    settings = config.current()
    return settings.check_nans or settings.check_infs


def fault(value: Any) -> str | None:
    """`NaN` or `infinity`, where an array holds what is being looked for."""
    data = np.asarray(value)
    settings = config.current()
    if data.dtype not in dtypes.INEXACT:
        return None
    if settings.check_nans and bool(np.isnan(data).any()):
        return "NaN"
    return "infinity" if settings.check_infs and bool(np.isinf(data).any()) else None


def check_value(primitive: Primitive, made: Array) -> Array:
    """The result of an eager operation. Errors: NaNError with the first position, if it has one."""
    found = fault(made)
    if found is None:
        return made
    data = made.numpy()
    where = np.argwhere(np.isnan(data) if found == "NaN" else np.isinf(data))[0].tolist()
    raise NaNError(f"{primitive}: found {found} in its result {made.type} (first at {where})")


def fault_of(values: Sequence[Any]) -> str | None:
    """What the first value at fault holds."""
    return next((f for f in map(fault, values) if f is not None), None)


def check_results(
    program: Program, args: Sequence[Any], outs: Sequence[Array], out_tree: Any = None
) -> None:
    """When a check is on, raise NaNError naming the equation, the user's line and the result."""
    if not is_checking():
        return
    found = [(i, f) for i, f in enumerate(map(fault, outs)) if f is not None]
    if not found:
        return
    number, kind = found[0]
    path = "" if out_tree is None else f"; seen in result{key_path(number, out_tree)}"
    _Search(path).evaluate(program, args)
    raise NaNError(f"{program.name}: found {kind} in a result, made of inputs that held one{path}")


class _Search:
    """Evaluates a program, and those it holds, until an equation is at fault."""

    def __init__(self, seen: str):
        self.seen = seen
        self.runs: Counter[Program] = Counter()

    def evaluate(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """The outputs. Errors: NaNError at the first equation at fault."""
        self.runs[program] += 1
        env: dict[Var, Any] = dict(program.constants)
        env.update(zip(program.inputs, args, strict=True))
        given = [type_of(a) for a in args]
        sizes = match_sizes(program.input_types, given, f"{program.name}: cannot evaluate")

        def read(atom: Atom) -> Any:
            return atom.value if isinstance(atom, Literal) else env[atom]

        for equation in program.equations:
            operands = [read(a) for a in equation.operands]
            out = self._apply(
                equation.primitive, operands, params_with_sizes(equation.params, sizes)
            )
            results = out if equation.primitive.multiple_results else [out]
            self._check(program, equation, operands, results)
            env.update(zip(equation.results, results, strict=True))
        return [read(a) for a in program.outputs]

    def _apply(
        self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> Any:
        if primitive.interpret is not None:
            return primitive.interpret(self.evaluate, *operands, **params)
        with config.configure(check_nans=False, check_infs=False):
            return bind(primitive, *operands, **params)

    def _check(
        self, program: Program, equation: Equation, operands: Sequence[Any], results: Sequence[Any]
    ) -> None:
        found = fault_of(results)
        if found is None or any(fault(x) == found for x in operands):
            return
        types = ", ".join(str(a.type) for a in equation.operands)
        run = self.runs[program]
        where = f" in run {run} of {program.name}" if run > 1 else ""
        raise NaNError(
            f"{equation.primitive}: found {found} in its result {equation.results[0].type}{where} "
            f"(operands {types} hold none{self.seen})",
            frame=equation.frame,
        )
