"""`Any` tells a reader and a type checker nothing: each room has a budget, which may only fall."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator

from tests.architecture.sources import Source, sources

# How many annotations of each room are `Any`, or contain it.
BUDGETS: dict[str, int] = {
    "rune.array": 6,
    "rune.array_methods": 1,
    "rune.array_state": 7,
    "rune.as_jax": 338,
    "rune.backends": 160,
    "rune.checkify": 35,
    "rune.checkpoints": 2,
    "rune.config": 8,
    "rune.control": 79,
    "rune.core": 25,
    "rune.data": 4,
    "rune.debug": 1,
    "rune.dims": 10,
    "rune.dtypes": 7,
    "rune.effects": 21,
    "rune.errors": 1,
    "rune.exporting": 1,
    "rune.extend": 40,
    "rune.files": 3,
    "rune.flatten_util": 1,
    "rune.lax": 43,
    "rune.locks": 1,
    "rune.lowering": 43,
    "rune.nn": 55,
    "rune.numpy": 261,
    "rune.ops": 151,
    "rune.optim": 33,
    "rune.options": 3,
    "rune.profiler": 1,
    "rune.quantized": 8,
    "rune.random": 37,
    "rune.scipy": 87,
    "rune.settings": 1,
    "rune.sharding": 2,
    "rune.sparse": 28,
    "rune.tracebacks": 3,
    "rune.transforms": 209,
    "rune.tree": 62,
    "rune.tree_files": 2,
    "rune.tree_util": 4,
}

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def annotations_of(tree: ast.AST) -> Iterator[ast.expr]:
    """The annotations of all parameters, results and variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, FUNCTIONS) and node.returns is not None:
            yield node.returns


def tells_nothing(annotation: ast.expr) -> bool:
    """Whether an annotation is `Any`, or contains it."""
    return any(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


def room(source: Source) -> str:
    parts = source.name.split(".")
    return "rune" if source.name == "rune" else ".".join(parts[:2])


@functools.cache
def counts() -> dict[str, int]:
    """The annotations with `Any` of every room that has some."""
    counter: Counter[str] = Counter()
    for source in (s for s in sources() if "Any" in s.text):
        counter[room(source)] += sum(map(tells_nothing, annotations_of(source.tree)))
    return {name: number for name, number in sorted(counter.items()) if number}


def test_annotations_with_any_do_not_multiply():
    over = {name: n for name, n in counts().items() if n > BUDGETS.get(name, 0)}

    assert not over, "say what the value is: rune.typing has the words"


def test_a_budget_is_lowered_when_its_count_falls():
    figures = counts()
    slack = {name: figures.get(name, 0) for name, n in BUDGETS.items() if figures.get(name, 0) < n}

    assert not slack, "lower the budgets to these figures"


def test_any_is_detected_inside_another_annotation():
    tree = ast.parse("def f(x: list[Any], y: int) -> Any: ...\nz: Any = 0")

    assert sum(map(tells_nothing, annotations_of(tree))) == 3
