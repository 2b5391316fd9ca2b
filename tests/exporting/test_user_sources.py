"""Users' C functions and kernels in OpenCL C and CUDA C, in folders of source.

A folder's own program compares its results with those of the operation's NumPy meaning; other tests
check that it reports a wrong result. CUDA C runs on the blocks of the emulated device
(test_cuda_folder.py).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import extend
from rune.errors import ArgumentError
from rune.exporting.source import Folder
from tests.exporting import test_cuda_folder
from tests.exporting.test_cuda_folder import needs_gxx
from tests.exporting.test_source import CC, built, needs_cc, needs_opencl
from tests.support.sampling import IS_WHOLE

# Any number of rows of any length; a helper function; parameters narrower than the arguments.
STATISTICS = """
#include <float.h>
static float larger(float a, float b) { return a > b ? a : b; }

void statistics(const float *x, float *largest, double *sums, long rows, int columns, float shift) {
  for (long i = 0; i < rows; i++) {
    float most = -FLT_MAX;
    double sum = shift;
    for (int j = 0; j < columns; j++) {
      most = larger(most, x[i * columns + j]);
      sum += x[i * columns + j];
    }
    largest[i] = most;
    sums[i] = sum;
  }
}
"""
SCALE_C = """
void scale(const float *x, float *y, long n, float factor) {
  for (long i = 0; i < n; i++) y[i] = factor * x[i];
}
"""
SCALE_OPENCL = """
__kernel void scale(__global const float *x, __global float *y, long n, float factor) {
  const long i = get_global_id(0);
  if (i < n) y[i] = factor * x[i];
}
"""
SCALE_CUDA = """
__global__ void __launch_bounds__(64) scale(const float* __restrict__ x, float* y, int n, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
"""
# Blocks of 8 by 4 threads, which share memory.
TURN_CUDA = """
namespace mine {
template <class T> __global__ void turn(const T* in, T* out, int rows, int columns) {
  extern __shared__ T tile[];
  int column = blockIdx.x * 8 + threadIdx.x, row = blockIdx.y * 4 + threadIdx.y;
  if (row < rows && column < columns) tile[threadIdx.x * 5 + threadIdx.y] = in[row * columns + column];
  __syncthreads();
  const int place = threadIdx.y * 8 + threadIdx.x;
  column = blockIdx.y * 4 + place % 4;
  row = blockIdx.x * 8 + place / 4;
  if (row < columns && column < rows) out[row * rows + column] = tile[place / 4 * 5 + place % 4];
}
}
"""


def elements(x: Any) -> Any:
    return rune.dims.product(x.shape)


def statistics_types(x: Any, *, shift: float) -> Any:
    row = x.with_shape(x.shape[:1])
    return row, row.with_dtype(np.dtype("f8"))


def numpy_statistics(x: np.ndarray, *, shift: float) -> tuple[np.ndarray, np.ndarray]:
    return x.max(1, initial=np.finfo(np.float32).min), x.sum(1, dtype="f8") + np.float64(shift)


statistics = extend.primitive(
    "statistics",
    types=statistics_types,
    meaning=numpy_statistics,
    sources=[extend.Source("c", STATISTICS, "statistics", sizes=lambda x, *, shift: (*x.shape, float(shift)))],
    multiple_results=True,
)


def scale_sizes(x: Any, *, factor: float) -> Any:
    return elements(x), float(factor)


def in_blocks_of_64(x: Any, *, factor: float) -> extend.Launch:
    return extend.Launch(-(-elements(x) // 64), 64)


scale = extend.primitive(
    "scale",
    types=lambda x, *, factor: x,
    meaning=lambda x, *, factor: x * np.float32(factor),
    sources=[
        extend.Source("c", SCALE_C, "scale", sizes=scale_sizes),
        extend.Source("opencl", SCALE_OPENCL, "scale", in_blocks_of_64, scale_sizes),
        extend.Source("cuda", SCALE_CUDA, "scale", in_blocks_of_64, scale_sizes),
    ],
    jvp=[lambda t, x, y, *, factor: scale(t, factor=factor)],
    transpose=lambda ct, is_linear, x, *, factor: [scale(ct, factor=factor)],
    batch=extend.leading,
)
turn = extend.primitive(
    "turn",
    types=lambda x: x.with_shape(x.shape[::-1]),
    meaning=lambda x: x.T,
    sources=[
        extend.Source(
            "cuda",
            TURN_CUDA,
            "mine::turn<float>",
            lambda x: extend.Launch((-(-x.shape[1] // 8), -(-x.shape[0] // 4)), (8, 4), 60_000),
            lambda x: x.shape,
        )
    ],
)
X = rnp.cos(rnp.arange(35.0)).reshape(5, 7)


def among_kernels(x: Any) -> Any:
    largest, sums = statistics(rnp.sin(x), shift=0.5)
    of_columns = statistics(x.T * 2, shift=1.5)
    return largest + 1, sums * largest, of_columns


def in_a_loop_and_a_branch(x: Any, k: Any) -> Any:
    y = rune.fori_loop(0, k, lambda i, c: scale(c, factor=1.5) + 1, rnp.sin(x))
    return scale(y, factor=0.5), rune.cond(k > 2, lambda y: scale(y, factor=3.0), lambda y: y, y)


def slopes(x: Any) -> Any:
    return rune.grad(lambda x: rnp.sum(rnp.sin(scale(x, factor=2.0))))(x)


def agreed(run: subprocess.CompletedProcess[str], results: int) -> None:
    assert run.stdout.endswith("ok\n"), run.stdout + run.stderr
    assert run.returncode == 0
    assert run.stdout.count("difference") == results


# --- in C ---------------------------------------------------------------------------------------


@needs_cc
def test_two_results_of_a_function_of_c_agree_with_numpys_meaning(tmp_path: Path):
    agreed(built(rune.export.source(among_kernels, name="tested")(X), tmp_path), 4)


@needs_cc
@pytest.mark.parametrize("shape", [(1, 1), (1, 13), (31, 1), (0, 3)])
def test_it_is_called_for_rows_of_any_size(shape: tuple[int, int], tmp_path: Path):
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)

    agreed(built(rune.export.source(lambda x: statistics(x, shift=2.0), name="tested")(x), tmp_path), 2)


@needs_cc
def test_symbolic_sizes_are_passed_as_arguments_of_the_entry(tmp_path: Path):
    folder = rune.export.source(among_kernels, name="tested")(X, dims={"n": (0, 64), "m": (1, 99)}, in_dims=["n,m"])

    run = built(folder, tmp_path)

    agreed(run, 16)
    assert "n = 11, m = 15" in run.stdout


@needs_cc
def test_a_function_of_c_works_in_loops_branches_and_derivatives(tmp_path: Path):
    agreed(built(rune.export.source(in_a_loop_and_a_branch, name="looped")(X, 3), tmp_path / "looped"), 2)
    agreed(built(rune.export.source(slopes, name="slopes")(X), tmp_path / "slopes"), 1)
    agreed(built(rune.export.source(rune.vmap(slopes), name="lanes")(X), tmp_path / "lanes"), 1)


@needs_cc
def test_a_function_that_is_jitted_or_called_within_jit_is_written(tmp_path: Path):
    program = rune.jit(lambda x: rune.jit(lambda y: scale(y, factor=2.5))(x) + 1)

    agreed(built(rune.export.source(program, name="jitted")(X), tmp_path), 1)


@needs_cc
def test_a_wrong_function_of_c_is_reported(tmp_path: Path):
    folder = rune.export.source(among_kernels, name="tested")(X)
    text = folder.files["tested_source_0.c"]
    assert isinstance(text, str)

    wrong = Folder("tested", "c", {**folder.files, "tested_source_0.c": text.replace("a > b", "a < b")})
    run = built(wrong, tmp_path)

    assert (run.returncode, run.stdout.splitlines()[-1]) == (1, "wrong")


@needs_cc
def test_a_source_is_one_file_however_it_is_called():
    folder = rune.export.source(in_a_loop_and_a_branch, name="looped")(X, 3)

    assert sorted(f for f in folder.files if "source" in f) == ["looped_source_0.c"]
    assert str(folder.files["looped_source_0.c"]).startswith(SCALE_C)
    assert "looped_source_0.c" in str(folder.files["build.sh"])


@needs_cc
def test_helpers_of_the_same_name_in_two_texts_do_not_collide(tmp_path: Path):
    def constant(number: int) -> Any:
        text = f"static int sin_0(void) {{ return {number}; }}\nvoid give_{number}(int *y) {{ *y = sin_0(); }}"
        return extend.primitive(
            f"give_{number}",
            types=lambda: rune.ArrayType((), np.dtype("i4")),
            meaning=lambda: np.int32(number),
            sources=[extend.Source("c", text, f"give_{number}")],
        )

    agreed(built(rune.export.source(lambda: (constant(3)(), constant(5)()), name="two")(), tmp_path), 2)


@needs_cc
def test_complex_numbers_are_pairs_and_truth_values_bytes(tmp_path: Path):
    text = """
    void chosen(const unsigned char *which, const float *x, const float *y, float *out, long n) {
      for (long i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) out[2 * i + k] = which[i] ? x[2 * i + k] : y[2 * i + k];
    }"""
    choose = extend.primitive(
        "chosen",
        types=lambda which, x, y: x,
        meaning=np.where,
        sources=[extend.Source("c", text, "chosen", sizes=lambda which, x, y: x.shape)],
    )
    z = np.exp(1j * np.arange(7)).astype(np.complex64)

    agreed(built(rune.export.source(lambda z: choose(z.real > 0, z * 2, z + 1), name="chosen")(z), tmp_path), 1)


@needs_cc
def test_the_c_of_the_calls_is_without_undefined_behaviour_and_warnings(tmp_path: Path):
    folder = rune.export.source(lambda x: (*among_kernels(x), slopes(x)), name="clean")(X)
    folder.save(tmp_path)
    options = "-std=c11 -O1 -Wall -Werror -Wno-unused-function -Wno-unused-variable -ffp-contract=off"
    options += " -fno-strict-aliasing -fsanitize=address,undefined -fno-sanitize-recover=all"

    files = [str(file) for file in tmp_path.glob("*.c")]
    subprocess.run([CC, *options.split(), *files, "-lm", "-o", "clean"], cwd=tmp_path, check=True, timeout=300)

    agreed(subprocess.run(["./clean"], cwd=tmp_path, capture_output=True, text=True, timeout=300), 5)


# --- in OpenCL C --------------------------------------------------------------------------------


@needs_opencl
def test_a_kernel_of_opencl_c_works_in_loops_and_branches(tmp_path: Path):
    folder = rune.export.source(in_a_loop_and_a_branch, name="looped", target="opencl")(X, 3)

    agreed(built(folder, tmp_path), 2)


@needs_opencl
def test_its_launch_follows_sizes_that_stay_open(tmp_path: Path):
    folder = rune.export.source(lambda x: scale(x + 1, factor=2.0), name="tested", target="opencl")(
        rnp.arange(130.0), dims={"n": (0, 999)}
    )

    agreed(built(folder, tmp_path), 5)


@needs_opencl
def test_a_launch_without_blocks_is_a_failure_of_the_device(tmp_path: Path):
    kernel = extend.Source("opencl", SCALE_OPENCL, "scale", lambda x: extend.Launch(0, 64), lambda x: (35, 2.0))
    idle = extend.primitive("idle", types=lambda x: x, meaning=lambda x: 2 * x, sources=[kernel])

    run = built(rune.export.source(idle, name="idle", target="opencl")(X), tmp_path)

    assert (run.returncode, "the device failed" in run.stdout) == (2, True)


def test_each_kernel_of_opencl_c_is_a_separate_program():
    folder = rune.export.source(in_a_loop_and_a_branch, name="looped", target="opencl")(X, 3)

    programs = [text for file, text in folder.files.items() if "_source_" in file]
    assert len(programs) == 3  # one for each factor
    assert all(str(text).startswith(SCALE_OPENCL) for text in programs)


# --- in CUDA C ----------------------------------------------------------------------------------


def in_cuda(function: Any, *args: Any, name: str = "tested", **sizes: Any) -> Folder:
    return rune.export.source(function, name=name, target="cuda")(*args, **sizes)


@needs_gxx
def test_a_kernel_of_cuda_c_works_in_loops_branches_and_derivatives(tmp_path: Path):
    folder = in_cuda(lambda x, k: (*in_a_loop_and_a_branch(x, k), rune.vmap(slopes)(x)), X, 3)

    agreed(test_cuda_folder.built(folder, tmp_path), 3)


@needs_gxx
def test_blocks_of_two_dimensions_share_more_memory_than_kernels_have_by_themselves(tmp_path: Path):
    agreed(test_cuda_folder.built(in_cuda(lambda x: turn(x * 2) + 1, rnp.sin(rnp.ones((13, 11)))), tmp_path), 1)


@needs_gxx
def test_a_launch_of_cuda_follows_sizes_that_stay_open(tmp_path: Path):
    folder = in_cuda(lambda x: scale(x + 1, factor=2.0), rnp.arange(130.0), dims={"n": (0, 999)})

    run = test_cuda_folder.built(folder, tmp_path)

    agreed(run, 5)
    assert "n = 0\n" in run.stdout


@needs_gxx
@pytest.mark.parametrize("blocks", [0, -1, 1 << 32, (1, 65536)] if IS_WHOLE else [0, (1, 65536)])
def test_a_launch_of_cuda_with_no_blocks_or_too_many_is_a_failure_of_the_device(blocks: Any, tmp_path: Path):
    kernel = extend.Source("cuda", SCALE_CUDA, "scale", lambda x: extend.Launch(blocks, 64), lambda x: (35, 2.0))
    idle = extend.primitive("idle", types=lambda x: x, meaning=lambda x: 2 * x, sources=[kernel])

    run = test_cuda_folder.built(in_cuda(idle, X), tmp_path)

    assert (run.returncode, "the device failed: 9" in run.stdout) == (2, True)


@needs_gxx
def test_kernels_of_the_same_name_in_two_texts_do_not_collide(tmp_path: Path):
    def times(number: int) -> Any:
        text = f"template <class T> __global__ void kernel(const T* x, T* y) {{ *y = {number} * *x; }}"
        source = extend.Source("cuda", text, "kernel<float>", lambda x: extend.Launch(1, 1))
        return extend.primitive(f"x{number}", types=lambda x: x, meaning=lambda x: x * number, sources=[source])

    folder = in_cuda(lambda x: (times(3)(x), times(5)(x)), np.float32(1.5))

    agreed(test_cuda_folder.built(folder, tmp_path), 2)


@needs_gxx
def test_a_wrong_kernel_of_cuda_c_is_reported(tmp_path: Path):
    folder = in_cuda(lambda x: scale(x, factor=2.0), X)
    text = str(folder.files["tested_source_0.cu"])

    wrong = Folder("tested", "cuda", {**folder.files, "tested_source_0.cu": text.replace("factor * x", "factor + x")})
    run = test_cuda_folder.built(wrong, tmp_path)

    assert (run.returncode, run.stdout.splitlines()[-1]) == (1, "wrong")


def test_a_text_of_cuda_c_is_one_file_which_keeps_the_users_lines():
    folder = in_cuda(in_a_loop_and_a_branch, X, 3)

    assert [f for f in folder.files if "source" in f] == ["tested_source_0.cu"]
    assert f"#line 1\n{SCALE_CUDA}" in str(folder.files["tested_source_0.cu"])
    assert "tested_source_0.cu" in str(folder.files["build.sh"])


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")
def test_the_cuda_folder_with_kernels_of_users_compiles(tmp_path: Path):
    folder = in_cuda(lambda x, k: (*in_a_loop_and_a_branch(x, k), turn(x)), X, 3)
    folder.save(tmp_path)

    subprocess.run(["./build.sh"], cwd=tmp_path, check=True, capture_output=True, timeout=600)


# --- refusals -----------------------------------------------------------------------------------


def test_an_operation_known_only_by_a_pointer_is_refused_with_advice():
    pointer = extend.primitive("twice", types=lambda x: x, native=extend.Native(4096), meaning=lambda x: 2 * x)

    with pytest.raises(ArgumentError, match=r"cannot store twice .it has no source in the language .* 'c'") as error:
        rune.export.source(lambda x: pointer(x + 1), target="c")(X)

    assert 'sources=[extend.Source("c", ...)]' in str(error.value)
    assert "test_user_sources.py" in str(error.value)


@pytest.mark.parametrize("target", ["spirv", "wgsl"])
def test_folders_of_other_targets_hold_no_code_of_users(target: str):
    with pytest.raises(ArgumentError, match=r"cannot store scale .a file holds no Python or C code") as error:
        rune.export.source(lambda x: scale(x, factor=2.0), target=target)(X)

    assert "expand=" in str(error.value)


def test_a_kernel_without_any_device_to_run_on_has_nothing_to_compare_with():
    kernel = extend.Source("cuda", SCALE_CUDA, "scale", in_blocks_of_64, scale_sizes)
    alone = extend.primitive("alone", types=lambda x, *, factor: x, sources=[kernel])

    with pytest.raises(rune.errors.MissingRule, match=r"cannot compile alone for cpu:0") as error:
        in_cuda(lambda x: alone(x, factor=2.0), X)

    assert "meaning=" in str(error.value)


def test_a_file_holds_no_code_of_users():
    with pytest.raises(ArgumentError, match=r"export: cannot store scale .a file holds no Python or C code"):
        rune.export(lambda x: scale(x, factor=2.0))(X)


def test_a_function_of_c_has_no_launch_and_a_kernel_has_one():
    with pytest.raises(ArgumentError, match=r"Source: cannot launch scale .a function of C is called once"):
        extend.Source("c", SCALE_C, "scale", lambda x: extend.Launch(1, 1))
    with pytest.raises(ArgumentError, match=r"Source: cannot compile scale .a kernel has a launch: rule"):
        extend.Source("opencl", SCALE_OPENCL, "scale")
    with pytest.raises(ArgumentError, match=r"the language 'fortran' .it has to be 'cuda' or 'opencl' or 'c'"):
        extend.Source("fortran", "", "scale")


def test_an_operation_with_only_c_source_cannot_run_in_rune():
    alone = extend.primitive("alone", types=lambda x: x, sources=[extend.Source("c", SCALE_C, "scale")])

    with pytest.raises(rune.errors.MissingRule, match=r"cannot compile alone for cpu:0") as error:
        alone(X)

    assert "native=" in str(error.value)
