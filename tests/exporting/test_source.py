"""Folders of source: compiled by the compilers of this machine, and run where there is a device.

A folder's own program calls the function on stored arguments, compares, and ends with 0 if all
results agree; so every test here builds folders, runs them, and reads their output.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.exporting.source import Folder
from tests.support.sampling import IS_WHOLE

CC = shutil.which("cc") or ""
needs_cc = pytest.mark.skipif(not CC, reason="no C compiler here")
# A program in C uses the drivers of the system, not those within a wheel.
HAS_OPENCL = Path("/usr/include/CL/cl.h").exists() and any(Path("/etc/OpenCL/vendors").glob("*.icd"))
needs_opencl = pytest.mark.skipif(not (CC and HAS_OPENCL), reason="no OpenCL headers and driver here")
HAS_VULKAN = Path("/usr/include/vulkan/vulkan.h").exists() and any(d.target.backend == "vulkan" for d in rune.devices())
needs_vulkan = pytest.mark.skipif(not (CC and HAS_VULKAN), reason="no Vulkan headers and device here")
WGPU = util.find_spec("wgpu")
LIBRARIES = [*Path(WGPU.origin or "").parent.glob("resources/libwgpu_native*")] if WGPU else []
HAS_WGPU = bool(LIBRARIES) and any(d.target.backend == "wgpu" for d in rune.devices())
needs_wgpu = pytest.mark.skipif(not (CC and HAS_WGPU), reason="no WebGPU library and adapter here")
X = rnp.cos(rnp.arange(35.0)).reshape(5, 7)
W = rnp.sin(rnp.arange(21.0)).reshape(7, 3)


def dense(x: Any) -> Any:
    return rune.nn.softmax(rnp.sin(x @ W)), rnp.sort(x, 0), rnp.cumsum(x, 1), rnp.argmax(x, 0)


def loops(x: Any, i: Any) -> Any:
    total, rows = rune.scan(lambda c, r: (c + r, rnp.tanh(c)), x[0], x)
    power = rune.while_loop(lambda s: s[0] < i, lambda s: (s[0] + 1, s[1] * 1.5, s[2] + s[1]), (0, total, total))
    return rows, power[1], power[2], rune.cond(i > 2, lambda v: v * 2, lambda v: v - 1, total)


def dtypes_of_all_kinds(x: Any) -> Any:
    return (
        x.astype("bf16") * 2,
        x.astype("f16") + 1,
        rnp.fft.fft(x),
        x > 0,
        (x * 100).astype("i1"),
        (x * 50).astype("u2") // 3,
        rune.lax.population_count((x * 1000).astype("i4")),
        rune.lax.clz(rnp.arange(7, dtype="u4")),
        rune.random.normal(rune.random.key(3), (4,)),
        rune.random.split(rune.random.key(5)),
    )


def linear(a: Any) -> Any:
    spd = a @ a.T + 3 * rnp.eye(5)
    return rnp.linalg.cholesky(spd), rnp.linalg.solve(spd, a), rnp.linalg.eigvalsh(spd), rnp.linalg.det(spd)


def rearrangements(x: Any) -> Any:
    y = x.at[rnp.array([0, 4, 0])].add(x[:3])
    return y, rnp.pad(x, 1)[::2], rune.lax.conv(x[None, None], W[None, None], (1, 1), "SAME"), x.T.reshape(-1), x[1:1]


def wide(x: Any) -> Any:
    y, big = x.astype("f8"), (x * 1e6).astype("i8")
    return big**2 // 7, rune.lax.population_count(big), rnp.exp(y), rnp.sum(rnp.sin(y)), y.astype("c16") * 1j


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (dense, (X,)),
    (loops, (X, 5)),
    (dtypes_of_all_kinds, (X,)),
    (linear, (X,)),
    (rearrangements, (X,)),
    (wide, (X,)),
    (lambda x: x, (X,)),
    (lambda: rnp.arange(3.0), ()),
    (rune.grad(lambda x: rnp.sum(rnp.sin(x @ W))), (X,)),
]


def built(folder: Folder, path: Path) -> subprocess.CompletedProcess[str]:
    """The output of a folder's program, built by its own command."""
    folder.save(path)
    where = {"CFLAGS": f"-I{LIBRARIES[0].parent}", "WEBGPU": str(LIBRARIES[0])} if LIBRARIES else {}
    environment = {**os.environ, **where}
    subprocess.run(["./build.sh"], cwd=path, check=True, capture_output=True, timeout=300, env=environment)
    return subprocess.run([f"./{folder.name}"], cwd=path, capture_output=True, text=True, timeout=300)


def sanitized(folder: Folder, path: Path) -> subprocess.CompletedProcess[str]:
    """The output of a C folder's program, built so that undefined behaviour ends it."""
    folder.save(path)
    name = folder.name
    options = (
        "-std=c11 -O1 -ffp-contract=off -fno-strict-aliasing -fsanitize=address,undefined -fno-sanitize-recover=all"
    )
    line = [CC, *options.split(), "main.c", f"{name}.c", f"{name}_weights.c", "-lm", "-o", name]
    subprocess.run(line, cwd=path, check=True, timeout=300)
    return subprocess.run([f"./{name}"], cwd=path, capture_output=True, text=True, timeout=300)


# All programs in C; on a device those with loops, or all with RUNE_TEST_WHOLE.
RUNS = [pytest.param("c", *case, marks=needs_cc, id=f"c-{case[0].__name__}") for case in CASES]
SOME = CASES if IS_WHOLE else CASES[1:2]
RUNS += [
    pytest.param(target, *case, marks=mark, id=f"{target}-{case[0].__name__}")
    for target, mark in (("opencl", needs_opencl), ("spirv", needs_vulkan), ("wgsl", needs_wgpu))
    for case in SOME
    if target != "wgsl" or case[0] is not wide
]


@pytest.mark.parametrize(("target", "function", "args"), RUNS)
def test_a_folder_builds_and_agrees_with_its_vectors(target: str, function: Any, args: tuple, tmp_path: Path):
    run = built(rune.export.source(function, target=target, name="tested")(*args), tmp_path)

    assert run.stdout.endswith("ok\n"), run.stdout + run.stderr
    assert run.returncode == 0
    assert run.stdout.count("difference") == len(rune.tree.leaves(function(*args)))


@needs_cc
def test_wrong_results_are_reported(tmp_path: Path):
    folder = rune.export.source(lambda x: x * 2, name="twice")(X)
    source = folder.files["twice.c"]
    assert isinstance(source, str)

    wrong = Folder("twice", "c", {**folder.files, "twice.c": source.replace("2.0f", "3.0f")})
    run = built(wrong, tmp_path)

    assert (run.returncode, run.stdout.splitlines()[-1]) == (1, "wrong")


@needs_cc
def test_the_c_of_a_folder_is_without_undefined_behaviour(tmp_path: Path):
    folder = rune.export.source(lambda x: (*dense(x), *rearrangements(x)), name="clean")(X)

    run = sanitized(folder, tmp_path)

    assert run.returncode == 0, run.stdout + run.stderr


@needs_cc
def test_a_c_program_calls_the_entry(tmp_path: Path):
    folder = rune.export.source(lambda x, y: (x + y, rnp.sum(x * y)), name="pair")(rnp.ones(4), rnp.ones(4))
    folder.save(tmp_path)
    (tmp_path / "own.c").write_text(
        '#include "pair.h"\n#include <stdio.h>\n'
        "int main(void) {\n"
        "  static _Alignas(64) char arena[PAIR_ARENA_BYTES];\n"
        "  const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};\n"
        "  float sum[4], dot;\n"
        "  if (pair_call(x, y, sum, &dot, arena)) return 1;\n"
        '  printf("%g %g\\n", sum[3], dot);\n'
        "}\n"
    )

    subprocess.run([CC, "-std=c11", "own.c", "pair.c", "pair_weights.c", "-lm", "-o", "own"], cwd=tmp_path, check=True)
    run = subprocess.run(["./own"], cwd=tmp_path, capture_output=True, text=True)

    assert run.stdout == "44 300\n"


@needs_cc
def test_a_loaded_function_with_open_sizes_is_written_for_those_of_the_arguments(tmp_path: Path):
    program = rune.export(lambda x: rnp.cumsum(x @ W))(X, dims={"n": (1, 9)})
    copy = rune.export.load(program.serialize())

    run = built(rune.export.source(copy, name="sized")(X[:3]), tmp_path)

    assert run.stdout.endswith("ok\n")


@needs_cc
def test_values_are_drawn_for_types(tmp_path: Path):
    run = built(rune.export.source(rnp.exp, name="drawn")(rune.ShapeDtypeStruct((11,), "f32")), tmp_path)

    assert "r0: f32[11]" in run.stdout
    assert run.returncode == 0


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
def test_the_cuda_folder_compiles(tmp_path: Path):
    folder = rune.export.source(lambda x, i: (*dense(x), *loops(x, i)), target="cuda", name="tested")(X, 5)
    folder.save(tmp_path)

    subprocess.run(["./build.sh"], cwd=tmp_path, check=True, capture_output=True, timeout=600)


@pytest.mark.skipif(shutil.which("spirv-val") is None, reason="no spirv-val here")
def test_modules_of_spirv_are_valid(tmp_path: Path):
    folder = rune.export.source(lambda x, i: (*dense(x), *loops(x, i)), target="spirv", name="tested")(X, 5)
    folder.save(tmp_path)

    for module in tmp_path.glob("*.spv"):
        subprocess.run(["spirv-val", "--target-env", "vulkan1.2", module], check=True, timeout=300)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::rune.errors.HostFallbackWarning")
def test_a_program_that_no_folder_can_hold_is_refused_by_name():
    with pytest.raises(TypeError, match=r"source: cannot write for 'fortran' .targets: c, "):
        rune.export.source(rnp.sin, target="fortran")
    with pytest.raises(TypeError, match=r"source: cannot write eig .Python computes it on the host"):
        rune.export.source(rnp.linalg.eig, name="e")(rnp.ones((3, 3)))
    with pytest.raises(TypeError, match="export: cannot store callback"):
        rune.export.source(lambda x: rune.pure_callback(np.sin, x, x))(X)


def test_a_kernel_of_more_buffers_than_webgpu_binds_is_refused():
    with pytest.raises(TypeError, match=r"source: cannot write mul_0 .20 buffers; WebGPU binds 8 at once."):
        rune.export.source(lambda *xs: tuple(a * b for a in xs for b in xs), target="wgsl")(X, X + 1, X + 2, X + 3)


@pytest.mark.parametrize("name", ["for", "2d", "main", "a-b"])
def test_names_that_c_has_are_not_taken(name: str):
    folder = rune.export.source(rnp.sin, name=name)(1.0)

    assert folder.name.isidentifier()
    assert folder.name not in ("for", "main")
