"""Trades: the messages between the processes of a group in a collective.

A process sends each other process what the devices there are to receive, and no more:

    all_gather                 every operand
    psum_scatter, all_to_all   of every operand the parts for the devices there
    ppermute                   the operands whose receivers are there
    psum, pmax, pmin           a share of every operand, which one process combines for all

Sums are taken in the tree of ops/among.py, so that the bits do not depend on how devices are
distributed. If the devices of each process are a subtree, only their sum is sent.
Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication
Operations in MPICH", 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rune import processes
from rune.errors import DistributedError
from rune.lowering.meetings import Arrays, CollectiveCall, axis_of
from rune.ops.among import in_tree
from rune.records import dataclass

SMALL_BYTES = 32 << 10  # up to here every process adds up everything: one message in place of two
Combine = Callable[[np.ndarray, np.ndarray], np.ndarray]
Operands = Mapping[int, Arrays]  # of places in a group
Parts = Callable[[np.ndarray, int, int], Arrays]  # (operand, its place, process) -> parts for it


@dataclass(frozen=True, slots=True)
class Group:
    """The devices of a group, and the topics of their processes' messages.

    call:    the collective, for errors
    homes:   the process of each place
    senders: the places that send; one of them may send for its whole process
    """

    call: str
    homes: tuple[int, ...]
    senders: tuple[int, ...]
    topic: str
    alarm: str

    @property
    def process(self) -> int:
        """This process."""
        return processes.current().index

    @property
    def processes(self) -> list[int]:
        """The processes that take part."""
        return sorted({*self.homes})

    def places(self, process: int) -> list[int]:
        """The places of a process."""
        return [place for place, home in enumerate(self.homes) if home == process]


def traded(call: CollectiveCall, group: Group, operands: Operands) -> dict[int, Arrays]:
    """The results of the places of this process, from their operands and those of other processes.

    Errors: DistributedError if a process fails, is silent, or comes to another call.
    """
    params = dict(call.params)
    match call.primitive.name:
        case "psum":
            return _combined(group, operands, np.add)
        case "pmax":
            return _combined(group, operands, np.maximum)
        case "pmin":
            return _combined(group, operands, np.minimum)
        case "all_gather":
            return _gathered(group, operands, axis_of(params, "axis"))
        case "psum_scatter":
            return _scattered(group, operands, axis_of(params, "scatter_axis"))
        case "all_to_all":
            return _exchanged(group, operands, axis_of(params, "split_axis"), axis_of(params, "concat_axis"))
        case _:
            return _permuted(group, operands, params["permutation"])


# --- messages -----------------------------------------------------------------------------------


def _trade(group: Group, operands: Operands, parts: Parts) -> dict[int, list[Arrays]]:
    """The parts of each sender's operands that are for this process.

    operands: of the senders in this process; those in others have operands of the same types
    """
    world, others = processes.current(), [p for p in group.processes if p != group.process]
    head, columns = _head(group.call, operands), next(iter(operands.values()))
    for process in others:
        arrays = [x for place, operand in operands.items() for c in operand for x in parts(c, place, process)]
        world.tell(group.topic, _packed(head, arrays), [process])
    arrivals = {place: [parts(c, place, group.process) for c in operand] for place, operand in operands.items()}
    for process, message in world.hear(group.call, group.topic, others, group.alarm).items():
        senders = [place for place in group.senders if group.homes[place] == process]
        # Types are the same everywhere, so this process's operands tell the lengths of all others.
        types = [[parts(c, place, group.process) for c in columns] for place in senders]
        arrivals.update(zip(senders, _unpacked(_body(group.call, process, message, head), types), strict=True))
    return arrivals


def _head(call: str, operands: Operands) -> bytes:
    """The text that processes compare before they read each other's arrays."""
    columns = next(iter(operands.values()))
    return f"{call} of {', '.join(f'{c.dtype}{list(c.shape)}' for c in columns)}".encode()


def _packed(head: bytes, arrays: Arrays) -> bytes:
    """A message: the length of the head, the head, and the bytes of the arrays."""
    return b"".join([len(head).to_bytes(4, "little"), head, *(x.tobytes() for x in arrays)])


def _body(call: str, process: int, message: processes.Message, head: bytes) -> memoryview:
    """The bytes of the arrays. Errors: DistributedError unless the head is that of this process."""
    view = memoryview(message)
    end = 4 + int.from_bytes(view[:4], "little")
    other_head = bytes(view[4:end])
    if other_head != head:
        raise DistributedError(
            f"{call}: cannot meet process {process} (it is in {other_head.decode()}, this one in {head.decode()})",
            hint="all devices run the same collectives in one order",
        )
    return view[end:]


def _unpacked(body: memoryview, types: Sequence[Sequence[Arrays]]) -> list[list[Arrays]]:
    """Arrays of these shapes and dtypes, in order, from the bytes of a message."""
    position = 0

    def array(like: np.ndarray) -> np.ndarray:
        nonlocal position
        start, position = position, position + like.nbytes
        return np.frombuffer(body[start:position], np.uint8).view(like.dtype).reshape(like.shape)

    return [[[array(like) for like in column] for column in sender] for sender in types]


# --- collectives --------------------------------------------------------------------------------


def _everything(x: np.ndarray, place: int, process: int) -> Arrays:
    return [x]


def _columns(operands: Operands) -> range:
    """The numbers of the operands that each place has."""
    return range(len(next(iter(operands.values()))))


def _gathered(group: Group, operands: Operands, axis: int) -> dict[int, Arrays]:
    """All operands along a new axis, for every place."""
    arrivals = _trade(group, operands, _everything)
    stacks = [np.stack([arrivals[s][c][0] for s in group.senders], axis) for c in _columns(operands)]
    return dict.fromkeys(group.places(group.process), stacks)


def _by_receivers(group: Group, axis: int) -> Parts:
    """The parts along an axis that belong to the places of a process."""
    return lambda x, place, process: [np.moveaxis(x, axis, 0)[n] for n in group.places(process)]


def _scattered(group: Group, operands: Operands, axis: int) -> dict[int, Arrays]:
    """For each place, the sum of the parts that belong to it."""
    group, partials = _with_partials(group, operands, np.add)
    arrivals = _trade(group, partials, _by_receivers(group, axis))
    return {
        place: [in_tree(np.add, [arrivals[s][c][n] for s in group.senders]) for c in _columns(operands)]
        for n, place in enumerate(group.places(group.process))
    }


def _exchanged(group: Group, operands: Operands, split_axis: int, concat_axis: int) -> dict[int, Arrays]:
    """For each place, the parts that belong to it, along a new axis."""
    arrivals = _trade(group, operands, _by_receivers(group, split_axis))
    return {
        place: [np.stack([arrivals[s][c][n] for s in group.senders], concat_axis) for c in _columns(operands)]
        for n, place in enumerate(group.places(group.process))
    }


def _permuted(group: Group, operands: Operands, permutation: Hashable) -> dict[int, Arrays]:
    """For each place, the operand that is sent to it; zeros if no place sends to it."""
    assert isinstance(permutation, tuple)
    receiver = dict(permutation)
    sender = {b: a for a, b in permutation}

    def parts(x: np.ndarray, place: int, process: int) -> Arrays:
        return [x] if place in receiver and group.homes[receiver[place]] == process else []

    arrivals = _trade(group, operands, parts)
    return {
        place: [
            np.array(arrivals[sender[place]][c][0]) if place in sender else np.zeros_like(x)
            for c, x in enumerate(columns)
        ]
        for place, columns in operands.items()
    }


# --- sums ---------------------------------------------------------------------------------------


def _combined(group: Group, operands: Operands, combine: Combine) -> dict[int, Arrays]:
    """The sum or extremum, for every place."""
    places = group.places(group.process)
    group, partials = _with_partials(group, operands, combine)
    is_small = sum(x.nbytes for x in next(iter(partials.values()))) <= SMALL_BYTES
    totals = _by_everyone(group, partials, combine) if is_small else _by_shares(group, partials, combine)
    return dict.fromkeys(places, totals)


def _with_partials(group: Group, operands: Operands, combine: Combine) -> tuple[Group, Operands]:
    """The same with one sender for each process, if the tree combines its devices first."""
    places = [group.places(process) for process in group.processes]
    size = len(places[0])
    are_subtrees = (
        all(p[0] % size == 0 and p == list(range(p[0], p[0] + size)) for p in places) and size & (size - 1) == 0
    )
    if not are_subtrees:
        return group, operands
    speakers = tuple(p[0] for p in places)
    partial = [in_tree(combine, list(column)) for column in zip(*operands.values(), strict=True)]
    return replace(group, senders=tuple(sorted(speakers))), {group.places(group.process)[0]: partial}


def _by_everyone(group: Group, operands: Operands, combine: Combine) -> Arrays:
    """The totals, which each process combines from all operands."""
    arrivals = _trade(group, operands, _everything)
    return [in_tree(combine, [arrivals[s][c][0] for s in group.senders]) for c in _columns(operands)]


def _by_shares(group: Group, operands: Operands, combine: Combine) -> Arrays:
    """The totals: each process combines a share of them and sends it to the others."""
    arrivals = _trade(group, operands, lambda x, place, process: [_share(group, x, process)])
    totals = [np.empty(x.shape, x.dtype) for x in next(iter(operands.values()))]
    for c, total in enumerate(totals):
        _share(group, total, group.process)[...] = in_tree(combine, [arrivals[s][c][0] for s in group.senders])
    speakers = replace(group, senders=tuple(group.places(process)[0] for process in group.processes))
    shares = _trade(
        speakers, {group.places(group.process)[0]: totals}, lambda x, place, _: [_share(group, x, group.homes[place])]
    )
    for place, columns in shares.items():
        for total, (share,) in zip(totals, columns, strict=True):
            _share(group, total, group.homes[place])[...] = share
    return totals


def _share(group: Group, x: np.ndarray, process: int) -> np.ndarray:
    """The part of an array that a process combines: a view."""
    count, number = len(group.processes), group.processes.index(process)
    return x.reshape(-1)[x.size * number // count : x.size * (number + 1) // count]
