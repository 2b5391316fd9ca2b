"""The layouts of a program's results from those of its inputs; operations that hold programs.

A program has no layouts itself: they are found for each layout of its inputs, and remembered with
it. A loop's carry keeps the layout of its first value, or the program is refused; branches agree.
"""

from __future__ import annotations

from collections.abc import Sequence

from rune.core.higher import Calls, Runs, calls
from rune.core.memo import per_program
from rune.core.program import Equation, Literal, Program, Var
from rune.errors import ShardingTypeError
from rune.sharding import Mesh
from rune.transforms.sharding.explicit.known import FREE, UNKNOWN, Known, Loose, explicit_layout, known_on, type_text
from rune.transforms.sharding.explicit.rules import RESHARD, Operation, layouts_of
from rune.transforms.sharding.reshard import layout_of

LOOPS = ("scan", "while")  # the loops of users; those that derivatives make have unknown layouts


def result_layouts(operation: Operation) -> list[Known]:
    """What is known of each result. Errors: ShardingTypeError for operands that do not fit."""
    of_numbers = calls(operation.primitive, range(len(operation.types)), operation.params)
    runs = [call for call in of_numbers if call.runs is not Runs.NEVER]
    if not runs:
        return layouts_of(operation)
    match runs[-1].runs:
        case Runs.EACH:
            return _of_devices(operation)
        case Runs.ONCE:
            return _once(operation, runs[-1])
        case Runs.BRANCH:
            return _branches(operation, runs)
        case Runs.LOOP if operation.primitive.name in LOOPS:
            return _loop(operation, runs[-1])
    return [UNKNOWN] * len(operation.results)


@per_program
def program_layouts(program: Program, mesh: Mesh, inputs: tuple[Known, ...]) -> tuple[Known, ...]:
    """What is known of the results for inputs of these layouts. Errors: ShardingTypeError."""
    known: dict[Var, Known] = {v: known_on(mesh, x) for v, x in program.constants}
    known.update(zip(program.inputs, inputs, strict=True))
    for equation in program.equations:
        layouts = [FREE if isinstance(a, Literal) else known[a] for a in equation.operands]
        known.update(zip(equation.results, result_layouts(_operation(equation, layouts, mesh)), strict=True))
    return tuple(FREE if isinstance(a, Literal) else known[a] for a in program.outputs)


def _operation(equation: Equation, layouts: Sequence[Known], mesh: Mesh) -> Operation:
    types, results = [a.type for a in equation.operands], [v.type for v in equation.results]
    return Operation(equation.primitive, types, layouts, equation.params, results, mesh, equation.frame)


def _inputs(operation: Operation, call: Calls) -> tuple[Known, ...]:
    return tuple(operation.layouts[n] for n in call.operands)


def _once(operation: Operation, call: Calls) -> list[Known]:
    return [*program_layouts(call.program, operation.mesh, _inputs(operation, call))]


def _of_devices(operation: Operation) -> list[Known]:
    """The results of a shard_map by its specs; its operands must be split by theirs."""
    params, mesh = operation.params, operation.mesh
    if params["region"].mesh != mesh:
        return [UNKNOWN] * len(operation.results)
    manual = params["region"].manual
    for number, (known, type, spec) in enumerate(
        zip(operation.layouts, operation.types, params["in_specs"], strict=True)
    ):
        required = explicit_layout(mesh, layout_of(spec, type.ndim))
        if not isinstance(known, Loose) and required != _along(known, manual):
            operation.refuse(f"operand {number} is not split as {spec!r} in in_specs says")
    if not set(mesh.explicit_axes) <= set(manual):
        return [UNKNOWN] * len(operation.results)
    pairs = zip(params["out_specs"], operation.results, strict=True)
    return [explicit_layout(mesh, layout_of(spec, type.ndim)) for spec, type in pairs]


def _along(layout: Sequence[tuple], names: Sequence) -> tuple[tuple, ...]:
    return tuple(tuple(n for n in axis_names if n in names) for axis_names in layout)


def _branches(operation: Operation, runs: Sequence[Calls]) -> list[Known]:
    results = [program_layouts(c.program, operation.mesh, _inputs(operation, c)) for c in runs]
    return [_same(operation, number, column, "branches") for number, column in enumerate(zip(*results, strict=True))]


def _same(operation: Operation, number: int, layouts: Sequence[Known], owners: str) -> Known:
    """The layout that values have in common; free ones take that of the others."""
    splits = [*dict.fromkeys(x for x in layouts if x is not FREE)]
    if UNKNOWN in splits:
        return UNKNOWN
    if len(splits) > 1:
        first, second = (type_text(operation.results[number], x) for x in splits[:2])
        raise ShardingTypeError(
            f"{operation.primitive.name}: cannot lay out result {number} ({first} and {second} of its {owners})",
            RESHARD,
            operation.frame,
        )
    return splits[0] if splits else FREE


def _loop(operation: Operation, call: Calls) -> list[Known]:
    """The layouts of carries, which no step changes, and of the rows of a scan."""
    rows = call.operands.count(None)
    carries = operation.params.get("carries", len(operation.results))  # all results of a while
    inputs = [*_entering(operation, call.operands)]
    first = len(inputs) - rows - carries
    while True:
        outs = program_layouts(call.program, operation.mesh, tuple(inputs))
        after = [_same(operation, n, (inputs[first + n], outs[n]), "steps") for n in range(carries)]
        if after == inputs[first : first + carries]:
            return [*after, *(x if isinstance(x, Loose) else ((), *x) for x in outs[carries:])]
        inputs[first : first + carries] = after


def _entering(operation: Operation, operands: Sequence[int | None]) -> list[Known]:
    """The layouts of a body's first inputs: operands, and rows of the operands after those."""
    inputs: list[Known] = []
    for position, number in enumerate(operands):
        known = operation.layouts[position if number is None else number]
        if number is None and not isinstance(known, Loose):
            if known[0]:
                operation.refuse(f"operand {position} is split along the axis of the steps")
            known = known[1:]
        inputs.append(known)
    return inputs
