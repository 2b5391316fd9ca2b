"""The steps of a plan: the slots that each reads and writes, its name, and its costs.

A launch reads and writes by the parameters of its kernel; a parameter that is both counts twice.
Bytes are those of the elements that it accesses, each counted once (traffic.py). Operations are the
scalar operations in the kernel's text, a multiply-add counting as two. A loop costs its steps times
its count, or once if the count is unknown; a branch costs as much as its most expensive choice. A
value that a loop changes in place is not copied, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from rune.dims import Size, product
from rune.lowering.arena import type_bytes
from rune.lowering.factors import factor_of, is_factor
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.nodes import Access
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernel.work import work
from rune.lowering.kernelize.cost import estimate
from rune.lowering.kernels import Kernel, KernelProgram, Statement, evaluations, points
from rune.lowering.plan import Branch, Call, Copy, Launch, Loop, Plan, Slot, Space, Step, inner_plans
from rune.lowering.source_calls import is_source
from rune.lowering.traffic import traffic
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class StepCost:
    """The costs of one step of a plan. `inner`: the costs of a loop's steps in each round."""

    name: str
    bytes_read: Size = 0  # [B]
    bytes_written: Size = 0  # [B]
    flops: Size = 0  # scalar operations
    launches: Size = 0  # kernels started
    calls: Size = 0  # routines called
    copies: Size = 0
    inner: tuple[StepCost, ...] = ()

    @property
    def bytes_moved(self) -> Size:
        """Bytes read and written [B]."""
        return self.bytes_read + self.bytes_written

    @property
    def is_kernel(self) -> bool:
        """Whether the step is one kernel, and no routine, copy, loop or branch."""
        return self.launches == 1 and not self.inner


_SUMMED = ("bytes_read", "bytes_written", "flops", "launches", "calls", "copies")


def step_name(step: Step) -> str:
    """The kernel or routine of a step."""
    match step:
        case Launch(kernel=kernel):
            return kernel
        case Call(routine=routine):
            return routine
        case Copy():
            return "copy"
        case Loop(count=count):
            return "loop while" if count is None else f"loop of {count}"
        case Branch(branches=branches):
            return f"branch of {len(branches)}"


def slots_written(plan: Plan, step: Step) -> tuple[Slot, ...]:
    """The slots that a step gives a new value."""
    match step:
        case Launch(kernel=kernel, slots=slots):
            params = plan.kernels[kernel].params
            return tuple(s for s, p in zip(slots, params) if p.access is not Access.READ)
        case Call(outputs=outputs):
            return outputs
        case Copy(target=target):
            return (target,)
        case Loop(state=state, results=results, holds=holds):
            # The executor writes the step number and the condition's answer.
            scratch = (step.arguments[0], *(() if holds is None else (holds,)))
            return tuple(dict.fromkeys((*state, *results, *scratch)))
        case Branch(results=results):
            return results


def slots_read(plan: Plan, step: Step) -> tuple[Slot, ...]:
    """The slots whose value a step needs."""
    match step:
        case Launch(kernel=kernel, slots=slots):
            params = plan.kernels[kernel].params
            return tuple(s for s, p in zip(slots, params) if p.access is not Access.WRITE)
        case Call(inputs=inputs):
            return inputs
        case Copy(source=source):
            return (source,)
        case Loop(arguments=arguments, arrays=arrays):
            # Arrays hold nothing before the loop, and argument 0 is the step number.
            return arguments[1 : len(arguments) - arrays]
        case Branch(number=number, arguments=arguments):
            return (number, *arguments)


def memory(slot: Slot) -> tuple[Space, int, Size, Size]:
    """Identifies the memory of a slot: equal for two slots of one place and size, of any type."""
    return slot.space, slot.number, slot.offset, type_bytes(slot.type)


def total(sizes: Iterable[Size]) -> Size:
    """The sum of sizes."""
    subtotal: Size = 0
    for size in sizes:
        subtotal = subtotal + size
    return subtotal


def step_costs(program: KernelProgram, plan: Plan) -> tuple[StepCost, ...]:
    """The costs of each step of the plan; `program` has its kernels before they became loops."""
    return tuple(step_cost(program, plan, step) for step in plan.steps)


def step_cost(program: KernelProgram, plan: Plan, step: Step) -> StepCost:
    """The costs of a step of the plan, or of an inner plan."""
    match step:
        case Loop(count=count):
            inner = (c for p in inner_plans(step) for c in _costs_in_loop(program, p))
            return _sum(step, tuple(inner), 1 if count is None else count)
        case Branch(branches=branches):
            branch_costs = (_sum(step, step_costs(program, p), 1) for p in branches)
            # Most steps are limited by memory, so operations only break ties.
            return max(branch_costs, key=lambda c: (estimate(c.bytes_moved), estimate(c.flops)))
        case Launch(kernel=kernel):
            elements, params = traffic(plan.kernels[kernel]), plan.kernels[kernel].params
            bytes_read = total(p.dtype.itemsize * elements[p.name].reads for p in params)
            bytes_written = total(p.dtype.itemsize * elements[p.name].writes for p in params)
            # Counted in the kernel and not in its code, which may be unrolled or tiled.
            flops = kernel_flops(program.kernels[kernel])
            return StepCost(kernel, bytes_read, bytes_written, flops, launches=1)
        case Call() if step.routine == "callback" or is_source(step):
            return StepCost(step_name(step), *_sides(plan, step), calls=1)
        case Call(routine="line_fft"):
            outer, n, inner = transform_sizes(step)
            # The usual count for transforms of n elements.
            flops = outer * inner * round(5 * n * math.log2(n))
            return StepCost(step_name(step), *_sides(plan, step), flops, calls=1)
        case Call() if is_factor(step):
            return StepCost(step_name(step), *_sides(plan, step), factor_of(step).flops, calls=1)
        case Call(parameters=parameters):
            sizes: dict[str, Any] = dict(parameters)
            # A multiplication and an addition for each triple.
            flops = 2 * product(sizes[name] for name in ("batch", "m", "n", "k"))
            return StepCost(step_name(step), *_sides(plan, step), flops, calls=1)
        case Copy():
            return StepCost(step_name(step), *_sides(plan, step), copies=1)


def transform_sizes(call: Call) -> tuple[int, ...]:
    """outer, n, inner of the arrays that a `line_fft` transforms along n.

    A call with one operand takes and returns complex numbers, or real ones and their frequencies
    from 0 to n/2; a call with two takes the parts of complex ones.
    """
    sizes = dict(call.parameters)
    return tuple(size for size in map(sizes.get, ("outer", "n", "inner")) if isinstance(size, int))


def transform_kind(call: Call) -> str:
    """The kind of a `line_fft`: fft, rfft, or one of their inverses, divided by n."""
    parameters = dict(call.parameters)
    return ("i" if parameters.get("inverse") else "") + ("rfft" if parameters.get("real") else "fft")


def _costs_in_loop(program: KernelProgram, plan: Plan) -> Iterator[StepCost]:
    """The costs of each step of a loop's body; donated values stay in place, without a copy."""
    for step in plan.steps:
        if isinstance(step, Copy) and _is_in_place(plan, step):
            yield StepCost(step_name(step))
        else:
            yield step_cost(program, plan, step)


def _is_in_place(plan: Plan, copy: Copy) -> bool:
    ends = copy.source.space, copy.target.space
    is_donated = (copy.source.number, copy.target.number) in plan.donations
    return is_donated and ends == (Space.ARGUMENT, Space.RESULT)


def _sides(plan: Plan, step: Call | Copy) -> tuple[Size, Size]:
    """Bytes read and written by a step that accesses its slots as a whole."""
    sides = slots_read(plan, step), slots_written(plan, step)
    bytes_read, bytes_written = (total(type_bytes(s.type) for s in slots) for slots in sides)
    return bytes_read, bytes_written


def _sum(step: Step, inner: tuple[StepCost, ...], times: Size) -> StepCost:
    """The total costs of the inner steps."""
    sums = {name: times * total(getattr(c, name) for c in inner) for name in _SUMMED}
    return StepCost(step_name(step), **sums, inner=inner)


def numbered(steps: Iterable[StepCost], prefix: str = "") -> Iterator[tuple[str, StepCost]]:
    """The steps and their inner steps, with numbers: "2", "2.0", "2.1", "3"."""
    for number, cost in enumerate(steps):
        yield f"{prefix}{number}", cost
        yield from numbered(cost.inner, f"{prefix}{number}.")


def kernel_flops(kernel: Kernel) -> Size:
    """Scalar operations of all points of a kernel."""
    if kernel.code:
        return work(kernel.code)
    return points(kernel.domain) * total(map(_statement_flops, kernel.body))


def _statement_flops(statement: Statement) -> Size:
    operations: Size = 0
    for count, exprs, combinations in evaluations(statement):
        operators = sum(isinstance(part, Op) for e in exprs for part in walk_expr(e))
        operations = operations + count * (operators + combinations)
    return operations
