"""How far apart the elements lie that neighbouring lanes access, and what that costs.

x[n]     0: all lanes have the same element          x[2*i]     2: whole vectors, lanes pick from
x[i]     1: neighbours, one vector                   x[p]       None: scattered, each by itself
"""

from __future__ import annotations

from rune import dims
from rune.dims import Size
from rune.lowering.kernel.rewrite import mentions

WIDEST = 4  # from this step on, as many vectors cost as much as single elements


def step_of(index: Size, var: str, varying: frozenset[str]) -> int | None:
    """The step from lane to lane, up to WIDEST; None where it is another, or none for all lanes.

    var: the variable that counts the lanes. varying: the names that differ between them, `var` too
    """
    if not mentions(index, varying):
        return 0
    step = None if mentions(index, varying - {var}) else dims.coefficient(index, var)
    return step if isinstance(step, int) and 0 < step <= WIDEST else None


def access_cost(index: Size, var: str, varying: frozenset[str], lanes: int) -> float:
    """1 where the lanes access one element or neighbours, else one for each lane."""
    return 1.0 if step_of(index, var, varying) in (0, 1) else float(lanes)


__all__ = ["access_cost", "step_of"]
