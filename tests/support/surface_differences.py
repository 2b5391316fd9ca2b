"""Where rune (as JAX) means something else than NumPy or SciPy, with the reason: reviewed by hand.

A line stands for variants of cases and how they differ, "name @ variant: how", with * for anything.
A test sees to it that every line is still needed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

DIFFERENCES: dict[str, tuple[str, ...]] = {
    "complex numbers have no order: NumPy's is by real part, then by imaginary part": (
        "* @ c*: raises *ordered dtype required*",
    ),
    "a Python integer that the dtype cannot hold is refused": (
        "* @ u*: raises -* does not fit in u*",
    ),
    "a Python float becomes an integer as in astype: it saturates": (
        "min initial @ u*: gives *", "max where @ u*: gives *", "piecewise @ u*: gives *",
    ),
    "NumPy forgets the dtype of no variables": (
        "cov @ * 0: has the dtype *", "corrcoef @ * 0: has the dtype *",
    ),
    "rounding decides whether 0 is divided by 0": ("cov weighted @ 6 to 1: is *",),
    "as in JAX, an integer to a negative power is 0, or 1 / x where that is whole": (
        "pow @ i*: gives *",
    ),
    "a complex number is not made real silently": (
        "* @ c*: raises convert: cannot convert c*imaginary part would be lost*",
    ),
    "functions are traced once, also for no slices at all": (
        "apply_along_axis* @ * 0: gives *", "vectorize* @ * 0: gives *",
    ),
    "the polynomial of no roots is a vector of its one coefficient": (
        "poly @ all 0: has the shape (1,), not ()",
        "poly of complex roots @ all 0: has the shape (1,), not ()",
    ),
    "special functions are those of real numbers": (
        "special.* @ c*: raises *real dtype required*",
    ),
    "as in JAX, a factorial is a float": (
        "special.factorial* @ *: has the dtype float32*", "special.factorial* @ bool: gives *",
    ),
    "any integer dtype will do": ("choose* @ u64: gives *", "ldexp @ u64: gives *"),
    "as in JAX, a bool is its own positive and conjugate": (
        "positive @ bool: gives *", "conj* @ bool: has the dtype *",
        "squared length @ bool: has the dtype *",
    ),
    "as in JAX, a bool is not rounded to an f16": ("round @ bool: raises *", "around @ bool: *"),
    "as in JAX, the reciprocal of an integer is a float": ("reciprocal @ *: has the dtype *",),
    "as in JAX, a bool is a mask and no position": (
        "take * @ bool: raises *cannot index with*", "ravel_multi_index* @ bool: raises *",
        "unravel_index @ bool: raises *",
    ),
    "as in JAX, angles may be complex": (
        "deg2rad @ c*: gives *", "rad2deg @ c*: gives *", "radians @ c*: gives *",
        "degrees @ c*: gives *",
    ),
    "as in JAX, quantiles of integers and bools are floats": (
        "*quantile * @ *: has the dtype float*", "*quantile * @ bool: gives *",
        "percentile @ bool: gives *",
    ),
    "complex numbers have no quantiles and no bins": (
        "*median* @ c*: raises *real dtype required*", "histogram* @ c*: raises *real dtype *",
    ),
    "nothing has as many quantiles as something, all of them NaN": (
        "nanquantile * @ *: has the shape (5, *", "*over two axes, kept @ *0: gives Array([]*",
    ),
    "as in JAX, counts of floats are floats, sums of weights of their dtype": (
        "histogram* @ *: has the dtype float*, not int64",
        "histogram* @ *: has the dtype int*, not *", "bincount * @ *: has the dtype *",
        "bincount with weights @ c*: gives *",
    ),
    "as in JAX, leading zeros that arise stay, as shapes do not depend on values": (
        "polymul @ bool: has the shape *", "polydiv* @ *: has the shape *",
    ),
    "NumPy multiplies u64 and i64 as floats": (
        "poly* @ u64: has the dtype uint64*", "vander* @ u64: has the dtype uint64*",
    ),
    "nothing can be told from one frequency of a spectrum of real numbers": (
        "fft.irfft* @ * 1: raises *length 0*", "fft.hfft* @ * 1: raises *length 0*",
    ),
    "places are real numbers": (
        "interp* @ c*: raises *real dtype required*",
        "signal.resample at places @ c*: raises *real dtype required*",
    ),
    "of no samples SciPy gives as many frequencies, and of one frequency something": (
        "signal.* @ * 0: raises *", "signal.* @ * 0: has the shape *",
        "signal.* @ * 0: gives *", "signal.istft* @ * 1: raises *",
    ),
    "a filter may have one coefficient, and a state of one signal serves all": (
        "signal.filtfilt* @ * 1: gives *", "signal.sosfilt* @ * 1: gives *",
    ),
    "filters take all numbers": (
        "signal.lfilter* @ *: gives *", "signal.sosfilt* @ *: gives *",
        "signal.savgol* @ c*: has the dtype *", "signal.* @ bool: gives *",
    ),
    "SciPy takes what rounding leaves of a zero for true": (
        "signal.convolve integers by fft @ bool: is *",
    ),
    "along an axis of one element SciPy's transforms repeat instead": (
        "signal.*convolve valid* @ * 1: raises *cannot lay*",
    ),
    "bools and unsigned integers are subtracted and added as numbers": (
        "gradient* @ bool: gives *", "trapezoid* @ bool: is *", "trapezoid* @ u*: is *",
        "unwrap* @ u*: is *", "signal.stft odd* @ u*: is *",
    ),
    "a histogram has edges": ("histogram of edges @ *0: raises *no edges*",),
    "the residuals of a fit are there for every rank, so that no shape depends on values": (
        "linalg.lstsq* @ *: has the shape (1,), not (0,)", "linalg.lstsq* @ *: has the shape (2,)*",
    ),
    "a fit of no columns, or a triangular pair of none, has its empty shape": (
        "linalg.lstsq* @ 2 to 0: gives *", "linalg.lu of * @ * to 0: gives *",
        "linalg.qr_multiply * @ * to 0: *", "linalg.matmul_toeplitz @ 4 to 0: *",
        "linalg.fiedler @ all 0: *",
    ),
    "a permutation is real, of one row as well": ("linalg.lu of z* @ all 1: has the dtype *",),
    "complex systems are transposed as real ones are": ("linalg.solve transposed @ c*: gives *",),
    "a polynomial without a root has no companion": (
        "linalg.fiedler_companion* @ all *: raises *two coefficients*",
    ),
}  # fmt: skip


def excused(case: object, variant: object, how: str) -> str | None:
    """The reason for which a variant of a case may differ in this way."""
    line = f"{case} @ {variant}: {how}"
    found = (why for why, patterns in DIFFERENCES.items() if matches(line, patterns))
    return next(found, None)


def matches(line: str, patterns: tuple[str, ...]) -> bool:
    """Whether a line is one of those that the patterns stand for."""
    return any(fnmatchcase(line, p) for p in patterns)
