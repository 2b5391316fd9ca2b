"""Small products of drafts: the numbers of NumPy on every machine, and the bits of the library."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes
from rune.backends.cpu import conventions, kinds_of_calls
from rune.backends.cpu.compiler import compile_module
from rune.backends.cpu.conventions import HURRY
from rune.backends.cpu.gemm.product import DEPTH, ROLES
from rune.backends.cpu.gemm.small import Small, small_of
from rune.core.types import ArrayType
from rune.lowering.codegen.machine import Machine
from rune.lowering.kernelize.walks import SIZES, extent, strided_product
from rune.lowering.plan import Call, Slot, Space
from rune.typing import Array
from tests.backends.cpu.gemm.test_gemm import MACHINES
from tests.backends.cpu.gemm.test_strided import ONE, image, plain, total
from tests.backends.cpu.test_drafts import HARD, draft_of
from tests.support.bits import assert_same_bits
from tests.support.sampling import each_value

pytestmark = each_value()

EXTENTS = ((1, 1, 1, 1), (1, 3, 5, 17), (2, 5, 1, 33), (1, 7, 16, 3), (3, 6, 37, 2), (1, 1, 19, 40))


def call(routine: str, dtype: np.dtype, parameters: dict[str, Any]) -> Call:
    slots = [Slot(Space.ARGUMENT, ArrayType((1,), dtype), number) for number in range(2)]
    return Call(routine, (Slot(Space.RESULT, ArrayType((1,), dtype)),), tuple(slots), tuple(parameters.items()))


def dense(extents: Sequence[int], ta: bool, tb: bool, dtype: np.dtype = dtypes.f32) -> Call:
    return call("dot", dtype, dict(zip(SIZES, extents, strict=True)) | {"trans_a": ta, "trans_b": tb})


def walking(roles: Sequence[tuple[tuple[int, int], ...]]) -> Call:
    """A call of operands just as long as their walks."""
    sizes = [total(roles[0]), total(roles[1]), total(roles[4]), total(roles[2])]
    parameters = dict(zip(SIZES, sizes, strict=True)) | {"a_offset": 0, "b_offset": 0}
    for role, digits in zip(ROLES, roles, strict=True):
        for number, (size, step) in enumerate(digits):
            parameters |= {f"{role}{number}": size, f"{role}{number}_step": step}
    for side, name in (("left", "a_offset"), ("right", "b_offset")):
        parameters[name] = -extent(parameters, side)[1]  # steps back begin further on
    return call("strided_dot", dtypes.f32, parameters)


def small_products(calls: Sequence[Call], machine: Machine) -> list[Callable[..., object]]:
    """Their functions, of the addresses of A, B and C."""
    texts, declarations = [], set[str]()
    for number, step in enumerate(calls):
        small = small_of(step, machine)
        assert isinstance(small, Small), step
        head, writer = small.function(f"product.{number}")
        texts.append(writer.definition(head.removeprefix("internal ")))
        declarations |= writer.declarations
    code = compile_module("small", "\n\n".join([*sorted(declarations), *texts]), HURRY)
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)
    functions = [kind(code.address(f"product.{number}")) for number in range(len(calls))]
    for function in functions:
        function.code = code  # type: ignore[attr-defined]  # lives as long
    return functions


def run(function: Callable[..., object], a: np.ndarray, b: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    c = np.full(shape, np.nan, a.dtype)
    function(a.ctypes.data, b.ctypes.data, c.ctypes.data)
    return c


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=dtypes.short)
def test_dense_products_of_every_layout(dtype: np.dtype, on: str):
    rng, cases = np.random.default_rng(0), [*product(EXTENTS, (False, True), (False, True))]
    functions = small_products([dense(*case, dtype) for case in cases], MACHINES[on])

    for function, ((batch, m, n, k), ta, tb) in zip(functions, cases, strict=True):
        a = rng.integers(-3, 4, (batch, k, m) if ta else (batch, m, k)).astype(dtype)
        b = rng.integers(-3, 4, (batch, n, k) if tb else (batch, k, n)).astype(dtype)
        c = run(function, a, b, (batch, m, n))

        assert (c == (a.swapaxes(1, 2) if ta else a) @ (b.swapaxes(1, 2) if tb else b)).all(), (batch, m, n, k, ta, tb)


@pytest.mark.parametrize("on", MACHINES)
def test_products_of_views_of_every_kind(on: str):
    pixels, window = image(3, 9, 3, 1)
    wide, turned = image(2, 11, 3, 2), tuple((size, -step) for size, step in window)
    cases = [
        (*plain(1, 7, total(window)), ONE, pixels, window),  # patches as columns
        (ONE, pixels, window, ONE, ((8, 1),), ((total(window), 8),)),  # and as rows
        (ONE, wide[0], wide[1], ONE, ((1, 0),), ((total(wide[1]), 1),)),  # of one filter
        (*plain(1, 10, total(pixels)), ONE, window, pixels),  # summed over
        (*plain(1, 9, 30), ONE, ((21, 3),), ((30, 200),)),  # lanes apart
        (((2, 0), (2, 189)), ((7, 27),), ((27, -1),), ((4, 243),), pixels, turned),  # steps back, batches
        (ONE, ((5, 0),), ((12, 1),), ONE, ((19, 0),), ((3, 4), (4, 1))),  # one row for all, one column for all
    ]
    steps = [walking(roles) for roles in cases]
    rng = np.random.default_rng(0)

    for function, step in zip(small_products(steps, MACHINES[on]), steps, strict=True):
        parameters: Any = dict(step.parameters)
        a, b = (rng.integers(-3, 4, extent(parameters, side)[2]).astype("f4") for side in ("left", "right"))
        starts = a[parameters["a_offset"] :], b[parameters["b_offset"] :]
        expected = strided_product(a, b, parameters)

        assert (run(function, *starts, expected.shape) == expected).all(), step.parameters


SHAPES = ((37, 41), (41, 19), (100, 41), (50, 37), (3, 41), (403, 41), (41,), (403,), (3, 3, 1, 5), (2, 48, 3, 8))


def products(x: Array, y: Array, z: Array, v: Array, few: Array, w: Array, *others: Array) -> list[Array]:
    """Products of every layout, of few rows, of one column, and of views, large enough to be
    calls."""
    one, many, filters, heads = others
    image = x.reshape(1, 37, 41, 1)
    return [
        x @ y,
        x.T @ x,
        x @ z.T,
        x.T @ v.T,
        few @ w.T,
        w @ one,
        w.T @ many,
        rnp.einsum("bqhd,bkhd->bhqk", heads, heads),
        rune.lax.conv_general_dilated(image, filters, (1, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("hard", [False, True])
def test_the_bits_are_those_of_the_library(dtype: type, hard: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(conventions, "PATIENCE", 1e9)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(dtype) for shape in SHAPES]
    for array in arrays if hard else ():
        array.flat[::17] = np.resize(HARD, array.flat[::17].shape)
    with rune.enable_x64():
        executable = draft_of(products, *arrays)
    steps = [step for step in executable.plan.steps if isinstance(step, Call)]
    forms = {(s.sums_lanes, s.is_transposed) for step in steps if (s := small_of(step, executable.code_host.machine))}
    assert (len(steps), forms) == (9, {*product((False, True), repeat=2)})
    assert not kinds_of_calls.dots().products_of(executable.plan, executable.code_host)

    small = [np.copy(c) for c in executable(arrays)]
    assert executable.is_draft
    executable.refine()

    for step, before, after in zip(steps, small, map(np.asarray, executable(arrays)), strict=True):
        assert_same_bits(before, after, (step.routine, step.parameters))


@pytest.mark.parametrize("extents", [(1, 2, 3, DEPTH + 1), (1, 200, 200, 64), (0, 2, 3, 4), (1, 2, 3, 0)], ids=str)
def test_large_and_empty_products_are_the_librarys(extents: tuple[int, ...]):
    assert small_of(dense(extents, False, False), MACHINES["sse"]) is None


def test_digits_that_divide_no_common_index_are_the_librarys():
    assert small_of(walking((ONE, ONE, ((4, 1), (3, 4)), ONE, ONE, ((3, 1), (4, 3)))), MACHINES["host"]) is None
