"""The records of `while` and `while_linear`.

Their rules are in rules.py, linearize.py, linear_loop.py and walk_back.py, where a rule that binds
a primitive takes it as an argument: those modules cannot import the records, which consist of their
rules. There is no rule `keeping`: a checkpoint replays a while loop as a whole, since the number of
rows to save is known only after the loop has run.
"""

from __future__ import annotations

from rune.control.programs import run_equation
from rune.control.while_loop import linear_loop, linearize, rules, walk_back
from rune.core.higher import HigherOrder
from rune.core.values import Value
from rune.ops.loop import while_as_loop

while_ = HigherOrder(
    "while",
    "control",
    rules.type_rule,
    calls=rules.calls,
    transpose=lambda *args, **params: linearize.transpose(while_, *args, **params),
    batch=lambda *args, **params: rules.batch(while_, *args, **params),
    multiple_results=True,
    expand=while_as_loop,
    run=lambda *args, **params: run_equation(while_, args, params),
    interpret=rules.interpret,
    jvp_equation=lambda *args: rules.jvp(while_, *args),
    partial_equation=lambda *args: linearize.partial(while_, while_linear, *args),
    dead_code=rules.dead_code,
    series=lambda *args: rules.series(while_, *args),
    vary=rules.vary,
    jax_names={
        "cond_jaxpr": "condition",
        "body_jaxpr": "body",
        "cond_nconsts": "condition_consts",
        "body_nconsts": "body_consts",
    },
)


def _expand(*args: Value, **params: object) -> list[Value]:
    return linear_loop.expand(while_, *args, **params)


while_linear = HigherOrder(
    "while_linear",
    "control",
    linear_loop.type_rule,
    calls=linear_loop.calls,
    transpose=lambda *args, **params: walk_back.transpose(while_, *args, **params),
    batch=lambda *args, **params: linear_loop.batch(while_, while_linear, *args, **params),
    multiple_results=True,
    expand=_expand,
    run=_expand,
    interpret=lambda evaluate, *args, **params: _expand(*args, **params),
    jvp_equation=lambda *args: linear_loop.jvp(while_, *args),
    partial_equation=lambda *args: linear_loop.partial(while_, while_linear, *args),
    dead_code=linear_loop.dead_code,
    vary=linear_loop.vary,
)
