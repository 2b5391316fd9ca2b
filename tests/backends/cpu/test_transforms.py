"""Fourier transforms by the CPU's routine: every form in which lines come into lanes.

The oracle is NumPy's transform in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.backends import cpu
from rune.backends.cpu.fft.forms import Form, Kind, kind_of
from rune.backends.cpu.fft.lengths import radices
from rune.lowering.plan import Call, all_steps
from tests.support.sampling import IS_WHOLE, each_value

pytestmark = each_value()

LANES = 16  # of single precision in the widest vectors there are
# Radices of each kind, and convolutions of p - 1 numbers, of nested ones and of longer ones.
LENGTHS = [*range(2, 131), 227, 257, 509, 514]
ERRORS = {np.complex64: 3e-7, np.complex128: 7e-16}  # as of the kernels: they grow with log n

# Leading and trailing sizes: one line, few of them, more than lanes, and none that divides these.
AROUND = [((), ()), ((3,), ()), ((17,), ()), ((2,), (5,)), ((), (16,)), ((2,), (35,))]


def of_dtypes_in_turn(name: str, values: Sequence[Any]) -> pytest.MarkDecorator:
    """Values of a parameter, each with one of the dtypes in turn; with all dtypes in a whole
    run."""
    both = list(ERRORS)
    cases = [(v, d) for k, v in enumerate(values) for d in (both if IS_WHOLE else [both[k // 2 % 2]])]
    return pytest.mark.parametrize((name, "dtype"), cases, ids=lambda v: getattr(v, "__name__", str(v)))


def drawn(shape: tuple[int, ...], dtype: type = np.complex64) -> np.ndarray:
    rng = np.random.default_rng(shape[-1])
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def exact(x: np.ndarray) -> rune.Array:
    """The array with all of its bits."""
    return rnp.asarray(x, x.dtype)


def routines(function: Callable[..., object], *operands: np.ndarray) -> list[str]:
    """The routines that the compiled program calls."""
    plan = rune.explain(function)(*operands).plan
    return [step.routine for step in all_steps(plan) if isinstance(step, Call)]


def distance(actual: object, expected: np.ndarray) -> float:
    """The relative error in the mean square."""
    return float(np.linalg.norm(np.asarray(actual) - expected) / np.linalg.norm(expected))


@of_dtypes_in_turn("n", LENGTHS)
def test_a_short_transform_is_that_of_numpy_wherever_its_axis_is(n: int, dtype: type):
    operands = [drawn((*lead, n, *trail), dtype) for lead, trail in AROUND]
    axes = [len(lead) for lead, _ in AROUND]

    transforms = rune.jit(lambda xs: [rnp.fft.fft(x, axis=a) for x, a in zip(xs, axes, strict=True)])
    spectra = transforms(list(map(exact, operands)))

    truth = [np.fft.fft(x.astype(np.complex128), axis=a) for x, a in zip(operands, axes, strict=True)]
    assert max(map(distance, spectra, truth)) < ERRORS[dtype]


@pytest.mark.parametrize(
    "shape",
    [
        (256,),
        (20, 512),
        (1024,),
        (3, 2197),
        (4096,),
        (5000,),
        (61 * 37,),
        (32768,),
        (65536,),
        (2, 32768),
        (65520,),
        (3, 1009),
        (2, 10007),
        (16381,),
        (16411,),
    ],
)
@pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)
def test_long_rows_are_those_of_numpy(shape: tuple[int, ...], dtype: type):
    x = drawn(shape, dtype)

    spectrum = rune.jit(rnp.fft.fft)(exact(x))

    assert distance(spectrum, np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[dtype]


# Rows that are the lanes of a vector, rows that are split, one more row than lanes, and one less.
ROWS = [
    (16, 16),
    (17, 24),
    (40, 61 * 7),
    (31, 512),
    (16, 1000),
    (19, 4096),
    (2, 3, 5, 1024),
    (15, 512),
    (16, 4097),
    (17, 1009),
    (19, 4093),
]


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("dtype", ERRORS, ids=lambda d: d.__name__)
def test_rows_of_complex_numbers_and_their_inverses_are_those_of_numpy(shape: tuple[int, ...], dtype: type):
    x = drawn(shape, dtype)

    spectrum, signal = rune.jit(lambda x: (rnp.fft.fft(x), rnp.fft.ifft(x)))(exact(x))

    assert distance(spectrum, np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[dtype]
    assert distance(signal, np.fft.ifft(x.astype(np.complex128))) < 2 * ERRORS[dtype]


@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_rows_of_complex_numbers_are_transformed_in_their_memory_order(name: str):
    (step,) = rune.explain(getattr(rnp.fft, name))(drawn((1024, 1024))).plan.steps

    assert (step.routine, len(step.inputs), len(step.outputs)) == ("line_fft", 1, 1)


@pytest.mark.parametrize("cores", [1, 3])
def test_cores_share_rows_without_leaving_one_out(cores: int):
    x = drawn((301, 512))

    assert distance(by_cores(rnp.fft.fft, x, cores), np.fft.fft(x.astype(np.complex128))) < 2 * ERRORS[np.complex64]


# Beyond the buffers on the stack: the next length that splits, powers of two, odd lengths, rows.
VERY_LONG = [(65_600,), (107_520,), (131_072,), (3**11,), (262_144,), (2, 131_072), (3, 250_047), (1 << 20,)]


@of_dtypes_in_turn("shape", VERY_LONG)
def test_very_long_rows_are_those_of_numpy_by_any_number_of_cores(shape: tuple[int, ...], dtype: type):
    x = drawn(shape, dtype)

    one, three = (by_cores(rnp.fft.fft, x, cores) for cores in (1, 3))

    assert distance(one, np.fft.fft(x.astype(np.complex128))) < 3 * ERRORS[dtype]
    assert np.array_equal(one, three)


def by_cores(function: Callable[..., object], x: np.ndarray, cores: int) -> np.ndarray:
    """The results of the plan on a device with this many cores."""
    plan = rune.explain(function)(exact(x)).plan
    targets, _ = cpu.probe()
    (result,) = cpu.open_device(replace(targets[0], cores=cores)).record(plan)([x])
    return np.array(result)


def test_very_long_rows_use_the_routine_unless_its_factors_or_memory_do_not_suffice():
    assert routines(rnp.fft.fft, drawn((1 << 20,))) == ["line_fft"]
    for n in (61**3, 1 << 21):  # factors of 61 and 3,721, and one of 2,048
        assert "line_fft" not in routines(rnp.fft.fft, drawn((n,)))
    assert "line_fft" not in routines(lambda x: rnp.fft.fft(x, axis=0), drawn((8192, 16)))


def test_a_very_long_row_is_transformed_in_a_loop_and_by_several_threads_at_once():
    x = drawn((131_072,), np.complex128)
    function = rune.jit(lambda x: rune.lax.fori_loop(0, 3, lambda i, y: rnp.fft.fft(y) / 362, x))
    expected = x
    for _ in range(3):
        expected = np.fft.fft(expected) / 362

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: np.asarray(function(exact(x))), range(8)))

    assert max(distance(r, expected) for r in results) < 3e-15


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft"])
def test_an_eager_transform_of_many_numbers_is_near_the_compiled_one(name: str):
    x = drawn(((1 << 18) + (name == "irfft"),), np.complex128)
    x = np.real(x).copy() if name == "rfft" else x

    eager = np.asarray(getattr(rnp.fft, name)(exact(x)))

    assert distance(np.asarray(rune.jit(getattr(rnp.fft, name))(exact(x))), eager) < 2e-15
    assert distance(eager, getattr(np.fft, name)(x)) < 2e-15


@pytest.mark.parametrize("n", [131_072, 196_608])
def test_very_long_real_transforms_and_their_inverses_are_those_of_numpy(n: int):
    x = np.real(drawn((n,), np.complex128)).copy()

    forward = rune.jit(rnp.fft.rfft)(exact(x))
    back = rune.jit(rnp.fft.irfft)(forward)

    assert distance(forward, np.fft.rfft(x)) < 2e-15
    assert distance(back, x) < 2e-15


@pytest.mark.parametrize("n", [*range(1, 40), 61, 100, 128, 1000, 1024])
def test_real_transforms_and_their_inverses_are_those_of_numpy(n: int):
    x = np.real(drawn((17, n), np.complex128)).copy()
    half = drawn((17, n // 2 + 1), np.complex128)

    forward, back = rune.jit(lambda x, y: (rnp.fft.rfft(x), rnp.fft.irfft(y, n)))(exact(x), exact(half))

    assert distance(forward, np.fft.rfft(x)) < 1e-15
    assert n == 1 or distance(back, np.fft.irfft(half, n)) < 1e-15


@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "fftn", "ifftn", "irfft2"])
def test_transforms_over_several_axes_are_those_of_numpy(name: str):
    x = drawn((3, 24, 36))
    x = np.real(x).copy() if name == "rfft2" else x

    result = rune.jit(getattr(rnp.fft, name))(x)

    assert distance(result, getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))) < 5e-7


@pytest.mark.parametrize("shape", [(64, 127), (127, 128), (67, 2, 64), (67, 131)], ids=str)
@pytest.mark.parametrize("name", ["fft2", "ifft2", "rfft2", "irfft2"])
def test_eager_transforms_with_an_axis_that_has_no_routine_are_those_of_numpy(name: str, shape: tuple[int, ...]):
    x = drawn(shape)
    x = np.real(x).copy() if name == "rfft2" else x

    result = getattr(rnp.fft, name)(x)

    assert result.dtype == (np.float32 if name == "irfft2" else np.complex64)
    assert distance(result, getattr(np.fft, name)(x.astype(np.result_type(x, np.float64)))) < 5e-7


def test_short_transforms_of_good_lengths_call_no_python():
    assert routines(rnp.fft.fft2, drawn((128, 128))) == ["line_fft", "line_fft"]


@pytest.mark.parametrize("shape", [(67,), (4, 127)])
def test_transforms_of_a_large_prime_length_call_no_python(shape: tuple[int, ...]):
    assert routines(rnp.fft.fft, drawn(shape)) == ["line_fft"]


def test_an_infinity_in_one_line_leaves_the_others_as_they_are():
    x = drawn((20, 12))
    x[3, 5] = np.inf

    spectrum = np.asarray(rune.jit(rnp.fft.fft)(x))

    assert np.isfinite(np.delete(spectrum, 3, 0)).all()
    assert not np.isfinite(spectrum[3]).any()


def test_a_transform_in_a_loop_is_the_same_in_every_step():
    x = drawn((32, 32))

    result = rune.jit(lambda x: rune.lax.fori_loop(0, 3, lambda i, y: rnp.fft.fft2(y) / 32, x))(x)

    expected = x.astype(np.complex128)
    for _ in range(3):
        expected = np.fft.fft2(expected) / 32
    assert distance(result, expected) < 1e-6


@pytest.mark.parametrize(
    ("form", "kind"),
    [
        (Form(1, 128, 16), Kind.COLUMNS),
        (Form(16, 128, 1), Kind.ROWS),
        (Form(16, 8, 1), Kind.LINES),
        (Form(8, 128, 3), Kind.LINES),
        (Form(1, 256, 1), Kind.SPLIT),
        (Form(100, 1024, 1), Kind.SPLIT),
    ],
    ids=str,
)
def test_lines_come_into_lanes_in_the_form_that_suits_them(form: Form, kind: Kind):
    assert kind_of(form, LANES) is kind


def test_the_radices_of_a_length_multiply_to_it():
    assert all(int(np.prod(radices(n))) == n for n in LENGTHS)
