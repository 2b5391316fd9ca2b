"""Clamp integers from below first, and then from above.

Before   max(min(x, 7), 0)
After    min(max(x, 0), 7)

Both give the same number. But for compute capability 9.0, ptxas 13.0 (in NVRTC 13.0 and in NVIDIA's
driver 580) compiles the first form to one instruction (VIMNMX.RELU), and takes its predicate for
the test whether the result is 7: where x is below 7 and the result has other uses, the predicate is
true even for 0. A kernel then took the last of several branches instead of the first. NVRTC 13.5
compares the result itself.

Invariant: values stay the same. Cost: linear in the code.
"""

from __future__ import annotations

from collections import Counter

from rune import dtypes
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Const, Expr, Local, Op, const
from rune.lowering.kernel.nodes import KernelCode, Let, Var
from rune.lowering.kernel.rewrite import map_exprs, walk
from rune.lowering.passes import Pass
from rune.records import replace


def clamp_upwards_first(target: Target) -> Pass[KernelCode]:
    """The pass for one target; code compiled by LLVM needs none."""

    def run(code: KernelCode) -> KernelCode:
        if target.language == "llvm":
            return code
        return _clamped(code)

    return Pass("clamp-upwards-first", "max(min(x, n), 0) as min(max(x, 0), n)", run)


def _clamped(code: KernelCode) -> KernelCode:
    minima = _minima(code)

    def expr(part: Expr) -> Expr:
        if not (isinstance(part, Op) and part.name == "max" and part.dtype in dtypes.SIGNED):
            return part
        others = [a for a in part.args if not _is_zero(a)]
        if len(others) != 1:
            return part
        (inner,) = others
        smaller = minima.get(inner.name) if isinstance(inner, Local) else inner
        if not (isinstance(smaller, Op) and smaller.name == "min"):
            return part
        return replace(smaller, args=tuple(map(_at_least_zero, smaller.args)))

    body = map_exprs(expr, code.body)
    return code if body == code.body else replace(code, body=body)


def _minima(code: KernelCode) -> dict[str, Expr]:
    """The named minima whose operands have the same value wherever the name is in scope."""
    bound = Counter(s.name for s in walk(code.body) if isinstance(s, Let | Var))
    constants = {s.name for s in walk(code.body) if isinstance(s, Let) and bound[s.name] == 1}
    lets = {s.name: s.value for s in walk(code.body) if isinstance(s, Let) and s.name in constants}

    def is_simple(value: Expr) -> bool:
        args = value.args if isinstance(value, Op) and value.name == "min" else (value,)
        return all(isinstance(a, Const) or (isinstance(a, Local) and a.name in constants) for a in args)

    return {name: value for name, value in lets.items() if is_simple(value)}


def _is_zero(x: Expr) -> bool:
    return isinstance(x, Const) and x.value == 0


def _at_least_zero(x: Expr) -> Expr:
    if isinstance(x, Const):
        return const(max(0, int(x.value)), x.dtype)
    return Op("max", (x, const(0, x.dtype)), x.dtype)
