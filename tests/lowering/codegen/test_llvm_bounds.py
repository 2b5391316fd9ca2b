"""Kernels write their elements and nothing else: guard bytes around every result, and what is read.

Every dtype converts to every other, at lengths whose last vector has one lane and others, on
machines of several widths. A mask may be constant in the kernel, or only when LLVM has folded it.
Each run takes a few of the lengths 1 to 130, RUNE_TEST_WHOLE=1 all.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dims, dtypes
from rune.dims import Size
from rune.lowering.codegen.machine import SUPPORTED
from rune.lowering.kernel.expr import Cast, Expr, Index, Load, const
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.kernel.rewrite import size_names
from rune.lowering.kernel.text import parse
from tests.lowering.codegen.llvm_run import MACHINES, op, run
from tests.support.sampling import one_in

GUARD, MARK = 64, 0xA5
ROWS = 3
DTYPES = sorted(SUPPORTED, key=dtypes.short)
PAIRS = [(a, b) for a in DTYPES for b in DTYPES]
LENGTHS = range(1, 131)
ALL = [(*pair, length) for pair in PAIRS for length in LENGTHS]
AFTER_ONE = [(*pair, lanes + 1) for pair in PAIRS for lanes in (8, 16, 32, 64)]
SAMPLE = list(dict.fromkeys([*one_in(128, ALL), *one_in(8, AFTER_ONE)]))
N = dims.symbol("n", 0, 200)


def guarded(length: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Elements between guard bytes, and all the bytes."""
    memory = np.full(GUARD + length * dtype.itemsize + GUARD, MARK, np.uint8)
    return memory[GUARD:-GUARD].view(dtype), memory


def converted(source: np.dtype, target: np.dtype, length: Size) -> KernelCode:
    """y[r, i] = target(x[r, i]), in rows of a length."""
    r, i = dims.symbol("r", 0, ROWS - 1), dims.symbol("i", 0, length - 1)
    at, size = r * length + i, ROWS * length
    x = Load("x", (at,), source)
    store = Store("y", at, x if source == target else Cast(x, target))
    rows = For("r", ROWS, Kind.GRID, (For("i", length, Kind.VECTOR, (store,)),))
    params = (Param("x", source, size, Access.READ), Param("y", target, size, Access.WRITE))
    return KernelCode("converted", params, tuple(size_names(size)), (rows,))


def written(code: KernelCode, length: int, machine: str, **sizes: int) -> np.ndarray:
    """The kernel's result for values, after a check that its guard bytes are unchanged."""
    source, target = (p.dtype for p in code.params)
    x, y = values(length, source), guarded(ROWS * length, target)
    run(code, [x, y[0]], MACHINES[machine], None, **sizes)
    assert (y[1][:GUARD] == MARK).all(), "written before the beginning"
    assert (y[1][-GUARD:] == MARK).all(), "written past the end"
    return y[0]


def values(length: int, dtype: np.dtype) -> np.ndarray:
    """Whole numbers that every dtype except bool holds."""
    return (np.arange(ROWS * length) % 101).astype(dtype)


def meant(source: np.dtype, target: np.dtype, length: int) -> np.ndarray:
    return values(length, source).astype(target)


def named(case: object) -> str:
    return dtypes.short(case) if isinstance(case, np.dtype) else str(case)


@pytest.mark.parametrize(("source", "target", "length"), SAMPLE, ids=named)
def test_a_conversion_writes_no_byte_outside_its_elements(source, target, length):
    output = written(converted(source, target, length), length, "wide")

    assert output.tobytes() == meant(source, target, length).tobytes()


@pytest.mark.parametrize("machine", ["host", "narrow"])
@pytest.mark.parametrize("length", [1, 2, 3, 5, 9, 17, 33, 65])
def test_narrower_vectors_write_no_byte_outside_their_elements(length, machine):
    for source, target in [(dtypes.f32, dtypes.bf16), (dtypes.i64, dtypes.i8)]:
        output = written(converted(source, target, length), length, machine)

        assert output.tobytes() == meant(source, target, length).tobytes()


@pytest.mark.parametrize("lanes", [8, 16, 32, 64])
@pytest.mark.parametrize(
    ("source", "target"),
    [(dtypes.f32, dtypes.bf16), (dtypes.i64, dtypes.i32), (dtypes.i32, dtypes.i8)],
    ids=["f32-bf16", "i64-i32", "i32-i8"],
)
def test_a_tail_that_llvm_proves_to_be_one_element_is_one_element(source, target, lanes):
    code = converted(source, target, lanes * N + 1)

    output = written(code, 2 * lanes + 1, "wide", n=2)

    assert output.tobytes() == meant(source, target, 2 * lanes + 1).tobytes()


@pytest.mark.parametrize("lane", [0, 3, 15])
def test_a_branch_that_one_lane_takes_writes_that_lane(lane):
    code = parse(f"""
        code f(x: read i32[32], y: readwrite i8[32]) {{
          for i in 32 grid {{
            if index(i % 16) == {lane}_i64 {{
              store y[i] = i8(x[i])
            }}
          }}
        }}""")
    y, memory = guarded(32, dtypes.i8)

    run(code, [np.arange(32, dtype=np.int32) + 0x01010101, y], MACHINES["wide"])

    expected = np.full(32, MARK, np.uint8).view(np.int8)
    expected[[lane, lane + 16]] = [lane + 1, lane + 17]
    assert y.tobytes() == expected.tobytes()
    assert (memory[-GUARD:] == MARK).all()


def long_body(dtype: np.dtype, has_guard: bool, combine: str | None) -> KernelCode:
    """y[i] = x[i] - 1 - ... - 1, forty times: one copy of it, whose last round is not whole."""
    i, size = dims.symbol("i", 0, N - 1), N
    guard = op("lt", Index(i % 3, dtypes.i64), const(2, dtypes.i64)) if has_guard else None
    value: Expr = Load("x", (i,), dtype, guard)
    for _ in range(40):
        value = op("sub", value, const(1, dtype))
    store = Store("y", i, value, combine)
    access = Access.WRITE if combine is None else Access.READ_WRITE
    params = (Param("x", dtype, size, Access.READ), Param("y", dtype, size, access))
    return KernelCode("long_body", params, tuple(size_names(size)), (For("i", size, Kind.GRID, (store,)),))


@pytest.mark.parametrize("combine", [None, "add"])
@pytest.mark.parametrize("guarded_load", [False, True])
@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.f32, dtypes.i64, dtypes.i32, dtypes.i16, dtypes.i8], ids=named)
@pytest.mark.parametrize("machine", ["wide", "narrow"])
def test_a_long_body_writes_no_byte_outside_its_elements(machine, dtype, guarded_load, combine):
    code = long_body(dtype, guarded_load, combine)

    for length in (0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 129):
        x = (np.arange(length) % 101).astype(dtype)
        y, memory = guarded(length, dtype)
        y[:] = 3
        run(code, [x, y], MACHINES[machine], None, n=length)

        read = np.where(np.arange(length) % 3 < 2, x, x.dtype.type(0)) if guarded_load else x
        expected = (read - x.dtype.type(40) + x.dtype.type(0 if combine is None else 3)).astype(dtype)
        assert y.tobytes() == expected.tobytes(), length
        assert (memory[:GUARD] == MARK).all()
        assert (memory[GUARD + length * dtype.itemsize :] == MARK).all()


@pytest.mark.parametrize("span", [(0, 130), (3, 20), (5, 21), (16, 16), (100, 131)])
def test_a_long_body_over_part_of_its_range_writes_only_that_part(span):
    x, y = np.arange(131, dtype=np.float32), np.zeros(131, np.float32)

    run(long_body(dtypes.f32, has_guard=False, combine=None), [x, y], None, span, n=131)

    expected = np.zeros(131, np.float32)
    expected[slice(*span)] = x[slice(*span)] - 40
    assert (y == expected).all()
