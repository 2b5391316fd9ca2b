"""Checks plans without computing: all that can be wrong with a plan, apart from its kernels'
values.

`check_plan` runs a plan's steps over intervals of bytes instead of values, with every donation and
with none, at several sizes where they are symbolic. It finds a missing kernel, wrong arguments, a
read of memory that was never written or has been overwritten, operands that overlap without an
alias, an offset outside the arena, an unwritten result, an illegal donation, a size without source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice, product
from typing import NoReturn

import numpy as np

from rune import dims, dtypes
from rune.backends.shared.callbacks import is_callback
from rune.backends.shared.executor import (
    Concrete,
    ConcreteBranch,
    ConcreteLoop,
    ConcreteStep,
    Place,
    Steps,
    concrete,
    concrete_type,
    dot_shapes,
    evaluate,
    size_bytes,
)
from rune.errors import CheckError
from rune.lowering.factors import factor_of, is_factor
from rune.lowering.kernel.check import check
from rune.lowering.kernel.nodes import Access, KernelCode
from rune.lowering.kernelize.walks import SIZES, concrete_parameters, extent
from rune.lowering.plan import Call, Copy, Launch, Plan, Space
from rune.lowering.plan_check import check_sizes
from rune.lowering.plan_types import check_types
from rune.lowering.source_calls import is_source
from rune.lowering.steps import transform_kind, transform_sizes
from rune.records import dataclass

SAMPLES = 64  # choices of sizes at which a plan is checked, at most
# Where bytes live: "arena", or an argument or result by number.
Memory = tuple[str, int]


def check_plan(plan: Plan, accepted: Iterable[KernelCode] = ()) -> None:
    """Check the plan at representative sizes.

    accepted: kernels that have been checked already
    Errors: CheckError "plan f: cannot run step 2 (arena[0:256] was never written)".
    """
    check_sizes(plan)
    known = set(map(id, accepted))
    for name, code in plan.kernels.items():
        if name != code.name:
            raise CheckError(f"plan {plan.name}: cannot use kernel {code.name} (listed as {name})")
        if id(code) not in known:
            check(code)
    pairs = dict(plan.donations)
    for sizes in _samples(plan):
        concrete_plan = concrete(plan, sizes)
        # Checked with and without donation: memory is shared only with it.
        for donated in {(), tuple(pairs)}:
            _Run(plan, concrete_plan, frozenset(donated)).all()
    check_types(plan)


def _samples(plan: Plan) -> list[dict[str, int]]:
    """A few combinations of sizes, with the ends of their ranges among them."""
    names = [s.name for s in plan.size_sources]
    choices = [_values(*dims.bounds(dims.symbol(s.name, s.low, s.high))) for s in plan.size_sources]
    combinations = (dict(zip(names, values, strict=True)) for values in product(*choices))
    return list(islice((sizes for sizes in combinations if _is_in_range(plan, sizes)), SAMPLES))


def _values(low: int | None, high: int | None) -> list[int]:
    first = low or 0
    last = first + 100 if high is None else high
    # The ends, and two sizes in between where off-by-one errors and divisions show.
    return sorted(v for v in {first, first + 1, first + 6, last} if v <= last)


def _is_in_range(plan: Plan, sizes: dict[str, int]) -> bool:
    """Whether the sizes are within their bounds, and no argument gets a negative dimension."""
    are_within = all(
        evaluate(s.low, sizes) <= sizes[s.name] and (s.high is None or sizes[s.name] <= evaluate(s.high, sizes))
        for s in plan.size_sources
    )
    return are_within and all(evaluate(d, sizes) >= 0 for t in plan.arguments for d in t.shape)


@dataclass(slots=True)
class _Run:
    """One run of the steps over byte intervals."""

    plan: Plan
    concrete: Concrete
    donated: frozenset[int]
    # Intervals that hold something, by memory: (first byte, end).
    intervals: dict[Memory, set[tuple[int, int]]] = field(default_factory=dict)
    at: str = "start"

    def fail(self, fault: str) -> NoReturn:
        raise CheckError(f"plan {self.plan.name}: cannot run {self.at} ({fault})")

    def all(self) -> None:
        self.check_donations()
        for number, type_ in enumerate(self.plan.arguments):
            size = size_bytes(concrete_type(type_, self.concrete.sizes))
            # Arguments hold values from the start; everything else must be written first.
            self.intervals["argument", number] = {(0, size)}
        self.run(self.concrete.steps, "step ")
        self.at = "the return"
        for number, type_ in enumerate(self.concrete.results):
            self.read(Place(Space.RESULT, number, 0, size_bytes(type_), type_))

    def run(self, steps: Steps, at: str) -> None:
        """Follow the steps; those of each branch once, those of a loop as `loop` does."""
        for number, step in enumerate(steps):
            self.at = f"{at}{number}"
            match step:
                case ConcreteStep():
                    self.step(step)
                case ConcreteLoop():
                    self.loop(step, f"{at}{number}.")
                case ConcreteBranch():
                    self.read(step.number)
                    self.branch(step, f"{at}{number}.")

    def branch(self, branch: ConcreteBranch, at: str) -> None:
        """Each branch from the state before the choice."""
        before, states = self.intervals, list[dict[Memory, set[tuple[int, int]]]]()
        for steps in branch.branches:
            self.intervals = {memory: set(intervals) for memory, intervals in before.items()}
            self.run(steps, at)
            states.append(self.intervals)
        # Any of them may run: afterwards only what every one has left intact can be read.
        self.intervals = {
            memory: set.intersection(*(state.get(memory, set()) for state in states)) for memory in states[0]
        }

    def loop(self, loop: ConcreteLoop, at: str) -> None:
        """A first step, and a second one where carries take turns."""
        for place in loop.arrays:
            self.write(place)
        # Two steps are enough: later ones use the same places again.
        for turn, body in enumerate(loop.bodies):
            self.write(loop.counter)
            if loop.holds is not None:
                self.run(loop.conditions[turn], at)
                self.read(loop.holds)
            self.run(body, at)
        self.run(loop.settle, at)

    def check_donations(self) -> None:
        arguments = [a for a, _ in self.plan.donations]
        results = [r for _, r in self.plan.donations]
        if len(set(arguments)) < len(arguments) or len(set(results)) < len(results):
            self.fail(f"donations {self.plan.donations}: one buffer twice")
        for argument, result in self.plan.donations:
            donated = concrete_type(self.plan.arguments[argument], self.concrete.sizes)
            if size_bytes(donated) != size_bytes(self.concrete.results[result]):
                self.fail(f"donation of argument {argument} to result {result}: other size")

    def memory(self, place: Place) -> Memory:
        if place.space is Space.ARENA:
            return "arena", 0
        if place.space is Space.RESULT:
            for argument, result in self.plan.donations:
                if result == place.number and argument in self.donated:
                    return "argument", argument
        return place.space.value, place.number

    def name(self, place: Place) -> str:
        if place.space is Space.ARENA:
            return f"arena[{place.offset}:{place.offset + place.bytes}]"
        return f"{place.space.value} {place.number}"

    # --- places ------------------------------------------------------------------------------

    def fits(self, place: Place) -> None:
        name = self.name(place)
        if place.space is Space.ARENA:
            if place.offset < 0 or place.offset + place.bytes > self.concrete.arena_bytes:
                self.fail(f"{name} is outside the arena of {self.concrete.arena_bytes} bytes")
            # Kernels index by elements, so an offset between two elements cannot be addressed.
            if place.offset % place.type.dtype.itemsize:
                self.fail(f"{name} is not aligned for {dtypes.short(place.type.dtype)}")
            return
        types = self.plan.arguments if place.space is Space.ARGUMENT else self.concrete.results
        if place.offset != 0 or not 0 <= place.number < len(types):
            self.fail(f"there is no {name} at {place.offset}")
        if size_bytes(concrete_type(types[place.number], self.concrete.sizes)) != place.bytes:
            self.fail(f"{name} is not of {place.bytes} bytes")

    def read(self, place: Place) -> None:
        self.fits(place)
        interval = (place.offset, place.offset + place.bytes)
        if place.bytes and interval not in self.intervals.get(self.memory(place), set()):
            self.fail(f"{self.name(place)} was never written, or was overwritten since")

    def write(self, place: Place) -> None:
        self.fits(place)
        if place.space is Space.ARGUMENT:
            self.fail(f"{self.name(place)} must not be written")
        intervals = self.intervals.setdefault(self.memory(place), set())
        start, end = place.offset, place.offset + place.bytes
        # Values that the new bytes overlap are no longer intact.
        intervals -= {(a, b) for a, b in intervals if a < end and start < b}
        intervals.add((start, end))

    def overlap(self, a: Place, b: Place) -> bool:
        same = self.memory(a) == self.memory(b) and a.bytes and b.bytes
        return bool(same) and a.offset < b.offset + b.bytes and b.offset < a.offset + a.bytes

    def same(self, a: Place, b: Place) -> bool:
        return (a.offset, a.bytes) == (b.offset, b.bytes)

    # --- steps -------------------------------------------------------------------------------

    def step(self, step: ConcreteStep) -> None:
        match step.step:
            case Launch(kernel=kernel):
                if kernel not in self.plan.kernels:
                    self.fail(f"there is no kernel {kernel}")
                self.launch(self.plan.kernels[kernel], step.places)
            case Call() as call:
                outputs = len(call.outputs)
                self.call(call, step.places[:outputs], step.places[outputs:])
            case Copy():
                target, source = step.places
                if target.bytes != source.bytes:
                    self.fail(f"{self.name(source)} and {self.name(target)} differ in size")
                if target.space is source.space or self.memory(target) != self.memory(source):
                    self.move((target,), (source,))
                else:
                    self.read(source)  # an argument donated to this result: nothing to copy

    def launch(self, code: KernelCode, places: Sequence[Place]) -> None:
        if len(places) != len(code.params):
            self.fail(f"{code.name} takes {len(code.params)} buffers, given are {len(places)}")
        for p, place in zip(code.params, places, strict=True):
            elements = place.bytes // place.type.dtype.itemsize
            size = evaluate(p.size, self.concrete.sizes)
            if p.dtype != place.type.dtype or size != elements:
                operand = f"{self.name(place)} is {place.type}"
                self.fail(f"{p.name} of {code.name} is {dtypes.short(p.dtype)}[{size}], {operand}")
        aliases = {frozenset(pair) for pair in code.aliases}
        params = list(zip(code.params, places, strict=True))
        for i, (p, a) in enumerate(params):
            for q, b in params[:i]:
                # Two parameters that are only read may share memory.
                only_read = p.access is Access.READ and q.access is Access.READ
                is_alias = frozenset((p.name, q.name)) in aliases and self.same(a, b)
                if self.overlap(a, b) and not only_read and not is_alias:
                    self.fail(f"{q.name} and {p.name} of {code.name} overlap, and are not aliases")
        for p, place in params:
            if p.access is not Access.WRITE:
                self.read(place)
        for p, place in params:
            if p.access is not Access.READ:
                self.write(place)

    def call(self, call: Call, outputs: Sequence[Place], inputs: Sequence[Place]) -> None:
        if is_callback(call) or is_source(call):
            self.move(outputs, inputs)
            return
        if call.routine == "line_fft":
            self.transform(call, (*outputs, *inputs))
            self.move(outputs, inputs)
            return
        if is_factor(call):
            self.factor(call, (*outputs, *inputs))
            self.move(outputs, inputs)
            return
        if call.routine not in ("dot", "strided_dot") or (len(inputs), len(outputs)) != (2, 1):
            self.fail(f"there is no routine {call.routine} of {len(inputs)} inputs")
        if call.routine == "strided_dot":
            self.walk(call, outputs[0], inputs)
            self.move(outputs, inputs)
            return
        shapes = dot_shapes(dict(call.parameters), self.concrete.sizes)
        for place, shape in zip((*inputs, *outputs), shapes, strict=True):
            if np.prod(shape, dtype=np.int64) * place.type.dtype.itemsize != place.bytes:
                self.fail(f"{self.name(place)} is {place.type}, the routine takes {list(shape)}")
        self.move(outputs, inputs)

    def transform(self, call: Call, places: Sequence[Place]) -> None:
        """Check the sizes of an FFT's operand and result: two parts each, interleaved, or real."""
        outer, n, inner = transform_sizes(call)
        parts, kind = [outer, n, inner], transform_kind(call)
        reals, pairs = parts, [outer, n // 2 + 1 if "r" in kind else n, inner, 2]
        sides = {"rfft": [pairs, reals], "irfft": [reals, pairs]}.get(kind, [pairs, pairs])
        shapes = {2: sides, 4: [parts] * 4}.get(len(places), [])
        if not shapes:
            self.fail(f"line_fft takes 2 or 4 arrays, given are {len(places)}")
        for place, shape in zip(places, shapes, strict=True):
            if np.prod(shape, dtype=np.int64) * place.type.dtype.itemsize != place.bytes:
                self.fail(f"{self.name(place)} is {place.type}, the routine takes {shape}")

    def factor(self, call: Call, places: Sequence[Place]) -> None:
        """Check the sizes of a factorisation's results and operands."""
        factor = factor_of(call)
        shapes = [*factor.results, *factor.operands]
        if len(places) != len(shapes):
            self.fail(f"{call.routine} takes {len(factor.operands)} operands")
        for place, shape in zip(places, shapes, strict=True):
            if np.prod(shape, dtype=np.int64) * place.type.dtype.itemsize != place.bytes:
                self.fail(f"{self.name(place)} is {place.type}, the routine takes {list(shape)}")

    def walk(self, call: Call, output: Place, inputs: Sequence[Place]) -> None:
        """Check that a strided product stays within its operands and fills its result exactly."""
        walks = concrete_parameters(dict(call.parameters), self.concrete.sizes)
        batch, m, n, k = (walks[name] for name in SIZES)
        if batch * m * n * output.type.dtype.itemsize != output.bytes:
            self.fail(f"{self.name(output)} is {output.type}, the routine makes {[batch, m, n]}")
        for place, side, rows in zip(inputs, ("left", "right"), (m, n), strict=True):
            counts, low, high = extent(walks, side)
            if counts != (batch, rows, k) and 0 not in counts:
                self.fail(f"{self.name(place)} is walked as {counts}, not {(batch, rows, k)}")
            if low < 0 or high * place.type.dtype.itemsize > place.bytes:
                self.fail(f"{self.name(place)} is {place.type}, walked from {low} to {high}")

    def move(self, outputs: Sequence[Place], inputs: Sequence[Place]) -> None:
        for output in outputs:
            if any(self.overlap(output, x) for x in inputs):
                self.fail(f"{self.name(output)} overlaps an input")
        for place in inputs:
            self.read(place)
        for place in outputs:
            self.write(place)
