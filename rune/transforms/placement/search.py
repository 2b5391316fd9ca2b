"""Candidates: the meshes and specs that are tried for a program, and a first guess of their times.

Data parallel: arguments all of whose leaves have leading axes of one size are split along it.
Tensor parallel: the other leaves, the largest first, are each split along the axis for which the
program is estimated to be fastest, or not at all. A candidate has one of these, or both on a mesh
of two axes. The estimate reads one device's program from the partitioner, without lowering it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from rune.backends import Device
from rune.core.higher import Runs, equation_calls
from rune.core.lower import Contraction
from rune.core.program import Equation, Program
from rune.core.types import ArrayType
from rune.records import dataclass
from rune.sharding import Mesh, PartitionSpec
from rune.transforms.placement.predict import exchange_seconds
from rune.transforms.placement.records import Measurements, Speed
from rune.transforms.sharding.blocks import Region, Specs
from rune.transforms.sharding.exchanges import Exchange, exchanges
from rune.transforms.sharding.localize import localized

DATA, MODEL = "data", "model"
Cuts = Mapping[int, int]  # the number of an input -> which of its axes is split
MOST_COUNTS = 8  # with more devices, only powers of two of them are tried


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a program: their types, and the numbers of those that are leaves of arguments.

    paths: the path of each such leaf, by its number
    """

    types: tuple[ArrayType, ...]
    paths: Mapping[int, str]
    arguments: tuple[tuple[int, ...], ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """The leaves of all arguments."""
        return tuple(n for argument in self.arguments for n in argument)


# Compared by identity: candidates are keys, and their cuts, dicts, have no hash.
@dataclass(frozen=True, eq=False)
class Candidate:
    """A mesh, and how the inputs are split on it."""

    program: Program
    mesh: Mesh
    batch: Cuts
    model: Cuts

    @cached_property
    def specs(self) -> Specs:
        """The spec of each input."""
        return tuple(self._spec(n, type.ndim) for n, type in enumerate(self.program.input_types))

    def _spec(self, number: int, ndim: int) -> PartitionSpec:
        names = {cuts[number]: name for cuts, name in self._cuts() if number in cuts}
        return PartitionSpec(*(names.get(axis) for axis in range(ndim))) if names else PartitionSpec()

    def _cuts(self) -> Iterator[tuple[Cuts, str]]:
        axes = ((self.batch, DATA), (self.model, MODEL))
        return ((cuts, name) for cuts, name in axes if name in self.mesh.axis_names)

    @cached_property
    def local(self) -> Program:
        """What each device runs."""
        free = (None,) * len(self.program.outputs)
        return localized(self.program, Region(self.mesh, self.mesh.axis_names), self.specs, free)[0]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The collectives of each device."""
        return exchanges(self.local, self.mesh)

    def guess(self, record: Measurements) -> tuple[float, int]:
        """About how long it takes, and the bytes of inputs on each device."""
        names = [d.name for d in self.mesh.in_order]
        slowest = min((record.speed_among(n, len(names)) for n in names), key=lambda s: s.products.rate)
        exchange_time = sum(exchange_seconds(e, self.mesh, record) for e in self.exchanges)
        seconds = record.call_seconds(names) + guessed_seconds(self.local, slowest) + exchange_time
        # Of candidates that take the same time, the one with the least memory for its inputs comes
        # first.
        return seconds, sum(map(_bytes, self.local.input_types))


def candidates(program: Program, inputs: Inputs, machines: Sequence[Device], record: Measurements) -> list[Candidate]:
    """The candidates, the best estimate first. `machines` are in order of speed."""
    return sorted(_all(program, inputs, machines, record), key=lambda c: c.guess(record))


def _all(program: Program, inputs: Inputs, machines: Sequence[Device], record: Measurements) -> Iterator[Candidate]:
    yield Candidate(program, Mesh([machines[0]], (DATA,)), {}, {})
    batches = [dict.fromkeys(numbers, 0) for numbers in batch_leaves(inputs)]
    models = [m for m in (_tensor_cuts(program, inputs, b, machines, record) for b in batches or [{}]) if m]
    for count in _counts(len(machines)):
        for parts in (n for n in range(count, 0, -1) if count % n == 0):
            mesh = _mesh(machines[:count], parts)
            options = [
                Candidate(program, mesh, batch, _divisible(model, inputs, count // parts))
                for batch in (batches if parts > 1 else [{}])
                for model in (models if parts < count else [{}])
                if len(_divisible(batch, inputs, parts)) == len(batch) and not batch.keys() & model.keys()
            ]
            # Devices along a model axis that splits nothing would only repeat each other's work.
            options = [c for c in options if parts == count or c.model]
            if options:
                yield min(options, key=lambda c: c.guess(record))


def _counts(devices: int) -> list[int]:
    """How many devices are tried, besides one."""
    if devices <= MOST_COUNTS:
        return list(range(2, devices + 1))
    return sorted({*(1 << level for level in range(1, devices.bit_length())), devices})


def _mesh(machines: Sequence[Device], parts: int) -> Mesh:
    """A mesh of these devices with a number of them along "data", and the others along "model"."""
    sizes = {DATA: parts, MODEL: len(machines) // parts}
    names = tuple(name for name, size in sizes.items() if size > 1)
    rows = [list(machines[n : n + sizes[MODEL]]) for n in range(0, len(machines), sizes[MODEL])]
    return Mesh(rows if len(names) == 2 else list(machines), names)


def _divisible(cuts: Cuts, inputs: Inputs, parts: int) -> Cuts:
    """The cuts of axes that so many parts divide."""
    return {n: axis for n, axis in cuts.items() if inputs.types[n].shape[axis] % parts == 0}


# --- data parallel ----------------------------------------------------------------------------


def batch_leaves(inputs: Inputs) -> list[tuple[int, ...]]:
    """The inputs that may be a batch: those of all arguments with one leading size, and of each."""
    by_size: dict[object, list[tuple[int, ...]]] = {}
    for argument in inputs.arguments:
        leaves = tuple(n for n in argument if inputs.types[n].ndim)
        sizes = {inputs.types[n].shape[0] for n in leaves}
        if len(sizes) == 1:
            by_size.setdefault(sizes.pop(), []).append(leaves)
    joint_batches = [tuple(n for leaves in group for n in leaves) for group in by_size.values()]
    alone = [leaves for group in by_size.values() if len(group) > 1 for leaves in group]
    return [*joint_batches, *alone]


# --- tensor parallel --------------------------------------------------------------------------


def _tensor_cuts(
    program: Program, inputs: Inputs, batch: Cuts, machines: Sequence[Device], record: Measurements
) -> Cuts:
    """Which axes of the inputs outside the batch are split, chosen on two devices."""
    if len(machines) < 2:
        return {}
    # On two devices alone: each guess partitions the program, for each axis of each group.
    best = Candidate(program, Mesh(list(machines[:2]), (MODEL,)), {}, {})
    for group in _alike([n for n in inputs.numbers if n not in batch], inputs):
        axes = range(inputs.types[group[0]].ndim)
        cuts = ({**best.model, **dict.fromkeys(group, axis)} for axis in axes)
        options = [replace(best, model=c) for c in cuts if len(_divisible(c, inputs, 2)) == len(c)]
        best = min((best, *options), key=lambda c: c.guess(record))
    return best.model


def _alike(numbers: Sequence[int], inputs: Inputs) -> list[list[int]]:
    """The inputs in groups, the largest first: those of one type at one place of each layer."""
    groups: dict[object, list[int]] = {}
    for n in numbers:
        groups.setdefault((re.sub(r"\[\d+\]", "[]", inputs.paths[n]), inputs.types[n]), []).append(n)
    # A chain of layers [(w, b), ...] of one shape wants its cuts to alternate.
    joint_groups = (group for group in groups.values() if _is_named(inputs.paths[group[0]]))
    alone = ([n] for group in groups.values() if not _is_named(inputs.paths[group[0]]) for n in group)
    return sorted([*joint_groups, *alone], key=lambda g: -len(g) * _bytes(inputs.types[g[0]]))


def _is_named(path: str) -> bool:
    """Whether a leaf has a name in its layer, as in `[0]['layers'][3]['up']`."""
    return path.endswith("']") or "." in path


# --- guesses ----------------------------------------------------------------------------------


def guessed_seconds(program: Program, speed: Speed) -> float:
    """An estimate of a device's time, as if nothing were fused."""
    return sum(_guessed(equation, speed) for equation in program.equations)


def _guessed(equation: Equation, speed: Speed) -> float:
    inner = sum(guessed_seconds(c.program, speed) * _times(equation, c.runs) for c in equation_calls(equation))
    if inner or equation.primitive.family == "movement":
        return inner
    memory = sum(_bytes(v.type) for v in equation.results) / speed.streams.rate
    if not isinstance(equation.primitive.lower, Contraction):
        return memory
    (contracted_axes, _), _ = equation.params["dimension_numbers"]
    operand = equation.operands[0].type
    operations = (
        2 * _elements(equation.results[0].type) * math.prod(int(operand.shape[axis]) for axis in contracted_axes)
    )
    return max(memory, speed.products.seconds(operations))


def _times(equation: Equation, runs: Runs) -> int:
    count = equation.params.get("count")
    return count if runs is Runs.LOOP and isinstance(count, int) else 1


def _elements(type: ArrayType) -> int:
    return math.prod(map(int, type.shape))


def _bytes(type: ArrayType) -> int:
    return _elements(type) * type.dtype.itemsize
