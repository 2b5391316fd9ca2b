"""Drafts run loops one by one where lanes do not order a sum: less code, and the same bits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends.cpu import conventions
from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.kernel.parse import parse
from rune.lowering.kernel.rewrite import walk
from rune.lowering.lanes.layout import layout, one_by_one
from rune.typing import Array
from tests.backends.cpu.test_drafts import HARD, draft_of
from tests.support.bits import assert_same_bits

# Below, at and above the lanes of a vector, and of several.
SIZES = (1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 65, 130)
FUNCTIONS = """
    sin cos tan arctan sinh tanh arcsinh exp exp2 expm1 log log2 log1p sqrt cbrt reciprocal sign floor rint negative
    """.split()
PAIRS = "add subtract multiply divide power maximum minimum arctan2 fmod remainder copysign less".split()
INTEGER_PAIRS = """
    add subtract multiply floor_divide remainder maximum minimum left_shift right_shift bitwise_xor less
    """.split()


@pytest.fixture(autouse=True)
def _no_haste(monkeypatch):
    monkeypatch.setattr(conventions, "PATIENCE", 1e9)


def assert_draft_has_the_final_bits(function: Callable[..., Sequence[Array]], *arrays: np.ndarray) -> None:
    with rune.enable_x64():
        executable = draft_of(function, *arrays)
    draft_results = [np.copy(y) for y in executable([*arrays])]
    assert executable.is_draft
    executable.refine()
    for before, after in zip(draft_results, map(np.asarray, executable([*arrays])), strict=True):
        assert_same_bits(before, after)


def on_all(names: Sequence[str], *operands: Array) -> list[Array]:
    return [getattr(rnp, name)(*operands) for name in names]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_functions_have_the_bits_of_the_final_code(dtype: type):
    with np.errstate(all="ignore"):
        x = np.concatenate([HARD, np.linspace(-9, 9, 59), [65504, 1e9, -1e10, 88.8, 2.0**63]]).astype(dtype)
    assert_draft_has_the_final_bits(functools.partial(on_all, FUNCTIONS), x)
    assert_draft_has_the_final_bits(functools.partial(on_all, PAIRS), x, np.roll(x, 7))


MOVES = {
    "words": lambda lib, x: x.view("uint16"),
    "bytes": lambda lib, x: x.view("uint8"),
    "signed bytes": lambda lib, x: x.view("int8"),
    "bytes of rows, reversed": lambda lib, x: x[:, ::-1].copy().view("uint8"),
    "two copies": lambda lib, x: lib.concatenate([x, x], 1).view("uint16"),
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", MOVES)
def test_moves_keep_the_bits_of_nan_of_half_types(name: str, dtype: type):
    for size in SIZES:
        # Signalling ones, with the lowest bit of the fraction, beside quiet ones and numbers.
        x = np.resize(np.array([0x7D01, 0x7F81, 0xFF81, 0xFC01, 0x7E00, 0x3C00], np.uint16), (3, size)).view(dtype)
        executable = draft_of(functools.partial(MOVES[name], rnp), x)
        for _ in range(2):
            np.testing.assert_array_equal(executable([x])[0], MOVES[name](np, x))
            executable.refine()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integers_have_the_bits_of_the_final_code(dtype: str):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 0, 1, 2, 7, limits.max - 1] * 5, dtype)
    assert_draft_has_the_final_bits(functools.partial(on_all, INTEGER_PAIRS), x, np.roll(x, 11))


def rows_and_columns(x: Array) -> list[Array]:
    """Maps, and sums of either axis, some of them in one kernel."""
    weights = rnp.exp(x - x.max(1, keepdims=True))
    shares = weights / weights.sum(1, keepdims=True)
    return [x.sum(1), x.sum(0), shares, (x * 2)[:, ::-1], rnp.where(x > 0, x, x.mean(1)[:, None]), x.max(0), x.T + 1]


@pytest.mark.parametrize("columns", SIZES)
def test_sums_have_the_bits_of_the_final_code_at_all_sizes(columns: int):
    for rows in (1, 3, 16, 17):
        x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
        assert_draft_has_the_final_bits(rows_and_columns, x)


def test_only_loops_that_sum_up_lanes_stay_in_lanes_which_are_as_many():
    code: KernelCode = parse("""
        code f(x: read f32[8], y: read f32[512], z: write f32[1], w: write f32[512]) {
          var s: f32 = 0.0_f32
          for i in 8 vector { s add= exp(x[i]) }
          store z[0] = s
          for j in 512 vector { store w[j] = y[j] * 2.0_f32 }
        }""")
    sums, maps = (stmt for stmt in walk(code.body) if isinstance(stmt, For))

    lanes = layout(code, 64)
    few = one_by_one(code, lanes)

    assert lanes.loops == {id(sums), id(maps)}
    assert few.loops == {id(sums)}
    assert few.lanes == lanes.lanes == 16
    assert few.division == lanes.division
    assert few.cost > lanes.cost


def test_a_draft_of_a_map_has_no_vectors_and_the_final_code_has():
    x = np.arange(100, dtype=np.float32)
    executable = draft_of(lambda x: x * 2 + x[::-1], x)
    assert " x float>" not in executable.rendering.text

    executable.refine()

    assert " x float>" in executable.rendering.text


def test_a_draft_that_would_run_long_one_by_one_stays_in_lanes():
    executable = draft_of(lambda x: rnp.sin(x) * 2, np.zeros(300_000, np.float32))

    assert executable.is_draft
    assert " x float>" in executable.rendering.text


def test_a_call_that_takes_long_compiles_nothing_behind_it_as_it_may_be_the_only_one(monkeypatch):
    x = np.arange(9, dtype=np.float32)
    executable = draft_of(rnp.sin, x)
    monkeypatch.setattr(conventions, "PATIENCE", 0.0)

    assert [executable([x]) and executable.is_draft for _ in range(3)] == [True, False, False]
