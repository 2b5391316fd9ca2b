"""A program on several CUDA devices, which one thread drives: they meet on their streams, by NCCL.

The thread enqueues the steps of one device up to its next collective, then those of another. When
the last of a group has come there, the calls of all its devices are given to NCCL as one group. So
no thread waits for another, devices that disagree are told so before anything is enqueued, and what
was enqueued is whole: every stream comes to an end by itself unless its device is lost (losses.py).
Nothing waits for a device but the number of a branch or the condition of a loop, and a collective
that NCCL cannot do, for which the operands come to the host.

Invariant: on any two devices collectives are enqueued in one order, as all of a run are before the
next run has the devices' turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from rune.backends.cuda.nccl import calls, library
from rune.backends.cuda.nccl.communicators import Clique, Communicators, communicators
from rune.backends.cuda.nccl.losses import Exchange, settle
from rune.backends.cuda.nccl.post import Post, enqueue
from rune.backends.cuda.run import CudaExecutable, Walker
from rune.backends.shared.callbacks import function_of, is_callback
from rune.backends.shared.executor import ConcreteStep, Place, concrete_type, static_shape, walk
from rune.backends.shared.protocol import Buffer, Executable
from rune.backends.shared.queued import Turn
from rune.core.types import ArrayType
from rune.errors import CollectiveError
from rune.lowering.host_calls import AsComplex
from rune.lowering.meetings import CollectiveCall, Grid, PlaceCall
from rune.lowering.plan import Call, Plan, all_steps
from rune.records import dataclass


def crew_for(executables: Sequence[Executable], grid: Grid) -> Crew | None:
    """The devices of a grid as one crew; None where they cannot meet through NCCL."""
    parts = [e for e in executables if isinstance(e, CudaExecutable) and e.meter is None]
    if len(parts) < len(executables) or not all(_only_meets(e.plan) for e in parts):
        return None
    nccl = library.find()
    return None if isinstance(nccl, str) else Crew(parts, grid, communicators(nccl))


def _only_meets(plan: Plan) -> bool:
    """Whether a plan calls no Python but for collectives."""
    return all(_meeting(step) is not None for step in all_steps(plan) if isinstance(step, Call))


def _meeting(step: Call) -> CollectiveCall | PlaceCall | None:
    """The collective or the question for a place that a step is, if it is one."""
    call = function_of(step).call if is_callback(step) else None
    call = call.call if isinstance(call, AsComplex) else call
    return call if isinstance(call, CollectiveCall | PlaceCall) else None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A device at a collective: its operands' types as the program says them, and where all is."""

    call: CollectiveCall
    operands: tuple[ArrayType, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]

    @property
    def types(self) -> str:
        """Those of the operands, as errors show them."""
        return ", ".join(f"{t.dtype}{list(t.shape)}" for t in self.operands)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A device in a run; `walker` and its `steps` are None where it walks by itself."""

    part: CudaExecutable
    turn: Turn
    walker: Walker | None
    steps: Iterator[ConcreteStep]


class Crew:
    """Executables, one for each device of a grid, that run together."""

    def __init__(self, parts: Sequence[CudaExecutable], grid: Grid, nccl: Communicators):
        self.parts, self.grid, self.nccl = parts, grid, nccl
        # As everywhere, so that two callers cannot wait for each other.
        self._order = sorted(range(len(parts)), key=lambda n: grid.devices[n])

    def __call__(self, blocks: Sequence[Sequence[Buffer]], donated: Sequence[int] = ()) -> list[list[Buffer]]:
        """The results of each device for its operands, enqueued; `donated` ones may be reused.

        Errors: CollectiveError if they do not agree, or NCCL fails; OutOfMemory.
        """
        turns = [part.turn(operands, donated) for part, operands in zip(self.parts, blocks, strict=True)]
        self._run(turns, self._order)
        return [[*turn.results] for turn in turns]

    def _run(self, turns: Sequence[Turn], order: Sequence[int]) -> None:
        """Run when it is the turn of these devices; it is that of the others."""
        if not order:
            return Run(self.grid, self.nccl, [*map(_member, self.parts, turns)]).go()
        with self.parts[order[0]].backend.turns.lock:
            turns[order[0]].begin()
            try:
                self._run(turns, order[1:])
            finally:
                turns[order[0]].end()


def _member(part: CudaExecutable, turn: Turn) -> Member:
    with part.backend.entered:
        walker = part.begin(turn.concrete, turn.memory)
    assert walker is None or isinstance(walker, Walker)
    return Member(part, turn, walker, iter(()) if walker is None else walk(turn.concrete.steps, walker))


class Run:
    """One run of a crew."""

    def __init__(self, grid: Grid, nccl: Communicators, members: Sequence[Member]):
        self.grid, self.nccl, self.members = grid, nccl, members
        self.waiting: dict[int, Arrival] = {}
        self.cliques: dict[Clique, None] = {}

    def go(self) -> None:
        """Enqueue the steps of all devices. Errors: CollectiveError; those of steps."""
        ready = deque(range(len(self.members)))
        try:
            while ready:
                number = ready.popleft()
                arrival = self._next(number)
                if arrival is not None:
                    ready.extend(self._attend(number, arrival))
        finally:
            if self.cliques:
                Exchange.watch([m.part.backend for m in self.members], [*self.cliques], self.nccl)
        if self.waiting:
            raise self._standstill()

    def _next(self, number: int) -> Arrival | None:
        """Enqueue the steps of a device up to its next collective; None at the end."""
        member = self.members[number]
        with member.part.backend.entered:
            for step in member.steps:
                assert member.walker is not None
                meeting = _meeting(step.step) if isinstance(step.step, Call) else None
                if isinstance(meeting, CollectiveCall):
                    return _arrival(meeting, step, member)
                if isinstance(meeting, PlaceCall):
                    member.walker.write(step.places[0], self.grid.place(number, meeting.axis_name))
                else:
                    member.walker.step(step)
        return None

    def _attend(self, number: int, arrival: Arrival) -> Sequence[int]:
        """A device has come; whoever may go on. Errors: CollectiveError if it does not fit in."""
        group = self.grid.group(number, arrival.call.axis_name)
        for other in group:
            if other in self.waiting and self.waiting[other].call.axis_name == arrival.call.axis_name:
                self._check_agreement(number, arrival, other, self.waiting[other])
        self.waiting[number] = arrival
        if any(n not in self.waiting or self.waiting[n].call != arrival.call for n in group):
            return ()
        arrivals = {n: self.waiting.pop(n) for n in group}
        if calls.is_known(arrival.call, arrival.operands):
            self._meet(group, arrivals)
        else:
            self._meet_on_host(group, arrivals)
        return group

    def _check_agreement(self, number: int, arrival: Arrival, other: int, theirs: Arrival) -> None:
        if arrival.call != theirs.call:
            raise self.grid.disagreement(number, arrival.call, other, theirs.call)
        if arrival.operands != theirs.operands:
            raise self.grid.mismatch(number, arrival.call, arrival.types, other, theirs.types)

    def _standstill(self) -> CollectiveError:
        """The error of devices that wait for others, which have ended or wait elsewhere."""
        present: dict[tuple[Hashable, int], list[int]] = {}
        for n, arrival in sorted(self.waiting.items()):
            axis = arrival.call.axis_name
            present.setdefault((axis, self.grid.group(n, axis)[0]), []).append(n)
        return self.grid.standstill(
            (self.waiting[here[0]].call, here, [n for n in self.grid.group(first, axis) if n not in here])
            for (axis, first), here in present.items()
        )

    # --- meetings

    def _meet(self, group: Sequence[int], arrivals: dict[int, Arrival]) -> None:
        """The devices of a group exchange values on their streams."""
        call = arrivals[group[0]].call
        posts: list[Post] = []
        try:
            for places in calls.groups(call, len(group)):
                clique = self.nccl.of([self.members[group[p]].part.backend.number for p in places])
                self.cliques[clique] = None
                for place, p in enumerate(places):
                    posts += self._posts(group[p], arrivals[group[p]], clique, place)
            enqueue(self.nccl.library, posts)
        except library.Refused as error:
            raise self._broken(call, error) from error

    def _posts(self, number: int, arrival: Arrival, clique: Clique, place: int) -> Iterator[Post]:
        """What a device does: one thing for each operand."""
        member, size = self.members[number], len(clique.devices)
        assert member.walker is not None
        for type, source, target in zip(arrival.operands, arrival.inputs, arrival.outputs, strict=True):
            part = calls.part(arrival.call, type, place, size)
            places = member.walker.at(source), member.walker.at(target)
            yield Post(member.part.backend, clique, place, part, *places, source.bytes, target.bytes)

    def _broken(self, call: CollectiveCall, error: library.Refused) -> CollectiveError:
        """The error of a meeting that NCCL refuses; no device of the run waits any longer."""
        for member in self.members:
            settle(member.part.backend)  # earlier runs are whole, and end by themselves
        for clique in self.cliques:
            self.nccl.abort(clique)
        self.cliques.clear()
        names = ", ".join(self.grid.devices)
        return CollectiveError(
            f"{call}: cannot go on between {names} ({error})", hint="NCCL_DEBUG=WARN in the environment tells more"
        )

    def _meet_on_host(self, group: Sequence[int], arrivals: dict[int, Arrival]) -> None:
        """The same by way of the host, which waits for the devices."""
        first = arrivals[group[0]]
        operands = [self._fetched(n, arrivals[n]) for n in group]
        for n, results in zip(group, first.call.among(operands, first.operands), strict=True):
            self._send(n, arrivals[n], results)

    def _fetched(self, number: int, arrival: Arrival) -> list[np.ndarray]:
        member = self.members[number]
        assert member.walker is not None
        with member.part.backend.entered:
            hosts = [member.walker.fetch(p) if p.bytes else np.empty(0, np.uint8) for p in arrival.inputs]
        return [h.view(t.dtype).reshape(static_shape(t)) for h, t in zip(hosts, arrival.operands, strict=True)]

    def _send(self, number: int, arrival: Arrival, results: Sequence[np.ndarray]) -> None:
        member = self.members[number]
        assert member.walker is not None
        with member.part.backend.entered:
            for place, result in zip(arrival.outputs, results, strict=True):
                if place.bytes:
                    member.walker.send(place, np.ascontiguousarray(result).reshape(-1).view(np.uint8))


def _arrival(call: CollectiveCall, step: ConcreteStep, member: Member) -> Arrival:
    """A device at the step of a collective."""
    assert isinstance(step.step, Call)
    function, sizes = function_of(step.step), member.turn.concrete.sizes
    inner = function.call
    # A token orders the calls of a program; its value is never read.
    operands = inner.operands if isinstance(inner, AsComplex) else function.operands
    tokens = int(function.has_token)
    count = len(step.step.inputs) - tokens
    outputs, inputs = step.places[: len(step.step.outputs) - tokens], step.places[len(step.step.outputs) :][:count]
    return Arrival(call, tuple(concrete_type(t, sizes) for t in operands[:count]), inputs, outputs)
