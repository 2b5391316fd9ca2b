"""The emulated CUDA device: tests that run on it in every run, and that it detects faults.

With RUNE_TEST_CUDA_EMULATOR=1 every law runs on it. Here a few laws do, in a separate process,
because devices are only looked for once per process. The last tests are of the emulator itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests import cuda_emulator

ROOT = Path(__file__).parents[2]
# One of each family of primitives.
SAMPLE = (
    *("exp", "select", "convert", "transpose", "reduce_sum", "cumsum", "dot_general", "gather", "scatter_add"),
    "random_bits",
)

pytestmark = pytest.mark.skipif(cuda_emulator.why_not() is not None, reason=str(cuda_emulator.why_not()))


@pytest.fixture(autouse=True)
def _nvrtc() -> None:
    """It says which devices it compiles for."""
    pytest.importorskip("cuda.bindings.nvrtc")


def run(*command: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """A process of Python with the switch on."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), cuda_emulator.SWITCH: "1", **settings}
    environment = {k: v for k, v in environment.items() if not k.startswith("PYTEST")}
    process = [sys.executable, *command]
    return subprocess.run(process, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=600)


def script(text: str) -> subprocess.CompletedProcess[str]:
    """A program that has the device as `device`."""
    head = """
    import numpy as np, rune, rune.numpy as rnp
    from tests import cuda_emulator
    cuda_emulator.install()
    device = rune.backends.device_named("cuda:0").backend
    x = rune.device_put(np.arange(6, dtype=np.float32), "cuda:0")
    """
    return run("-c", textwrap.dedent(head) + textwrap.dedent(text))


def test_laws_and_kernels_that_users_wrote_hold_on_an_emulated_device():
    law = "tests/laws/test_conformance.py::test_compiled_code_agrees_with_the_reference_in_every_dtype[{}-cuda:0]"
    tests = *map(law.format, SAMPLE), "tests/extend/test_sources.py"

    process = run("-m", "pytest", "-p", "no:cacheprovider", "-q", "-n0", "-k", "cuda:0", *tests)

    assert process.returncode == 0, process.stdout[-4000:] + process.stderr[-4000:]


def test_loops_are_conditional_nodes_and_copies_overlap():
    process = script("""
    def f(x):
        return rune.while_loop(lambda c: c[0] < 300, lambda c: (c[0] + 1, rnp.cumsum(c[1]) * 0.1), (0, x))[1]

    first = device.start_copy_out(x.buffer, x.type)
    y = rune.jit(f)(x)
    np.testing.assert_allclose(np.asarray(y), np.asarray(f(np.asarray(x))), rtol=1e-4)
    np.testing.assert_array_equal(first(), np.arange(6))
    print(device.lacks())
    """)

    assert (process.stdout, process.stderr) == ("()\n", "")


def test_threads_of_a_block_share_a_row_and_meet_barriers():
    process = script("""
    rows = np.random.default_rng(0).normal(size=(3, 5000)).astype(np.float32)
    f = rune.jit(rune.nn.softmax, device="cuda:0")
    wanted = np.exp(rows - rows.max(1, keepdims=True))
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(np.asarray(f(rows)), wanted, rtol=1e-5)
    print("barriers" if "__syncthreads" in rune.explain(rune.nn.softmax, device="cuda:0")(rows)["source"] else "none")
    """)

    assert (process.stdout, process.stderr) == ("barriers\n", "")


def test_subgroups_multiply_matrices_of_halves_that_were_fetched():
    process = script("""
    rng = np.random.default_rng(0)
    f = rune.jit(lambda a, b: rnp.tanh(a @ b.T), device="cuda:0")
    for m, k, n, fetches in (100, 72, 40, True), (37, 35, 71, False):
        a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(n, k)).astype(np.float16)
        wanted = np.tanh(a.astype(float) @ b.T.astype(float))
        np.testing.assert_allclose(np.asarray(f(a, b)), wanted, rtol=2e-3, atol=2e-3)
        source = rune.explain(f)(a, b)["source"]
        assert "mma.sync" in source
        assert ("cp.async" in source) == fetches
    """)

    assert (process.stdout, process.stderr) == ("", "")


def test_four_warps_multiply_matrices_together_by_descriptors_of_swizzled_lines():
    process = script("""
    rng = np.random.default_rng(0)
    layouts = lambda a, b: a @ b, lambda a, b: a.T @ b, lambda a, b: a @ b.T, lambda a, b: a.T @ b.T
    steps = "tile(i0={}, i1={}) stage(i0={}, i1={}, j0=64) units(64, 8, 16, buffers={}, abreast={}, groups={})"
    for m, k, n, numbers in (100, 136, 200, (64, 128, 2, 1, 4, 1, 0)), (250, 71, 67, (64, 64, 1, 2, 5, 2, 3)):
        # Two of the four layouts suffice: each operand has both orders in them.
        for number, f in [*enumerate(layouts)][::3] if m == 100 else [*enumerate(layouts)][1:3]:
            a, b = rng.normal(size=(m, k)).astype(np.float16), rng.normal(size=(k, n)).astype(np.float16)
            one, other = a.T if number in (1, 3) else a, b.T if number in (2, 3) else b
            g = rune.jit(f, device="cuda:0", schedule={"dot_0": steps.format(*numbers)})
            wanted = a.astype(float) @ b.astype(float)
            result = g(np.ascontiguousarray(one), np.ascontiguousarray(other))
            np.testing.assert_allclose(np.asarray(result), wanted, rtol=2e-3, atol=2e-3)
            assert "wgmma.mma_async" in rune.explain(g)(one, other)["source"]
    """)

    assert (process.stdout, process.stderr) == ("", "")


def test_arrays_are_exchanged_by_dlpack_in_both_directions_without_a_copy():
    process = script("""
    class Theirs:
        def __init__(self, array):
            self.array = array
        def __dlpack_device__(self):
            return self.array.__dlpack_device__()
        def __dlpack__(self, **how):
            return self.array.__dlpack__(**how)

    y = rnp.from_dlpack(Theirs(x + 1))
    np.testing.assert_array_equal(np.asarray(y * 2), 2 * (np.arange(6) + 1))
    z = rnp.from_dlpack(Theirs(y), copy=True)
    del y
    np.testing.assert_array_equal(np.asarray(z), np.arange(6) + 1)
    """)

    assert (process.stdout, process.stderr) == ("", "")


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        ("if (threadIdx.x < 3) __syncthreads();", "a barrier was reached by some threads of a block only"),
        ("((char*)table[0])[256] = 1;", "memory was written past the end of an allocation"),
    ],
)
def test_faults_of_kernels_lose_the_context(kernel: str, complaint: str):
    process = script(f"""
    from rune.backends.cuda.by_bindings import call
    from rune.backends.cuda.launch import start

    source = 'extern "C" __global__ void bad(const unsigned long long* table) {{ {kernel}\\n}}\\n'
    program = device.build(source, "bad", "sm_90")
    with device.in_context:
        block, table = device.driver.mem_alloc(256), device.driver.mem_alloc(8)
        device.staging.send(int(table), np.array([int(block)], np.uint64).view(np.uint8))
        start(program.function("bad"), ((1, 1, 1), (8, 1, 1)), (int(table),), device.stream.handle)
        try:
            block.free()
            device.driver.Context.synchronize()
        except device.driver.Error as error:
            print(error)
    """)

    assert "CUDA_ERROR_LAUNCH_FAILED" in process.stdout, process.stderr
    assert complaint in process.stderr
