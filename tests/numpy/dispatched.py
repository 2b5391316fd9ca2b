"""SciPy's and scikit-learn's array-API dispatch on arrays of rune, against NumPy arrays.

    SCIPY_ARRAY_API=1 python -m tests.numpy.dispatched scipy

prints the calls that differ, as JSON, and the number of calls. It runs in a separate process, since
SciPy reads the variable once, when it is imported. Each call is made with arrays, and with arrays
in boxes (`rune.numpy.mutable`).
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune.array import Array
from rune.numpy.mutable_boxes import Box

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.1)
LABELS = (X[:, 0] + X[:, 1] > 0).astype(np.int32)
TARGET = X @ np.array([1, 2, 3, 4], np.float32)
Call = Callable[[Any, Callable[[np.ndarray], Any]], Any]

COMPUTING: dict[str, Call] = {
    "special.softmax": lambda sp, a: sp.special.softmax(a(X), axis=1),
    "special.expit": lambda sp, a: sp.special.expit(a(X)),
    "special.gammaln": lambda sp, a: sp.special.gammaln(a(POSITIVE)),
    "special.xlogy": lambda sp, a: sp.special.xlogy(a(X), a(POSITIVE)),
    "special.logsumexp": lambda sp, a: sp.special.logsumexp(a(X), axis=1),
    "special.log_softmax": lambda sp, a: sp.special.log_softmax(a(X), axis=1),
    "stats.skew": lambda sp, a: sp.stats.skew(a(X)),
    "stats.kurtosis": lambda sp, a: sp.stats.kurtosis(a(X)),
    "stats.ttest_ind": lambda sp, a: sp.stats.ttest_ind(a(X[:, 0]), a(X[:, 1])).pvalue,
    "stats.gmean": lambda sp, a: sp.stats.gmean(a(POSITIVE)),
    "stats.moment": lambda sp, a: sp.stats.moment(a(X), order=3),
    "stats.entropy": lambda sp, a: sp.stats.entropy(a(POSITIVE)),
    "stats.zscore": lambda sp, a: sp.stats.zscore(a(X)),
    "stats.pearsonr": lambda sp, a: sp.stats.pearsonr(a(X[:, 0]), a(X[:, 1])).statistic,
    "stats.variation": lambda sp, a: sp.stats.variation(a(X)),
    "stats.bartlett": lambda sp, a: sp.stats.bartlett(a(X[:, 0]), a(X[:, 1])).statistic,
    "stats.rankdata": lambda sp, a: sp.stats.rankdata(a(X), axis=0),
    "stats.quantile": lambda sp, a: sp.stats.quantile(a(X), a(np.array(0.3, np.float32)), axis=0),
    "fft.fft": lambda sp, a: sp.fft.fft(a(X)),
    "fft.rfft": lambda sp, a: sp.fft.rfft(a(X), axis=0),
    "fft.irfftn": lambda sp, a: sp.fft.irfftn(sp.fft.rfftn(a(X))),
    "fft.dct": lambda sp, a: sp.fft.dct(a(X), axis=0, norm="ortho"),
    "fft.dct of type 1": lambda sp, a: sp.fft.dct(a(X), type=1, norm="ortho"),
    "signal.detrend": lambda sp, a: sp.signal.detrend(a(X)),
    "signal.fftconvolve": lambda sp, a: sp.signal.fftconvolve(a(X[:, 0]), a(X[:, 1])),
    "signal.oaconvolve": lambda sp, a: sp.signal.oaconvolve(a(X[:, 0]), a(X[:9, 1])),
    "signal.hilbert": lambda sp, a: sp.signal.hilbert(a(X)),
    "signal.windows.hann": lambda sp, a: sp.signal.windows.hann(9, xp=a(X).__array_namespace__()),
    "signal.butter and lfilter": lambda sp, a: sp.signal.lfilter(
        *(a(c.astype(np.float32)) for c in sp.signal.butter(2, 0.3)), a(X[:, 0])
    ),
    "signal.savgol_filter": lambda sp, a: sp.signal.savgol_filter(a(X[:, 0]), 5, 2),
    "ndimage.gaussian_filter": lambda sp, a: sp.ndimage.gaussian_filter(a(X), 1.0),
    "ndimage.sobel": lambda sp, a: sp.ndimage.sobel(a(X)),
    "ndimage.label": lambda sp, a: sp.ndimage.label(a(X > 0))[0],
    "integrate.trapezoid": lambda sp, a: sp.integrate.trapezoid(a(X[:, 0])),
    "integrate.simpson": lambda sp, a: sp.integrate.simpson(a(X[:, 0])),
    "integrate.cumulative_simpson": lambda sp, a: sp.integrate.cumulative_simpson(a(X[:, 0])),
    "integrate.tanhsinh": lambda sp, a: sp.integrate.tanhsinh(lambda x: x * x, a(0 * X[0]), a(POSITIVE[0])).integral,
    "differentiate.derivative": lambda sp, a: (
        sp.differentiate.derivative(lambda x: x * x * x, a(POSITIVE[0].astype(np.float64))).df
    ),
    "optimize.rosen": lambda sp, a: sp.optimize.rosen(a(X[0])),
    "optimize.elementwise.find_root": lambda sp, a: (
        sp.optimize.elementwise.find_root(
            lambda x, c: x * x - c, (a(np.zeros(4)), a(np.full(4, 9.0))), args=(a(POSITIVE[0] + 0.0),)
        ).x
    ),
    "interpolate.make_interp_spline": lambda sp, a: sp.interpolate.make_interp_spline(a(np.arange(60.0)), a(X))(
        a(np.array([0.5, 7.25]))
    ),
    "linalg.block_diag": lambda sp, a: sp.linalg.block_diag(a(X[:2]), a(X[2:3])),
    "spatial.transform": lambda sp, a: sp.spatial.transform.Rotation.from_rotvec(a(X[:, :3])).as_matrix(),
    "cluster.vq.whiten": lambda sp, a: sp.cluster.vq.whiten(a(X)),
    "cluster.hierarchy": lambda sp, a: sp.cluster.hierarchy.linkage(a(X.astype(np.float64))),
}
LEARNING: dict[str, Call] = {
    **{
        f"preprocessing.{name}": lambda sk, a, name=name: getattr(sk.preprocessing, name)().fit_transform(a(X))
        for name in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "Binarizer", "PolynomialFeatures")
    },
    "decomposition.PCA": lambda sk, a: abs(sk.decomposition.PCA(2, svd_solver="full").fit_transform(a(X))),
    "discriminant_analysis": lambda sk, a: (
        sk.discriminant_analysis.LinearDiscriminantAnalysis(solver="svd").fit(a(X), a(LABELS)).predict(a(X))
    ),
    "linear_model.Ridge": lambda sk, a: sk.linear_model.Ridge(solver="svd").fit(a(X), a(TARGET)).predict(a(X)),
    "naive_bayes": lambda sk, a: sk.naive_bayes.GaussianNB().fit(a(X), a(LABELS)).predict(a(X)),
    "metrics.accuracy_score": lambda sk, a: sk.metrics.accuracy_score(a(LABELS), a(LABELS)),
    "metrics.r2_score": lambda sk, a: sk.metrics.r2_score(a(TARGET), a(TARGET * 1.1)),
    "metrics.rbf_kernel": lambda sk, a: sk.metrics.pairwise.rbf_kernel(a(X)),
    "model_selection": lambda sk, a: sk.model_selection.train_test_split(a(X), a(LABELS), random_state=0)[1],
}
MODULES = {
    "scipy": "special stats fft signal ndimage integrate optimize.elementwise cluster.vq linalg "
    "cluster.hierarchy differentiate interpolate spatial.transform",
    "sklearn": "preprocessing decomposition discriminant_analysis linear_model naive_bayes metrics "
    "metrics.pairwise model_selection",
}


def difference(library: Any, call: Call, make: Callable[[np.ndarray], Any]) -> str | None:
    """How a call on arrays of rune differs from the one on NumPy's."""
    expected = np.asarray(call(library, np.asarray))
    try:
        result = call(library, make)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(result, Array | Box | float):
        return f"gives {type(result)}"
    if not np.allclose(np.asarray(result), expected, rtol=2e-3, atol=2e-3):
        return f"is {result}, not {expected}"
    return None


def rune_array(x: np.ndarray) -> Array:
    """An array of the same dtype."""
    return rnp.asarray(x, x.dtype)


def boxed(x: np.ndarray) -> Box:
    return rnp.mutable(rune_array(x))


def main(name: str) -> None:
    """Print [number of calls, {call: how it differs}]."""
    warnings.simplefilter("ignore")
    library = import_module(name)
    for module in MODULES[name].split():
        import_module(f"{name}.{module}")
    if name == "sklearn":
        library.set_config(array_api_dispatch=True)
    table = LEARNING if name == "sklearn" else COMPUTING
    calls = [(n, call, rune_array) for n, call in table.items()]
    calls += [(f"boxed {n}", call, boxed) for n, call in table.items()]
    differences = {n: how for n, call, make in calls if (how := difference(library, call, make))}
    print(json.dumps([len(calls), differences]))


if __name__ == "__main__":
    main(sys.argv[1])
