"""LLVM's instructions and intrinsics, by the names that operators have in the scalar library."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from operator import add, and_, mod, mul, sub

from rune.lowering.codegen.llvm.ir.names import FLOATS, scalar_of

# Of constants of type i64.
FOLDED: dict[str, Callable[[int, int], int]] = {"add": add, "sub": sub, "mul": mul, "and": and_, "urem": mod}
_INTEGER_OPS = {name: name for name in ("add", "sub", "mul", "and", "or", "xor")} | {
    **dict.fromkeys(("shl", "shift_left"), "shl"),
    **dict.fromkeys(("shr", "shift_right"), "lshr"),  # the arithmetic one is `binary("ashr", ...)`
}
_FLOAT_OPS = {name: f"f{name}" for name in ("add", "sub", "mul", "div", "rem")} | {"quotient": "fdiv"}
INTRINSICS = {name: name for name in ("fma", "sqrt", "floor", "ceil", "trunc", "copysign")} | {
    "root": "sqrt",
    "abs": "fabs",
    "round": "roundeven",
    "popcount": "ctpop",
}
PREDICATES = {name: (f"s{name}", f"o{name}") for name in ("lt", "le", "gt", "ge")} | {"eq": ("eq", "oeq")}


@functools.cache
def instructions(type: str) -> Mapping[str, str]:
    """The binary instructions of a type, by the names of operators."""
    return _FLOAT_OPS if scalar_of(type) in FLOATS else _INTEGER_OPS
