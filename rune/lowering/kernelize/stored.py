"""Which values are stored: every other value is computed where it is used.

Always stored: results of the program, of reductions, dots, scans, scatters and routines, and what
routines read, except for operands that kernels of given loops may compute as they read them. A
value that is costly and needed in several places is stored, too, if `cost.is_worth_storing` says
so; fusion may then hold it in a scratch row instead of memory.

A place is one consumer and one path of views to it: x and x shifted by one are two places of x.
First, demand is counted as if only the forced values were stored, and values are chosen from
inputs to outputs, with costs that know the choices so far. Then demand is counted with all these
choices, and a value that the others have made needless is dropped.

Views of the same elements in the same order are not separate values: a result that only reshapes
another value is that value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from operator import or_

from rune.core.lower import Contraction, Cumulative, Position, Reduction, Scalar, Scatter, View, Written
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.core.side_effects import effect_of
from rune.lowering.kernelize import cost
from rune.lowering.kernelize.changes import Changes, changes_of
from rune.lowering.kernelize.loop_reads import is_computed_where_read, loops_of
from rune.lowering.kernelize.routines import is_routine, is_unpacking
from rune.lowering.kernelize.scores import Sink
from rune.lowering.kernelize.tracing import same_elements, upstream
from rune.lowering.kernelize.views import Indices, Views
from rune.ops.branch import is_control
from rune.ops.memory import in_memory
from rune.records import dataclass

FORCED = (Reduction, Contraction, Cumulative, Scatter)
Loops = Mapping[int, Mapping[Var, int]]  # for each kernel of given loops, how often it reads its operands
Demand = dict[tuple[int, int], int]  # (consumer, path): points of evaluation
Reads = dict[Var, dict[Indices, None]]  # stored values and inputs, and where they are read, in order


@dataclass(frozen=True, slots=True)
class Storage:
    """The stored variables, what defines each live variable, and how often each is used."""

    values: frozenset[Var]
    equations: tuple[Equation, ...]  # the live ones, in order
    definitions: Definitions
    uses: Mapping[Var, int]
    in_place: frozenset[Var]  # computed by changing some elements of operand 0
    outputs: tuple[Atom, ...]  # after looking through reshapes
    recomputed_values: frozenset[Var] = frozenset()  # scores, and values computed from them: never stored
    sinks: Mapping[Var, Sink] = field(default_factory=dict)  # sums of scores in streams
    degrees: Mapping[Var, int] = field(default_factory=dict)  # of these in their peaks
    views: Views = field(default_factory=Views, compare=False)
    scalar_reads: dict[Var, Reads] = field(default_factory=dict, compare=False)  # of those not stored (roots.py)

    def is_in_memory(self, var: Var) -> bool:
        """Whether readers find the value in memory: it is an input, or stored."""
        return var in self.values or var not in self.definitions


def choose(program: Program, recomputed_values: frozenset[Var] = frozenset()) -> Storage:
    """Decide which values are stored; `recomputed_values` are never stored."""
    definitions = program.definitions
    outputs = tuple(same_elements(a, definitions) for a in program.outputs)
    live = _live(program, outputs, definitions)
    equations = tuple(e for e in program.equations if any(v in live for v in e.results))
    loops = loops_of(equations)
    changes = changes_of(equations, definitions)
    forced_values = _forced(equations, outputs, definitions, loops, changes) - recomputed_values
    forced_values = _limited(equations, forced_values, loops)
    uses: dict[Var, int] = {}
    for equation in equations:
        for operand in equation.operands:
            if isinstance(operand, Var):
                uses[operand] = uses.get(operand, 0) + 1
    readers = _Readers(_dots(equations, recomputed_values), loops, definitions)
    demands = _demands(equations, forced_values, readers)
    choices = (
        _choose_forward(equations, forced_values, demands, readers)
        - recomputed_values
        - _unpacked(equations, demands, recomputed_values)
    )
    values = _drop_needless(equations, forced_values, choices, readers)
    in_place = changes.results(values, definitions)
    return Storage(values, equations, definitions, uses, in_place, outputs, recomputed_values)


def _live(program: Program, outputs: Iterable[Atom], definitions: Definitions) -> set:
    # A side effect happens whether or not anybody reads its results.
    effects = [v for e in program.equations if effect_of(e) is not None for v in e.results]
    return set(upstream([*outputs, *effects], definitions, lambda *_: True))


def _forced(
    equations: Sequence[Equation], outputs: Iterable[Atom], definitions: Definitions, loops: Loops, changes: Changes
) -> frozenset[Var]:
    values = {a for a in outputs if isinstance(a, Var) and a in definitions}
    for number, equation in enumerate(equations):
        if is_routine(equation) or is_control(equation):
            values.update(equation.results)
            loop_operands = loops.get(number, ())
            arrays = [a for a in equation.operands if isinstance(a, Var) and a not in loop_operands]
            values.update(a for a in _bases(equation, arrays, definitions) if a in definitions)
        elif equation.primitive is in_memory:
            values.update(equation.results)
        elif isinstance(equation.primitive.lower, FORCED):
            values.update(equation.results)
            operand = equation.operands[0]
            if equation in changes.scatters and isinstance(operand, Var):
                values.update({operand} & definitions.keys())
    # A chain of window updates is stored step by step, so that each changes the array of the one
    # before in place; else the last one would compute every element through all of them.
    for equation in reversed(equations):
        if equation in changes.windows and equation.results[0] in values:
            operand = equation.operands[0]
            inner = definitions.get(operand)
            if inner in changes.windows:
                values.update(inner.results)
    return frozenset(values | _read_before_changes(equations, values, definitions, changes))


def _read_before_changes(
    equations: Sequence[Equation], values: Container[Var], definitions: Definitions, in_place: Changes
) -> set[Var]:
    """Values that writes into an array compute from its contents before other changes in place.

    They are stored before the first change: computed where they are written, they would need a
    copy of the array.
    """
    tiny = [e for e in equations if in_place.is_tiny(e)]
    arrays = dict.fromkeys(a for e in tiny for a in (e.operands[0], e.results[0]) if isinstance(a, Var))
    bits = {array: 1 << n for n, array in enumerate(arrays)}
    reads = _reads(equations, bits, values) if tiny else {}
    originals: dict[Atom, Var] = {}  # of arrays after changes in place
    versions: dict[Var, int] = {}  # the bits of each original after changes
    early: set[Var] = set()
    for equation in tiny:
        array, *pending = equation.operands
        assert isinstance(array, Var)
        original = originals.get(array, array)
        changes = versions.get(original, 0)
        visited: set[Var] = set()
        while changes and pending:
            value = pending.pop()
            if not isinstance(value, Var) or value in values or value in visited:
                continue
            visited.add(value)
            if not reads.get(value, 0) & bits[original]:
                continue
            if reads[value] & changes:
                pending += definitions[value].operands
            elif value in definitions and not isinstance(definitions[value].primitive.lower, View):
                early.add(value)
        originals[equation.results[0]] = original
        versions[original] = changes | bits[equation.results[0]]
    return early


def _reads(equations: Iterable[Equation], bits: Mapping[Var, int], values: Container[Var]) -> dict[Var, int]:
    """The arrays, by their bits, that each value reads; all but `values` are computed in place."""
    reads = dict(bits)
    for equation in equations:
        operands = [reads.get(a, 0) for a in equation.operands if isinstance(a, Var)]
        of_all = reduce(or_, operands, 0)
        for result in equation.results:
            reads[result] = bits.get(result, 0) | (0 if result in values else of_all)
    return reads


def _limited(equations: Sequence[Equation], forced_values: frozenset[Var], loops: Loops) -> frozenset[Var]:
    """The forced values, and enough others that no value is computed from over MAX_BUFFERS of them.

    A sum of a thousand arrays would be one kernel of a thousand buffers, which drivers refuse, and
    for which compilers take more than linear time.
    """
    values = set(forced_values)
    read: dict[Var, frozenset[Var]] = {}  # by values that are not stored
    for number, equation in enumerate(equations):
        if is_control(equation) or (is_routine(equation) and number not in loops):
            continue
        operands = dict.fromkeys(a for a in equation.operands if isinstance(a, Var))
        reads = _read(operands, read)
        # The operand that reads most is stored first, so that few have to be.
        for operand in sorted(operands, key=lambda a: -len(read.get(a, ()))):
            if len(reads) <= cost.MAX_BUFFERS or operand not in read:
                break
            values.add(operand)
            del read[operand]
            reads = _read(operands, read)
        read.update((v, reads) for v in equation.results if v not in values)
    return frozenset(values)


def _read(operands: Iterable[Var], read: Mapping[Var, frozenset[Var]]) -> frozenset[Var]:
    """The stored values from which operands are computed."""
    return frozenset().union(*(read.get(a, (a,)) for a in operands))


def memory_operands(equation: Equation, definitions: Definitions) -> list[Var]:
    """The values that a call, loop or branch reads in memory; a routine's operands as they are."""
    return _bases(equation, (a for a in equation.operands if isinstance(a, Var)), definitions)


def _bases(equation: Equation, operands: Iterable[Var], definitions: Definitions) -> list[Var]:
    """The values in memory that some operands of a call, loop or branch only reshape."""
    if is_routine(equation) and not isinstance(equation.primitive.lower, Written):
        return list(operands)
    bases = (same_elements(a, definitions) for a in operands)
    return [a for a in bases if isinstance(a, Var)]


# --- demand -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Readers:
    """The equations, by number, that may compute what they read at each of their points.

    dots:  dots, and reductions of scores, which are dots computed where they are needed
    loops: kernels of given loops, and how many elements they read of each operand
    """

    dots: frozenset[int]
    loops: Loops
    definitions: Definitions

    def reads(self, demand: Demand) -> int:
        """How many elements given loops read in all."""
        return sum(points for (root, _), points in demand.items() if root in self.loops)


def _points(equation: Equation) -> int:
    """Points at which a stored equation evaluates its operands."""
    if isinstance(equation.primitive.lower, Contraction):
        (contracted_axes, _), _ = equation.params["dimension_numbers"]
        shape = equation.operands[0].type.shape
        return cost.count(equation.results[0].type.shape) * cost.count(tuple(shape[a] for a in contracted_axes))
    # An elementwise equation has points for its result, a reduction for its operand.
    shapes = [a.type.shape for a in (*equation.operands, *equation.results)]
    return max(map(cost.count, shapes))


def _demands(equations: tuple[Equation, ...], stored_values: frozenset[Var], readers: _Readers) -> dict[Var, Demand]:
    """For every variable, the places that need it, and how often each place evaluates it."""
    demands: dict[Var, Demand] = {}
    count = 0  # of paths
    # Backwards, readers first: then the demand for a value is complete when it is passed on.
    for number in range(len(equations) - 1, -1, -1):
        equation = equations[number]
        for operand, points in readers.loops.get(number, {}).items():
            demands[operand] = _sum(demands.get(operand), {(number, 0): points})
        if is_routine(equation) or is_control(equation):
            continue
        demand = _demand_of(equation, number, demands, stored_values)
        # Seen through a view, a place is another place: its path goes on with the view.
        if isinstance(equation.primitive.lower, View) and equation.results[0] not in stored_values:
            paths: dict[int, int] = {}
            demand = {
                (root, paths.setdefault(path, count + len(paths) + 1)): points
                for (root, path), points in demand.items()
            }
            count += len(paths)
        for operand in equation.operands:
            if isinstance(operand, Var):
                demands[operand] = _sum(demands.get(operand), demand)
    return demands


def _demand_of(equation: Equation, number: int, demands: dict[Var, Demand], stored_values: frozenset[Var]) -> Demand:
    if equation.results[0] in stored_values:
        return {(number, 0): _points(equation)}
    return demands.get(equation.results[0], {})


def _sum(demand: Demand | None, increment: Demand) -> Demand:
    """Both demands together; the increment itself where there is no other."""
    # Most values have one reader, whose demand they share: neither is changed.
    if not demand or demand is increment:
        return increment
    total = dict(demand)
    for place, points in increment.items():
        known = total.get(place)
        # Bounded, since places multiply along chains of views.
        if known is None:
            if len(total) < 4 * cost.MAX_PLACES:
                total[place] = points
        elif points > known:
            total[place] = points
    return total


# --- choice -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Price:
    """The price of one element: operations, and elements read."""

    cost: int
    loads: int
    unpacks: bool = False  # whether numbers of fewer bits are converted on the way
    joins: int = 0  # views of several operands that choose in turn, on the longest way to a load


_LOAD = _Price(0, 1)


def _price(equation: Equation, prices: Mapping[Var, _Price]) -> _Price:
    """What one element costs when every stored operand is a load."""
    # An operand that is used twice is loaded once, and a scalar once for all elements of an array.
    is_scalar = not equation.results[0].type.shape
    distinct = {a for a in equation.operands if isinstance(a, Var) and (is_scalar or a.type.shape)}
    parts = [prices.get(a, _LOAD) for a in distinct]
    total = sum([p.cost for p in parts]) + _own_cost(equation, len(distinct))
    loads = sum([p.loads for p in parts])
    # Passed on to the values computed from it: their loads then read the narrow numbers.
    unpacks = any([p.unpacks for p in parts]) or is_unpacking(equation)
    joins = max([p.joins for p in parts], default=0) + (
        len(distinct) > 1 and isinstance(equation.primitive.lower, View)
    )
    return _Price(min(total, cost.UNLIMITED), min(loads, cost.UNLIMITED), unpacks, joins)


def _own_cost(equation: Equation, operands: int) -> int:
    match equation.primitive.lower:
        case Scalar(op=op):
            return cost.operation(op)
        case View():
            # A view of several operands chooses between them.
            return max(0, operands - 1)
        case Position():
            return 0
        case _:
            return 1


def _wants_storing(
    equation: Equation, price: _Price, demand: Demand, readers: _Readers, stored_values: Container[Var]
) -> bool:
    """Ask the cost function about one value; `stored_values` are the values stored before it."""
    if len(demand) == 0:
        return False
    if not equation.results[0].type.shape:
        # Each kernel that reads a scalar repeats all its code, however few elements there are.
        readers_of_scalar = len({root for root, _ in demand})
        return readers_of_scalar > 1 and price.cost * readers_of_scalar > cost.MAX_SCALAR_CODE
    reads = readers.reads(demand)
    if reads and not is_computed_where_read(equation, reads, readers.definitions, stored_values):
        return True
    # Without operations a value is a view or a position: a copy would save nothing.
    if price.cost == 0:
        return False
    elements = cost.count(equation.results[0].type.shape)
    # A dot evaluates an operand once for each product. A cheap operand counts as if evaluated once:
    # computing it again costs a dot less than one more kernel that writes it.
    evaluations = sum(
        elements if root in readers.dots and _is_cheap(price, points, elements) else points
        for (root, _), points in demand.items()
        if root not in readers.loops
    )
    # Code, and so compile time, grows with the places, whatever an element costs.
    is_crowded = len(demand) > cost.MAX_PLACES and _most_places(demand) > cost.MAX_PLACES
    # Each join nests the conditions and positions of the one before, at every place.
    is_entangled = len(demand) > 1 and price.joins > cost.MAX_JOINS
    return is_crowded or is_entangled or cost.is_worth_storing(price.cost, price.loads, elements, evaluations)


def _is_cheap(price: _Price, points: int, elements: int) -> bool:
    """Whether a dot computes an operand again wherever it uses it."""
    once = price.cost + price.loads
    few = price.unpacks and points <= cost.FEW_ROWS * elements
    return once <= (cost.CHEAP_UNPACKING if few else cost.CHEAP_OPERAND)


def _most_places(demand: Demand) -> int:
    return max(Counter([root for root, _ in demand]).values())


def _dots(equations: tuple[Equation, ...], recomputed_values: frozenset[Var]) -> frozenset[int]:
    """The numbers of dots, and of reductions of scores."""
    return frozenset(
        n
        for n, e in enumerate(equations)
        if isinstance(e.primitive.lower, Contraction) or any(a in recomputed_values for a in e.operands)
    )


def _unpacked(
    equations: tuple[Equation, ...], demands: Mapping[Var, Demand], recomputed_values: frozenset[Var]
) -> frozenset[Var]:
    """Conversions to more bits that only streams read: a tile reads the narrow numbers once."""
    streams = {n for n, e in enumerate(equations) if any(a in recomputed_values for a in e.operands)}
    return frozenset(
        e.results[0] for e in equations if is_unpacking(e) and {r for r, _ in demands.get(e.results[0], {})} <= streams
    )


def _choose_forward(
    equations: tuple[Equation, ...], forced_values: frozenset[Var], demands: dict[Var, Demand], readers: _Readers
) -> frozenset[Var]:
    prices: dict[Var, _Price] = {}
    values = set(forced_values)
    for equation in equations:
        if is_control(equation) or (result := equation.results[0]) in forced_values:
            continue
        price = _price(equation, prices)
        if _wants_storing(equation, price, demands.get(result, {}), readers, values):
            values.add(result)  # without a price: its readers pay for a load
        else:
            prices[result] = price
    return frozenset(values) - forced_values


def _drop_needless(
    equations: tuple[Equation, ...], forced_values: frozenset[Var], choices: frozenset[Var], readers: _Readers
) -> frozenset[Var]:
    """Drop choices that others have made needless."""
    if not choices:
        return forced_values
    # Counted again: what reads a stored value no longer passes its demand on to what that reads.
    prices: dict[Var, _Price] = {}
    demands = _demands(equations, forced_values | choices, readers)
    values = set(forced_values)
    for equation in equations:
        if is_control(equation) or (result := equation.results[0]) in forced_values:
            continue
        price = _price(equation, prices)
        demand = demands.get(result, {})
        if result in choices and _wants_storing(equation, price, demand, readers, values):
            values.add(result)
        else:
            prices[result] = price
    return frozenset(values)
