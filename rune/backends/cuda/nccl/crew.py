"""One program on several CUDA devices, driven by one thread: they exchange values through NCCL.

The thread enqueues the steps of one device up to its next collective, then those of another. When
the last device of a group has arrived, the calls of all its devices go to NCCL as one group. So no
thread waits for another, disagreements are found before a collective is enqueued, and a collective
is enqueued on all of its devices or on none: every stream ends by itself, unless a device is lost
(losses.py). The host waits for a device only to read the index of a branch or the condition of a
loop, and for collectives that NCCL does not support, whose operands are copied to the host.

Invariant: any two devices get their collectives in the same order, because a run enqueues all of
its own before the next run gets the devices' turns.
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
from rune.backends.shared.queued import Turn, bytes_of
from rune.core.types import ArrayType
from rune.errors import CollectiveError
from rune.lowering.host_calls import AsComplex
from rune.lowering.meetings import CollectiveCall, Grid, PlaceCall
from rune.lowering.plan import Call, Plan, all_steps
from rune.records import dataclass


def crew_for(executables: Sequence[Executable], grid: Grid) -> Crew | None:
    """The devices of a grid as one crew; None where NCCL cannot connect them."""
    parts = [e for e in executables if isinstance(e, CudaExecutable) and e.meter is None]
    if len(parts) < len(executables) or not all(_only_meets(e.plan) for e in parts):
        return None
    nccl = library.find()
    return None if isinstance(nccl, str) else Crew(parts, grid, communicators(nccl))


def _only_meets(plan: Plan) -> bool:
    """Whether all calls of a plan are collectives: it calls no user's Python."""
    return all(_meeting(step) is not None for step in all_steps(plan) if isinstance(step, Call))


def _meeting(step: Call) -> CollectiveCall | PlaceCall | None:
    """The collective, or the query for the device's place, that a step makes; else None."""
    call = function_of(step).call if is_callback(step) else None
    call = call.call if isinstance(call, AsComplex) else call
    return call if isinstance(call, CollectiveCall | PlaceCall) else None


@dataclass(frozen=True, slots=True)
class Arrival:
    """A device's arrival at a collective: the operands' types in the program, and their places."""

    call: CollectiveCall
    operands: tuple[ArrayType, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]

    @property
    def types(self) -> str:
        """The operands' types, as text for errors."""
        return ", ".join(f"{t.dtype}{list(t.shape)}" for t in self.operands)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A device in a run. `walker` is None, and `steps` is empty, where a graph runs all steps."""

    part: CudaExecutable
    turn: Turn
    walker: Walker | None
    steps: Iterator[ConcreteStep]


class Crew:
    """Executables, one for each device of a grid, that run together."""

    def __init__(self, parts: Sequence[CudaExecutable], grid: Grid, nccl: Communicators):
        self.parts, self.grid, self.nccl = parts, grid, nccl
        # All callers take the devices' locks in this one order, so that none can deadlock.
        self._order = sorted(range(len(parts)), key=lambda n: grid.devices[n])

    def __call__(self, blocks: Sequence[Sequence[Buffer]], donated: Sequence[int] = ()) -> list[list[Buffer]]:
        """Enqueue the run, and return each device's results; `donated` operands may be reused.

        Errors: CollectiveError if the devices disagree or NCCL fails; OutOfMemory.
        """
        turns = [part.turn(operands, donated) for part, operands in zip(self.parts, blocks, strict=True)]
        self._run(turns, self._order)
        return [[*turn.results] for turn in turns]

    def _run(self, turns: Sequence[Turn], order: Sequence[int]) -> None:
        """Take the turns of the devices in `order`, one within the other, then run."""
        if not order:
            return Run(self.grid, self.nccl, [*map(_member, self.parts, turns)]).go()
        # One within the other: whatever fails, each turn that was begun is ended.
        with self.parts[order[0]].backend.turns.lock:
            turns[order[0]].begin()
            try:
                self._run(turns, order[1:])
            finally:
                turns[order[0]].end()


def _member(part: CudaExecutable, turn: Turn) -> Member:
    with part.backend.in_context:
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
            # After an error too: what is enqueued may wait for a device that is lost.
            if self.cliques:
                Exchange.watch([m.part.backend for m in self.members], [*self.cliques], self.nccl)
        if self.waiting:
            raise self._standstill()

    def _next(self, number: int) -> Arrival | None:
        """Enqueue the steps of a device up to its next collective; None at the end."""
        member = self.members[number]
        with member.part.backend.in_context:
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
        """Note an arrival; return the devices that can continue. Errors: CollectiveError."""
        group = self.grid.group(number, arrival.call.axis_name)
        # Checked at each arrival, so that the error names the first two devices that disagree.
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

    def _check_agreement(self, number: int, arrival: Arrival, other: int, other_arrival: Arrival) -> None:
        if arrival.call != other_arrival.call:
            raise self.grid.disagreement(number, arrival.call, other, other_arrival.call)
        if arrival.operands != other_arrival.operands:
            raise self.grid.mismatch(number, arrival.call, arrival.types, other, other_arrival.types)

    def _standstill(self) -> CollectiveError:
        """The error for devices that wait for others that have ended or wait elsewhere."""
        present: dict[tuple[Hashable, int], list[int]] = {}
        for n, arrival in sorted(self.waiting.items()):
            axis = arrival.call.axis_name
            present.setdefault((axis, self.grid.group(n, axis)[0]), []).append(n)
        return self.grid.standstill(
            (self.waiting[members[0]].call, members, [n for n in self.grid.group(first, axis) if n not in members])
            for (axis, first), members in present.items()
        )

    # --- meetings

    def _meet(self, group: Sequence[int], arrivals: dict[int, Arrival]) -> None:
        """The devices of a group exchange values on their streams."""
        call = arrivals[group[0]].call
        posts: list[Post] = []
        try:
            for places in calls.groups(call, len(group)):
                clique = self.nccl.of([self.members[group[p]].part.backend.number for p in places])
                # Before its calls: if one is refused, those before it have to be aborted.
                self.cliques[clique] = None
                for place, p in enumerate(places):
                    posts += self._posts(group[p], arrivals[group[p]], clique, place)
            enqueue(self.nccl.library, posts)
        except library.Refused as error:
            raise self._broken(call, error) from error

    def _posts(self, number: int, arrival: Arrival, clique: Clique, place: int) -> Iterator[Post]:
        """A device's posts, one for each operand."""
        member, size = self.members[number], len(clique.devices)
        assert member.walker is not None
        for type, source, target in zip(arrival.operands, arrival.inputs, arrival.outputs, strict=True):
            part = calls.part(arrival.call, type, place, size)
            places = member.walker.at(source), member.walker.at(target)
            yield Post(member.part.backend, clique, place, part, *places, source.bytes, target.bytes)

    def _broken(self, call: CollectiveCall, error: library.Refused) -> CollectiveError:
        """The error for a collective that NCCL refuses. Aborts those that the run has enqueued."""
        for member in self.members:
            # Earlier runs end by themselves, and must not be aborted.
            settle(member.part.backend)
        for clique in self.cliques:
            self.nccl.abort(clique)
        self.cliques.clear()
        names = ", ".join(self.grid.devices)
        return CollectiveError(
            f"{call}: cannot go on between {names} ({error})", hint="NCCL_DEBUG=WARN in the environment tells more"
        )

    def _meet_on_host(self, group: Sequence[int], arrivals: dict[int, Arrival]) -> None:
        """The devices of a group exchange values through the host, which waits for them."""
        first = arrivals[group[0]]
        operands = [self._fetched(n, arrivals[n]) for n in group]
        for n, results in zip(group, first.call.among(operands, first.operands), strict=True):
            self._send(n, arrivals[n], results)

    def _fetched(self, number: int, arrival: Arrival) -> list[np.ndarray]:
        member = self.members[number]
        assert member.walker is not None
        with member.part.backend.in_context:
            hosts = [member.walker.fetch(p) if p.bytes else np.empty(0, np.uint8) for p in arrival.inputs]
        return [h.view(t.dtype).reshape(static_shape(t)) for h, t in zip(hosts, arrival.operands, strict=True)]

    def _send(self, number: int, arrival: Arrival, results: Sequence[np.ndarray]) -> None:
        member = self.members[number]
        assert member.walker is not None
        with member.part.backend.in_context:
            for place, result in zip(arrival.outputs, results, strict=True):
                if place.bytes:
                    member.walker.send(place, bytes_of(result))


def _arrival(call: CollectiveCall, step: ConcreteStep, member: Member) -> Arrival:
    """The arrival of a device at the step of a collective."""
    assert isinstance(step.step, Call)
    function, sizes = function_of(step.step), member.turn.concrete.sizes
    inner = function.call
    # A token orders the calls of a program; its value is never read.
    operands = inner.operands if isinstance(inner, AsComplex) else function.operands
    tokens = int(function.has_token)
    count = len(step.step.inputs) - tokens
    outputs, inputs = step.places[: len(step.step.outputs) - tokens], step.places[len(step.step.outputs) :][:count]
    return Arrival(call, tuple(concrete_type(t, sizes) for t in operands[:count]), inputs, outputs)
