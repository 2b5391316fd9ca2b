"""Atomic updates: their text, where they are refused, and that they do not race with each other."""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.errors import CheckError
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import render
from rune.lowering.codegen.wgsl.render import render as render_wgsl
from rune.lowering.kernel.check import check
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.text import parse, to_text

COUNTS = """
code counts(k: read i32[64], y: readwrite i32[4]) {
  for g in 4 grid {
    alloc table: i32[4] shared
    for t in 4 workgroup {
      store table[t] = 0_i32
      barrier
      for e in 4 serial {
        d: i32 in 0..3 = k[4*e + 16*g + t]
        atomic table[d] add= 1_i32
      }
      barrier
      atomic y[t] add= table[t]
    }
  }
}
"""


def changing(kind: str, combine: str, value: str, where: str = "y") -> str:
    scratch, change = f"alloc s: {kind}[2] local", f"atomic {where}[0] {combine}= {value}"
    return f"code f(y: readwrite {kind}[2]) {{ for i in 2 grid {{ {scratch} {change} }} }}"


def test_printed_text_is_read_back():
    assert to_text(parse(COUNTS)) == COUNTS.strip()


def test_several_threads_may_change_one_element():
    k, y = np.random.default_rng(0).integers(0, 4, 64).astype(np.int32), np.zeros(4, np.int32)

    interpret(parse(COUNTS), [k, y])

    np.testing.assert_array_equal(np.bincount(k, minlength=4), y)


@pytest.mark.parametrize("other", ["store y[0] = 1_i32", "z: i32 = y[0]"])
@pytest.mark.parametrize("order", ["{0} {1}", "{1} {0}"])
def test_an_atomic_change_with_a_plain_access_is_a_race(order: str, other: str):
    change = "atomic y[0] add= 1_i32"
    text = f"code f(y: readwrite i32[2]) {{ for i in 2 grid {{ {order.format(change, other)} }} }}"

    with pytest.raises(CheckError, match="a race within the grid"):
        interpret(parse(text), [np.zeros(2, np.int32)])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (changing("i32", "mul", "2_i32"), "no atomic mul of i32"),
        (changing("i8", "add", "2_i8"), "no atomic add of i8"),
        (changing("f16", "add", "2.0_f16"), "no atomic add of f16"),
        (changing("i32", "add", "2_i32", "s"), "s is changed atomically, and belongs to one thread"),
    ],
)
def test_an_atomic_change_that_no_device_has_is_refused(text: str, reason: str):
    with pytest.raises(CheckError, match=reason):
        check(parse(text))


@pytest.mark.parametrize(
    ("kind", "combine", "value", "call"),
    [
        ("i32", "add", "2_i32", "atomicAdd(&y[0], 2)"),
        ("f32", "add", "2.0_f32", "atomicAdd(&y[0], 2.0f)"),
        ("i64", "min", "2_i64", "atomicMin(&y[0], 2LL)"),
        ("i64", "add", "2_i64", "atomicAdd((unsigned long long*)&y[0], (unsigned long long)(2LL))"),
    ],
)
def test_cuda_has_calls_for_integers_and_for_sums_of_floats(kind: str, combine: str, value: str, call: str):
    assert f"{call};" in render(parse(changing(kind, combine, value)), CUDA_C).text


def test_opencl_calls_its_functions_of_words():
    assert "atomic_max(&y[0], 2u);" in render(parse(changing("u32", "max", "2_u32")), OPENCL_C).text


def test_wgsl_declares_atomically_updated_buffers_as_atomic_words():
    text = render_wgsl(parse(COUNTS)).text

    assert "var<workgroup> table: array<atomic<i32>, 4>;" in text
    assert "memory1: array<atomic<u32>>" in text
    assert "memory0: array<u32>" in text


def test_only_some_dtypes_have_atomic_changes():
    names = []
    for dtype in sorted(dtypes.NUMERIC, key=dtypes.short):
        try:
            check(parse(changing(dtypes.short(dtype), "add", f"{dtypes.short(dtype)}(1_i32)")))
        except CheckError:
            continue
        names.append(dtypes.short(dtype))

    assert names == ["f32", "f64", "i32", "i64", "u32", "u64"]
