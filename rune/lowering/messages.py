"""Messages: combine collectives of one kind that are ready at about the same time.

Before   %2 = host_call %0 {psum over 'd'};  %3 = tanh %1;  %4 = host_call %3 {psum over 'd'}
After    %3 = tanh %1;  %2, %4 = host_call %0, %3 {psum over 'd'}

The devices then meet once, each with several operands, which stay where they are in memory. Two
collectives share a message only if equally many others lead to both, so neither can need the result
of the other, nor can two messages. The message takes the place of the last of its collectives.
Large collectives stay alone, since their operands would have to be kept until then.

Invariant: no equation moves past a call of Python, or a loop or branch with calls in it.
Cost:      n log n in the number of equations.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from rune.core.program import Atom, Equation, Program, Var
from rune.core.side_effects import effect_of
from rune.dims import product
from rune.lowering.host_calls import host_call
from rune.lowering.meetings import CollectiveCall
from rune.lowering.passes import Pass, nested

MOST_BYTES = 1 << 20  # of a collective in a message: moving that much takes as long as a meeting


def merge(program: Program) -> Program:
    """The program with messages in place of small collectives."""
    messages = [m for m in _messages(program.equations) if len(m) > 1]
    if not messages:
        return program
    last = {member: members[-1] for members in messages for member in members}
    last_members = {members[-1]: _message(members) for members in messages}
    # The message replaces the last of its collectives, and the others disappear.
    equations = [last_members.get(e, e) for e in program.equations if last.get(e, e) is e]
    return program.with_equations(_in_order(equations), program.outputs)


def _messages(equations: Sequence[Equation]) -> list[list[Equation]]:
    """The collectives of each message."""
    messages: dict[Hashable, list[Equation]] = {}
    depths: dict[Atom, int] = {}  # for a variable, how many collectives lead to it, one after another
    barriers = 0
    for equation in equations:
        depth = max((depths.get(a, 0) for a in equation.operands), default=0)
        if is_collective(equation):
            if _is_small(equation):
                key = barriers, depth, equation.params["call"]
                messages.setdefault(key, []).append(equation)
            depth += 1
        elif effect_of(equation) is not None:
            barriers += 1
        if depth:
            depths.update(dict.fromkeys(equation.results, depth))
    return list(messages.values())


def is_collective(equation: Equation) -> bool:
    """Whether an equation is a collective, for which the devices of a group meet."""
    return equation.primitive is host_call and isinstance(equation.params["call"], CollectiveCall)


def _is_small(equation: Equation) -> bool:
    nbytes = [product(a.type.shape) * a.type.dtype.itemsize for a in equation.operands]
    return all(isinstance(n, int) and n <= MOST_BYTES for n in nbytes)


def _message(members: Sequence[Equation]) -> Equation:
    """One call with the operands and results of all members."""
    operands = tuple(a for e in members for a in e.operands)
    results = tuple(v for e in members for v in e.results)
    params = {**members[-1].params, "results": tuple(v.type for v in results)}
    return replace(members[-1], operands=operands, results=results, params=params)


def _in_order(equations: Sequence[Equation]) -> Iterator[Equation]:
    """The equations, each after those whose results it reads, and otherwise in their order."""
    numbers = {v: number for number, e in enumerate(equations) for v in e.results}
    needs = [{numbers[a] for a in _variables(e) if a in numbers} for e in equations]
    readers: list[list[int]] = [[] for _ in equations]
    for number, sources in enumerate(needs):
        for source in sources:
            readers[source].append(number)
    missing = [len(n) for n in needs]
    ready = [number for number, count in enumerate(missing) if count == 0]
    while ready:
        number = heapq.heappop(ready)
        yield equations[number]
        for reader in readers[number]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)


def _variables(equation: Equation) -> Iterator[Var]:
    return (a for a in equation.operands if isinstance(a, Var))


PASS = nested(Pass("merge-messages", "collectives of one kind that are ready together are one message", merge))
merge_all = PASS.run  # in the programs of loops and branches as well
