"""How many rounds of loops one thread of a kernel runs, at most.

A driver may stop a thread's loops after a number of rounds, all loops counted together, and go on
with what they have computed so far (Mesa's CPU device does so after 65,535). Iterations of GRID and
WORKGROUP loops are threads of their own; all others count, and each loop counts one more for the
test that ends it.

    for i in 4 grid { for j in 9 serial { for k in 5 vector { ... } } }      10 * (1 + 6) rounds
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rune import dims, dtypes
from rune.dims import Size
from rune.errors import DeviceError
from rune.lowering.codegen.target import Target
from rune.lowering.kernel.expr import Expr, Index, Op
from rune.lowering.kernel.nodes import For, If, KernelCode, Kind, Stmt
from rune.lowering.kernel.rewrite import expressions, walk_expr

# The most rounds of the loop that replaces an operation a language lacks: each handles a bit of the
# exponent, or as many bits of a quotient as a word has room for; one more ends the loop.
_OF_POWERS = 65
_OF_REMAINDERS = {dtypes.f64: 210}  # narrower floats take as many as f32
_OF_NARROW_REMAINDERS = 64


def rounds(body: Iterable[Stmt]) -> Size:
    """The rounds of a thread that takes every branch.

    >>> from rune.lowering.kernel.text import parse
    >>> loop = "for j in 9 serial { store y[i] = 1_u8 }"
    >>> rounds(parse(f"code f(y: write u8[8]) {{ for i in 8 grid {{ {loop} }} }}").body)
    10
    """
    total: Size = 0
    for stmt in body:
        total = total + sum(map(_in_expression, expressions(stmt)))
        match stmt:
            case For(kind=Kind.GRID | Kind.WORKGROUP, body=inner):
                total = total + rounds(inner)
            case For(extent=extent, body=inner):
                # Plus one for the test that ends the loop, and for expressions evaluated with it.
                total = total + (extent + 1) * (1 + rounds(inner))
            case If(condition=condition, body=inner, orelse=orelse):
                total = total + rounds(inner)
                total = total + dims.substitute(rounds(orelse), _known_beyond(condition))
    return total


def _known_beyond(condition: Expr) -> dict[str, Size]:
    """The range of a loop variable where `i < end` is false: it begins at `end`.

    Without it, a symbolic size would count all of its rows as lying after the last full tile.
    """
    match condition:
        case Op(name="lt", args=(Index(dim=i), Index(dim=end))):
            variables = [s for s in dims.symbols(i) if i == dims.symbol(s.name, s.low, s.high)]
            return {s.name: dims.symbol(s.name, end, s.high) for s in variables}
    return {}


def _in_expression(expr: Expr) -> int:
    return sum(_of_operation(part) for part in walk_expr(expr) if isinstance(part, Op))


def _of_operation(op: Op) -> int:
    # Only integer powers and float remainders are loops (scalar/integers.py, scalar/powers.py).
    if op.name == "pow" and op.dtype in dtypes.INTEGER:
        return _OF_POWERS
    if op.name == "rem" and op.dtype in dtypes.FLOATING:
        return _OF_REMAINDERS.get(op.dtype, _OF_NARROW_REMAINDERS)
    return 0


def most_rounds(body: Iterable[Stmt], sizes: Mapping[str, int] | None = None) -> int | None:
    """An upper bound for these sizes; None if these sizes give none."""
    return dims.bounds(dims.substitute(rounds(body), sizes or {}))[1]


def are_few(body: Iterable[Stmt], target: Target) -> bool:
    """Whether the target's driver is certain to run all rounds of the statements."""
    most = most_rounds(body) if target.loop_rounds is not None else 0
    return most is not None and (target.loop_rounds is None or most <= target.loop_rounds)


def require_few(code: KernelCode, target: Target, sizes: Mapping[str, int] | None = None) -> None:
    """Check that the target's driver runs all rounds; symbolic sizes pass until they are known.

    Errors: DeviceError "sum_0: cannot run on vulkan:0 (up to 70001 rounds of loops in a thread...".
    """
    if target.loop_rounds is None:
        return
    most = most_rounds(code.body, sizes)
    if most is not None and most > target.loop_rounds and (sizes or not code.sizes):
        raise DeviceError(
            f"{code.name}: cannot run on {target.name} (up to {most} rounds of loops in a thread; "
            f"its driver, {target.description}, silently stops after {target.loop_rounds})",
            hint="compute it on another device, rune.jit(device=...), or in smaller pieces",
        )


__all__ = ["are_few", "most_rounds", "require_few", "rounds"]
