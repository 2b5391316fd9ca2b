"""Long rows: a maximum and the sums of exponentials that use it are computed in parts.

How many kernels and bytes this takes, and that hard rows give the result of two passes, by the
kernel interpreter. tests/laws/test_long_axes.py has such rows on every executor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
from rune import nn
from rune import numpy as rnp
from rune.lowering.explain import Lowered
from rune.lowering.stages import stages
from tests.support.close import near
from tests.support.lowering import run_plan, target

GPU = replace(target(language="cuda"), cores=16, threads_per_workgroup=1024, shared_bytes=1 << 16)


def lowered(function: Callable[..., Any], *args: np.ndarray) -> Lowered:
    return stages(rune.jit(function).traced(*map(rnp.asarray, args)).program, GPU, check=True)


def run(function: Callable[..., Any], *args: np.ndarray) -> Any:
    (out,) = run_plan(lowered(function, *args).plan, list(args))
    return out


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).normal(size=shape).astype(np.float32)


def test_softmax_of_long_rows_is_three_kernels_and_reads_them_twice():
    result = lowered(nn.softmax, rows(8, 131_072))

    assert len(result.kernels.steps) == 3
    assert result.costs().bytes_moved < 1.01 * 3 * 8 * 131_072 * 4


def test_a_cross_entropy_of_long_rows_reads_them_once():
    def loss(x: Any) -> Any:
        return -rnp.sum(nn.log_softmax(x)[:, 3])

    result = lowered(loss, rows(8, 131_072))
    assert result.costs().bytes_moved < 1.01 * 8 * 131_072 * 4
    near(-np.log(softmax(rows(8, 131_072))[:, 3]).sum(), run(loss, rows(8, 131_072)), relative=1e-5, why="f32")


@pytest.mark.parametrize("shape", [(3, 50_257), (1, 65_537), (2, 65_536), (5, 16_384 + 1)], ids=str)
def test_parts_of_any_length_are_right(shape: tuple[int, ...]):
    near(softmax(rows(*shape)), run(nn.softmax, rows(*shape)), relative=1e-5, absolute=1e-12, why="f32 sums")


def test_other_axes_are_split_too():
    x = rows(2, 70_001, 1)

    out = run(lambda x: nn.softmax(x, 1), x)
    near(softmax(x[:, :, 0]), out[:, :, 0], relative=1e-5, absolute=1e-12, why="f32 sums")


def test_summands_may_hold_other_things_as_large():
    def entropy(x: Any, w: Any) -> Any:
        e = rnp.exp(x - rnp.max(x, 1, keepdims=True))
        total = rnp.sum(e, 1)
        return (rnp.sum(e * x, 1) + rnp.sum(rnp.where(w > 0, e * e / (w * w), 0.0), 1)) / total

    x, w = rows(2, 65_537), rows(2, 65_537) + np.float32(3)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    wide = w.astype(np.float64)
    expected = ((e * x).sum(1) + np.where(wide > 0, e * e / (wide * wide), 0).sum(1)) / e.sum(1)
    near(expected, run(entropy, x, w), relative=2e-5, why="f32 sums")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("length", [65_536, 65_537])
def test_hard_rows_are_what_two_passes_make_of_them(length: int):
    x = rows(9, length)
    x[0] = -np.inf
    x[1, :8000] = -np.inf  # some parts, and a piece of one
    x[2, 7], x[3, -1] = np.inf, np.inf
    x[4, 9000], x[5, 3] = np.nan, np.nan
    x[5] = -np.inf
    x[5, 3] = np.nan
    x[6], x[6, -1] = -1e30, -1e29
    x[7], x[7, 5] = -np.inf, -700
    x[8] = -3.4e38

    near(softmax(x), run(nn.softmax, x), relative=2e-5, absolute=1e-12, why="f32 sums")
