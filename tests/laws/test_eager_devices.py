"""Eager code on another device: every derivative and every lane of every primitive, as on the CPU.

The differentiated operands are committed to the device. Everything else is uncommitted and must
follow them: indices, directions, weights, and the constants that rules make. A device takes the
first sample of each primitive, and the reference executor a fourth of the others as well; all of
them in the thorough profile. RUNE_TEST_WHOLE=1 differentiates each primitive in every way.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
from rune import dtypes, ops
from rune.backends import device_named
from rune.core.evaluate import eval_program
from rune.core.primitive import Primitive
from tests.ops.calls import Sample
from tests.ops.samples import samples
from tests.ops.test_batching import LANES, lanes_of
from tests.ops.test_derivatives import call, differentiable
from tests.support.arrays import array
from tests.support.close import near
from tests.support.derivatives import directions
from tests.support.examples import COMPILING
from tests.support.sampling import in_turn, one_in
from tests.support.strategies import ANY, SMOOTH, arguments, programs

REFERENCE = "reference:0"
DEVICES = [d.name for d in rune.devices() if d.target.backend not in ("cpu", "null")]
IN_F64 = [d for d in DEVICES if dtypes.f64 in device_named(d).target.dtypes]
DIFFERENTIABLE = [p for p in ops.PRIMITIVES if differentiable(p)]
WHY = "f64: other polynomials, sums in another order"

on_every_device = pytest.mark.parametrize("device", IN_F64)


def selection(candidates: Sequence[Sample], device: str) -> Sequence[Sample]:
    """The first sample, whose operations are compiled, and some others on the reference."""
    if os.environ.get("RUNE_TEST_PROFILE") == "thorough":
        return candidates
    return [*candidates[:1], *(one_in(4, candidates[1:]) if device == REFERENCE else ())]


@dataclass(frozen=True)
class Case:
    """A function, a scalar function made from it, the point of the call, and a direction."""

    function: Callable[..., Any]
    primals: list[Any]
    tangents: list[Any]
    weight: Any

    @staticmethod
    def of(sample: Sample) -> Case:
        function, primals = call(sample, sample.active)
        tangents = directions(sample.rng, primals)
        (weight,) = directions(sample.rng, [function(*primals)])
        return Case(function, primals, tangents, weight)

    def on(self, device: str) -> Case:
        """The same with the primals committed to a device, and nothing else."""
        return Case(self.function, rune.device_put(self.primals, device), self.tangents, self.weight)

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(range(len(self.primals)))

    def loss(self, *xs: Any) -> Any:
        return (self.function(*xs) * self.weight).sum()


TRANSFORMATIONS: dict[str, Callable[[Case], Any]] = {
    "jvp": lambda c: rune.jvp(c.function, c.primals, c.tangents),
    "vjp": lambda c: rune.vjp(c.function, *c.primals)[1](c.weight),
    "grad": lambda c: rune.grad(c.loss, c.numbers)(*c.primals),
    "jacfwd": lambda c: rune.jacfwd(c.function, c.numbers)(*c.primals),
    "jacrev": lambda c: rune.jacrev(c.function, c.numbers)(*c.primals),
    "hessian": lambda c: rune.hessian(c.loss, c.numbers)(*c.primals),
}


def fitting(candidates: Sequence[Sample], transformation: str) -> list[Sample]:
    """The samples that a transformation takes: gradients and Jacobians are of real functions."""
    if transformation in ("jvp", "vjp"):
        return list(candidates)
    return [s for s in candidates if not any(t.dtype in dtypes.COMPLEX for t in (*s.types, result(s)))]


# A sixtieth of the derivatives of each primitive on each device, in each way.
EVERY = itertools.product([p.name for p in DIFFERENTIABLE], IN_F64, TRANSFORMATIONS)
DERIVED = one_in(60, list(EVERY))


@pytest.mark.parametrize(("name", "device", "transformation"), DERIVED)
def test_a_derivative_on_a_device_is_the_derivative_on_the_cpu(name: str, device: str, transformation: str):
    primitive, derivative = ops.BY_NAME[name], TRANSFORMATIONS[transformation]
    for sample in selection(fitting(differentiable(primitive), transformation), device):
        case = Case.of(sample)

        result = derivative(case.on(device))

        near(derivative(case), result, relative=1e-12, absolute=1e-12, why=f"{sample}: {WHY}")


def result(sample: Sample) -> Any:
    """The type of the sample's result."""
    return sample.primitive.type_rule(*sample.types, **sample.params)


def wide(primitive: Primitive) -> list[Sample]:
    """One sample in wide dtypes for each combination of shapes and parameters."""
    usual = {dtypes.f64, dtypes.i32, dtypes.bool_}
    usual_samples = [s for s in samples(primitive) if {t.dtype for t in (*s.types, result(s))} <= usual]
    return list({(tuple(o.shape for o in s.operands), str(s.params)): s for s in usual_samples}.values())


@in_turn("primitive")
@on_every_device
@pytest.mark.parametrize("primitive", ops.PRIMITIVES, ids=lambda p: p.name)
def test_lanes_on_a_device_are_the_lanes_on_the_cpu(primitive: Primitive, device: str):
    for sample in selection(wide(primitive), device):
        for lead in range(len(sample.operands)):
            has_lanes = tuple(i == lead for i in range(len(sample.operands)))
            values = lanes_of(sample, has_lanes)
            values_on_device = [rune.device_put(v, device) if b else v for v, b in zip(values, has_lanes)]
            axes = tuple(0 if b else None for b in has_lanes)
            vectorised = rune.vmap(lambda *xs, s=sample: s.primitive(*xs, **s.params), axes)

            lanes = vectorised(*values_on_device)

            for out in rune.tree.leaves(lanes):
                assert (out.device.name, out.committed, len(out)) == (device, True, LANES)
            near(vectorised(*values), lanes, relative=1e-12, why=f"{sample}: {WHY}")


# --- random programs ------------------------------------------------------------------------------


@COMPILING
@given(st.data())
def test_a_program_with_one_committed_argument_runs_on_its_device(data: st.DataObject):
    program = data.draw(programs(ANY, dtypes.f64, max_steps=3))
    args = data.draw(arguments(program))
    place = data.draw(st.integers(0, len(args) - 1))
    args_on_device = [rune.device_put(a, REFERENCE) if i == place else a for i, a in enumerate(args)]

    outputs = eval_program(program, args_on_device)

    near(eval_program(program, args), outputs, relative=1e-9, absolute=1e-9, why=WHY)
    assert {x.device.name for x in outputs if getattr(x, "committed", False)} <= {REFERENCE}


@COMPILING
@given(st.data())
def test_in_the_scope_of_a_device_programs_and_derivatives_are_the_same(data: st.DataObject):
    program = data.draw(programs(SMOOTH, dtypes.f64, input_kinds=(), max_steps=3))
    args = data.draw(arguments(program))
    tangents = directions(np.random.default_rng(1), args)

    def function(*xs: Any) -> list[Any]:
        return [o for o in eval_program(program, xs) if o.dtype == dtypes.f64]

    def results() -> Any:
        outs, pull = rune.vjp(function, *args)
        return rune.jvp(function, args, tangents), pull([array(np.asarray(o)) for o in outs])

    with rune.configure(device=REFERENCE):
        outputs = results()

    near(results(), outputs, relative=1e-8, absolute=1e-8, why=WHY)
    assert not any(x.committed for x in rune.tree.leaves(outputs) if isinstance(x, rune.Array))
