"""The data that the program of one device sends to others: its collectives, in program order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from rune.core.axes import Name, names_of
from rune.core.higher import Runs, equation_calls
from rune.core.memo import per_program
from rune.core.program import Equation, Program
from rune.core.types import ArrayType
from rune.dims import Size
from rune.errors import Frame
from rune.lowering.arena import type_bytes
from rune.lowering.decompose import LIBRARY, decompose
from rune.lowering.live import live
from rune.lowering.messages import is_collective, merge_all
from rune.records import dataclass
from rune.sharding import Mesh


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of one device, or several sent as one message.

    blocks: the types of its inputs
    steps:  the number of its runs; None in a loop whose length is known only at run time
    frame:  the user's line
    """

    kind: str
    axis: Name
    devices: int
    blocks: tuple[ArrayType, ...]
    steps: int | None
    frame: Frame | None

    @property
    def bytes_in(self) -> Size:
        """The bytes of the blocks."""
        total: Size = 0
        for block in self.blocks:
            total = total + type_bytes(block)
        return total

    @property
    def bytes_sent(self) -> Size:
        """The bytes that the device has to send in one step, by the best known algorithm.

        Source: R. Thakur, R. Rabenseifner and W. Gropp, "Optimization of Collective Communication
        Operations in MPICH", 2005: a sum is a scatter of sums, and a gather of them.
        """
        block, n = self.bytes_in, self.devices
        share = -(-block * (n - 1) // n)
        parts = {"psum": 2 * share, "pmax": 2 * share, "pmin": 2 * share, "psum_scatter": share, "all_to_all": share}
        return {**parts, "all_gather": block * (n - 1), "ppermute": block}[self.kind]

    def __str__(self) -> str:
        often = "" if self.steps == 1 else ", in a loop" if self.steps is None else f", {self.steps} times"
        line = f"  # {self.frame.short}" if self.frame else ""
        blocks = ", ".join(map(str, self.blocks))
        return f"{self.kind} of {blocks} over {self.axis!r}: {self.bytes_sent} B{often}{line}"


@per_program
def exchanges(program: Program, mesh: Mesh) -> tuple[Exchange, ...]:
    """The exchanges of a device that runs the program, including loops and all branches."""
    # Library routines need not be decomposed: no computation sends anything.
    return tuple(_exchanges(merge_all(decompose(live(program), frozenset({LIBRARY}))), mesh))


def _exchanges(program: Program, mesh: Mesh) -> Iterator[Exchange]:
    for equation in program.equations:
        if is_collective(equation):
            yield _of_equation(equation, mesh)
        for call in equation_calls(equation):
            inner = _exchanges(call.program, mesh)
            yield from _repeated(inner, equation) if call.runs is Runs.LOOP else inner


def _of_equation(equation: Equation, mesh: Mesh) -> Exchange:
    call, blocks = equation.params["call"], tuple(a.type for a in equation.operands)
    # Within groups a device exchanges with those of its group; the largest group takes longest.
    groups = dict(call.params).get("groups")
    devices = max(map(len, groups)) if groups else math.prod(mesh.shape[name] for name in names_of(call.axis_name))
    return Exchange(call.primitive.name, call.axis_name, devices, blocks, 1, equation.frame)


def _repeated(inner: Iterable[Exchange], loop: Equation) -> Iterator[Exchange]:
    """The exchanges of one step of a loop, for all its steps."""
    count = loop.params.get("count")
    for exchange in inner:
        # A loop within a loop: the numbers of steps multiply.
        if isinstance(count, int) and exchange.steps is not None:
            yield replace(exchange, steps=count * exchange.steps)
        else:
            yield replace(exchange, steps=None)
