"""Strided elements, read and written as whole vectors: their values, and those in between."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from rune.backends.cpu.compiler import machine
from rune.lowering.codegen.llvm.render import render
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse
from tests.lowering.codegen.llvm_run import MACHINES, run

SIZES = (1, 2, 7, 16, 17, 31, 32, 37, 100)
WIDE = pytest.mark.skipif(not machine().has_cheap_masks, reason="the host has no masked vectors of 64 bytes")


def shifted(step: int, size: int, dtype: str, guard: str = "") -> str:
    """Every step-th element of x, from 1 on, to every step-th of y."""
    count = step * (size - 1) + 2
    return f"""
        code f(x: read {dtype}[{count}], y: write {dtype}[{count}]) {{
          for i in {size} grid {{
            store y[{step}*i + 1] = x[{step}*i + 1{guard}] + 1_{dtype}
          }}
        }}""".replace("1_f", "1.0_f")


def between(array: np.ndarray, before: int, after: int) -> np.ndarray:
    """A copy of the array with other numbers on both sides, which must stay as they are."""
    memory = np.full(len(array) + before + after, 99, array.dtype)
    memory[before : before + len(array)] = array
    return memory


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("dtype", ["f32", "f64", "i32", "i8"])
@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_strided_elements_equal_the_interpreters_and_no_others_change(step: int, dtype: str, on: str):
    for size in SIZES:
        code = parse(shifted(step, size, dtype))
        x = np.arange(step * (size - 1) + 2).astype(code.params[0].dtype)
        reference = np.full_like(x, 7)
        memory = between(reference, 70, 70)
        interpret(code, [x, reference])

        run(code, [x, memory[70:]], MACHINES[on])

        np.testing.assert_array_equal(memory, between(reference, 70, 70))


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("step", [2, 3, 4])
def test_elements_behind_a_guard_are_not_needed(step: int, on: str):
    for size in SIZES:
        code = parse(shifted(step, size, "f32", f" if index(i) < {size // 2}_i64"))
        x = np.arange(step * (size - 1) + 2).astype(np.float32)
        actual, reference = np.zeros_like(x), np.zeros_like(x)
        interpret(code, [x, reference])

        run(code, [x, actual], MACHINES[on])

        np.testing.assert_array_equal(actual, reference)


@pytest.mark.parametrize("on", MACHINES)
@pytest.mark.parametrize("step", [2, 3, 4])
def test_nothing_is_touched_past_the_last_element(step: int, on: str):
    page = mmap.PAGESIZE
    for size in SIZES:
        room = mmap.mmap(-1, 2 * page)
        address = ctypes.addressof(ctypes.c_char.from_buffer(room))
        count = step * (size - 1) + 2
        array = np.frombuffer(room, np.float32, count, page - count * 4)
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), page, 0) == 0

        run(parse(shifted(step, size, "f32")), [array, array.copy()], MACHINES[on])  # would crash
        run(parse(shifted(step, size, "f32")), [array.copy(), array], MACHINES[on])

        ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + page), page, 3)


@WIDE
@pytest.mark.parametrize(("step", "gathers"), [(2, False), (4, False), (5, True)])
def test_only_elements_far_apart_are_gathered(step: int, gathers: bool):
    text = render(parse(shifted(step, 100, "f32")), machine()).text

    assert ("gather" in text) == gathers
    assert ("scatter" in text) == gathers
