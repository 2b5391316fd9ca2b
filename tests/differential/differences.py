"""Where rune's answers differ from those of jax 0.10.2, with reasons; reviewed by hand.

A pattern covers answers and how they differ, "module: name @ variant: way: how", with * for
anything. docs/guide/from-jax.md has the same reasons; the tests compare the two, and check that
every pattern is still needed.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

DIFFERENCES: dict[str, tuple[str, ...]] = {
    "Where an intermediate result overflows, the order of operations decides whether the result is a "
    "number, an infinity or NaN, and rune's order differs from JAX's.": (
        "lax: square @ hard *: [jv]*",
        "*: *dot* @ hard *",
        "lax: reduce* @ hard *",
        "*: *cumprod* @ hard *",
        "nn: squareplus @ hard *: gives *, not inf",
        "nn: squareplus @ hard *: [jv]*: gives *, not nan",
        "nn: gelu @ hard *: [jv]*: gives *, not nan",
        "nn: mish @ hard *: [jv]*: gives *, not nan",
        "numpy: divide @ hard *: [jv]*",
        "numpy: logaddexp* @ hard *",
        "numpy: *prod* @ hard *",
        "numpy: *var* @ hard *",
        "numpy: *std* @ hard *",
        "numpy: average* @ hard *",
        "numpy: matmul* @ hard *",
        "numpy: multiply.accumulate @ hard *",
        "numpy: einsum* @ hard *: [jv]*",
        "numpy: pad * @ hard *: value: gives *",
        "numpy: fft.* @ hard *",
        "numpy: transforms of planes* @ hard *",
        "numpy: poly* @ hard *: gives *",
        "numpy: roots* @ hard *",
        "numpy: vander* @ hard *",
        "numpy: interp* @ hard *",
        "numpy: trapezoid* @ hard *",
        "numpy: geomspace @ hard *",
        "numpy: gradient* @ hard *",
        "numpy: sinc @ hard *: gives *, not nan",
        "numpy: i0 @ hard *: gives *inf, not nan",
        "numpy: linalg.* @ hard *",
        "numpy: corrcoef* @ hard *",
        "numpy: convolve* @ hard *: gives *",
        "numpy: correlate* @ hard *: gives *",
        "scipy: fft.* @ hard *: gives *",
        "scipy: signal.* @ hard *: gives *",
        "scipy: linalg.* @ hard *: gives *",
        "scipy: ndimage.* @ hard *: gives *",
        "scipy: stats.sem* @ hard *: gives *",
    ),
    "Where integers wrap in a sum, or numbers outside the range of a dtype are cast to it, the result "
    "depends on the order of steps, which differs from JAX's.": (
        "numpy: mean as integers @ hard *",
        "numpy: unwrap integers @ hard *",
        "numpy: pad * @ i8: value: gives *",
    ),
    "Denormal numbers are kept, as in NumPy; XLA flushes them to zero, as rune does with `flush_denormals=True`.": (
        "numpy: float_power @ i8: *",
    ),
    "Outside a function's domain its derivative is NaN, like its value.": (
        "*: a*cosh @ hard *: gives nan, not *",
        "lax: igamma* @ hard *: [jv]*",
    ),
    "At a pole of a function of `scipy.special` the value is SciPy's, often an infinity.": (
        "lax: digamma @ hard *: gives *, not nan",
        "lax: polygamma @ hard *",
        "lax: zeta @ hard *: gives inf, not nan",
    ),
    "Special functions and their derivatives take their limits at 0, at infinities and where a part "
    "of the formula overflows, as in SciPy; JAX computes inf - inf or 0 / 0 there.": (
        "scipy: special.* @ hard *: gives *",
    ),
    "Distributions take their limits at infinities, where JAX sometimes gives NaN, and are NaN where "
    "an operand is NaN or a parameter is invalid, where JAX sometimes gives numbers.": (
        "scipy: stats.*: * @ hard *: gives *",
    ),
    "A grid axis that does not increase is an error.": (
        "scipy: interpolate.RegularGridInterpolator* @ hard *: raises ArgumentError",
    ),
    "A result is weak where all operands are weak and the function keeps or promotes their dtype; "
    "bools never are. JAX's functions differ from each other in this.": (
        "*: * @ python: *: is strong",
        "*: * @ python: *: is weak",
        "lax: full @ f32: jvp: is strong",
        "nn: relu6 @ [iub]*: value: is strong",
        "nn: *elu* @ [iu]*: value: is strong",
        "numpy: i0* @ *: value: is strong",
        "scipy: special.ndtri @ [iub]*: value: is weak",
        "scipy: special.logit @ [iub]*: value: is weak",
        "scipy: special.multigammaln @ [iub]*: value: is weak",
        "scipy: special.*inc * @ [iub]*: value: is strong",
        "scipy: stats.* @ [iub]*: value: is weak",
        "scipy: stats.* @ [iub]*: value: is strong",
        "scipy: spatial.* @ [iub]*: value: is weak",
    ),
    "The extremum of numbers that include NaN is NaN. Its derivative is that of the NaN element, or "
    "NaN for every element where none of them equals the result.": (
        "lax: cum[mi]* @ hard *: [jv]*",
        "lax: scatter_min @ hard *: [jv]*",
        "numpy: m[ai][xn]* @ hard *: [jv]*",
        "numpy: median* @ hard *: [jv]*",
        "numpy: pad median @ hard *: [jv]*",
        "numpy: folds of what is no NaN* @ hard *: [jv]*",
        "numpy: histogram of edges @ hard *",
    ),
    "The derivatives of `cumlogsumexp` are the weights of a softmax, even if some numbers are infinite.": (
        "lax: cumlogsumexp @ hard *: [jv]*",
    ),
    "At NaN the derivative of `relu` is 1, where JAX has 0; either is a convention.": ("nn: relu @ hard *: [jv]*",),
    "The derivative of `ldexp` is the power of two, even at infinities.": ("numpy: ldexp @ hard *: [jv]*",),
    "The derivative of the sign of a complex number is that of z / |z|, where JAX has 0.": (
        "numpy: sign (2) @ *: [jv]*",
    ),
    "The derivative of `spence` at 1 is -1, where JAX has NaN.": ("scipy: special.spence @ f32: vjp: *",),
    "0 divided by 0 is NaN, even for bools.": ("numpy: *divide @ bool: value: gives nan, not 0.0",),
    "Extrema of complex numbers and their positions are NumPy's; JAX has no complex `argmax`. Complex "
    "numbers are sorted as in JAX, by the real part and then the imaginary part, with NaN last in "
    "each (NumPy puts all numbers without a NaN first), and `<` and `>` use the same order. Running "
    "extrema, and the comparisons, scatters and reductions of `rune.lax`, accept only real numbers. "
    "An imaginary part is never dropped silently.": (
        "numpy: frompyfunc @ c64: *: raises DtypeError",
        "numpy: m*.accumulate @ c64: *: raises DtypeError",
        "numpy: astype @ c64: *: raises DtypeError",
        "lax: *m[axin]* @ c64: *: raises DtypeError",
        "lax: atan2 @ c64: *: raises DtypeError",
    ),
    "Functions that are only defined for real numbers refuse complex ones: activations, special "
    "functions, distributions, rotations, angles, bins.": (
        "nn: * @ c64: *: raises DtypeError",
        "nn: hard_tanh @ bool: *",
        "scipy: * @ c64: *: raises DtypeError",
        "numpy: *tan2 @ c64: *: raises DtypeError",
        "numpy: spacing @ c64: *: raises DtypeError",
        "numpy: histogram* @ c64: *: raises DtypeError",
        "numpy: digitize* @ c64: *: raises DtypeError",
        "numpy: cov weighted* @ c64: *: raises DtypeError",
    ),
    "A Python number that the dtype cannot hold is an error, such as -1 combined with unsigned integers.": (
        "numpy: * @ u32: value: raises OverflowError",
    ),
    "A number has no axes: functions that need an axis refuse it, where JAX treats it as a vector of one element.": (
        "numpy: * @ python: value: raises *Error",
        "scipy: linalg.fiedler_companion* @ python: value: has the shape (0,), not (0, 0)",
    ),
    "If the result is a float, integers are converted to floats first, so no intermediate result wraps or overflows.": (
        "nn: *softmax* @ [iu]*: value: *",
        "nn: squareplus @ [iu]*: value: gives *",
        "nn: standardize @ [iu]*: value: gives *",
        "nn: hard_tanh @ u*: value: gives 0, not *",
        "numpy: cov weighted @ i8: *",
        "numpy: interp outside @ i8: *",
        "numpy: gradient at places @ i8: *",
        "numpy: i0 far out @ i8: *",
        "scipy: special.*softmax* @ [iu]*: value: *",
        "scipy: special.poch @ [iu]*: value: *",
        "scipy: special.hyp1f1 @ [iu]*: value: *",
        "scipy: special.*gam* @ bool: value: *",
        "scipy: special.betaln @ bool: value: *",
        "scipy: stats.* @ i8: value: gives *",
        "scipy: interpolate.* @ [iu]*: value: *",
        "scipy: spatial.* @ [iub]*: value: gives *",
        "scipy: ndimage.* @ bool: value: *",
        "scipy: linalg.companion @ *: value: *",
        "scipy: linalg.qr* @ bool: value: *",
    ),
    "An integer raised to a negative power is 0, or 1 / x if that is an integer; JAX leaves it undefined.": (
        "numpy: pow* @ [iu]*: value: gives 0, not *",
    ),
    "Products of polynomials, SciPy's convolutions, histograms and ranks of integers are integers, as in "
    "NumPy and SciPy; counts in several dimensions are floats.": (
        "numpy: poly* @ [iubfh]*: value: has the dtype *",
        "numpy: histogram* @ *: value: has the dtype *",
        "scipy: signal.* @ *: value: has the dtype *",
        "scipy: stats.rankdata* @ *: value: has the dtype *",
        "scipy: linalg.*pascal* @ f32: *",
    ),
    "As in NumPy, `add.reduceat` of bools counts, a norm of integers is a float, and the polynomial "
    "of a real matrix is real.": (
        "numpy: add.reduceat @ bool: *",
        "numpy: linalg.vector_norm @ [iub]*: value: has the dtype float32*",
        "numpy: poly of a matrix @ *: has the dtype *",
    ),
    "Sums and products of integers of 8 and 16 bits, also cumulative ones, have 32 bits, as in NumPy "
    "and the array API standard, so that they do not overflow at once.": (
        "numpy: *cum* @ i8: value: has the dtype int32, not int8",
        "numpy: *.accumulate @ i8: value: has the dtype int32, not int8",
        "numpy: add.reduceat @ i8: value: has the dtype int32, not int8",
    ),
    "Half types are computed in f32 and rounded once.": ("scipy: fft.* @ bf16: *", "scipy: special.owens_t @ bf16: *"),
    "`hyp2f1` is defined far below 0, where JAX's series does not converge.": ("scipy: special.hyp2f1 far below @ *",),
    "The determinant of a singular matrix is 0 up to rounding errors, which differ from JAX's.": (
        "numpy: linalg.det of a singular matrix @ *",
    ),
    "0 degrees of freedom give NaN, as in NumPy.": ("numpy: cov with ddof @ python: *",),
    "`einsum_path` counts a last step with a single operand.": ("numpy: einsum_path @ *",),
    "The variance of `nn.standardize` is a mean squared deviation, not a difference of squares.": (
        "nn: standardize @ hard *: gives *, not nan",
    ),
}


def reason(line: str) -> str:
    """Why an answer may differ in this way; "" where there is no reason."""
    for why, patterns in DIFFERENCES.items():
        if any(fnmatchcase(line, pattern) for pattern in patterns):
            return why
    return ""
