"""Every scalar operation and conversion on every dtype that the cpu has, against its meaning.

Integers, comparisons and what only moves bits are equal bit for bit; the functions of the scalar
library are measured in test_llvm_math.py and only roughly compared here, for narrow dtypes too.
"""

from __future__ import annotations

import numpy as np
import pytest

from rune import dtypes
from rune.errors import CompileError
from rune.lowering.codegen.machine import SUPPORTED
from rune.lowering.kernel.expr import Cast, Load, Op, const
from rune.lowering.kernel.scalar import SCALAR_MEANING, convert
from rune.lowering.scalar.table import OPERATIONS
from tests.lowering.codegen.llvm_run import MACHINES, SCALAR, apply, compiled, elementwise, op, run

N = 83  # several vectors, and a rest, at every width
DTYPES = sorted(SUPPORTED, key=dtypes.short)
FUNCTIONS = frozenset(name for name, op in OPERATIONS.items() if not op.is_exact)
EXACT = sorted(OPERATIONS.keys() - FUNCTIONS - {"bitcast"})
RELATIVE = {2: 1e-2, 4: 1e-6, 8: 1e-14}


def values(dtype: np.dtype, seed: int) -> np.ndarray:
    """Random bits, small numbers and edge cases, mixed."""
    rng = np.random.default_rng(seed)
    if dtype == dtypes.bool_:
        return rng.integers(0, 2, N).astype(bool)
    if dtype in dtypes.INTEGER:
        info = np.iinfo(dtype)
        wild = rng.integers(info.min, info.max, N, dtype=dtype, endpoint=True)
        small = rng.integers(max(info.min, -9), 9, N).astype(dtype)
        edges = np.array([0, 1, 0, info.max, info.min], dtype)
    else:
        bits = 8 * dtype.itemsize
        wild = rng.integers(0, 2**bits - 1, N, dtype=f"u{dtype.itemsize}").view(dtype)
        small = (rng.standard_normal(N) * 4).astype(dtype)
        edges = [0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.5, 1.5, 2.5, -2.5, -0.5]
        edges = np.array(edges, dtype)
    with np.errstate(all="ignore"):
        return rng.permutation(np.concatenate([edges, wild[: N // 2], small]))[:N]


def differences(expected: np.ndarray, actual: np.ndarray) -> np.ndarray:
    """Where two arrays differ; all NaNs are equal, and both zeros are."""
    with np.errstate(all="ignore"):
        both = (expected != expected) & (actual != actual)
        return np.flatnonzero(~((expected == actual) | both))


def arguments(name: str, dtype: np.dtype) -> list[np.ndarray]:
    operands = [values(dtype, k) for k in range(OPERATIONS[name].arity)]
    if name == "select":
        operands[0] = values(dtypes.bool_, 0)
    return operands


@pytest.mark.parametrize("name", EXACT)
def test_an_operation_means_what_the_table_says(name):
    for dtype in (d for d in DTYPES if d in OPERATIONS[name].dtypes):
        operands = arguments(name, dtype)

        actual = apply(name, *operands)

        expected = np.asarray(SCALAR_MEANING[name](*operands))
        wrong = differences(expected, actual) if name != "rsqrt" else []
        assert not len(wrong), (dtype, [a[wrong] for a in operands], expected[wrong], actual[wrong])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64], ids=str)
def test_a_function_follows_its_meaning_roughly(name, dtype):
    operands = [values(dtype, k) for k in range(OPERATIONS[name].arity)]

    with np.errstate(all="ignore"):
        actual = apply(name, *operands).astype(np.float64)
        expected = np.asarray(SCALAR_MEANING[name](*operands)).astype(np.float64)

    tiny = float(np.finfo(np.float32).tiny) if dtype != dtypes.f16 else 1e-3
    np.testing.assert_allclose(actual, expected, rtol=RELATIVE[dtype.itemsize], atol=tiny)


@pytest.mark.parametrize("source", DTYPES, ids=dtypes.short)
def test_a_conversion_means_what_numpy_means(source):
    x = values(source, 0)

    for target in DTYPES:
        actual = np.empty(N, target)
        run(elementwise([source], lambda a, t=target: Cast(a, t), N, target), [x, actual])

        wrong = differences(convert(x, target), actual)
        assert not len(wrong), (target, x[wrong], actual[wrong])


def test_f64_to_f16_rounds_once():
    x = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11, 1 + 3 * 2.0**-11 - 2.0**-40, 60000.0])

    actual = np.empty(4, np.float16)
    run(elementwise([dtypes.f64], lambda a: Cast(a, dtypes.f16), 4, dtypes.f16), [x, actual])

    assert (actual == x.astype(np.float16)).all()


@pytest.mark.parametrize("source", [d for d in DTYPES if d != dtypes.bool_], ids=dtypes.short)
def test_bitcast_keeps_every_bit(source):
    x = values(source, 1)

    for target in (d for d in DTYPES if d.itemsize == source.itemsize and d != dtypes.bool_):
        actual = np.empty(N, target)
        code = elementwise([source], lambda a, t=target: Op("bitcast", (a,), t), N, target)
        run(code, [x, actual])

        assert (actual.view(f"u{target.itemsize}") == x.view(f"u{source.itemsize}")).all()


@pytest.mark.parametrize("name", ["div", "rem", "shl", "shr", "pow", "max", "select", "nextafter"])
def test_other_machines_compute_the_same(name):
    dtype = dtypes.f32 if name == "nextafter" else dtypes.i32
    operands = arguments(name, dtype)

    results = [apply(name, *operands, on=machine) for machine in MACHINES.values()]

    assert not any(len(differences(results[0], other)) for other in results[1:])


@pytest.mark.parametrize("name", ["div", "rem"])
@pytest.mark.parametrize("dtype", sorted(dtypes.INTEGER & SUPPORTED, key=dtypes.short), ids=dtypes.short)
def test_a_literal_divisor_means_what_an_array_of_it_means(name, dtype):
    info, a = np.iinfo(dtype), values(dtype, 0)
    divisors = {0, 1, 2, 3, 7, 64, 100, info.max, info.min} | ({-1, -2, -7} if info.min else set())

    for divisor in sorted(divisors):
        code = elementwise([dtype], lambda x, d=divisor: op(name, x, const(d, dtype)), N, dtype)
        for machine in (*MACHINES.values(), SCALAR):
            y = np.empty(N, dtype)
            run(code, [a, y], machine)

            expected = SCALAR_MEANING[name](a, np.full(N, divisor, dtype))
            assert (y == expected).all(), (divisor, machine, a[y != expected])


@pytest.mark.parametrize("name", ["div", "rem"])
def test_lanes_are_divided_by_a_literal_without_a_division(name):
    code = elementwise([dtypes.i32], lambda x: op(name, x, const(7, dtypes.i32)), N, dtypes.i32)

    assembly = compiled(code).assembly()

    assert "vdiv" not in assembly
    assert "idiv" not in assembly


def test_multiply_and_add_are_not_fused():
    a, b = np.full(N, 1 + 2.0**-12, np.float32), np.full(N, -1 - 2.0**-11, np.float32)
    code = elementwise(
        [dtypes.f32, dtypes.f32], lambda x, y: Op("add", (Op("mul", (x, x), dtypes.f32), y), dtypes.f32), N, dtypes.f32
    )
    y = np.empty(N, np.float32)

    run(code, [a, b, y])

    assert (y == 0).all()  # one rounding would give 2^-24


def test_a_product_of_a_large_and_its_negative_cancels():
    a, x = np.full(N, 1e20, np.float32), np.full(N, 1e10, np.float32)
    f32 = dtypes.f32

    def compute(a: Load, x: Load) -> Op:
        first, second = Op("mul", (a, x), f32), Op("mul", (Op("neg", (a,), f32), x), f32)
        return Op("add", (first, second), f32)

    y = np.empty(N, np.float32)
    run(elementwise([f32, f32], compute, N, f32), [a, x, y])

    assert (y == 0).all()


@pytest.mark.parametrize("dtype", [dtypes.f8_e5m2, dtypes.i4, dtypes.c64], ids=dtypes.short)
def test_a_dtype_that_the_cpu_lacks_is_refused_by_name(dtype):
    with pytest.raises(CompileError, match=f"cannot render {dtypes.short(dtype)}"):
        run(elementwise([dtype], lambda a: a, 4, dtype), [])
