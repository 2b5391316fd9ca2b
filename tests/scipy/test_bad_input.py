"""Input that rune.scipy refuses like SciPy, with its own messages, and input it cannot check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate

import rune
import rune.numpy as rnp
from rune.errors import ArgumentError, RuneError, ShapeError, TracerArrayConversionError
from rune.scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, special
from tests.support.arrays import array
from tests.support.close import near

X = array(np.array([1.0, 4.0, 2.0, 8.0, 5.0, 7.0]))
IMAGE = array(np.arange(12.0).reshape(3, 4))
FALLING, REPEATED = array(np.array([3.0, 2.0, 1.0, 0.0])), array(np.array([0.0, 1.0, 1.0, 2.0]))
NOT_FINITE = array(np.array([0.0, 1.0, 2.0, np.inf]))
Y = array(np.array([1.0, 0.0, 2.0, 1.0]))

_TRANSFORMS = "fft ifft rfft irfft hfft ihfft dct idct dst idst".split()


@pytest.mark.parametrize("name", _TRANSFORMS)
@pytest.mark.parametrize("n", [0, -1, -5])
def test_a_transform_has_at_least_one_number(name: str, n: int):
    with pytest.raises(ShapeError, match=rf"{name}: cannot transform .*length {n}\b"):
        getattr(fft, name)(X, n=n)


@pytest.mark.parametrize("name", ["fftn", "rfftn", "dctn", "dstn"])
def test_a_size_of_minus_one_keeps_the_length_of_its_axis(name: str):
    function = getattr(fft, name)

    near(function(IMAGE, s=(3, 6)), function(IMAGE, s=(-1, 6)), relative=0, why="the same call")


@pytest.mark.parametrize("places", [(0, 3), (-1, 1), (2, 1), (3, 3)])
@pytest.mark.parametrize("name", ["eigh", "eigvalsh"])
def test_a_range_of_eigenvalues_is_of_those_there_are(name: str, places: tuple[int, int]):
    with pytest.raises(ArgumentError, match=rf"eigh: cannot take the eigenvalues {places[0]} to {places[1]} of 3"):
        getattr(linalg, name)(rnp.eye(3), subset_by_index=places)


_POINTS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("CubicSpline", lambda x: interpolate.CubicSpline(x, Y)),
    ("PchipInterpolator", lambda x: interpolate.PchipInterpolator(x, Y)),
    ("Akima1DInterpolator", lambda x: interpolate.Akima1DInterpolator(x, Y)),
    ("CubicHermiteSpline", lambda x: interpolate.CubicHermiteSpline(x, Y, Y)),
    ("make_interp_spline", lambda x: interpolate.make_interp_spline(x, Y)),
    ("PPoly", lambda x: interpolate.PPoly(rnp.ones((2, 3)), x)),
)


@pytest.mark.parametrize(("name", "call"), _POINTS, ids=[n for n, _ in _POINTS])
@pytest.mark.parametrize("x", [FALLING, REPEATED, NOT_FINITE], ids=["fall", "repeat", "inf"])
def test_points_that_do_not_rise_are_refused(name: str, call: Callable[[Any], Any], x: Any):
    with pytest.raises(ArgumentError, match=f"{name}: cannot use points that do not rise"):
        call(x)


def test_traced_points_are_not_checked():
    spline = rune.jit(lambda x: interpolate.CubicSpline(x, Y)(0.5))

    assert spline(REPEATED).shape == ()


def test_a_grid_of_repeated_points_is_refused():
    with pytest.raises(ArgumentError, match="RegularGridInterpolator: cannot use points"):
        interpolate.RegularGridInterpolator((REPEATED,), Y)


def test_traced_points_in_no_order_are_sorted_by_interp1d():
    x = np.array([3.0, 0.0, 2.0, 1.0])
    expected = scipy.interpolate.interp1d(x, np.asarray(Y))(1.25)

    value = rune.jit(lambda x: interpolate.interp1d(x, Y)(1.25))(array(x))

    near(expected, value, relative=1e-6, why="f32")


_REFUSED: dict[str, Callable[[], Any]] = {
    "zoom: cannot use zoom='a'": lambda: ndimage.zoom(IMAGE, "a"),  # type: ignore[arg-type]
    "zoom: cannot use zoom=.-1": lambda: ndimage.zoom(IMAGE, -1.0),
    "rotate: cannot use angle='a'": lambda: ndimage.rotate(IMAGE, "a"),  # type: ignore[arg-type]
    "gaussian_filter: cannot use sigma=-1": lambda: ndimage.gaussian_filter(IMAGE, -1.0),
    "gaussian_filter: cannot use sigma=nan": lambda: ndimage.gaussian_filter(IMAGE, np.nan),
    "gaussian_filter: cannot use sigma='a'": lambda: ndimage.gaussian_filter(IMAGE, "a"),  # type: ignore[arg-type]
    "gaussian_filter1d: cannot use sigma=0": lambda: ndimage.gaussian_filter1d(IMAGE, 0.0),
    "gaussian_filter1d: cannot use .*order=-1": lambda: ndimage.gaussian_filter1d(IMAGE, 1, -1, -1),
    "uniform_filter1d: cannot use a window of 0": lambda: ndimage.uniform_filter1d(IMAGE, 0),
    "maximum_filter: cannot use a window of -3": lambda: ndimage.maximum_filter(IMAGE, -3),
    "median_filter: cannot use origin=2": lambda: ndimage.median_filter(IMAGE, 3, origin=2),
    "correlate: cannot use origin=-2": lambda: ndimage.correlate(IMAGE, rnp.ones((3, 3)), origin=-2),
    "cdf2rdf: cannot use eigenvectors": lambda: linalg.cdf2rdf(X[0], X[0]),
    "cdf2rdf: cannot use eigenvectors .6": lambda: linalg.cdf2rdf(X, X),
    "diagsvd: cannot place a number": lambda: linalg.diagsvd(X[0], 1, 1),
    "CubicSpline: cannot use bc_type='periodic'": lambda: interpolate.CubicSpline(
        rnp.arange(4.0), FALLING, bc_type="periodic"
    ),
    "BSpline: cannot use knots that fall": lambda: interpolate.BSpline(FALLING, Y, 1),
    "BSpline: cannot use the degree -1": lambda: interpolate.BSpline(Y, Y, -1),
    "solve_ivp: cannot use t_eval": lambda: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), X, t_eval=[0.5, 2.0]),
    "solve_ivp: cannot use max_step": lambda: integrate.solve_ivp(lambda t, y: -y, (0.0, 1.0), X, max_step=0.0),
    "laplace: cannot filter": lambda: ndimage.laplace(X[0]),
    "gaussian_laplace: cannot filter": lambda: ndimage.gaussian_laplace(X[0], 1.0),
    "gaussian_gradient_magnitude: cannot filter": lambda: ndimage.gaussian_gradient_magnitude(X[0], 1.0),
    "interp1d: cannot find axis -1": lambda: interpolate.interp1d(Y, Y[0]),
    "gammaln: cannot compute without operands": lambda: special.gammaln(),  # type: ignore[call-arg]
    "welch: cannot use the sampling frequency 0": lambda: signal.welch(Y, fs=0),
    "stft: cannot use the sampling frequency -1": lambda: signal.stft(Y, fs=-1.0, nperseg=2),
    "istft: cannot use fs='a'": lambda: signal.istft(X, fs="a"),  # type: ignore[arg-type]
    "odeint: cannot transform int": lambda: integrate.odeint(3, X, X),  # type: ignore[arg-type]
    "solve_ivp: cannot transform int": lambda: integrate.solve_ivp(3, (0.0, 1.0), X),  # type: ignore[arg-type]
    "minimize: cannot transform int": lambda: optimize.minimize(3, X),  # type: ignore[arg-type]
    "least_squares: cannot transform int": lambda: optimize.least_squares(3, X),  # type: ignore[arg-type]
    "root: cannot transform int": lambda: optimize.root(3, X),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", _REFUSED, ids=str)
def test_an_argument_that_makes_no_sense_is_refused_by_name(message: str):
    with pytest.raises(RuneError, match=message):
        _REFUSED[message]()


@pytest.mark.parametrize("name", ["null_space", "orth"])
def test_a_basis_of_a_traced_matrix_needs_its_size(name: str):
    with pytest.raises(TracerArrayConversionError, match=f"{name}: .*(.*\n)*hint: .* size="):
        rune.jit(getattr(linalg, name))(IMAGE)
