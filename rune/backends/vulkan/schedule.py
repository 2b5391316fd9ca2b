"""From a concrete plan to the items that command buffers contain.

    launch @f                            f
    loop 1000 times { launch @g }   ->   copy: 0 to the counter
    copy                                 7 times { (g, advance) x 128 }, (g, advance) x 104
                                         copy

A loop with a known number of steps counts them on the device; several steps are recorded in one
command buffer, which is submitted many times. All branches of a choice are recorded, each behind a
gate, and only one of them is open: so the host need not wait for the index. Steps of a `while` are
behind
a gate too: the host reads the condition only after several steps, and surplus steps do nothing.

Only long branches and loops, and those that call Python, are left to the host: it reads the numbers
from the table's header, where a kernel has copied them.
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

UNROLLED = 256  # the most launches in the command buffer of a loop's steps
GATED = 256  # the most launches behind one gate: closed launches cost time, so for more the host decides
# Steps between two reads of a while loop's condition; the last number repeats. Short loops waste
# few steps, and long ones few waits.
BATCHES = (1, 4, 16)


@dataclass(frozen=True, slots=True)
class Schedule:
    """All items of a plan for one choice of sizes, and the first words of its table."""

    items: Items
    header: tuple[int, ...]  # i64 words


def schedule(
    plan: Plan, concrete: Concrete, kernels: Mapping[str, SpirvKernel], submitted_work: int | None = None
) -> Schedule:
    """The items of a plan. kernels: the plan's and rune's own, by name.

    submitted_work: the most work of one launch; longer ones are divided
    """
    scheduler = _Scheduler(len(plan.arguments), concrete, kernels, submitted_work)
    items = scheduler.items(concrete.steps)
    return Schedule(items, tuple(scheduler.header))


class _Scheduler:
    """Converts steps to items, and assigns words of the header."""

    def __init__(
        self, arguments: int, concrete: Concrete, kernels: Mapping[str, SpirvKernel], submitted_work: int | None
    ):
        self.arguments, self.sizes, self.kernels = arguments, concrete.sizes, kernels
        self.submitted_work = submitted_work
        self.header: list[int] = []
        self.zero = self.put([0])
        self.around = self.put([1])  # whether the gate around the current items is open

    # --- the header --------------------------------------------------------------------------

    def put(self, numbers: Sequence[int]) -> Where:
        """The place of new u32 words in the header."""
        # Two u32 are one word of the table; an odd last one is paired with 0.
        at, words = 8 * len(self.header), [*numbers, 0]
        pairs = zip(words[::2], words[1::2])
        self.header += [low | high << 32 for low, high in pairs]
        return Where(TABLE, at, 4 * len(numbers))

    def word(self) -> int:
        """A new word for a number that the host reads."""
        return self.put([0]).offset // 8

    # --- steps -------------------------------------------------------------------------------

    def items(self, steps: Steps) -> Items:
        """The items of steps."""
        return tuple(item for step in steps for item in self.item(step))

    def item(self, step: ConcreteStep | ConcreteLoop | ConcreteBranch) -> Items:
        """The items of one step."""
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
        """A place of the plan, by base and offset."""
        base = {
            Space.ARENA: ARENA,
            Space.ARGUMENT: GIVEN + place.number,
            Space.RESULT: GIVEN + self.arguments + place.number,
        }[place.space]
        return Where(base, place.offset, place.bytes)

    def run(self, name: str, places: Iterable[Where], *sizes: int) -> Items:
        """A launch, in parts if it is long; none if its domain is empty."""
        kernel = self.kernels[name]
        values = dict(zip(kernel.sizes, sizes)) if sizes else self.sizes
        row, limit = kernel.launch_groups, self.submitted_work
        count = dims.evaluate(kernel.count, values)
        launches = parts(count, most_work(kernel.work, values) if count else 0, limit, row)
        writes = tuple(p.access is not Access.READ for p in kernel.params)
        kernel_sizes = tuple(values[size] for size in kernel.sizes)
        operands = name, tuple(places), writes, kernel_sizes
        return tuple(Run(*operands, (*p.folded(row), 1), None, p.first, p.work) for p in launches)

    def copy(self, target: Where, source: Where) -> Items:
        """A copy of bytes, four at a time where offsets and size allow it."""
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
        # Steps in which the host takes part cannot be unrolled into a command buffer.
        once = tuple(item for step in steps for item in step)
        length = max(1, UNROLLED // _length(once)) if all(map(is_recordable, once)) else 1
        times, remainder = divmod(count, turns * length)
        # The rounds before end with the last turn, so these begin with the first.
        last_rounds = tuple(item for k in range(remainder) for item in steps[k % turns])
        repeats = (Repeat(once * length, times),) if times else ()
        settle = self.items(loop.settle) if count % turns else ()
        return (*self.start(loop), *repeats, *last_rounds, *settle)

    def start(self, loop: ConcreteLoop) -> Items:
        """Write 0 to the counter."""
        return self.copy(self.where(loop.counter), self.zero)

    def advance(self, loop: ConcreteLoop) -> Items:
        """Add 1 to the counter."""
        return self.run("%advance", (self.where(loop.counter),))

    def open_ended(self, loop: ConcreteLoop, holds: Where) -> Items:
        """A loop that continues while its condition holds."""
        holds_word, count_word = self.word(), self.word()
        counter = self.where(loop.counter)
        reads = (*self.read_back(holds, holds_word), *self.read_back(counter, count_word))
        first = (*self.start(loop), *self.items(loop.conditions[0]), *reads)
        settle = self.items(loop.settle)
        if sum(_weight(s) + 1 for s in (*loop.conditions, *loop.bodies)) > GATED:
            batches = tuple((*step, *reads) for step in self.steps(loop))
            return (While(first, batches, 0, settle, holds_word, count_word),)
        is_open = self.put([0])
        with self.within(is_open):
            steps = self.steps(loop)
        items = tuple(item for step in steps for item in step)
        gate = self.gate("%hold", (holds,), items, is_open)
        turn = tuple(x for step in steps for x in (*gate.open, *replace_runs(step, gate.gated_runs)))
        growing = tuple((Repeat(turn, count), *reads) for count in BATCHES)
        return (While(first, growing, len(growing) - 1, settle, holds_word, count_word),)

    def steps(self, loop: ConcreteLoop) -> list[Items]:
        """The step of each turn, followed by the condition of the next one."""
        looks = [self.items(c) for c in loop.conditions]
        return [
            (*self.items(body), *self.advance(loop), *looks[(k + 1) % len(looks)]) for k, body in enumerate(loop.bodies)
        ]

    def read_back(self, place: Where, word: int) -> Items:
        """Copy a number to a word that the host reads."""
        return self.copy(Where(TABLE, 8 * word, place.bytes), place)

    @contextmanager
    def within(self, is_open: Where) -> Iterator[None]:
        """Items made inside the block are behind a gate."""
        around, self.around = self.around, is_open
        yield
        self.around = around

    # --- branches ----------------------------------------------------------------------------

    def choice(self, branch: ConcreteBranch) -> Items:
        """The items of a branch."""
        if len(branch.branches) == 1:
            return self.items(branch.branches[0])
        number = self.where(branch.number)
        if sum(map(_weight, branch.branches)) <= GATED:
            return self.gated_choice(number, branch.branches)
        word = self.word()
        return (Choice(self.read_back(number, word), word, tuple(map(self.items, branch.branches))),)

    def gated_choice(self, number: Where, branches: Sequence[Steps]) -> Items:
        """All branches, each behind a gate."""
        last = self.put([len(branches) - 1])
        gates: list[Gate] = []
        inner: list[Items] = []
        for index, steps in enumerate(branches):
            is_open = self.put([0])
            with self.within(is_open):
                inner.append(self.items(steps))
            operands = (number, self.put([index]), last)
            gates.append(self.gate("%choose", operands, inner[-1], is_open))
        openings = [item for gate in gates for item in gate.open]
        gated_items = [replace_runs(items, gate.gated_runs) for gate, items in zip(gates, inner)]
        return (*openings, *(item for items in gated_items for item in items))

    def gate(self, kernel: str, operands: tuple[Where, ...], items: Items, is_open: Where) -> Gate:
        """A gate before items. It writes `is_open` for the gates inside it."""
        # Launches that already have a gate are opened by that one.
        runs = list(dict.fromkeys(r for r in runs_of(items) if r.gate is None and not _opens(r)))
        gated_runs: dict[Run, Run] = {}
        openings: Items = ()
        if runs:
            full = self.put([n for run in runs for n in run.groups])
            live = self.put([0] * (3 * len(runs)))
            openings = self.run(kernel, (*operands, self.around, full, live), 3 * len(runs))
            gated_runs = {r: replace(r, gate=live.offset + 12 * k) for k, r in enumerate(runs)}
        if any(map(_opens, runs_of(items))):
            one = self.put([1])
            openings += self.run(kernel, (*operands, self.around, one, is_open), 1)
        return Gate(openings, gated_runs)


@dataclass(frozen=True, slots=True)
class Gate:
    """The launches that open or close a gate, and the launches behind it with their gates."""

    open: Items
    gated_runs: Mapping[Run, Run]


def _opens(run: Run) -> bool:
    """Whether it is a gate's own launch, which always runs: a closed gate must close inner ones."""
    return run.kernel in ("%choose", "%hold")


def _length(items: Items) -> int:
    return sum(_length(i.items) if isinstance(i, Repeat) else 1 for i in items)


def _weight(steps: Steps) -> float:
    """The number of launches of the steps; infinite where the host takes part."""
    total = 0.0
    for step in steps:
        match step:
            case ConcreteLoop(holds=None, count=count, bodies=bodies, settle=settle):
                one = sum(map(_weight, bodies)) / len(bodies) + 1
                total += one * (count or 0) + len(settle) + 1
            case ConcreteLoop() | ConcreteStep(step=Call()):
                return math.inf
            case ConcreteBranch(branches=branches):
                # A gate takes up to two launches of its own.
                total += sum(_weight(b) + 2 for b in branches)
            case ConcreteStep():
                total += 1
    return total
