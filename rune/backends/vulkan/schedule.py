"""From a concrete plan to what command buffers hold.

    launch @f                            f
    loop 1000 times { launch @g }   ->   copy: 0 to the counter
    copy                                 7 times { (g, advance) x 128 }, (g, advance) x 104
                                         copy

A loop with a known number of steps counts them on the device; some steps stand in one command
buffer, which is submitted again and again. The branches of a choice all stand there, each behind
a gate that is open for one of them, so that nobody waits for the number. Steps of a `while` stand
behind a gate too: the host looks whether to go on only after some, and those too many do nothing.

Only what is long, or calls Python, is left to the host: it reads numbers where a kernel has
copied them, in the table's header.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rune import dims
from rune.backends.shared.executor import Concrete, ConcreteBranch, ConcreteLoop, ConcreteStep, Place, Steps
from rune.backends.shared.parts import parts
from rune.backends.vulkan.items import (
    ARENA,
    GIVEN,
    TABLE,
    Callback,
    Choice,
    Items,
    Repeat,
    Run,
    Where,
    While,
    is_recordable,
    replace_runs,
    runs_of,
)
from rune.lowering.codegen.spirv.render import SpirvKernel
from rune.lowering.kernel.nodes import Access
from rune.lowering.kernel.work import most_work
from rune.lowering.plan import Call, Copy, Launch, Plan, Space
from rune.records import dataclass

UNROLLED = 256  # launches in the command buffer of a loop's steps
GATED = 256  # launches behind one gate; of more, the host decides
BATCHES = (1, 4, 16)  # steps between two looks, in turns; the last one again and again


@dataclass(frozen=True, slots=True)
class Schedule:
    """All work of a plan for one choice of sizes, and what stands at the head of its table."""

    items: Items
    header: tuple[int, ...]  # i64 words


def schedule(
    plan: Plan, concrete: Concrete, kernels: Mapping[str, SpirvKernel], submitted_work: int | None = None
) -> Schedule:
    """The work of a plan; `kernels` are the plan's and rune's own, by name.

    submitted_work: of one launch at most; longer ones are made of several
    """
    scheduler = _Scheduler(len(plan.arguments), concrete, kernels, submitted_work)
    items = scheduler.items(concrete.steps)
    return Schedule(items, tuple(scheduler.header))


class _Scheduler:
    """Makes items of steps, and lays the header out."""

    def __init__(
        self, arguments: int, concrete: Concrete, kernels: Mapping[str, SpirvKernel], submitted_work: int | None
    ):
        self.arguments, self.sizes, self.kernels = arguments, concrete.sizes, kernels
        self.submitted_work = submitted_work
        self.header: list[int] = []
        self.zero = self.put([0])
        self.around = self.put([1])  # of the gate around what is made now: whether it is open

    # --- the header --------------------------------------------------------------------------

    def put(self, numbers: Sequence[int]) -> Where:
        """Some u32 in the header."""
        at, padded = 8 * len(self.header), [*numbers, 0]
        pairs = zip(padded[::2], padded[1::2])
        self.header += [low | high << 32 for low, high in pairs]
        return Where(TABLE, at, 4 * len(numbers))

    def word(self) -> int:
        """A word for a number that the host reads."""
        return self.put([0]).offset // 8

    # --- steps -------------------------------------------------------------------------------

    def items(self, steps: Steps) -> Items:
        """The work of some steps."""
        return tuple(item for step in steps for item in self.item(step))

    def item(self, step: ConcreteStep | ConcreteLoop | ConcreteBranch) -> Items:
        """The work of one step."""
        match step:
            case ConcreteLoop(holds=None):
                return self.counted(step)
            case ConcreteLoop(holds=Place() as holds):
                return self.open_ended(step, self.where(holds))
            case ConcreteBranch():
                return self.choice(step)
            case ConcreteStep(step=Launch(kernel=name), places=places):
                return self.run(name, map(self.where, places))
            case ConcreteStep(step=Copy(), places=(target, source)):
                return self.copy(self.where(target), self.where(source))
            case ConcreteStep(step=Call() as call, places=places):
                return (Callback(call, places),)
            case _:
                raise AssertionError(step)

    def where(self, place: Place) -> Where:
        """The place as the table has it."""
        base = {
            Space.ARENA: ARENA,
            Space.ARGUMENT: GIVEN + place.number,
            Space.RESULT: GIVEN + self.arguments + place.number,
        }[place.space]
        return Where(base, place.offset, place.bytes)

    def run(self, name: str, places: Iterable[Where], *sizes: int) -> Items:
        """A launch, in parts if it is long; none where it has no points."""
        kernel = self.kernels[name]
        values = dict(zip(kernel.sizes, sizes)) if sizes else self.sizes
        row, limit = kernel.launch_groups, self.submitted_work
        count = dims.evaluate(kernel.count, values)
        launches = parts(count, most_work(kernel.work, values) if count else 0, limit, row)
        written = tuple(p.access is not Access.READ for p in kernel.params)
        kernel_sizes = tuple(values[size] for size in kernel.sizes)
        operands = name, tuple(places), written, kernel_sizes
        return tuple(Run(*operands, (*p.folded(row), 1), None, p.first, p.work) for p in launches)

    def copy(self, target: Where, source: Where) -> Items:
        """A copy of bytes, four at a time where they lie so."""
        nbytes = target.bytes
        if not nbytes:
            return ()
        width = 1 if (nbytes | target.offset | source.offset) % 4 else 4
        return self.run(f"%copy{width}", (source, target), nbytes // width)

    # --- loops -------------------------------------------------------------------------------

    def counted(self, loop: ConcreteLoop) -> Items:
        """A loop with a known number of steps."""
        count, turns = loop.count or 0, len(loop.bodies)
        if not count:
            return ()
        steps = [(*self.items(body), *self.advance(loop)) for body in loop.bodies]
        once = tuple(item for step in steps for item in step)
        length = max(1, UNROLLED // _length(once)) if all(map(is_recordable, once)) else 1
        times, remainder = divmod(count, turns * length)
        last_rounds = tuple(item for k in range(remainder) for item in steps[k % turns])
        repeated = (Repeat(once * length, times),) if times else ()
        settle = self.items(loop.settle) if count % turns else ()
        return (*self.start(loop), *repeated, *last_rounds, *settle)

    def start(self, loop: ConcreteLoop) -> Items:
        """Write 0 to the counter."""
        return self.copy(self.where(loop.counter), self.zero)

    def advance(self, loop: ConcreteLoop) -> Items:
        """Add 1 to the counter."""
        return self.run("%advance", (self.where(loop.counter),))

    def open_ended(self, loop: ConcreteLoop, holds: Where) -> Items:
        """A loop that goes on as long as its condition holds."""
        held, counted = self.word(), self.word()
        counter = self.where(loop.counter)
        shown = (*self.shown(holds, held), *self.shown(counter, counted))
        first = (*self.start(loop), *self.items(loop.conditions[0]), *shown)
        settle = self.items(loop.settle)
        if sum(_weight(s) + 1 for s in (*loop.conditions, *loop.bodies)) > GATED:
            batches = tuple((*step, *shown) for step in self.steps(loop))
            return (While(first, batches, 0, settle, held, counted),)
        is_open = self.put([0])
        with self.within(is_open):
            steps = self.steps(loop)
        items = tuple(item for step in steps for item in step)
        gate = self.gate("%hold", (holds,), items, is_open)
        turn = tuple(x for step in steps for x in (*gate.open, *replace_runs(step, gate.gated)))
        growing = tuple((Repeat(turn, count), *shown) for count in BATCHES)
        return (While(first, growing, len(growing) - 1, settle, held, counted),)

    def steps(self, loop: ConcreteLoop) -> list[Items]:
        """The step of each turn, and the condition of the next."""
        looks = [self.items(c) for c in loop.conditions]
        return [
            (*self.items(body), *self.advance(loop), *looks[(k + 1) % len(looks)]) for k, body in enumerate(loop.bodies)
        ]

    def shown(self, place: Where, word: int) -> Items:
        """Copy a number to where the host reads it."""
        return self.copy(Where(TABLE, 8 * word, place.bytes), place)

    @contextmanager
    def within(self, is_open: Where) -> Iterator[None]:
        """Items made inside the block stand behind a gate."""
        around, self.around = self.around, is_open
        yield
        self.around = around

    # --- branches ----------------------------------------------------------------------------

    def choice(self, branch: ConcreteBranch) -> Items:
        """A branch."""
        if len(branch.branches) == 1:
            return self.items(branch.branches[0])
        number = self.where(branch.number)
        if sum(map(_weight, branch.branches)) <= GATED:
            return self.gated_choice(number, branch.branches)
        word = self.word()
        return (Choice(self.shown(number, word), word, tuple(map(self.items, branch.branches))),)

    def gated_choice(self, number: Where, branches: Sequence[Steps]) -> Items:
        """All branches, each behind a gate."""
        last = self.put([len(branches) - 1])
        gates: list[Gate] = []
        inner: list[Items] = []
        for wanted, steps in enumerate(branches):
            is_open = self.put([0])
            with self.within(is_open):
                inner.append(self.items(steps))
            operands = (number, self.put([wanted]), last)
            gates.append(self.gate("%choose", operands, inner[-1], is_open))
        opened = [item for gate in gates for item in gate.open]
        done = [replace_runs(items, gate.gated) for gate, items in zip(gates, inner)]
        return (*opened, *(item for items in done for item in items))

    def gate(self, kernel: str, operands: tuple[Where, ...], items: Items, is_open: Where) -> Gate:
        """A gate before some items; gates within ask `is_open`, which it writes for them."""
        runs = list(dict.fromkeys(r for r in runs_of(items) if r.gate is None and not _opens(r)))
        gated: dict[Run, Run] = {}
        opened: Items = ()
        if runs:
            full = self.put([n for run in runs for n in run.groups])
            live = self.put([0] * (3 * len(runs)))
            opened = self.run(kernel, (*operands, self.around, full, live), 3 * len(runs))
            gated = {r: replace(r, gate=live.offset + 12 * k) for k, r in enumerate(runs)}
        if any(map(_opens, runs_of(items))):
            one = self.put([1])
            opened += self.run(kernel, (*operands, self.around, one, is_open), 1)
        return Gate(opened, gated)


@dataclass(frozen=True, slots=True)
class Gate:
    """Launches that open or close it, and what the launches behind it become."""

    open: Items
    gated: Mapping[Run, Run]


def _opens(run: Run) -> bool:
    """Whether it is a gate's own launch. It always runs: a closed gate must close those within."""
    return run.kernel in ("%choose", "%hold")


def _length(items: Items) -> int:
    return sum(_length(i.items) if isinstance(i, Repeat) else 1 for i in items)


def _weight(steps: Steps) -> float:
    """How many launches some steps are; infinite where the host has a part in them."""
    total = 0.0
    for step in steps:
        match step:
            case ConcreteLoop(holds=None, count=count, bodies=bodies, settle=settle):
                one = sum(map(_weight, bodies)) / len(bodies) + 1
                total += one * (count or 0) + len(settle) + 1
            case ConcreteLoop() | ConcreteStep(step=Call()):
                return math.inf
            case ConcreteBranch(branches=branches):
                total += sum(_weight(b) + 2 for b in branches)
            case ConcreteStep():
                total += 1
    return total
