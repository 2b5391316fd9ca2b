"""The records of `while` and `while_linear`. Their rules: while_rules.py, while_split.py and
while_linear.py, where a rule that binds a primitive takes it as an argument.
"""

from __future__ import annotations

from typing import Any

from rune.control import while_linear as linear
from rune.control import while_rules as rules
from rune.control import while_split as split
from rune.control.programs import run_equation
from rune.core.lower import Control
from rune.core.primitive import Primitive

while_ = Primitive(
    "while", "control", rules.type_rule,
    transpose=lambda *args, **params: split.transpose(while_, while_linear, *args, **params),
    batch=lambda *args, **params: rules.batch(while_, *args, **params),
    multiple_results=True, lower=Control.WHILE,
    run=lambda *args, **params: run_equation(while_, args, params), interpret=rules.interpret,
    jvp_equation=lambda *args: rules.jvp(while_, *args),
    partial_equation=lambda *args: split.partial(while_, while_linear, *args),
    dead_code=rules.dead_code,
)  # fmt: skip


def _expand(*args: Any, **params: Any) -> list[Any]:
    return linear.expand(while_, *args, **params)


while_linear = Primitive(
    "while_linear", "control", linear.type_rule,
    transpose=lambda *args, **params: linear.transpose(while_, *args, **params),
    batch=lambda *args, **params: linear.batch(while_, while_linear, *args, **params),
    multiple_results=True, expand=_expand, run=_expand,
    interpret=lambda evaluate, *args, **params: _expand(*args, **params),
    jvp_equation=lambda *args: linear.jvp(while_, *args),
    partial_equation=lambda *args: linear.partial(while_, while_linear, *args),
    dead_code=linear.dead_code,
)  # fmt: skip
