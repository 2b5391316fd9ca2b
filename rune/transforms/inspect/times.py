"""The times of the steps of a program: predicted, and measured by a profile."""

from __future__ import annotations

from collections.abc import Sequence

from rune.lowering.explain import Lowered
from rune.lowering.plan import all_steps
from rune.lowering.steps import step_name
from rune.profiling import PlanProfile, Profile, StepProfile, aligned, time_text
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class StepTime:
    """One launch or call of a step. Units: s.

    predicted:  None for a step that is not a kernel
    measured:   None if no profile has recorded it
    """

    name: str
    predicted: float | None
    measured: float | None

    def row(self) -> tuple[str, ...]:
        """Name, both times, and the ratio of measured to predicted time."""
        times = ("" if t is None else time_text(t) for t in (self.predicted, self.measured))
        ratio = self.measured / self.predicted if self.measured is not None and self.predicted else None
        return self.name, *times, "" if ratio is None else f"{ratio:.2f}"


def step_times(lowering: Lowered, device: str, profile: Profile | None) -> tuple[StepTime, ...]:
    """The times of each step of a plan, by name, in the order of the plan."""
    predictions = {name: cost.seconds for name, cost in lowering.predictions().items()}
    names = dict.fromkeys(step_name(s) for s in all_steps(lowering.plan))
    # Plans have no identity in a profile, so the name and the steps tell which one was measured.
    record = _of_plan(lowering.plan.name, device, list(names), profile)
    measurements = {s.name: s.seconds / s.calls for s in (record.steps if record else ()) if s.calls}
    return tuple(
        StepTime(n, predictions.get(n), measurements.get(n)) for n in names if n in predictions or n in measurements
    )


def _of_plan(name: str, device: str, steps: Sequence[str], profile: Profile | None) -> PlanProfile | None:
    """The measurements of the plan: those of the last program with its name and steps."""
    plans = () if profile is None else profile.plans
    matches = [p for p in plans if (p.name, p.device) == (name, device) and _has_steps(p.steps, steps)]
    return matches[-1] if matches else None


def _has_steps(measured_steps: Sequence[StepProfile], steps: Sequence[str]) -> bool:
    return any(s.name in steps for s in measured_steps)


def times_rows(times: Sequence[StepTime]) -> list[tuple[str, ...]]:
    """The table, below a head."""
    return [("step", "predicted", "measured", "ratio"), *(t.row() for t in times)]


def times_text(times: Sequence[StepTime]) -> str:
    """The table as text."""
    return "\n".join(aligned(times_rows(times)))
