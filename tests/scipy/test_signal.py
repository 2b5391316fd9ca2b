"""Laws of transforms and filters that tables of calls cannot express, and errors for bad input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, AxisError, RuneError, ShapeError
from rune.scipy import fft, signal
from tests.support.close import near

ROUNDED = "rounding"


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).standard_normal(shape)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
@pytest.mark.parametrize("n", [2, 3, 7, 16, 45])
def test_a_cosine_transform_and_its_inverse_undo_each_other(name: str, type: int, n: int):
    x = rnp.asarray(drawn(n), "f64")

    for norm in ("backward", "ortho", "forward"):
        spectrum = getattr(fft, name)(x, type, norm=norm)
        near(x, getattr(fft, f"i{name}")(spectrum, type, norm=norm), relative=1e-12, why=ROUNDED)


@pytest.mark.parametrize("type", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "dst"])
def test_an_orthogonal_transform_keeps_lengths(name: str, type: int):
    x = rnp.asarray(drawn(12), "f64")

    spectrum = getattr(fft, name)(x, type, norm="ortho")

    near(rnp.sum(x * x), rnp.sum(spectrum * spectrum), relative=1e-12, why=ROUNDED)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("m", "n"), [(500, 7), (64, 64), (9, 300)])
def test_all_ways_to_convolve_agree(m: int, n: int, mode: str):
    x, y = rnp.asarray(drawn(m), "f64"), rnp.asarray(drawn(n), "f64")

    direct = signal.convolve(x, y, mode, method="direct")

    near(direct, signal.fftconvolve(x, y, mode), relative=1e-10, why=ROUNDED)
    near(direct, signal.oaconvolve(x, y, mode), relative=1e-10, why=ROUNDED)


def test_large_arrays_are_convolved_by_transforms_and_integers_directly():
    assert signal.choose_conv_method(rnp.ones(10_000), rnp.ones(10_000)) == "fft"
    assert signal.choose_conv_method(rnp.ones(10_000), rnp.ones(10)) == "direct"
    assert signal.choose_conv_method(rnp.ones(10_000, "i32"), rnp.ones(10_000, "i32")) == "direct"


@pytest.mark.parametrize(("size", "overlap"), [(8, None), (8, 6), (9, 4)])
def test_short_time_transforms_are_inverted(size: int, overlap: int | None):
    x = rnp.asarray(drawn(100), "f64")

    _, _, spectra = signal.stft(x, nperseg=size, noverlap=overlap)
    _, back = signal.istft(spectra, nperseg=size, noverlap=overlap)

    near(x, back[:100], relative=1e-10, why=ROUNDED)


def test_the_response_to_an_impulse_is_that_of_the_recursion():
    impulse = rnp.zeros(6).at[0].set(1.0)

    response = signal.lfilter(rnp.array([1.0]), rnp.array([2.0, -1.0]), impulse)

    near(0.5 ** np.arange(1, 7), response, relative=1e-6, why=ROUNDED)


def test_a_filter_started_in_its_steady_state_passes_a_constant_at_once():
    b, a = rnp.array([0.2, 0.3, 0.1]), rnp.array([1.0, -0.5, 0.1])

    y, state = signal.lfilter(b, a, rnp.ones(5), zi=signal.lfilter_zi(b, a))

    near(np.full(5, 1.0), y, relative=1e-6, why=ROUNDED)
    near(signal.lfilter_zi(b, a), state, relative=1e-6, why=ROUNDED)


def test_the_time_to_compile_a_filter_does_not_depend_on_the_signal():
    b, a = rnp.array([1.0]), rnp.array([1.0, -0.5])
    counts = {n: len(rune.make_program(lambda x: signal.lfilter(b, a, x))(rnp.ones(n)).equations) for n in (10, 1000)}

    assert len(set(counts.values())) == 1, counts


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fft.dct(rnp.ones(4), 5), ArgumentError, "dct: cannot use type=5"),
        (lambda: fft.dct(rnp.ones(1), 1), ShapeError, "too short"),
        (lambda: fft.dct(rnp.ones(4), norm="x"), ArgumentError, "dct: cannot use norm='x'"),
        (lambda: fft.dctn(rnp.ones((2, 2)), s=(2,), axes=(0, 1)), ArgumentError, "1 sizes for 2"),
        (lambda: fft.next_fast_len(0), ArgumentError, "next_fast_len: cannot look"),
        (lambda: signal.convolve(rnp.ones(3), rnp.ones((2, 2))), ShapeError, "equal ranks"),
        (lambda: signal.convolve(rnp.ones(3), rnp.ones(2), "x"), ArgumentError, "mode='x'"),
        (lambda: signal.convolve(rnp.ones(3), rnp.ones(2), method="x"), ArgumentError, "method"),
        (lambda: signal.convolve2d(rnp.ones(3), rnp.ones(3)), ShapeError, "rank 2 required"),
        (lambda: signal.convolve2d(rnp.ones((3, 3)), rnp.ones((3, 3)), boundary="x"), ArgumentError, "boundary='x'"),
        (lambda: signal.fftconvolve(rnp.ones((3, 1)), rnp.ones((1, 3)), "valid"), ShapeError, "cannot lay"),
        (lambda: signal.lfilter(rnp.ones((2, 2)), rnp.ones(2), rnp.ones(3)), ShapeError, "vectors"),
        (lambda: signal.sosfilt(rnp.ones((2, 5)), rnp.ones(3)), ShapeError, r"shape \[S, 6\]"),
        (lambda: signal.savgol_filter(rnp.ones(9), 4, 2), ArgumentError, "window of 4"),
        (lambda: signal.savgol_filter(rnp.ones(9), 5, 5), ArgumentError, "order 5"),
        (lambda: signal.savgol_filter(rnp.ones(3), 5, 2), ArgumentError, "needs a whole one"),
        (lambda: signal.detrend(rnp.ones(3), type="x"), ArgumentError, "type='x'"),
        (lambda: signal.detrend(rnp.ones(3), bp=9), ArgumentError, "cannot break"),
        (lambda: signal.resample(rnp.ones(3), 0), ArgumentError, "cannot make 0 samples"),
        (lambda: signal.welch(rnp.ones(9), scaling="x"), ArgumentError, "scaling='x'"),
        (lambda: signal.welch(rnp.ones(9), nperseg=4, noverlap=4), ArgumentError, "overlap by 4"),
        (lambda: signal.welch(rnp.ones(9), average="x"), ArgumentError, "average='x'"),
        (lambda: signal.stft(rnp.ones(9), boundary="x"), ArgumentError, "boundary='x'"),
        (lambda: signal.spectrogram(rnp.ones(9), mode="x"), ArgumentError, "mode='x'"),
        (lambda: signal.istft(rnp.ones(9)), ShapeError, "istft: cannot invert"),
        (lambda: signal.get_window("x", 4), ArgumentError, "get_window: cannot find 'x'"),
        (lambda: signal.get_window("kaiser", 4), ArgumentError, "get_window: cannot make"),
        (lambda: signal.hilbert(rnp.ones(4), axis=2), AxisError, "axis 2"),
    ],
)
def test_bad_input_is_an_error_that_names_it(call, error: type[RuneError], message: str):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["welch", "periodogram", "csd", "coherence"])
@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_no_samples_have_a_power_at_no_frequency(name: str, shape: tuple[int, ...]):
    signals = [np.zeros(shape, np.float32)] * (1 if name in ("welch", "periodogram") else 2)

    frequencies, power = getattr(signal, name)(*map(rnp.asarray, signals))

    expected = getattr(scipy.signal, name)(*signals)[1]
    assert frequencies.shape == (0,)
    assert (power.shape, power.dtype) == (expected.shape, np.complex64 if name == "csd" else np.float32)


@pytest.mark.parametrize("size", [7, 31, 131])
@pytest.mark.parametrize("bad", [0, 3, 6])
def test_a_sample_that_is_nan_makes_the_median_of_powers_nan(size: int, bad: int):
    x = np.sin(np.arange(size) ** 1.3).astype(np.float32)
    x[bad] = np.nan

    for average in ("mean", "median"):
        options = {"nperseg": 5, "average": average}
        expected = scipy.signal.welch(x, **options)[1]
        np.testing.assert_allclose(signal.welch(rnp.asarray(x), **options)[1], expected, rtol=1e-4)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("taps", [1, 2, 3, 5])
@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_bad_sample_leaves_a_filter_of_finite_response_with_its_last_tap(taps, bad, way):
    x = np.arange(11, dtype=np.float32)
    x[3] = bad
    b, a = np.arange(1, taps + 1, dtype=np.float32), np.array([2], np.float32)

    y = way(signal.lfilter)(rnp.asarray(b), rnp.asarray(a), rnp.asarray(x))

    near(scipy.signal.lfilter(b, a, x), y, relative=1e-6, why=ROUNDED)


@pytest.mark.parametrize(("size", "order"), [(5, 2), (51, 5), (101, 10), (130, 9), (201, 12), (51, 20), (3, 0), (1, 0)])
@pytest.mark.parametrize("deriv", [0, 1])
def test_a_smoothing_filter_keeps_the_polynomials_of_its_order(size: int, order: int, deriv: int):
    middle = (size - 1) / 2
    scale = max(middle, 1.0)
    places = (np.arange(size) - middle) / scale
    with rune.enable_x64():
        weights = np.asarray(signal.savgol_coeffs(size, order, deriv, use="dot"))

    for degree in range(order + 1):
        polynomial = np.polynomial.Legendre.basis(degree)
        expected = polynomial.deriv(deriv)(0.0) / scale**deriv if deriv else polynomial(0.0)
        near(expected, weights @ polynomial(places), relative=1e-9, absolute=1e-12, why="f64")
