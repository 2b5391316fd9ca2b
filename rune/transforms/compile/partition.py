"""Partition: a program that moves values, cut into segments on single devices, joined by copies.

    program f(%0: f32[3]) {                          partition f at home on cpu:0 {
      %1: f32[3] = sin %0                              cpu:0: %1 = f.0 %0  # equations: 1
      %2: f32[3] = to_device %1 {device="opencl:0"}    copy %1 from cpu:0 to opencl:0
      %3: f32[3] = exp %2                              opencl:0: %2 = f.1 %1  # equations: 1
      return %3                                        return %2 on opencl:0
    }                                                }

An equation runs where eager evaluation would run it (placement.py): on the device that its moved
operands are committed to, otherwise at home; free operands follow, by a copy listed in the
partition. Each segment is a program like any other, compiled only for its device.

Invariant: a value is copied to a device at most once. Side effects keep the order of the program.
Cost:      O(n log n) in the number of equations.
Not done:  a loop or branch runs on one device, so that moves inside to another one are refused.
"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rune.core.evaluate import eval_program, restaged
from rune.core.higher import called_once, calls, subprograms
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Atom, Equation, Program, Var, substitute
from rune.core.side_effects import effect_of
from rune.core.staging import Stage
from rune.core.values import Value
from rune.errors import DeviceError, Frame
from rune.records import dataclass
from rune.transforms.compile.transfer import devices_within, to_device


@dataclass(frozen=True, slots=True)
class Segment:
    """Equations that run on one device. Inputs and outputs are variables of the whole program."""

    device: str
    program: Program

    @property
    def results(self) -> tuple[Var, ...]:
        """The variables that it computes for others."""
        return tuple(a for a in self.program.outputs if isinstance(a, Var))


@dataclass(frozen=True, slots=True)
class Transfer:
    """A copy of a value from one device to another."""

    value: Var
    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Result:
    """An output, the device that it is on, and whether it is committed to being there."""

    atom: Atom
    device: str
    is_committed: bool


Copy = tuple[Var, str]  # a value on a device


@dataclass(frozen=True, slots=True)
class Partition:
    """Steps in order.

    inputs:     the inputs of the program, with the devices where they arrive.
    last_reads: for each step, the values that no later step reads.
    """

    name: str
    home: str
    inputs: tuple[Copy, ...]
    constants: tuple[tuple[Var, Value], ...]
    steps: tuple[Segment | Transfer, ...]
    last_reads: tuple[tuple[Copy, ...], ...]
    results: tuple[Result, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that compute, in order of their first step."""
        return tuple(dict.fromkeys(s.device for s in self.steps if isinstance(s, Segment)))

    def __str__(self) -> str:
        return "\n".join(_lines(self))


@per_program
def partition(program: Program, home: str, committed_devices: tuple[str | None, ...]) -> Partition:
    """The partition of a program for inputs that are committed to these devices; None: free.

    Errors: DeviceError for an equation whose operands are on different devices, and for a move
    inside a loop or branch.
    """
    flat = restaged(program, _Inline(home))
    return _Writer(flat, _Placement(flat, home, committed_devices)).partition()


# --- one flat program -------------------------------------------------------------------------


class _Inline(Stage):
    """Writes equations unchanged, except calls of programs with moves, which are inlined.

    A jitted function with its own device has its arguments and results moved there.
    """

    __slots__ = ("home",)

    def __init__(self, home: str):
        super().__init__(None)
        self.home = home

    def process(self, primitive: Primitive, args: Sequence[Value], params: Mapping[str, Any]) -> Any:
        """Write or inline."""
        inner_program, device = called_once(primitive, args, params), params.get("device")
        if device is not None and inner_program is not None:
            return self.on_device(eval_program(inner_program, self.on_device(args, device)), device)
        inner_programs = (c.program for c in calls(primitive, args, params))
        within = frozenset().union(*map(devices_within, inner_programs))
        if not within:
            return self.write(primitive, args, params)
        # A call such as a checkpoint has no code of its own, so its equations may be anywhere.
        if primitive.lower is None and inner_program is not None:
            return eval_program(inner_program, args)
        if within <= {self.home, None}:  # on the device where the loop runs, unless it follows its operands
            return self.write(primitive, args, params)
        raise _moved_inside(primitive)

    def on_device(self, values: Sequence[Value], device: str) -> list[Value]:
        """The values on a device, committed to it."""
        return [self.write(to_device, [value], {"device": device}) for value in values]


def _moved_inside(primitive: Primitive, frame: Frame | None = None) -> DeviceError:
    return DeviceError(
        f"device_put: cannot move a value inside {primitive} (it runs on one device)",
        hint="move it before or after",
        frame=frame,
    )


# --- where every value is ---------------------------------------------------------------------


class _Placement:
    """The devices of a flat program's values and equations."""

    def __init__(self, program: Program, home: str, committed_devices: Sequence[str | None]):
        self.home = home
        self.committed_devices: dict[Var, str | None] = dict.fromkeys(v for v, _ in program.constants)
        self.committed_devices.update(zip(program.inputs, committed_devices, strict=True))
        self.sources: dict[Var, Atom] = {}  # the result of a move, and what it moves
        self.devices = [self._place(e) for e in program.equations]  # None: a move

    def _place(self, equation: Equation) -> str | None:
        if equation.primitive is to_device:
            (operand,), (result,) = equation.operands, equation.results
            self.committed_devices[result] = equation.params["device"]
            self.sources[result] = self.origin(operand)
            return None
        device = self._common(equation)
        if any(self.home in devices_within(program) for program in subprograms(equation)):
            if device not in (None, self.home):
                raise _moved_inside(equation.primitive, equation.frame)
            device = self.home
        self.committed_devices.update(dict.fromkeys(equation.results, device))
        return device or self.home

    def _common(self, equation: Equation) -> str | None:
        """The device that the operands are committed to. Errors: DeviceError for several."""
        operand_on: dict[str, Var] = {}
        for atom in equation.operands:
            device = self.committed_devices[atom] if isinstance(atom, Var) else None
            if device is not None and isinstance(atom, Var):
                operand_on.setdefault(device, atom)
        if len(operand_on) > 1:
            operand_texts = ", ".join(f"{var.type} on {device}" for device, var in operand_on.items())
            raise DeviceError(
                f"{equation.primitive}: cannot combine arrays on different devices ({operand_texts})",
                hint="move one with rune.device_put",
                frame=equation.frame,
            )
        return next(iter(operand_on), None)

    def origin(self, atom: Atom) -> Atom:
        """The value itself, before it was moved."""
        return self.sources.get(atom, atom) if isinstance(atom, Var) else atom

    def device(self, atom: Atom) -> str:
        """The device on which a value ends up."""
        return (self.committed_devices[atom] if isinstance(atom, Var) else None) or self.home


# --- segments ---------------------------------------------------------------------------------


def _segments(program: Program, placement: _Placement) -> Iterator[tuple[str, list[Equation]]]:
    """The equations in groups, in an order that stays on one device as long as it can."""
    # Kahn's algorithm with a heap of ready equations per device. A group ends when the device has
    # no ready equation left; the next one starts with the earliest ready equation of the program.
    equations = program.equations
    needs = _needs(program, placement)
    users: defaultdict[int, list[int]] = defaultdict(list)
    for number, before in needs.items():
        for other in before:
            users[other].append(number)
    open_counts = {number: len(before) for number, before in needs.items()}
    ready: defaultdict[str, list[int]] = defaultdict(list)
    for number, count in open_counts.items():
        if not count:
            ready[placement.devices[number] or ""].append(number)  # in ascending order: a heap
    while any(ready.values()):
        device = min((d for d, heap in ready.items() if heap), key=lambda d: ready[d][0])
        group: list[Equation] = []
        while ready[device]:
            number = heapq.heappop(ready[device])
            group.append(equations[number])
            for user in users[number]:
                open_counts[user] -= 1
                if not open_counts[user]:
                    heapq.heappush(ready[placement.devices[user] or ""], user)
        yield device, group


def _needs(program: Program, placement: _Placement) -> dict[int, set[int]]:
    """For each equation that is not a move, those that come before it."""
    numbers: dict[Atom, int] = {}
    needs: dict[int, set[int]] = {}
    # The last equation with side effects: each waits for the one before it, so their order stays.
    effects: set[int] = set()
    for number, equation in enumerate(program.equations):
        if placement.devices[number] is None:
            continue
        origins = map(placement.origin, equation.operands)
        needs[number] = {numbers[a] for a in origins if a in numbers}
        numbers.update(dict.fromkeys(equation.results, number))
        if effect_of(equation) is not None:
            needs[number] |= effects
            effects = {number}
    return needs


class _Writer:
    """Writes the steps, with a copy wherever a value is not yet where it is read."""

    def __init__(self, program: Program, placement: _Placement):
        self.program, self.placement = program, placement
        self.steps: list[Segment | Transfer] = []
        pairs = zip(program.inputs, map(placement.device, program.inputs), strict=True)
        self.inputs = tuple(pairs)
        # The devices on which each value is so far; the first one computed it.
        self.at: dict[Var, list[str]] = {v: [device] for v, device in self.inputs}
        self.at.update({v: [placement.home] for v, _ in program.constants})

    def partition(self) -> Partition:
        """The partition of the program."""
        program, placement = self.program, self.placement
        groups = list(_segments(program, placement))
        readers = [self._read(group) for _, group in groups]
        outputs = {placement.origin(a) for a in program.outputs}
        # A segment returns only values that a later segment or the caller reads.
        reads = [set(r) for r in readers]
        for number, (device, group) in enumerate(groups):
            later = outputs.union(*reads[number + 1 :])
            self._segment(f"{program.name}.{number}", device, group, readers[number], later)
        results = tuple(map(self._result, program.outputs))
        steps, last_reads = tuple(self.steps), _spent(self.steps, results)
        constants = program.constants
        return Partition(program.name, placement.home, self.inputs, constants, steps, last_reads, results)

    def _read(self, group: Sequence[Equation]) -> list[Var]:
        """The values that a group takes from outside, in order of their first use."""
        results = {v for e in group for v in e.results}
        atoms = (self.placement.origin(a) for e in group for a in e.operands)
        return list(dict.fromkeys(a for a in atoms if isinstance(a, Var) and a not in results))

    def _segment(
        self, name: str, device: str, group: Sequence[Equation], inputs: Iterable[Var], later: set[Atom]
    ) -> None:
        for value in inputs:
            self._bring(value, device)
        results = tuple(v for e in group for v in e.results if v in later)
        self.at.update({v: [device] for v in results})
        body = Program(tuple(inputs), tuple(group), results, name=name)
        # Segments read the values themselves: copies between them take the place of the moves.
        self.steps.append(Segment(device, substitute(body, self.placement.sources, group)))

    def _bring(self, value: Var, device: str) -> None:
        places = self.at[value]
        if device not in places:
            self.steps.append(Transfer(value, places[0], device))
            places.append(device)

    def _result(self, atom: Atom) -> Result:
        device = self.placement.device(atom)
        is_committed = isinstance(atom, Var) and self.placement.committed_devices[atom] is not None
        origin = self.placement.origin(atom)
        if isinstance(origin, Var):
            self._bring(origin, device)
        return Result(origin, device, is_committed)


def _spent(steps: Sequence[Segment | Transfer], results: Iterable[Result]) -> tuple[tuple[Copy, ...], ...]:
    """The values that each step reads or makes, and no later step or caller reads."""
    last: dict[Copy, int] = {}
    for number, step in enumerate(steps):
        match step:
            case Transfer(value=value, source=source, target=target):
                last.update({(value, source): number, (value, target): number})
            case Segment(device=device, program=program):
                variables = (*program.inputs, *step.results)
                last.update({(v, device): number for v in variables})
    result_copies = {(r.atom, r.device) for r in results}
    last_reads: list[list[Copy]] = [[] for _ in steps]
    for copy, number in last.items():
        if copy not in result_copies:
            last_reads[number].append(copy)
    return tuple(map(tuple, last_reads))


# --- text -------------------------------------------------------------------------------------


def _lines(partition: Partition) -> Iterator[str]:
    # In the order of their first use, as programs number their variables.
    numbers: defaultdict[Var, int] = defaultdict(itertools.count().__next__)

    def names(atoms: Iterable[Atom]) -> str:
        texts = (f"%{numbers[a]}" if isinstance(a, Var) else str(a.value) for a in atoms)
        return ", ".join(texts)

    # Called only to number these first.
    names(v for v, _ in (*partition.inputs, *partition.constants))
    yield f"partition {partition.name} at home on {partition.home} {{"
    for step in partition.steps:
        match step:
            case Transfer(value=value, source=source, target=target):
                yield f"  copy {names([value])} from {source} to {target}"
            case Segment(device=device, program=program):
                inputs, outputs = names(program.inputs), names(program.outputs)
                count = len(program.equations)
                yield f"  {device}: {outputs} = {program.name} {inputs}  # equations: {count}"
    yield "  return " + ", ".join(f"{names([r.atom])} on {r.device}" for r in partition.results)
    yield "}"
