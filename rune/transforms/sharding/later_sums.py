"""Later sums: a total over the steps of a loop is summed over the devices once, after the loop.

Before   a step:  sum' = sum + transpose(psum(x))          the gradient of an unsplit weight
After    a step:  sum' = sum + transpose(x);  after the loop  sum = start + psum(last sum)

So each device adds up its part, from zeros, and the first value is added once. This is done for a
carry that nothing else reads, and to which only sums over devices are added.

Invariant: the same sums, in another order.
Cost:      linear in the number of equations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from rune.core.lower import Reduction, View
from rune.core.program import Atom, Definitions, Equation, Program, Var
from rune.core.values import Value
from rune.ops.arithmetic import add
from rune.ops.collectives import psum
from rune.records import dataclass
from rune.transforms.programs.call_rules import Params


@dataclass(frozen=True, slots=True)
class LaterSums:
    """The body of a loop, and for each carry the sums taken after it, in order."""

    body: Program
    sums: tuple[tuple[Params, ...], ...]

    def totals(self, first: Sequence[Value], last: Sequence[Value]) -> list[Value]:
        """The carries after the loop, given their first values."""
        carries = []
        for start, total, sums in zip(first, last, self.sums, strict=True):
            for params in sums:
                total = psum(total, **params)
            carries.append(add(start, total) if sums else total)
        return carries


def later_sums(body: Program, carries: Sequence[Var], is_free: Sequence[bool]) -> LaterSums:
    """The body, which adds to carries, its first results, without sums over devices.

    is_free: which carries the condition of the loop does not read.
    """
    writer = _Writer.of(body)
    outputs, sums = list(body.outputs), []
    for number, (carry, free) in enumerate(zip(carries, is_free, strict=True)):
        summands = writer.summands(carry, body.outputs[number]) if free else None
        if summands is not None:
            # The body adds each device's part instead; the old sums are then unused, and dropped.
            outputs[number] = writer.added(carry, summands)
        sums.append(summands[0].sums if summands else ())
    return LaterSums(body.with_equations((*body.equations, *writer.additions), outputs), tuple(sums))


@dataclass(frozen=True, slots=True)
class _Summand:
    """A sum over devices, and the linear operations on it, the last first."""

    part: Atom
    sums: tuple[Params, ...]
    operations: tuple[Equation, ...]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Finds sums in a body, and appends equations that add each device's part instead."""

    definitions: Definitions
    readers: Counter[Atom]
    additions: list[Equation]

    @staticmethod
    def of(body: Program) -> _Writer:
        """The writer for a body."""
        atoms = [a for e in body.equations for a in e.operands]
        return _Writer(body.definitions, Counter([*atoms, *body.outputs]), [])

    def summands(self, carry: Var, outcome: Atom) -> list[_Summand] | None:
        """The summands of a carry; None unless all are sums over the same devices."""
        summands, pending, occurrences = [], [outcome], 0
        while pending:
            atom = pending.pop()
            # Another reader would see the part of one device in place of the sum.
            if self.readers[atom] != 1:
                return None
            if atom is carry:
                # Sums of sums are taken apart; an add that broadcasts is not one of them.
                occurrences += 1
                continue
            equation = self.definitions.get(atom)
            if (
                equation is not None
                and equation.primitive is add
                and equation.operands[0].type == equation.operands[1].type
            ):
                pending += equation.operands
            else:
                summands.append(self._summand(atom))
        # By their text: parameters are dicts, which have no hash.
        kinds = {repr(s and s.sums) for s in summands}
        return None if occurrences != 1 or None in summands or len(kinds) != 1 else summands  # type: ignore[return-value]

    def _summand(self, atom: Atom) -> _Summand | None:
        operations: list[Equation] = []
        sums: list[Params] = []
        # From the summand back to the operand of its sums. A linear operation may be exchanged with
        # them.
        while self.readers[atom] == 1 and (equation := self.definitions.get(atom)) is not None:
            if equation.primitive is psum:
                sums.insert(0, equation.params)
            elif not sums and len(equation.operands) == 1 and _is_linear(equation):
                operations.append(equation)
            else:
                break
            (atom,) = equation.operands
        return _Summand(atom, tuple(sums), tuple(operations)) if sums else None

    def added(self, carry: Var, summands: Sequence[_Summand]) -> Atom:
        """The carry with the parts of this device added to it."""
        total: Atom = carry
        for summand in summands:
            atom = summand.part
            for operation in reversed(summand.operations):
                atom = self._write(replace(operation, operands=(atom,)))
            total = self._write(Equation(add, (total, atom), {}, (carry,)))
        return total

    def _write(self, equation: Equation) -> Var:
        """Write an equation for a new variable like its result."""
        result = Var(equation.results[0].type)
        self.additions.append(replace(equation, results=(result,)))
        return result


def _is_linear(equation: Equation) -> bool:
    """Whether the equation moves its operand, or adds up elements: then a psum may follow it."""
    match equation.primitive.lower:
        case View() | Reduction(combine="add"):
            return True
    return False
