"""Every primitive under vmap equals the stacked loop, for every choice of batched operands.

Then nested vmaps; then that a value without lanes stays unbatched.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import rune
from rune import dtypes, ops
from rune.core.primitive import Primitive
from tests.ops.calls import Sample
from tests.ops.samples import each_primitive, samples
from tests.support.arrays import array
from tests.support.close import close, same

LANES = 3


def lanes_of(sample: Sample, has_lanes: tuple[bool, ...]) -> list[Any]:
    """Operands, those batched with a leading axis of lanes of different values."""
    rng = sample.rng
    return [array(o.draw(rng, *(LANES,) * b)) for o, b in zip(sample.operands, has_lanes)]


def looped(sample: Sample, values: list[Any], has_lanes: tuple[bool, ...]) -> np.ndarray:
    """The stacked results of one call per lane."""
    rows = []
    for lane in range(LANES):
        row = [array(v.numpy()[lane]) if b else v for v, b in zip(values, has_lanes)]
        rows.append(sample.primitive(*row, **sample.params).numpy())
    return np.stack(rows)


def choices(count: int) -> list[tuple[bool, ...]]:
    """Every choice with at least one batched operand."""
    return [c for c in itertools.product((True, False), repeat=count) if any(c)]


def worth_trying(primitive: Primitive) -> list[Sample]:
    """All samples, except those that differ only in dtype; scalars with arrays."""
    candidates = samples(primitive)
    distinct = {(tuple(o.shape for o in s.operands), str(s.params)): s for s in candidates}
    cases = list(distinct.values())
    return cases if len(cases) < 40 else cases[::5]


@each_primitive
def test_vmap_equals_the_stacked_loop_for_every_choice_of_batched_operands(primitive: Primitive):
    for sample in worth_trying(primitive):
        for has_lanes in choices(len(sample.operands)):
            values = lanes_of(sample, has_lanes)
            axes = tuple(0 if b else None for b in has_lanes)

            lanes = rune.vmap(lambda *xs, s=sample: s.primitive(*xs, **s.params), axes)(*values)

            ulps = 4 if primitive.family == "contraction" else 1
            close(looped(sample, values, has_lanes), lanes, ulps=ulps, why=f"{sample}: {has_lanes}")


@each_primitive
def test_operands_with_and_without_axes_mix_under_vmap(primitive: Primitive):
    if primitive.family not in ("arithmetic", "comparison", "selection", "transcendental"):
        return
    sample = samples(primitive)[-1]
    for ranks in itertools.product(((), (4,)), repeat=len(sample.operands)):
        operands = tuple(_with_shape(o, s) for o, s in zip(sample.operands, ranks))
        variant = Sample(primitive, operands, sample.params)
        for has_lanes in choices(len(operands)):
            values = lanes_of(variant, has_lanes)
            axes = tuple(0 if b else None for b in has_lanes)

            lanes = rune.vmap(lambda *xs, s=variant: s.primitive(*xs, **s.params), axes)(*values)

            close(looped(variant, values, has_lanes), lanes, ulps=1, why=f"{variant}: {has_lanes}")


def _with_shape(operand: Any, shape: tuple[int, ...]) -> Any:
    return type(operand)(shape, operand.dtype, operand.low, operand.high)


@each_primitive
def test_nested_vmap_equals_two_loops(primitive: Primitive):
    for sample in worth_trying(primitive)[:2] if samples(primitive)[0].operands else ():
        rng = sample.rng
        values = [array(o.draw(rng, 2, LANES)) for o in sample.operands]

        def call(*xs: Any, s: Sample = sample) -> Any:
            return s.primitive(*xs, **s.params)

        outer = [rune.vmap(call)(*(array(v.numpy()[i]) for v in values)) for i in range(2)]
        lanes = rune.vmap(rune.vmap(call))(*values)
        close(np.stack([o.numpy() for o in outer]), lanes, ulps=4, why="sums reordered")


def test_a_value_without_lanes_is_computed_once():
    def function(x: Any, w: Any) -> Any:
        return ops.mul(x, ops.exp(w))

    program = rune.make_program(rune.vmap(function, in_axes=(0, None)))(
        array(np.ones((5, 2), np.float32)), array(np.ones(2, np.float32))
    )

    (exp,) = [e for e in program.equations if e.primitive is ops.exp]
    assert exp.results[0].type.shape == (2,)


def test_iota_and_size_have_no_lanes():
    lanes = rune.vmap(lambda x: ops.iota(shape=(2,), axis=0, dtype=dtypes.i32), out_axes=None)(
        array(np.ones(3, np.float32))
    )

    same(np.arange(2, dtype=np.int32), lanes)
