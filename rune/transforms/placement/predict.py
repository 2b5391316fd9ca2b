"""Predictions: the time of a program on a mesh, from its plan and the speeds of the devices.

A step of a plan takes as long as its arithmetic or its memory, whichever is slower; steps follow
one another, and collectives follow them. All devices of a mesh compute at the same time, so the
slowest decides. Symbolic sizes count as typical ones, loops of unknown length as one step, and
branches as their slowest. Not counted: routines other than matrix products, and moving arguments.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import pairwise

import numpy as np

from rune.core.axes import names_of
from rune.dims import Size
from rune.lowering.explain import Lowered
from rune.lowering.host_calls import CALLBACK
from rune.lowering.kernel.expr import Op
from rune.lowering.kernel.rewrite import walk_expr
from rune.lowering.kernel.work import work as code_work
from rune.lowering.kernelize.cost import estimate, operation
from rune.lowering.kernels import Kernel, KernelProgram, evaluations, points
from rune.lowering.plan import Branch, Call, Launch, Loop, Plan, Step, inner_plans
from rune.lowering.steps import step_cost
from rune.profiling import time_text
from rune.records import dataclass
from rune.sharding import Mesh
from rune.transforms.placement.records import Group, Link, Measurements, Speed
from rune.transforms.sharding.exchanges import Exchange

UNMEASURED = "no times: rune.measure_devices() measures what devices can do, in a few seconds, and stores it"
SUMS = frozenset({"psum", "pmax", "pmin", "psum_scatter"})


@dataclass(frozen=True, slots=True)
class Computation:
    """The time of one device's computation, by what bounds each step. Units: s.

    products:   steps bounded by matrix products
    arithmetic: by other scalar operations
    memory:     by bytes read and written
    steps:      starting them
    """

    products: float = 0.0
    arithmetic: float = 0.0
    memory: float = 0.0
    steps: float = 0.0

    @property
    def seconds(self) -> float:
        """All of it."""
        return self.products + self.arithmetic + self.memory + self.steps

    def __add__(self, other: Computation) -> Computation:
        return Computation(*(a + b for a, b in zip(_parts(self), _parts(other), strict=True)))

    def times(self, count: float) -> Computation:
        """The same, repeated."""
        return Computation(*(count * part for part in _parts(self)))


def _parts(computation: Computation) -> tuple[float, ...]:
    return computation.products, computation.arithmetic, computation.memory, computation.steps


@dataclass(frozen=True, slots=True)
class Prediction:
    """The time of a program on a mesh; its text tells what bounds it. Units: s.

    call_seconds: until all devices have begun, and until the caller continues
    devices:      the computation of each device, by its name
    exchanges:    the collectives, each with its time in all steps
    """

    call_seconds: float
    devices: Mapping[str, Computation]
    exchanges: tuple[tuple[Exchange, float], ...]

    @property
    def slowest(self) -> str:
        """The device that computes longest."""
        return max(self.devices, key=lambda d: self.devices[d].seconds)

    @property
    def compute_seconds(self) -> float:
        """The time of the slowest device."""
        return self.devices[self.slowest].seconds

    @property
    def exchange_seconds(self) -> float:
        """The time of all collectives."""
        return sum(seconds for _, seconds in self.exchanges)

    @property
    def seconds(self) -> float:
        """The time of a call."""
        return self.call_seconds + self.compute_seconds + self.exchange_seconds

    @property
    def bound(self) -> str:
        """The part that takes the most time."""
        return max(self.parts(), key=lambda part: part[1])[0]

    def parts(self) -> Iterator[tuple[str, float]]:
        """The parts of the time, each with its seconds."""
        computation = self.devices[self.slowest]
        yield "the call itself", self.call_seconds
        yield f"matrix products on {self.slowest}", computation.products
        yield f"arithmetic on {self.slowest}", computation.arithmetic
        yield f"memory of {self.slowest}", computation.memory
        yield f"starting steps on {self.slowest}", computation.steps
        by_kind: dict[str, float] = {}
        for exchange, seconds in self.exchanges:
            name = f"{exchange.kind} over {exchange.axis!r}"
            by_kind[name] = by_kind.get(name, 0.0) + seconds
        yield from by_kind.items()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"predicted {time_text(self.seconds)}, bound by {self.bound}"
        rows = list(self._rows())
        width = max(len(time_text(seconds)) for seconds, _ in rows)
        yield from (f"{time_text(seconds):>{width + 2}}  {label}" for seconds, label in rows)

    def _rows(self) -> Iterator[tuple[float, str]]:
        """The phases in order, each with its seconds."""
        products, arithmetic, memory, steps = map(time_text, _parts(self.devices[self.slowest]))
        name = f"{self.slowest}, the slowest" if len(self.devices) > 1 else self.slowest
        yield self.call_seconds, "the call itself"
        yield (
            self.compute_seconds,
            f"computation on {name} (products {products}, arithmetic {arithmetic}, memory {memory}, steps {steps})",
        )
        yield from ((seconds, str(exchange)) for exchange, seconds in self.exchanges)


def predicted(
    mesh: Mesh, lowerings: Mapping[str, Lowered], exchanges: Iterable[Exchange], record: Measurements
) -> Prediction:
    """The time on a mesh of the program of one device, lowered for each kind of device.

    lowerings: by kind of device, "cpu"
    Errors:    KeyError for devices that were not measured.
    """
    # A program is lowered once for each kind of device, but devices of a kind may differ in speed.
    names = [d.name for d in mesh.in_order]
    speeds = {name: record.speed_among(name, len(names)) for name in names}
    computing = {name: computation(lowerings[name.partition(":")[0]], speed) for name, speed in speeds.items()}
    sending = tuple((e, exchange_seconds(e, mesh, record)) for e in exchanges)
    return Prediction(record.call_seconds(names), computing, sending)


# --- collectives ------------------------------------------------------------------------------


def exchange_seconds(exchange: Exchange, mesh: Mesh, record: Measurements) -> float:
    """The time of a collective in all its steps: waiting, and moving or summing.

    It waits as long as a group of its size; its bytes move as fast as when all devices of the mesh
    take part, scaled to the slowest link between neighbours along its axis.
    """
    if exchange.devices == 1:
        return 0.0
    waiting, busy = record.group(exchange.devices), record.group(mesh.size)
    sums = exchange.kind in SUMS
    least, curve = (waiting.sums.latency, busy.sums) if sums else (waiting.moves.latency, busy.moves)
    # The latency comes from a group of its size, the rate from the full mesh: links are shared.
    sending = curve.seconds(estimate(exchange.bytes_sent)) - curve.latency
    steps = 1 if exchange.steps is None else exchange.steps
    return steps * (least + sending * _slowness(exchange, mesh, record, busy))


def _slowness(exchange: Exchange, mesh: Mesh, record: Measurements, busy: Group) -> float:
    """The ratio of the slowest of all links to the slowest link along an axis, at least 1."""
    # The measured group contains the slowest link of all, so only a better link along the axis
    # counts.
    along = {_rate(link) for link in _links_along(exchange, mesh, record)}
    everywhere = {_rate(record.link(a, b)) for a, b in pairwise(record.devices[: busy.devices])}
    return max(1.0, min(everywhere) / min(along)) if along and everywhere else 1.0


def _links_along(exchange: Exchange, mesh: Mesh, record: Measurements) -> Iterator[Link]:
    """The links between neighbours of the groups along one or several axes."""
    names = names_of(exchange.axis)
    if not set(names) <= set(mesh.axis_names):
        return
    places = [mesh.axis_names.index(name) for name in names]
    # Each line of devices along the axes is a group of its own, which exchanges as a ring.
    grid = np.moveaxis(mesh.devices, places, range(-len(places), 0))
    for line in grid.reshape(-1, math.prod(mesh.shape[name] for name in names)):
        yield from (record.link(a, b) for a, b in pairwise([d.name for d in line]))


def _rate(link: Link) -> float:
    return link.moves.rate


# --- computation ------------------------------------------------------------------------------


def computation(lowering: Lowered, speed: Speed) -> Computation:
    """The time of one device that runs the plan alone."""
    return _of_plan(lowering.kernels, lowering.plan, speed)


def _of_plan(kernels: KernelProgram, plan: Plan, speed: Speed) -> Computation:
    return reduce(Computation.__add__, (_of_step(kernels, plan, s, speed) for s in plan.steps), Computation())


def _of_step(kernels: KernelProgram, plan: Plan, step: Step, speed: Speed) -> Computation:
    match step:
        case Loop(count=count):
            steps = [_of_plan(kernels, inner, speed) for inner in inner_plans(step)]
            times = 1 if count is None else estimate(count)
            return reduce(Computation.__add__, steps).times(times)
        case Branch(branches=branches):
            # Which branch runs is not known before the run.
            return max((_of_plan(kernels, b, speed) for b in branches), key=lambda c: c.seconds)
        case Call(routine=routine) if routine == CALLBACK:
            return Computation(steps=speed.step_seconds)  # collectives have their own times
        case _:
            return _of_simple_step(kernels, plan, step, speed)


def _of_simple_step(kernels: KernelProgram, plan: Plan, step: Step, speed: Speed) -> Computation:
    """A kernel, a matrix product or a copy: bounded by the slowest resource."""
    cost = step_cost(kernels, plan, step)
    memory = speed.streams.seconds(estimate(cost.bytes_moved))
    if isinstance(step, Launch):
        work = estimate(kernel_work(kernels.kernels[step.kernel])) / speed.operations_per_second
        return _bounded(memory, speed, arithmetic=work)
    products = speed.products.seconds(estimate(cost.flops)) if isinstance(step, Call) else 0.0
    return _bounded(memory, speed, products=products)


def _bounded(memory: float, speed: Speed, products: float = 0.0, arithmetic: float = 0.0) -> Computation:
    steps = speed.step_seconds
    # Arithmetic and memory overlap in a kernel, so the slower one is its time.
    if memory >= products + arithmetic:
        return Computation(memory=memory, steps=steps)
    return Computation(products=products, arithmetic=arithmetic, steps=steps)


def kernel_work(kernel: Kernel) -> Size:
    """The cost of all scalar operations of a kernel, in additions."""
    # A handwritten kernel has no body of expressions to count.
    if kernel.code:
        return code_work(kernel.code)
    work: Size = 0
    for statement in kernel.body:
        for count, exprs, combinations in evaluations(statement):
            operations = sum(operation(part.name) for e in exprs for part in walk_expr(e) if isinstance(part, Op))
            work = work + count * (operations + combinations)
    return points(kernel.domain) * work
