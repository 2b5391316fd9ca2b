"""Folders of source whose entries take sizes: their own program calls them with several.

The stored results were computed by rune with concrete sizes.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.exporting.test_source import (
    CC,
    W,
    X,
    built,
    dense,
    loops,
    needs_cc,
    needs_opencl,
    needs_vulkan,
    needs_wgpu,
    sanitized,
)


def joined(x: Any, y: Any) -> Any:
    return rnp.concatenate([x, y[:, ::-1]], 1), x.T @ y, rnp.mean(x), x.reshape(-1)[::2], rnp.pad(y, 1)


def scattered(x: Any, at: Any) -> Any:
    return x.at[at].add(x[::-1]), rnp.sum(x * rnp.arange(x.shape[0], dtype="f4"))


CASES: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (dense, (X,), {"dims": {"n": (1, 100)}}),
    (loops, (X, 5), {"dims": {"n": (1, 64)}, "in_dims": ("n", None)}),
    (joined, (X, X[:, :3]), {"dims": {"n": (1, None), "m": (2, 50)}, "in_dims": ("n,m", "n")}),
    (scattered, (X[0], np.arange(7)), {"dims": {"n": (1, None)}, "in_dims": ("n", "n")}),
    (rune.grad(lambda x: rnp.sum(rnp.sin(x @ W))), (X,), {"dims": {"n": (0, 9)}}),
]
RUNS = [pytest.param("c", *case, marks=needs_cc, id=f"c-{case[0].__name__}") for case in CASES]
RUNS += [
    pytest.param(target, *case, marks=mark, id=f"{target}-{case[0].__name__}")
    for target, mark in (("opencl", needs_opencl), ("spirv", needs_vulkan), ("wgsl", needs_wgpu))
    for case in CASES[1:3]
]


@pytest.mark.parametrize(("target", "function", "args", "sizes"), RUNS)
def test_a_folder_agrees_with_its_vectors_of_several_sizes(
    target: str, function: Any, args: tuple, sizes: dict, tmp_path: Path
):
    run = built(rune.export.source(function, target=target, name="tested")(*args, **sizes), tmp_path)

    assert run.stdout.endswith("ok\n"), run.stdout + run.stderr
    assert run.stdout.count("n = ") >= 3
    assert run.stdout.count("difference") == run.stdout.count("n = ") * len(rune.tree.leaves(function(*args)))


@needs_cc
def test_the_c_of_open_sizes_is_without_undefined_behaviour(tmp_path: Path):
    folder = rune.export.source(lambda x, y: (*dense(x), *joined(x, y)), name="clean")(
        X, X[:, :3], dims={"n": (1, 99)}, in_dims=("n", "n")
    )

    run = sanitized(folder, tmp_path)

    assert run.returncode == 0, run.stdout + run.stderr


@needs_cc
def test_a_c_program_chooses_the_size(tmp_path: Path):
    folder = rune.export.source(rnp.cumsum, name="sums")(rnp.ones(4), dims={"n": (2, 1000)})
    folder.save(tmp_path)
    (tmp_path / "own.c").write_text(
        '#include "sums.h"\n#include <stdio.h>\n#include <stdlib.h>\n'
        "int main(void) {\n"
        "  static float x[999], y[999];\n"
        "  for (int k = 0; k < 999; k++) x[k] = 1;\n"
        "  void *arena = aligned_alloc(64, (sums_arena_bytes(999) + 63) / 64 * 64);\n"
        "  if (sums_call(999, x, y, arena)) return 1;\n"
        '  printf("%g %d %d\\n", y[998], sums_call(1, x, y, arena), sums_call(1001, x, y, arena));\n'
        "}\n"
    )

    subprocess.run([CC, "-std=c11", "own.c", "sums.c", "sums_weights.c", "-lm", "-o", "own"], cwd=tmp_path, check=True)
    run = subprocess.run(["./own"], cwd=tmp_path, capture_output=True, text=True)

    assert run.stdout == "999 1000 1000\n"


def test_the_header_lists_the_sizes():
    header = str(rune.export.source(joined, name="j")(*CASES[2][1], **CASES[2][2]).files["j.h"])

    assert " *   size_n: n in 1..inf\n *   size_m: m in 2..50\n *   a0: f32[n,m]\n" in header
    assert "int j_call(int64_t size_n, int64_t size_m, const float *a0, const float *a1, float *r0" in header
