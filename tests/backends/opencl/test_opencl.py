"""OpenCL against the reference: every operation and dtype, random kernels, whole plans.

Integers and moved bits are equal bit for bit; floats within the ulps that OpenCL grants its
functions. Claims about all executors: test_devices.py; the device itself: test_device.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dims, dtypes
from rune.backends import opencl
from rune.backends.shared.executor import evaluate
from rune.errors import CompileError
from rune.lowering.kernel.expr import Cast, Expr, Load, Op
from rune.lowering.kernel.interpret import interpret
from rune.lowering.kernel.nodes import Access, For, KernelCode, Kind, Param, Store
from rune.lowering.kernel.text import parse
from rune.lowering.plan import SizeSource
from rune.lowering.scalar.table import OPERATIONS, result_dtype
from tests.backends.plans import plan_of, run
from tests.lowering.kernel.examples import TEXTS
from tests.support.close import close, same, ulp_distance

TARGETS, WHY = opencl.probe()
pytestmark = pytest.mark.skipif(not TARGETS, reason=f"no OpenCL device: {WHY}")
DTYPES = sorted(TARGETS[0].dtypes, key=dtypes.short) if TARGETS else []
N = 300
n = dims.symbol("n", 1, 100)


@pytest.fixture(scope="module")
def device() -> opencl.OpenCLBackend:
    return opencl.open_device(TARGETS[0])


# --- every operation --------------------------------------------------------------------------


def values(dtype: np.dtype, seed: int) -> np.ndarray:
    """Edge cases and random values, in a different order for each seed."""
    rng = np.random.default_rng(seed)
    if dtype == dtypes.bool_:
        return rng.integers(0, 2, N).astype(bool)
    if dtype in dtypes.INTEGER:
        info = np.iinfo(dtype)
        small = rng.integers(max(info.min, -9), 9, N).astype(dtype)
        large = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
        numbers = np.where(rng.random(N) < 0.5, small, large)
        numbers[:4] = info.min, info.max, 0, 1
        return rng.permutation(numbers)
    numbers = rng.normal(size=N) * 10.0 ** rng.integers(-3, 3, N)
    numbers[:12] = 0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 0.5, 2.5, 1e-40, -3.5, 70000
    with np.errstate(all="ignore"):
        return rng.permutation(numbers).astype(dtype)


def elementwise(name: str, operand: np.dtype, exprs: list[Expr]) -> KernelCode:
    """One kernel that stores each expression of a, b, c, d at point i to a row of its result."""
    i = dims.symbol("i", 0, N - 1)
    results = sorted({e.dtype for e in exprs}, key=dtypes.short)
    rows = dict.fromkeys(results, 0)
    body = []
    for e in exprs:
        body.append(Store(f"y_{dtypes.short(e.dtype)}", rows[e.dtype] * N + i, e))
        rows[e.dtype] += 1
    params = [Param(x, operand, N, Access.READ) for x in "abc"]
    params.append(Param("d", dtypes.bool_, N, Access.READ))
    params += [Param(f"y_{dtypes.short(r)}", r, rows[r] * N, Access.WRITE) for r in results]
    return KernelCode(name, tuple(params), (), (For("i", N, Kind.GRID, tuple(body)),))


def operations(dtype: np.dtype) -> list[Op]:
    i = dims.symbol("i", 0, N - 1)
    args = [Load(x, (i,), dtype) for x in "abcabc"]  # a word of a cipher has six operands
    ops = []
    for name, op in OPERATIONS.items():
        result = result_dtype(name, dtype)
        if dtype in op.dtypes and result is not None:
            operands = (Load("d", (i,), dtypes.bool_), *args) if name == "select" else args
            ops.append(Op(name, tuple(operands[: op.arity]), result))
    return ops


def both(device, code: KernelCode, dtype: np.dtype) -> dict[np.dtype, tuple[np.ndarray, ...]]:
    """Expected and actual results by result dtype, [rows, N]."""
    inputs = [*(values(dtype, seed) for seed in range(3)), values(dtypes.bool_, 3)]
    outputs = [np.empty(int(str(p.size)), p.dtype) for p in code.params[4:]]
    interpret(code, [*inputs, *outputs])
    actual = run(device, plan_of(code), *inputs)
    return {x.dtype: (x.reshape(-1, N), y.reshape(-1, N)) for x, y in zip(outputs, actual, strict=True)}


EXACT = frozenset(
    """add sub mul div neg abs sign floor ceil round trunc max min select is_finite copysign
    nextafter eq ne lt le gt ge fma rem sqrt rsqrt""".split()
)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_every_operation_agrees_with_its_meaning(device, dtype):
    exprs = operations(dtype)
    rows = both(device, elementwise("ops", dtype, list(exprs)), dtype)

    positions = dict.fromkeys(rows, 0)
    for e in exprs:
        expected, actual = (side[positions[e.dtype]] for side in rows[e.dtype])
        positions[e.dtype] += 1
        exact = e.dtype not in dtypes.FLOATING or e.name in EXACT
        limit = 0 if exact else 16 if e.name == "erf_inv" else 4
        # The sign of a zero is open for max and min.
        steps = np.where(expected == actual, 0, ulp_distance(expected, actual))
        worst = int(np.argmax(steps))
        assert steps[worst] <= limit, (e.name, expected[worst], actual[worst])


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_every_conversion_is_exact(device, dtype):
    a = Load("a", (dims.symbol("i", 0, N - 1),), dtype)
    rows = both(device, elementwise("casts", dtype, [Cast(a, d) for d in DTYPES]), dtype)

    for expected, actual in rows.values():
        same(expected, actual)


@pytest.mark.parametrize("dtype", DTYPES, ids=dtypes.short)
def test_every_bitcast_moves_the_bits(device, dtype):
    a = Load("a", (dims.symbol("i", 0, N - 1),), dtype)
    targets = [d for d in DTYPES if d.itemsize == dtype.itemsize and dtypes.bool_ not in (d, dtype)]
    exprs: list[Expr] = [Op("bitcast", (a,), d) for d in targets]
    exprs = exprs or [a]
    rows = both(device, elementwise("bits", dtype, exprs), dtype)

    for expected, actual in rows.values():
        bits = np.dtype(f"u{expected.dtype.itemsize}")
        same(expected.view(bits), actual.view(bits))


# --- kernels ----------------------------------------------------------------------------------

rng = np.random.default_rng(0)
INPUTS = {
    "elementwise": ([rng.normal(size=37).astype(np.float32)], {"n": 37}),
    "softmax": ([rng.normal(size=(20, 64)).astype(np.float32)], {"n": 20}),
    "dot": ([rng.normal(size=s).astype(np.float32) for s in (216, 120)], {}),
    "pad": ([rng.normal(size=8).astype(np.float32)], {}),
    "gather": ([rng.normal(size=10).astype(np.float32), np.array([3, -5, 99, 0], np.int32)], {"n": 4}),
    "cumsum": ([rng.integers(-9, 9, 60).astype(np.int32)], {}),
    "four_axes": ([rng.normal(size=120)], {}),
    "workgroup": ([rng.normal(size=32).astype(np.float32)], {}),
}
ULPS = {"softmax": 16, "dot": 64, "elementwise": 8}


@pytest.mark.parametrize("name", INPUTS)
def test_an_example_runs_as_interpreted(device, name):
    arrays, sizes = INPUTS[name]
    code = parse(TEXTS[name])
    shapes = {p.name: (n, 64) if name == "softmax" else (p.size,) for p in code.params}
    sources = [SizeSource("n", len(arrays) - 1, 0, 0, None)] if sizes else []
    out = np.empty(evaluate(code.params[-1].size, sizes), code.params[-1].dtype)
    interpret(code, [*arrays, out], sizes)

    (actual,) = run(device, plan_of(code, shapes, sources), *arrays)

    close(out, actual.reshape(-1), ulps=ULPS.get(name, 0), why="exp, erf, and the order of sums")


def test_user_arithmetic_is_not_contracted(device):
    text = """
    code f(a: read f32[1], b: read f32[1], x: read f32[1], y: write f32[1]) {
      store y[0] = (a[0] * x[0]) + (b[0] * x[0])
    }"""
    a, x = (np.array([v], np.float32) for v in (1e20, 1e10))

    (y,) = run(device, plan_of(parse(text)), a, -a, x)

    assert y[0] == 0


def test_a_refused_program_shows_the_numbered_source_of_its_kernel(device):
    source = "__kernel void run_good() {}\n\n__kernel void run_bad() {\n  undeclared = 1;\n}\n"

    with pytest.raises(CompileError) as error:
        device.build(source, "bad")

    assert "opencl: cannot compile bad for opencl:0 (line 4, column 3: " in str(error.value)
    assert ">   4    undeclared = 1;" in str(error.value)
    assert "   1  __kernel void run_good" not in str(error.value)
