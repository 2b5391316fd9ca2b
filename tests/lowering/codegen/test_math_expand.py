"""Functions as kernel code: what they compute without fused multiply-add or a wider format.

The code runs as a kernel through LLVM, which does exactly the operations that are written. Oracle
and arguments are those of test_llvm_math.py: random bit patterns, the usual ranges, every edge;
f64 for f32, and the C library's extended precision for f64 where the machine has one.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from rune import dims, dtypes
from rune.lowering.kernel.expr import Expr, Load, Op
from rune.lowering.kernel.nodes import Access, For, Function, KernelCode, Kind, Let, Param, Store
from rune.lowering.kernel.rewrite import expressions, walk, walk_expr
from rune.lowering.kernel.scalar import SCALAR_MEANING
from rune.lowering.legalize.scalars import conversion, expansion
from rune.lowering.scalar.table import COMPARISONS, OPERATIONS
from tests.lowering.codegen import llvm_run
from tests.lowering.codegen.llvm_run import run
from tests.lowering.codegen.test_llvm_math import EXTENDED, POWERS, errors, exact, samples
from tests.lowering.codegen.ulps import NO_EXTENDED_ORACLE, ON_DEVICES, ON_THE_CPU

FLOATS = (dtypes.f32, dtypes.f64)
INTEGERS = sorted(dtypes.INTEGER - {dtypes.i4, dtypes.u4}, key=dtypes.short)
# A device's own, but where it is loose: test_divisions.py and test_by_bits.py of lowering/scalar.
ROUNDED = {"div", "sqrt", "neg"} | COMPARISONS
NAMES = [name for name in OPERATIONS if expansion(name, dtypes.f32) and name not in ROUNDED]
UNARY = [name for name in NAMES if OPERATIONS[name].arity == 1 and not OPERATIONS[name].is_exact]
EXACT = {"max": np.maximum, "min": np.minimum, "sign": np.sign, "rem": np.fmod, "nextafter": np.nextafter}


def known(name: str, dtype: np.dtype) -> Function:
    function = conversion(dtype, dtypes.f16) if name == "to_f16" else expansion(name, dtype)
    assert function is not None
    return function


def parts_of(function: Function) -> list[Expr]:
    """Every expression in it."""
    roots = [e for stmt in walk(function.body) for e in expressions(stmt)]
    return [part for e in (*roots, function.result) for part in walk_expr(e)]


def apply(name: str, *arrays: np.ndarray) -> np.ndarray:
    """The function on arrays of one length."""
    function, count = known(name, arrays[0].dtype), len(arrays[0])
    i = dims.symbol("i", 0, count - 1)
    params = [Param(f"x{k}", a.dtype, count, Access.READ) for k, a in enumerate(arrays)]
    result = Param("y", function.result.dtype, count, Access.WRITE)
    lets = (Let(p.name, Load(x.name, (i,), p.dtype)) for p, x in zip(function.params, params, strict=True))
    body = (*lets, *function.body, Store("y", i, function.result))
    loop = For("i", count, Kind.GRID, body)
    out = np.empty(count, result.dtype)
    run(KernelCode("f", (*params, result), (), (loop,)), [*arrays, out])
    return out


def assert_within(limit: float, actual: np.ndarray, expected: np.ndarray, *args: np.ndarray):
    wrong = errors(actual, expected)
    worst = int(np.argmax(wrong))
    assert wrong[worst] <= limit, (*(a[worst] for a in args), actual[worst], wrong[worst])


# --- accuracy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNARY)
def test_the_error_of_f32_is_no_larger_than_measured(name: str):
    x = samples(np.float32)

    assert_within(ON_DEVICES[name][0], apply(name, x), exact(name, x), x)


@pytest.mark.skipif(not EXTENDED, reason="no extended precision to compare with")
@pytest.mark.parametrize("name", sorted(set(UNARY) - NO_EXTENDED_ORACLE))
def test_the_error_of_f64_is_no_larger_than_measured(name: str):
    x = samples(np.float64)

    assert_within(ON_DEVICES[name][1], apply(name, x), exact(name, x), x)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_f64_error_functions_are_near_the_c_librarys(name: str):
    # math.erf errs by up to 1 ulp itself. Denormal results are left out: it flushes some.
    x = samples(np.float64, 5_000)
    x = x[(np.abs(x) < 26) & (np.abs(x) > 1e-300)]
    expected = np.array([getattr(math, name)(v) for v in x])

    assert_within(4, apply(name, x), expected, x)


def test_f64_erf_inv_undoes_erf():
    y = np.concatenate([np.linspace(-3, 3, 5001), 10.0 ** -np.arange(1, 300)])
    x = np.array([math.erf(v) for v in y])

    inverse = apply("erf_inv", x)

    # What rounding x loses grows with the slope of erf_inv.
    slope = np.sqrt(np.pi) / 2 * np.exp(y * y)
    assert (np.abs(inverse - y) <= 3 * np.spacing(np.abs(y)) + np.spacing(np.abs(x)) * slope).all()


def test_f64_erf_inv_is_right_up_to_the_last_number_below_1():
    # mpmath 1.4.1, 40 digits, at 1 - 2**-k.
    true = {
        53: 5.8635847487551676,
        52: 5.805018683193453,
        47: 5.503122601046913,
        40: 5.05125408524939,
        30: 4.328028275800946,
        20: 3.465505025803331,
    }
    x = np.array([1 - 2.0**-k for k in true])

    assert_within(2, apply("erf_inv", x), np.array(list(true.values()), np.longdouble), x)


def pairs(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Arguments of very different magnitudes, arguments near 1, and ordinary ones."""
    rng, count = np.random.default_rng(1), 20_000
    sizes = [10.0 ** rng.integers(-30, 30, count) for _ in range(2)]
    x = [rng.standard_normal(count) * sizes[0], rng.uniform(0, 20, count)]
    y = [rng.standard_normal(count) * sizes[1], rng.uniform(-90, 90, count)]
    x += [1 + 1e-3 * rng.standard_normal(count), rng.standard_normal(count)]
    y += [rng.uniform(-3e4, 3e4, count), rng.standard_normal(count)]
    return np.concatenate(x).astype(dtype), np.concatenate(y).astype(dtype)


WIDER = {dtypes.f32: np.float64, dtypes.f64: np.longdouble}
ORACLE = {"pow": np.power, "atan2": np.arctan2}


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_the_error_of_functions_of_two_numbers_is_no_larger_than_measured(name: str, dtype: np.dtype):
    if dtype == dtypes.f64 and not EXTENDED:
        pytest.skip("no extended precision to compare with")
    x, y = pairs(dtype)
    x = np.abs(x) if name == "pow" else x
    wide = WIDER[dtype]
    with np.errstate(all="ignore"):
        expected = ORACLE[name](x.astype(wide), y.astype(wide))

    column = FLOATS.index(dtype)
    assert_within(ON_DEVICES[name][column], apply(name, x, y), expected, x, y)
    assert_within(ON_THE_CPU[name][column], llvm_run.apply(name, x, y), expected, x, y)


def test_no_measured_error_is_over_2_ulp():
    assert max(max(row) for row in [*ON_DEVICES.values(), *ON_THE_CPU.values()]) <= 2


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
@pytest.mark.parametrize("name", ["pow", "atan2"])
def test_special_pairs_follow_ieee(name: str, dtype: np.dtype):
    x, y = (a.ravel() for a in np.meshgrid(np.array(POWERS, dtype), np.array(POWERS, dtype)))
    with np.errstate(all="ignore"):
        expected = ORACLE[name](x, y)

    assert_within(2, apply(name, x, y), expected, x, y)


# --- what is exact ----------------------------------------------------------------------------


def test_an_exact_form_of_floats_is_compared_with_numpy():
    assert set(EXACT) == {name for name in NAMES if OPERATIONS[name].is_exact}


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
@pytest.mark.parametrize("name", sorted(set(EXACT) - {"rem"}))
def test_extremes_signs_and_neighbours_are_those_of_numpy(name: str, dtype: np.dtype):
    x = samples(dtype.type)
    args = (x, np.random.default_rng(3).permutation(x))[: OPERATIONS[name].arity]

    with np.errstate(all="ignore"):
        assert np.array_equal(apply(name, *args), EXACT[name](*args), equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
def test_the_remainder_of_floats_is_exact(dtype: np.dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    edges = np.array([*POWERS, tiny, -3 * tiny, np.finfo(dtype).max, 1e-40, 7.5], dtype)
    x, y = (a.ravel() for a in np.meshgrid(edges, edges))
    x, y = (np.concatenate(both) for both in zip((x, y), pairs(dtype), strict=True))
    with np.errstate(all="ignore"):
        expected = EXACT["rem"](x, y)

    remainder = apply("rem", x, y)

    both_nan = np.isnan(remainder) & np.isnan(expected)
    assert ((remainder == expected) & (np.signbit(remainder) == np.signbit(expected)) | both_nan).all()


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_bits_are_counted_without_an_instruction_for_it(dtype: np.dtype):
    bits = 8 * dtype.itemsize
    numbers = [0, 1, 2, 3, 0x55, 0x7F, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1]
    x = np.array(numbers, f"u{dtype.itemsize}").view(dtype)

    assert apply("popcount", x).tolist() == [n.bit_count() for n in numbers]
    assert apply("clz", x).tolist() == [bits - n.bit_length() for n in numbers]


@pytest.mark.parametrize("dtype", INTEGERS, ids=dtypes.short)
def test_integer_powers_wrap_and_truncate(dtype: np.dtype):
    info = np.iinfo(dtype)
    numbers = [info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max]
    numbers += [-1, -2, -3] if info.min else []
    x, y = (a.ravel() for a in np.meshgrid(np.array(numbers, dtype), np.array(numbers, dtype)))

    assert (apply("pow", x, y) == SCALAR_MEANING["pow"](x, y)).all()


def test_f64_is_rounded_to_f16_once():
    near = np.arange(-2000, 2000, dtype=np.float16).astype(np.float64) + 0.5
    x = np.concatenate([near, np.nextafter(near, -1e9), np.nextafter(near, 1e9), [1e9, np.inf]])
    with np.errstate(over="ignore"):
        expected = x.astype(np.float16)

    assert (apply("to_f16", x) == expected).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
def test_signs_of_zero_are_kept_by_odd_functions(dtype: np.dtype):
    odd = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "erf_inv", "expm1", "log1p", "cbrt")
    for name in odd:
        zeros = apply(name, np.array([0.0, -0.0], dtype))
        assert (zeros == 0).all(), name
        assert np.signbit(zeros).tolist() == [False, True], name


# --- what renderers rely on -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=dtypes.short)
def test_a_function_calls_none_of_floats_and_needs_no_fused_multiply_add(dtype: np.dtype):
    for name in NAMES:
        function = known(name, dtype)
        exprs = [e for s in walk(function.body) for e in expressions(s)] + [function.result]
        operations = {(p.name, p.args[-1].dtype) for e in exprs for p in walk_expr(e) if isinstance(p, Op)}
        others = [op for op in operations if op[1] in dtypes.FLOATING and op[0] not in ROUNDED]
        assert not any(expansion(*op) for op in others), name
        assert not any(op == "fma" for op, _ in operations), name


def test_f32_functions_need_no_64_bits():
    for name in NAMES:
        kinds = {part.dtype for part in parts_of(known(name, dtypes.f32))}
        assert kinds <= {dtypes.f32, dtypes.i32, dtypes.u32, dtypes.bool_}, name


def test_an_operation_that_every_device_has_stays_one():
    assert [expansion(name, dtypes.f32) for name in ("add", "mul", "floor", "select")] == [None] * 4
