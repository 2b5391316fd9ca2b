"""Adjacent accesses to neighbours become one access in languages that have wide accesses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rune import dtypes
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.c.opencl import OPENCL_C
from rune.lowering.codegen.c.render import render
from rune.lowering.codegen.runs import LoadRun, StoreRun, with_runs
from rune.lowering.kernel.nodes import For, KernelCode
from rune.lowering.kernel.parse import parse


def runs(text: str, most: int = 4) -> list[Any]:
    """The runs among the statements of the innermost body."""
    body = code(text).body
    while isinstance(body[0], For):
        body = body[0].body
    items = with_runs(body, lambda dtype: most, {"x", "y"})
    return [r for r in items if isinstance(r, LoadRun | StoreRun)]


def code(body: str) -> KernelCode:
    return parse(f"code f(x: read f32[4096], y: write f32[4096]) {{ for i in 64 grid {{ {body} }} }}")


def loads(*indices: str) -> str:
    return "\n".join(f"a{k}: f32 = x[{index}]" for k, index in enumerate(indices))


def stores(*pairs: str) -> str:
    return "\n".join(f"store y[{index}] = {value}" for index, value in (p.split("=") for p in pairs))


def test_loads_of_neighbours_are_one_run():
    (run,) = runs(loads("4*i", "4*i + 1", "4*i + 2", "4*i + 3"))

    assert isinstance(run, LoadRun)
    assert [let.name for let in run.lets] == ["a0", "a1", "a2", "a3"]


def test_a_run_is_no_longer_than_an_access_may_be():
    assert [len(r.lets) for r in runs(loads(*(f"8*i + {k}" for k in range(8))))] == [4, 4]
    assert [len(r.lets) for r in runs(loads(*(f"8*i + {k}" for k in range(8))), most=2)] == [2] * 4


def test_neighbours_that_begin_at_no_multiple_are_shorter_runs_or_none():
    assert [len(r.lets) for r in runs(loads("8*i + 2", "8*i + 3", "8*i + 4", "8*i + 5"))] == [2, 2]
    assert runs(loads("3*i", "3*i + 1", "3*i + 2")) == []
    assert runs(loads("4*i + 1", "4*i + 2")) == []


def test_loads_that_are_further_apart_or_run_backwards_are_not_merged():
    assert runs(loads("8*i", "8*i + 2", "8*i + 4", "8*i + 6")) == []
    assert runs(loads("4*i + 3", "4*i + 2", "4*i + 1", "4*i")) == []


def test_loads_under_other_conditions_are_not_merged():
    text = "a0: f32 = x[2*i if index(i) < 9_i64]\na1: f32 = x[2*i + 1 if index(i) < 8_i64]"

    assert runs(text) == []
    assert len(runs(text.replace("8_i64", "9_i64"))) == 1


def test_stores_to_neighbours_are_one_run():
    (run,) = runs(stores(*(f"4*i + {k}=1.0_f32" for k in range(4))))

    assert isinstance(run, StoreRun)
    assert len(run.values) == 4


def test_stores_to_memory_that_the_run_writes_are_not_merged():
    assert runs("store y[2*i] = 1.0_f32\nstore y[2*i + 1] = y[2*i] + 1.0_f32") == []


def test_stores_that_add_to_memory_are_kept_apart():
    assert runs("update y[2*i] add= 1.0_f32\nupdate y[2*i + 1] add= 1.0_f32") == []


@pytest.mark.parametrize("dtype", sorted(CUDA_C.pieces, key=str), ids=dtypes.short)
def test_every_type_of_neighbours_is_at_most_16_bytes(dtype):
    _, most = CUDA_C.pieces[dtype]

    assert most * dtype.itemsize <= 16


COPY = "\n".join((loads("4*i", "4*i + 1"), stores("4*i=a0", "4*i + 1=a1")))


def test_cuda_reads_and_writes_a_run_at_once(expect):
    lines = (line.strip() for line in render(code(COPY), CUDA_C).text.splitlines())

    expect(
        "\n".join(line for line in lines if "_run_0" in line or "*)&" in line),
        """
        const float2 _run_0 = __ldg((const float2*)&x[4 * i]);
        const float a0 = _run_0.x;
        const float a1 = _run_0.y;
        *(float2*)&y[4 * i] = make_float2(a0, a1);""",
    )


def test_a_language_without_such_types_has_single_accesses():
    assert "const float a1 = x[4 * i + 1];" in render(code(COPY), replace(OPENCL_C, pieces={})).text
