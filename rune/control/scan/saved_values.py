"""The values inside a scan that a checkpoint around it saves.

Values saved in the body are stacked over the steps; the replayed loop reads them as rows, so a
carry that can be computed from them needs no earlier step.
"""

from __future__ import annotations

from dataclasses import replace

from rune.core.lists import omit
from rune.core.program import Equation, Var
from rune.core.sizes import Sizes, type_with_sizes
from rune.transforms.checkpoint.saved_values import Keeps, Replay, split_kept


def keep_of_scan(equation: Equation, keeps: Keeps, sizes: Sizes) -> Replay | None:
    """The rule of scan. sizes: the values of the sizes of its body."""
    params = equation.params
    forward, recomputation, saved_variables = split_kept(params["body"], keeps)
    if forward.equations == recomputation.equations:  # nothing inside is saved
        return None
    if not recomputation.equations:  # everything computed inside is saved, so the results are too
        return Replay(equation, None, equation.results)
    # Only rows are stacked by the loop already; a carry of one step is not a row.
    count, carries = len(recomputation.outputs), params["carries"]
    # A saved value that is also a row of a result is stacked once.
    result_vars = dict(zip(recomputation.outputs[carries:], equation.results[carries:], strict=True))
    extra = [v for v in saved_variables if v not in result_vars]
    types = [type_with_sizes(v.type, sizes) for v in extra]
    rows = [Var(t.with_shape((params["length"], *t.shape))) for t in types]
    stacked_vars = {**result_vars, **dict(zip(extra, rows, strict=True))}
    saved_rows = tuple(stacked_vars[v] for v in saved_variables)
    saving = replace(
        equation,
        results=(*equation.results, *rows),
        params={**params, "body": replace(forward, outputs=(*forward.outputs[:count], *extra))},
    )
    is_saved = tuple(i >= carries and a in saved_variables for i, a in enumerate(recomputation.outputs))
    # The replayed loop does not compute saved results: the first loop has returned them.
    replay = replace(
        equation,
        operands=(*equation.operands, *saved_rows),
        results=tuple(omit(equation.results, is_saved)),
        params={**params, "body": replace(recomputation, outputs=tuple(omit(recomputation.outputs, is_saved)))},
    )
    return Replay(saving, replay, tuple(dict.fromkeys(saved_rows)))
