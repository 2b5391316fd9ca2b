"""Where rune (like JAX) differs from NumPy or SciPy, with the reason: reviewed by hand.

A line covers variants of cases and how they differ, "name @ variant: how", with * for anything.
A test checks that every line is still needed. Some lines apply to certain releases only.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from importlib.metadata import version


def _at_least(library: str, *release: int) -> bool:
    """Whether this release of a library, or a later one, is installed."""
    return tuple(map(int, version(library).split(".")[: len(release)])) >= release


NUMPY_2_5, SCIPY_1_18 = _at_least("numpy", 2, 5), _at_least("scipy", 1, 18)

# Of these two the values are tested, too: they are what the library gives for numbers.
INTEGRALS_OF_BOOLS = "integrals of bools are those of numbers, where SciPy takes or for their sum"
BETWEEN_BOOLS = "between bools the nearest is taken, where SciPy rounds all but 1 down"

DIFFERENCES: dict[str, tuple[str, ...]] = {
    "complex numbers have no order: NumPy's is by real part, then by imaginary part": (
        "* @ c*: raises *ordered dtype required*",
    ),
    "a Python integer that the dtype cannot hold is refused": ("* @ u*: raises *: cannot hold -* in u*",),
    "a Python float becomes an integer as in astype: it saturates": (
        "min initial @ u*: gives *",
        "max where @ u*: gives *",
        "piecewise @ u*: gives *",
    ),
    "NumPy forgets the dtype of no variables": ("cov @ * 0: has the dtype *", "corrcoef @ * 0: has the dtype *"),
    "rounding decides whether 0 is divided by 0": ("cov weighted @ 6 to 1: is *",),
    "as in JAX, an integer to a negative power is 0, or 1 / x where that is whole": ("pow @ i*: gives *",),
    "a complex number is not made real silently": ("* @ c*: raises *: cannot convert c*imaginary part would be lost*",),
    "complex numbers have the order of numpy.sort in filters and between edges, too": (
        "ndimage.m*imum_filter* @ c*: gives *",
        "digitize* @ c*: gives *",
    ),
    "functions are traced once, also for no slices at all": (
        "apply_along_axis* @ * 0: gives *",
        "vectorize* @ * 0: gives *",
    ),
    "special functions are those of real numbers": ("special.* @ c*: raises *real dtype required*",),
    "as in JAX, a factorial is a float": (
        "special.factorial* @ *: has the dtype float32*",
        "special.factorial* @ bool: gives *",
    ),
    "any integer dtype will do": ("choose* @ u64: gives *", "ldexp @ u64: gives *"),
    "as in JAX, a bool is its own positive and conjugate": (
        "positive @ bool: gives *",
        "conj* @ bool: has the dtype *",
        "squared length @ bool: has the dtype *",
    ),
    "as in JAX, a bool is not rounded to an f16": ("round @ bool: raises *", "around @ bool: *"),
    "as in JAX, the reciprocal of an integer is a float": ("reciprocal @ *: has the dtype *",),
    "as in JAX, integers are convolved as floats": (
        "convolve* @ *: has the dtype float*",
        "correlate* @ *: has the dtype float*",
    ),
    "as in JAX, a bool is a mask and no position": (
        "take * @ bool: raises *cannot index with*",
        "ravel_multi_index* @ bool: raises *",
        "unravel_index @ bool: raises *",
    ),
    "an odd reflection of bools is that of numbers, where NumPy rounds each copy to a bool": (
        "pad reflect odd @ bool: is *",
    ),
    "as in JAX, sums of exponentials may be complex": ("logaddexp* @ c*: gives *",),
    "as in JAX, angles may be complex": (
        "deg2rad @ c*: gives *",
        "rad2deg @ c*: gives *",
        "radians @ c*: gives *",
        "degrees @ c*: gives *",
    ),
    "as in JAX, quantiles of integers and bools are floats": (
        "*quantile * @ *: has the dtype float*",
        "*quantile * @ bool: gives *",
        "percentile @ bool: gives *",
    ),
    "complex numbers have no quantiles and no bins": (
        "*median* @ c*: raises *real dtype required*",
        "histogram* @ c*: raises *real dtype *",
    ),
    "nothing has as many quantiles as something, all of them NaN": (
        "nanquantile * @ *: has the shape (5, *",
        "*over two axes, kept @ *0: gives Array([]*",
    ),
    "as in JAX, counts of floats are floats, sums of weights of their dtype": (
        "histogram* @ *: has the dtype float*, not int64",
        "histogram* @ *: has the dtype int*, not *",
        "bincount * @ *: has the dtype *",
        "bincount with weights @ c*: gives *",
    ),
    "as in JAX, leading zeros that arise stay, as shapes do not depend on values": (
        "polymul @ bool: has the shape *",
        "polydiv* @ *: has the shape *",
    ),
    "NumPy multiplies u64 and i64 as floats": (
        "poly* @ u64: has the dtype uint64*",
        "vander* @ u64: has the dtype uint64*",
    ),
    "as in JAX, one frequency of a spectrum of real numbers gives none of them": (
        "fft.irfft* @ * 1: gives Array([[]], *where the oracle raises",
        "fft.hfft* @ * 1: gives Array([[]], *where the oracle raises",
        "fft.irfft* @ * 1: has the shape (*, 0), not (*, 1)",
        "fft.hfft* @ * 1: has the shape (*, 0), not (*, 1)",
    ),
    "as in JAX, an axis without elements has the empty transform": (
        "fft.* @ * 0: gives Array([[]], *where the oracle raises",
    ),
    "places are real numbers": (
        "interp* @ c*: raises *real dtype required*",
        "signal.resample at places @ c*: raises *real dtype required*",
    ),
    "of no samples SciPy gives as many frequencies, and of one frequency something": (
        "signal.* @ * 0: raises *",
        "signal.* @ * 0: has the shape *",
        "signal.* @ * 0: gives *",
        "signal.istft* @ * 1: raises *",
    ),
    "a filter may have one coefficient, and a state of one signal serves all": (
        "signal.filtfilt* @ * 1: gives *",
        "signal.sosfilt* @ * 1: gives *",
    ),
    "filters take all numbers": (
        "signal.lfilter* @ *: gives *",
        "signal.sosfilt* @ *: gives *",
        "signal.savgol* @ c*: has the dtype *",
        "signal.* @ bool: gives *",
    ),
    "SciPy takes what rounding leaves of a zero for true": ("signal.convolve integers by fft @ bool: is *",),
    "along an axis of one element SciPy's transforms repeat instead": (
        "signal.*convolve valid* @ * 1: raises *cannot lay*",
    ),
    "bools and unsigned integers are subtracted and added as numbers": (
        "gradient* @ bool: gives *",
        "trapezoid* @ bool: is *",
        "trapezoid* @ u*: is *",
        "unwrap* @ u*: is *",
        "signal.stft odd* @ u*: is *",
        "stats.gaussian_kde products @ u*: is *",
    ),
    "a histogram has edges": ("histogram of edges @ *0: raises *no edges*",),
    "the residuals of a fit are there for every rank, so that no shape depends on values": (
        "linalg.lstsq* @ *: has the shape (1,), not (0,)",
        "linalg.lstsq* @ *: has the shape (2,)*",
    ),
    "a fit of no columns, or a triangular pair of none, has its empty shape": (
        "linalg.lstsq* @ 2 to 0: gives *",
        "linalg.lu of * @ * to 0: gives *",
        "linalg.qr_multiply * @ * to 0: *",
        "linalg.matmul_toeplitz @ 4 to 0: *",
        "linalg.fiedler @ all 0: *",
    ),
    "a permutation is real, of one row as well": ("linalg.lu of z* @ all 1: has the dtype *",),
    "complex systems are transposed as real ones are": ("linalg.solve transposed @ c*: gives *",),
    "distributions, statistics, points, distances and rotations are those of real numbers": (
        "stats.* @ c*: raises *real dtype required*",
        "spatial.* @ c*: raises *real dtype *",
        "integrate.simpson* @ c*: raises *real dtype *",
        "ndimage.affine_transform* @ c*: raises *real dtype *",
    ),
    INTEGRALS_OF_BOOLS: (
        "integrate.trapezoid * @ bool: is [[]*, not [[]*",
        "integrate.cumulative_trapezoid * @ bool: is [[]*, not [[]*",
        *(() if SCIPY_1_18 else ("integrate.simpson of 2 @ bool: is [[]1. 1.], not [[]0.5 0.5]",)),
    ),
    "sums and differences of bools are those of numbers": (
        "stats.iqr* @ bool: gives *",
        "stats.mode* @ bool: gives *",
        "stats.gaussian_kde* @ bool: gives *",
        "stats.describe @ bool: is *",
        "special.*softmax @ bool: gives *",
        "interpolate.interp1d of points * @ bool: gives *",
    ),
    "the most frequent of integers is an integer, of no rows as well": ("stats.mode* @ * to 0: has the dtype int*",),
    "SciPy subtracts the largest unsigned integer from others below 0": ("special.*softmax @ u*: is *",),
    "a filter of integers gives floats, where SciPy cuts the sum along each axis off": (
        "ndimage.* @ [biu]*: has the dtype float*",
    ),
    BETWEEN_BOOLS: (
        "ndimage.map_coordinates 1 * @ bool: is [[]*, not [[]*",
        "ndimage.affine_transform* @ bool: is [[]*, not [[]*",
        "ndimage.shift @ bool: is [[]*, not [[]*",
        "ndimage.zoom* @ bool: is [[]*, not [[]*",
        "ndimage.rotate* @ bool: is [[]*, not [[]*",
    ),
    "there is nothing between no elements, SciPy reads beyond them": (
        "ndimage.* @ *0: raises map_coordinates: cannot interpolate *",
    ),
    "of no codes none is the nearest": ("cluster.vq.vq @ *0: raises vq: cannot *",),
    "a line through one point is flat, and as a spline it takes two": (
        "interpolate.interp1d l* @ *1: is *",
        "interpolate.interp1d along the last axis @ *1: is *",
        "interpolate.interp1d of points in no order @ *1: is *",
        "interpolate.make_interp_spline of degree 1 @ *1: raises *at least 2*",
    ),
    "no values raise anything in a compiled program: a rotation of length 0 is NaN": (
        "spatial.Rotation.* @ bool: gives *",
    ),
    "an axis of size 1 stays": (
        "stats.dirichlet as a whole @ all 1: has the shape (1,), not ()",
        "stats.multivariate_normal @ *1: has the shape (1,), not ()",
    ),
    "there are as many results as members, of none as well": (
        "stats.*: mean var std entropy @ *0: gives *",
        "special.*softmax @ *0: gives *",
    ),
    "an equation has unknowns": ("integrate.solve_ivp * @ all 0: raises solve_ivp: cannot *",),
    "an integral may be complex": ("integrate.quad @ c*: has the dtype complex*",),
}
if NUMPY_2_5:
    DIFFERENCES["of no points none lies between, whatever is asked for"] = (
        "interp outside @ all 0: raises *",
        "interp with a period @ all 0: raises *",
    )
if SCIPY_1_18:
    DIFFERENCES |= {
        "ranks are real, and whole numbers where nothing is averaged": (
            "stats.rankdata* @ *: has the dtype int32, not float64",
            "stats.rankdata* @ c*: has the dtype *, not complex128",
        ),
        "residuals are real": ("linalg.lstsq, all of it @ c*: has the dtype float*",),
        "an integral over one sample is 0 in every row, over no rows it is empty": (
            "integrate.simpson of * @ all 1: has the shape (1,), not (0,)",
            "integrate.simpson of [56] @ 2 to 0: gives Array([]*",
        ),
        "statistics of bools are those of numbers": ("stats.kurtosis corrected @ bool: is *",),
        "no trials have one outcome": ("stats.multinomial @ all 0: is 1.0, not nan",),
    }


def excused(case: object, variant: object, how: str) -> str | None:
    """The reason why a variant of a case may differ in this way."""
    line = f"{case} @ {variant}: {how}"
    reasons = (reason for reason, patterns in DIFFERENCES.items() if matches(line, patterns))
    return next(reasons, None)


def matches(line: str, patterns: tuple[str, ...]) -> bool:
    """Whether the patterns cover a line."""
    return any(fnmatchcase(line, p) for p in patterns)
