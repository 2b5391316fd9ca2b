"""Results of explain: the stages of a call, on one device, in parts on several, or on a mesh.

In a notebook `explain_view.py` lays out the stages, and graphs of them are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rune.core.graph import Graph
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.lowering.explain import STAGES, Costs, Lowered, costs_text
from rune.lowering.plan import Plan
from rune.lowering.runner_up import Comparison, compared
from rune.profiling import Profile
from rune.records import dataclass
from rune.sharding import PartitionSpec
from rune.transforms.compile.partition import Partition
from rune.transforms.compile.run import OnMesh
from rune.transforms.inspect.explain_view import mesh_view, view
from rune.transforms.inspect.times import StepTime, step_times, times_text
from rune.transforms.placement import storage
from rune.transforms.placement.predict import UNMEASURED, Prediction, predicted
from rune.transforms.sharding.exchanges import Exchange, exchanges

TIMES = "times"  # predicted and measured
RUNNERS_UP = "runners-up"  # not a stage: the predicted times of other schedules
_WIDTH = 78


@dataclass(frozen=True, slots=True)
class Explanation:
    """The stages of one call, their costs, and the source of every kernel."""

    name: str
    device: str
    lowered: Lowered
    sources: Mapping[str, str]
    compile_seconds: float
    profile: Profile | None = None  # that measured its runs

    def __getitem__(self, stage: str) -> str:
        """The text of "source", "times", "runners-up", or a stage: "program", "kernels", ..."""
        if stage == TIMES:
            return times_text(self.times())
        if stage == "source":
            return "\n\n".join(self.sources.values())
        if stage == RUNNERS_UP:
            return "\n".join(map(str, self.runners_up()))
        return self.lowered.text(stage)

    def times(self) -> tuple[StepTime, ...]:
        """The time of each step: predicted, and measured if a profile has recorded it."""
        return step_times(self.lowered, self.device, self.profile)

    def measured(self, profile: Profile) -> Explanation:
        """The same, with the measured times of a profile next to the predicted ones.

        >>> import rune, rune.numpy as rnp
        >>> f, x = rune.jit(lambda x: rnp.sum(rnp.sin(x))), rnp.ones(1000)
        >>> with rune.debug.profile() as p:
        ...     _ = f(x)
        >>> print(rune.explain(f)(x).measured(p)["times"].splitlines()[0])
        step   predicted  measured  ratio
        """
        return replace(self, profile=profile)

    def runners_up(self) -> tuple[Comparison, ...]:
        """The schedule of each kernel next to the best alternative, by predicted times.

        Takes about a second for each GPU kernel.
        """
        lowering = self.lowered
        kernels = lowering.kernels.kernels
        return tuple(compared(kernels[n], s, lowering.target) for n, s in lowering.schedules.items())

    @property
    def costs(self) -> Costs:
        """Kernels, calls, bytes moved, FLOPs and arena bytes of one run."""
        return self.lowered.costs()

    @property
    def plan(self) -> Plan:
        """The memory plan and its steps."""
        return self.lowered.plan

    @property
    def seconds(self) -> Mapping[str, float]:
        """The time of each stage of the compilation."""
        return {**self.lowered.seconds, "source": self.compile_seconds}

    def summary(self) -> str:
        """The costs of a run, and the time of each stage."""
        stage_times = ", ".join(f"{stage} {1e3 * t:.1f} ms" for stage, t in self.seconds.items())
        return f"{costs_text(self.costs)}\n{stage_times}"

    def graph(self, stage: str) -> Graph:
        """The graph of "program", "simplified", "kernels" or "plan".

        `.to_dot()` is its text for graphviz; a notebook draws it if `dot` is installed.
        """
        return self.lowered.graph(stage)

    def _sections(self) -> Iterator[tuple[str, str]]:
        yield from ((stage, self.lowered.text(stage)) for stage in STAGES)
        if any(t.measured is not None for t in self.times()):
            yield TIMES, self[TIMES]
        yield from ((f"source {name}", text) for name, text in self.sources.items())

    def __str__(self) -> str:
        head = f"explain {self.name} on {self.device}\n{self.summary()}"
        return "\n\n".join([head, *(_section(*part) for part in self._sections())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        title = f"{self.name} on {self.device}"
        return view(title, self.lowered, self.seconds, self.times(), self._sections())


@dataclass(frozen=True, slots=True)
class SpanningExplanation:
    """A call that runs on several devices: the parts, the copies between them, each part's stages.

    >>> import rune, rune.numpy as rnp
    >>> f = lambda x: rnp.exp(rune.device_put(rnp.sin(x), "reference"))
    >>> print(rune.explain(f)(rnp.ones(8)).partition)
    partition lambda at home on cpu:0 {
      cpu:0: %1 = lambda.0 %0  # equations: 1
      copy %1 from cpu:0 to reference:0
      reference:0: %2 = lambda.1 %1  # equations: 1
      return %2 on reference:0
    }
    """

    program: Program
    partition: Partition
    parts: tuple[Explanation, ...]

    def __getitem__(self, stage: str) -> str:
        """The text of "program" or "partition", or a stage of all parts."""
        call_stages = {"program": self.program, "partition": self.partition}
        if stage in call_stages:
            return str(call_stages[stage])
        return "\n\n".join(part[stage] for part in self.parts)

    def __str__(self) -> str:
        title = f"explain {self.program.name} on {', '.join(self.partition.devices)}"
        sections = (_section(stage, self[stage]) for stage in ("program", "partition"))
        return "\n\n".join([title, *sections, *map(str, self.parts)])

    __repr__ = __str__


def _section(title: str, text: str) -> str:
    return f"--- {title} {'-' * max(0, _WIDTH - len(title))}\n{text}"


@dataclass(frozen=True, slots=True)
class MeshExplanation:
    """A call that the devices of a mesh run together.

    program: the program on arrays, as it was traced
    on_mesh: the mesh, the specs, and the program of each device on its blocks
    devices: the stages of that program on one device of each kind

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import P, make_mesh
    >>> f = lambda x: rune.lax.psum(x, "data")
    >>> f = rune.shard_map(f, mesh=make_mesh((1,), ("data",)), in_specs=P("data"), out_specs=P())
    >>> print(rune.explain(f)(rnp.ones(8))["layout"])
    argument 0: f32[8] by P('data'), f32[8] on each device
    result 0: f32[8] by P(), f32[8] on each device
    """

    program: Program
    on_mesh: OnMesh
    devices: tuple[Explanation, ...]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The collectives of one device, in the order of the program."""
        return exchanges(self.on_mesh.local, self.on_mesh.mesh)

    @property
    def prediction(self) -> Prediction | None:
        """The predicted time of a call; None before `rune.measure_devices` has been called."""
        mesh = self.on_mesh.mesh
        record = storage.covering(mesh.in_order)
        # Predictions need measurements of these devices; without them the view shows how to get
        # them.
        if record is None:
            return None
        return predicted(mesh, {d.device.partition(":")[0]: d.lowered for d in self.devices}, self.exchanges, record)

    def __getitem__(self, stage: str) -> str:
        """The text of "program", "layout", "exchanges", "time", or a stage of each device kind."""
        match stage:
            case "program":
                return str(self.program)
            case "layout":
                return "\n".join(self._layout())
            case "exchanges":
                return "\n".join(self._exchanges())
            case "time":
                return str(self.prediction or UNMEASURED)
        return "\n\n".join(device[stage] for device in self.devices)

    def _layout(self) -> Iterator[str]:
        local, call = self.on_mesh.local, self.program
        yield from _cuts("argument", call.input_types, self.on_mesh.in_specs, local.input_types)
        yield from _cuts("result", call.output_types, self.on_mesh.out_specs, local.output_types)

    def _exchanges(self) -> Iterator[str]:
        yield from map(str, self.exchanges)
        counted_bytes = [e.bytes_sent * e.steps for e in self.exchanges if e.steps is not None]
        # Only a run tells how often the loops with a condition send.
        loops = len(self.exchanges) - len(counted_bytes)
        besides = f", and {loops} in loops whose steps only a run tells" * bool(loops)
        yield f"each device sends {sum(counted_bytes)} B in {len(counted_bytes)} collectives{besides}"

    @property
    def _title(self) -> str:
        return f"{self.program.name} on {self.on_mesh.mesh}"

    def __str__(self) -> str:
        sections = (_section(stage, self[stage]) for stage in ("program", "layout", "exchanges", "time"))
        return "\n\n".join([f"explain {self._title}", *sections, *map(str, self.devices)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sections = ((stage, self[stage]) for stage in ("time", "layout", "exchanges", "program"))
        stages = ((f"stages on {d.device}", str(d)) for d in self.devices)
        prediction = self.prediction
        figures = list(prediction.parts()) if prediction else []
        return mesh_view(self._title, str(prediction or UNMEASURED), figures, (*sections, *stages))


def _cuts(
    role: str, types: tuple[ArrayType, ...], specs: tuple[PartitionSpec, ...], blocks: tuple[ArrayType, ...]
) -> Iterator[str]:
    for number, (type, spec, block) in enumerate(zip(types, specs, blocks, strict=True)):
        yield f"{role} {number}: {type} by {spec!r}, {block} on each device"
