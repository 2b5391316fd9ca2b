"""Loops of lanes that finish at different steps and write in place give what each lane gives alone.

Bodies are random sequences of writes at positions that depend on the lane, in bounds and out of
bounds, overlapping or not. The oracle is NumPy, lane by lane. The kernels show that nothing is
copied: no kernel of a step writes a whole array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rune
import rune.numpy as rnp
from rune import lax
from tests.support.close import same
from tests.support.examples import COMPILING
from tests.support.sampling import in_turn

LENGTH = 7
EXECUTORS = [d.name for d in rune.devices() if not d.name.startswith("null")]
KINDS = ("set", "add", "multiply", "min", "max", "window", "pair")


@dataclass(frozen=True, slots=True)
class Write:
    """One write of a step: a multiple of the step, written at offset + stride * step."""

    kind: str
    offset: int
    stride: int
    factor: int

    def place(self, t: Any) -> Any:
        return self.offset + self.stride * t


def writes() -> st.SearchStrategy[list[Write]]:
    one = st.builds(Write, st.sampled_from(KINDS), st.integers(-2, 9), st.integers(-2, 2), st.integers(-2, 3))
    return st.lists(one, min_size=1, max_size=3)


def written(x: Any, t: Any, write: Write) -> Any:
    """The write by rune."""
    at, value = write.place(t), (write.factor * t).astype("f32")
    match write.kind:
        case "window":
            return lax.dynamic_update_slice(x, rnp.stack([value, x[0]]), (at,))
        case "pair":
            return x.at[rnp.stack([at, at + 2])].set(value)
        case kind:
            return getattr(x.at[at], kind)(value)


def written_by_numpy(x: np.ndarray, t: int, write: Write) -> np.ndarray:
    """The write by NumPy: a window is moved inside, a position out of bounds is dropped."""
    x, at, value = x.copy(), write.place(t), np.float32(write.factor * t)
    if write.kind == "window":
        start = min(max(at + LENGTH if at < 0 else at, 0), LENGTH - 2)
        x[start : start + 2] = value, x[0]
        return x
    for place in (at, at + 2) if write.kind == "pair" else (at,):
        place = place + LENGTH if place < 0 else place
        if 0 <= place < LENGTH:
            element = x[place]
            options = {
                "add": element + value,
                "multiply": element * value,
                "min": min(element, value),
                "max": max(element, value),
            }
            x[place] = options.get(write.kind, value)
    return x


def run(body: Sequence[Write], x: Any, steps: Any) -> Any:
    """The loop by rune: x written `steps` times, and what was read meanwhile."""

    def step(carry: Any) -> Any:
        t, x, read = carry
        for write in body:
            x = written(x, t, write)
        return t + 1, x, read + x[t % LENGTH]

    return lax.while_loop(lambda c: c[0] < steps, step, (rnp.int32(0), x, rnp.float32(0)))[1:]


def run_by_numpy(body: Sequence[Write], x: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    read = np.float32(0)
    for t in range(steps):
        for write in body:
            x = written_by_numpy(x, t, write)
        read = read + x[t % LENGTH]
    return x, np.asarray(read)


def of_lanes(body: Sequence[Write], xs: np.ndarray, steps: np.ndarray) -> list[np.ndarray]:
    lanes = [run_by_numpy(body, x, int(n)) for x, n in zip(xs, steps, strict=True)]
    return [np.stack(column) for column in zip(*lanes, strict=True)]


def near_zero(values: Any) -> Any:
    """The values without the sign of zero, which minima and maxima leave open."""
    return [np.asarray(v) + 0.0 for v in values]


def operands(lanes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-4, 5, (lanes, LENGTH)).astype(np.float32), rng.integers(0, 6, lanes).astype(np.int32)


@COMPILING
@given(writes(), st.integers(1, 5), st.integers(0, 1000))
def test_each_lane_writes_as_it_does_alone(body: list[Write], lanes: int, seed: int):
    xs, steps = operands(lanes, seed)

    result = rune.jit(rune.vmap(lambda x, n: run(body, x, n)))(xs, steps)

    same(near_zero(of_lanes(body, xs, steps)), near_zero(result))


ALL = [Write(kind, 1, 1, 2) for kind in KINDS]


@in_turn()
@pytest.mark.parametrize("device", EXECUTORS)
def test_each_lane_writes_on_an_executor_as_it_does_alone(device: str):
    xs, steps = operands(3, 7)
    for body in (ALL[:2], ALL[2:5], ALL[5:]):
        result = rune.jit(rune.vmap(lambda x, n, body=body: run(body, x, n)), device=device)(xs, steps)

        same(near_zero(of_lanes(body, xs, steps)), near_zero(result))


def _arrays_made(function: Any, *args: Any) -> list[str]:
    """The kernels of a loop's body, or of a program, that make whole arrays."""
    text = str(rune.explain(rune.jit(rune.vmap(function)))(*args)["kernels"])
    body = text[text.index("kernels body") : text.index("\nkernel ")] if "kernels body" in text else text
    lines = [line for line in body.splitlines() if f",{LENGTH}] = " in line]
    return [line for line in lines if "= scatter" not in line and "= window" not in line]


@pytest.mark.parametrize("write", ALL, ids=lambda w: w.kind)
def test_no_step_makes_a_whole_carry(write: Write):
    def counted(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, written(c[1], c[0], write)), (rnp.int32(0), x))

    xs, steps = operands(3, 7)

    assert not _arrays_made(counted, xs, steps)


def test_a_branch_of_some_lanes_writes_in_place():
    def branch(p: Any, x: Any, i: Any) -> Any:
        return rune.cond(p, lambda x: x.at[i].set(3.0), lambda x: x.at[i + 1].add(2.0), x)

    xs, places = operands(4, 3)
    predicates = np.array([True, False, False, True])

    assert not _arrays_made(branch, predicates, xs, places)
    expected = xs.copy()
    for lane in range(4):
        if predicates[lane]:
            expected[lane, places[lane]] = 3
        elif places[lane] + 1 < LENGTH:
            expected[lane, places[lane] + 1] += 2
    same(expected, rune.jit(rune.vmap(branch))(predicates, xs, places))


def test_a_mask_over_elements_stays_a_select():
    def masked(mask: Any, x: Any, i: Any) -> Any:
        return rnp.where(mask, x.at[i].set(3.0), x)

    xs, places = operands(4, 3)
    mask = xs > 0

    expected = xs.copy()
    expected[np.arange(4), places] = np.where(mask[np.arange(4), places], 3, expected[np.arange(4), places])
    same(expected, rune.jit(rune.vmap(masked))(mask, xs, places))
