"""plan_sharding: the mesh and the specs with which a function is predicted to be fastest."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from rune import tree
from rune.backends import Device
from rune.core.axes import Name
from rune.core.interpreter import current
from rune.core.program import Program
from rune.core.staging import stage
from rune.core.values import Value
from rune.errors import ArgumentError, DeviceError
from rune.lowering.stages import stages
from rune.profiling import aligned, time_text
from rune.records import dataclass
from rune.sharding import Mesh, NamedSharding
from rune.transforms.arguments import function_name, key_path, require_callable, value_leaves
from rune.transforms.effect_boundaries import recorder
from rune.transforms.eval_shape import leaf_types
from rune.transforms.placement import storage
from rune.transforms.placement.measure import devices_of
from rune.transforms.placement.predict import Prediction, computation, predicted
from rune.transforms.placement.records import Measurements
from rune.transforms.placement.search import DATA, MODEL, Candidate, Inputs, candidates
from rune.transforms.sharding.localize import meshes_within
from rune.transforms.tree_difference import paths

FINALISTS = 5  # the best guesses, which are lowered and predicted in full
UNEVEN = 1.25  # the ratio of speeds beyond which the reason says that devices differ


@dataclass(frozen=True, slots=True)
class Option:
    """A mesh that was tried, the splits of inputs on it, and its time."""

    mesh: Mesh
    cuts: str
    prediction: Prediction

    @property
    def name(self) -> str:
        """`data 2 x model 4`, or `one device`."""
        if self.mesh.size == 1:
            return "one device"
        return " x ".join(f"{name} {size}" for name, size in self.mesh.shape.items())


@dataclass(frozen=True, slots=True)
class ShardingPlan:
    """The proposal of `rune.plan_sharding`; its text also shows the other meshes that were tried.

    mesh:         the devices
    in_shardings: of the positional arguments, for `rune.jit`
    reason:       why these are the fastest
    options:      the meshes that were predicted in full, the fastest first
    """

    name: str
    mesh: Mesh
    in_shardings: tuple[object, ...]
    reason: str
    options: tuple[Option, ...]

    @property
    def prediction(self) -> Prediction:
        """The time of a call, and its parts."""
        return self.options[0].prediction

    @property
    def predicted_seconds(self) -> float:
        """The time of a call. Units: s."""
        return self.prediction.seconds

    def __str__(self) -> str:
        head = f"plan of {self.name}: {self.options[0].name}, predicted {time_text(self.predicted_seconds)}"
        rows = [("mesh", "time", "computation", "collectives", "sent", "what is cut"), *map(_cells, self.options)]
        return "\n".join([head, self.reason, "", *aligned(rows)])

    __repr__ = __str__


def _cells(option: Option) -> tuple[str, ...]:
    p = option.prediction
    times = map(time_text, (p.seconds, p.compute_seconds, p.exchange_seconds))
    bytes_sent = sum(e.bytes_sent * (e.steps or 1) for e, _ in p.exchanges)
    return option.name, *times, f"{bytes_sent} B", option.cuts


def plan_sharding(
    function: Callable[..., object], *avals: object, devices: Sequence[str | Device] | None = None
) -> ShardingPlan:
    """The mesh and the specs with which a function is predicted to be fastest, and why.

    One device, the batch split over several (data parallel), the weights split (tensor parallel)
    and both are partitioned as `jit` would, and predicted from the measurements of
    `rune.measure_devices`. Where devices differ in speed the fastest are taken, since blocks have
    equal size, and the reason says so. `jit(function, in_shardings=plan.in_shardings)` runs the
    plan.

    avals:   the positional arguments: arrays, numbers, or ShapeDtypeStructs
    devices: the devices that may be used; None for those of the default device's kind
    Errors:  DeviceError if the devices have not been measured; ArgumentError for symbolic sizes,
             and for a function that already mentions a mesh.

    >>> import rune, rune.numpy as rnp
    >>> _ = rune.measure_devices(["cpu:0"])
    >>> plan = rune.plan_sharding(lambda x: rnp.sin(x), rnp.ones(8), devices=["cpu:0"])
    >>> plan.mesh, plan.in_shardings
    (Mesh('data': 1), (NamedSharding(Mesh('data': 1), P()),))
    """
    require_callable("plan_sharding", function)
    machines = devices_of("plan_sharding", devices)
    record = storage.covering(machines)
    if record is None:
        raise DeviceError(
            f"plan_sharding: cannot predict times on {', '.join(d.name for d in machines)} (never measured)",
            hint="rune.measure_devices() takes a few seconds, once per machine",
        )
    program, inputs = _traced(function, avals)
    alone = _alone(program, machines, record)
    # Rounded, so that devices of about the same speed stay in their order.
    ranking = sorted(machines, key=lambda d: round(math.log(alone[d], UNEVEN)))
    guesses = candidates(program, inputs, ranking, record)
    single = next(c for c in guesses if c.mesh.size == 1)
    # One device always: the reason compares the best mesh with it.
    finalists = dict.fromkeys([*guesses[:FINALISTS], single])
    options = {candidate: _option(candidate, inputs, record) for candidate in finalists}
    best = min(options, key=lambda c: options[c].prediction.seconds)
    by_time = tuple(sorted(options.values(), key=lambda o: o.prediction.seconds))
    shardings = [NamedSharding(best.mesh, best.specs[n]) for n in inputs.numbers]
    return ShardingPlan(
        program.name,
        best.mesh,
        tree.unflatten(tree.flatten(avals)[1], shardings),
        "; ".join(_reasons(by_time, alone, record)),
        by_time,
    )


def _traced(function: Callable[..., object], avals: tuple[object, ...]) -> tuple[Program, Inputs]:
    """The program for these arguments, and the description of its inputs."""
    leaves, treedef = tree.flatten(avals)
    types = leaf_types("plan_sharding", leaves, treedef)
    for number, type in enumerate(types):
        if type.is_symbolic:
            raise ArgumentError(
                f"plan_sharding: cannot predict times for {type} at {key_path(number, treedef)} (its sizes are unknown)"
            )

    def flat(*values: Value) -> list[Value]:
        # Draws without a key need an answer, though the program is only looked at.
        with recorder(current()):
            outs, out_tree = tree.flatten(function(*tree.unflatten(treedef, values)))
        return value_leaves("plan_sharding", outs, out_tree)

    closure = stage(flat, types, function_name(function))
    meshes = meshes_within(closure.program)
    if meshes:
        raise ArgumentError(
            f"plan_sharding: cannot choose a mesh for {closure.program.name} (it speaks of {meshes[0]})"
        )
    return closure.program, Inputs(closure.program.input_types, *_places(avals, len(closure.captured)))


def _places(avals: tuple[object, ...], captured_count: int) -> tuple[dict[int, str], tuple[tuple[int, ...], ...]]:
    """The paths of the arguments' leaves, by the input's number, and each argument's leaves."""
    numbers = itertools.count(captured_count)
    arguments = tuple(tuple(next(numbers) for _ in tree.flatten(a)[0]) for a in avals)
    return dict(enumerate(paths(tree.flatten(avals)[1]), captured_count)), arguments


def _alone(program: Program, machines: Sequence[Device], record: Measurements) -> dict[Device, float]:
    """The time of each device for the program alone."""
    lowerings = {d.target.backend: stages(program, d.target, ()) for d in machines}
    # A program of no steps takes no time, and logarithms and shares need more than 0.
    return {d: computation(lowerings[d.target.backend], record.speed(d.name)).seconds + 1e-9 for d in machines}


def _option(candidate: Candidate, inputs: Inputs, record: Measurements) -> Option:
    """A candidate, predicted in full."""
    mesh = candidate.mesh
    lowerings = {d.target.backend: stages(candidate.local, d.target, ()) for d in mesh.in_order}
    cuts = (f"{inputs.paths[n]} by {candidate.specs[n]!r}" for n in inputs.numbers if len(candidate.specs[n]))
    return Option(mesh, ", ".join(cuts), predicted(mesh, lowerings, candidate.exchanges, record))


# --- why --------------------------------------------------------------------------------------


def _reasons(ranking: Sequence[Option], alone: Mapping[Device, float], record: Measurements) -> Iterator[str]:
    best, single = ranking[0], next(o for o in ranking if o.mesh.size == 1)
    if best is single:
        yield from _why_one(ranking)
    else:
        gain = single.prediction.seconds / best.prediction.seconds
        yield f"{_kind(best)} is {gain:.2f} times as fast as one device, and bound by {best.prediction.bound}"
    least, most = min(alone.values()), max(alone.values())
    # Anything below the cost of a call on several devices is noise.
    if most > UNEVEN * least and most - least > record.groups[0].call_seconds:
        yield _uneven(best, alone)


def _why_one(ranking: Sequence[Option]) -> Iterator[str]:
    if len(ranking) == 1:
        yield "one device: nothing can be cut into equal blocks, or there is only one"
        return
    second = ranking[1].prediction
    overhead = second.exchange_seconds + second.call_seconds
    yield (
        f"one device: {_kind(ranking[1])} would take {time_text(second.seconds)}, "
        f"{time_text(overhead)} of it to synchronise and send"
    )


def _kind(option: Option) -> str:
    words: Mapping[Name, str] = {DATA: "data parallel", MODEL: "tensor parallel"}
    return f"{' and '.join(words[name] for name in option.mesh.axis_names)} on {option.mesh.size} devices"


def _uneven(best: Option, alone: Mapping[Device, float]) -> str:
    """The devices that the plan takes of unequal ones, and the share that each should have."""
    total = sum(1 / seconds for seconds in alone.values())
    shares = ", ".join(f"{d.name} {1 / seconds / total:.0%}" for d, seconds in alone.items())
    names = ", ".join(d.name for d in best.mesh.in_order)
    return f"devices differ in speed and should have {shares}, but blocks are even: the plan takes {names}"
