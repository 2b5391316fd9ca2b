"""Derive the polynomial coefficients of rune/lowering/scalar (needs mpmath).

    python tools/minimax.py            print every polynomial: error, then coefficients
    python tools/minimax.py exp log    print those named

Remez's exchange in 60 digits: solve for the polynomial whose weighted error has equal size and
alternating sign at n + 2 points, move the points to the extrema of that error, repeat. The weight
1/(the value that the polynomial ends up in) makes it a relative error of the function. A quotient
of polynomials is a least-squares fit whose weights grow where its relative error is large (Lawson).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[mpf], mpf]
GRID = 2000


@dataclass(frozen=True)
class Fit:
    """The polynomial of `degree` nearest to `function` on low..high under `weight`."""

    name: str
    function: Function
    weight: Function
    low: mpf
    high: mpf
    degree: int


@dataclass(frozen=True)
class Quotient:
    """The quotient of polynomials of two degrees nearest to `function` on low..high, relatively."""

    name: str
    function: Function
    low: mpf
    high: mpf
    degrees: tuple[int, int]


def chebyshev(low: mpf, high: mpf, count: int) -> list[mpf]:
    """The extrema of the Chebyshev polynomial with `count` extrema on low..high."""
    middle, radius = (low + high) / 2, (high - low) / 2
    return [middle - radius * mp.cos(mp.pi * k / (count - 1)) for k in range(count)]


def solve(fit: Fit, points: list[mpf]) -> tuple[list[mpf], mpf]:
    """Coefficients, lowest first, and the levelled error on these points."""
    rows = mp.matrix(fit.degree + 2, fit.degree + 2)
    values = mp.matrix(fit.degree + 2, 1)
    for i, x in enumerate(points):
        for k in range(fit.degree + 1):
            rows[i, k] = x**k
        rows[i, fit.degree + 1] = (-1) ** i / fit.weight(x)
        values[i] = fit.function(x)
    solution = mp.lu_solve(rows, values)
    return [solution[k] for k in range(fit.degree + 1)], solution[fit.degree + 1]


def extrema(errors: list[mpf], grid: list[mpf], count: int) -> list[mpf]:
    """The largest error of each run of one sign; the `count` neighbours that are largest."""
    runs: list[int] = []
    for i, error in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (error > 0):
            runs[-1] = i if abs(error) > abs(errors[runs[-1]]) else runs[-1]
        else:
            runs.append(i)
    while len(runs) > count:
        runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
    return [grid[i] for i in runs]


def remez(fit: Fit) -> tuple[list[mpf], mpf]:
    """The minimax coefficients, lowest first, and the largest weighted error."""
    points = chebyshev(fit.low, fit.high, fit.degree + 2)
    grid = chebyshev(fit.low, fit.high, GRID)
    samples = [(x, fit.function(x), fit.weight(x)) for x in grid]
    for _ in range(8):
        coefficients, _ = solve(fit, points)
        errors = [w * (f - mp.polyval(coefficients[::-1], x)) for x, f, w in samples]
        extremal_points = extrema(errors, grid, fit.degree + 2)
        if len(extremal_points) < fit.degree + 2 or extremal_points == points:
            break
        points = extremal_points
    return coefficients, max(abs(e) for e in errors)


def lawson(fit: Quotient) -> tuple[list[mpf], mpf]:
    """The coefficients above and below, the first of those below 1, and the largest error."""
    above, below = fit.degrees
    points = chebyshev(fit.low, fit.high, 8 * (above + below))
    values = [fit.function(x) for x in points]
    weights, divisors, best = [mpf(1)] * len(points), [mpf(1)] * len(points), ([], mpf("inf"))
    for _ in range(20):
        rows = mp.matrix(len(points), above + below + 1)
        scales = [mp.sqrt(w) / (q * v) for w, q, v in zip(weights, divisors, values)]
        for i, (x, value, scale) in enumerate(zip(points, values, scales)):
            for k in range(above + 1):
                rows[i, k] = scale * x**k
            for k in range(1, below + 1):
                rows[i, above + k] = -scale * value * x**k
        solution, _ = mp.qr_solve(rows, mp.matrix([s * v for s, v in zip(scales, values)]))
        upper, lower = list(solution[: above + 1]), [mpf(1), *solution[above + 1 :]]
        divisors = [mp.polyval(lower[::-1], x) for x in points]
        errors = [abs(mp.polyval(upper[::-1], x) / q / v - 1) for x, q, v in zip(points, divisors, values)]
        best = min(best, ([*upper, *lower], max(errors)), key=lambda fit_and_error: fit_and_error[1])
        total = sum(w * e for w, e in zip(weights, errors))
        weights = [w * e / total * len(points) + mpf("1e-12") for w, e in zip(weights, errors)]
    return best


def one(x: mpf) -> mpf:
    """The weight of an absolute error."""
    return mpf(1)


def series(function: Function, at_zero: mpf) -> Function:
    """`function` with its limit at 0 filled in."""
    return lambda x: at_zero if abs(x) < mpf("1e-25") else function(x)


def centred(name: str, function: Function, low: str, high: str, degree: int) -> Fit:
    """A fit in x less the middle of its range: the powers of x itself would cancel."""
    middle, radius = (mpf(low) + mpf(high)) / 2, (mpf(high) - mpf(low)) / 2
    return Fit(name, lambda t: function(middle + t), one, -radius, radius, degree)


HALF_LN2 = mp.log(2) / 2 * mpf("1.0001")
ROOT = mp.sqrt(2)
LOG_LOW, LOG_HIGH = 1 / ROOT - 1, ROOT - 1
EIGHTH = (mp.pi / 4 * mpf("1.0001")) ** 2
S_HIGH = ((ROOT - 1) / (ROOT + 1)) ** 2 * mpf("1.0001")
TAN_PI_16 = mpf("0.4375")

exp_tail = series(lambda r: (mp.exp(r) - 1 - r) / r**2, mpf(1) / 2)
log_tail = series(lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3, mpf(1) / 3)
log_series = series(lambda z: (mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) - 2) / z, mpf(2) / 3)
log_series_tail = series(lambda z: (log_series(z) - mpf(2) / 3) / z, mpf(2) / 5)
sin_tail = series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mpf(1) / 6)
cos_tail = series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24)
sinh_tail = series(lambda z: (mp.sinh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 6)
tanh_tail = series(lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mpf(1) / 3)
atan_tail = series(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, -mpf(1) / 3)
asin_tail = series(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mpf(1) / 6)
erf_small = series(lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 2 / mp.sqrt(mp.pi) - 1)


log_slope = series(lambda f: mp.log(1 + f) / f, mpf(1))
log2_slope = series(lambda f: mp.log(1 + f, 2) / f, 1 / mp.log(2))


def erfc_exponent(t: mpf) -> mpf:
    """log2(erfc(t))/t."""
    return mp.log(mp.erfc(t), 2) / t


log_erfc = series(lambda t: mp.log(mp.erfc(t)) / t + 1, 1 - 2 / mp.sqrt(mp.pi))
erfc_slope = series(lambda t: t * mp.erfc(t) / mp.erf(t), mp.sqrt(mp.pi) / 2)


def erfc_scaled(t: mpf) -> mpf:
    """(1 + 2x) exp(x²) erfc(x) at x = 4 (1 + t)/(1 - t)."""
    x = 4 * (1 + t) / (1 - t)
    tail = mp.exp(x * x) * mp.erfc(x) if x < 100 else (1 - 1 / (2 * x * x)) / (x * mp.sqrt(mp.pi))
    return (1 + 2 * x) * tail


def erfcx(x: mpf) -> mpf:
    """exp(x²) erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


def normal_tail(s: mpf) -> mpf:
    """-x/s where the normal distribution function of x is exp(-s²)."""
    x = mp.sqrt(2) * s - mpf("0.5")
    for _ in range(12):
        x -= (mp.log(erfcx(x / ROOT) / 2) - x * x / 2 + s * s) / -(mp.sqrt(2 / mp.pi) / erfcx(x / ROOT))
    return x / s


normal_middle = series(lambda z: ROOT * mp.erfinv(2 * mp.sqrt(z)) / mp.sqrt(z), mp.sqrt(2 * mp.pi))


def erf_inv_central(w: mpf) -> mpf:
    """erf_inv(x)/x over w = -log(1 - x²)."""
    x = mp.sqrt(-mp.expm1(-w)) if w else mpf(0)
    return mp.erfinv(x) / x if x > mpf("1e-20") else mp.sqrt(mp.pi) / 2


def erf_inv_tail(s: mpf) -> mpf:
    """erf_inv(x)/x over s = sqrt(-log(1 - x²))."""
    return erf_inv_central(s * s)


FITS: list[Fit | Quotient] = [
    Fit("exp f32", exp_tail, lambda r: r * r / mp.exp(r), -HALF_LN2, HALF_LN2, 4),
    Fit("exp f64", exp_tail, lambda r: r * r / mp.exp(r), -HALF_LN2, HALF_LN2, 10),
    Fit("expm1 f32", exp_tail, lambda r: abs(r) + mpf("1e-3"), -HALF_LN2, HALF_LN2, 5),
    Fit("expm1 f64", exp_tail, lambda r: abs(r) + mpf("1e-3"), -HALF_LN2, HALF_LN2, 11),
    Fit("log f32", log_tail, lambda f: f * f + mpf("1e-4"), LOG_LOW, LOG_HIGH, 7),
    Fit("log f64", log_series, one, mpf(0), S_HIGH, 7),
    Fit("sinh f32", sinh_tail, one, mpf(0), mpf(1), 3),
    Fit("sinh f64", sinh_tail, one, mpf(0), mpf(1), 6),
    Fit("tanh f32", tanh_tail, one, mpf(0), mpf("0.625") ** 2, 4),
    Fit("tanh f64", tanh_tail, one, mpf(0), mpf("0.625") ** 2, 10),
    Fit("sin f32", sin_tail, one, mpf(0), EIGHTH, 3),
    Fit("cos f32", cos_tail, one, mpf(0), EIGHTH, 3),
    Fit("sin f64", sin_tail, one, mpf(0), EIGHTH, 6),
    Fit("cos f64", cos_tail, one, mpf(0), EIGHTH, 6),
    Fit("pow f64", log_series_tail, one, mpf(0), S_HIGH, 7),
    Fit("log series f32", log_series, one, mpf(0), S_HIGH, 3),
    Fit("atan f32", atan_tail, one, mpf(0), TAN_PI_16**2, 4),
    Fit("atan unit f32", atan_tail, one, mpf(0), mpf(1), 9),
    Fit("atan f64", atan_tail, one, mpf(0), TAN_PI_16**2, 10),
    Fit("erf small f32", erf_small, one, mpf(0), mpf("0.9216"), 6),
    Fit("erf small f64", erf_small, one, mpf(0), mpf("1.0"), 13),
    Fit("erf large f32", erfc_exponent, lambda t: t * mp.erfc(t) * mp.log(2), mpf("0.95"), mpf("4.0"), 6),
    Fit("erf whole f32", log_erfc, erfc_slope, mpf(0), mpf("4.0"), 8),
    Fit("erfc f64", erfc_scaled, one, mpf(-1), mpf("0.78"), 24),
    Quotient("erfc narrow", erfcx, mpf(0), mpf("10.3"), (5, 6)),
    Fit("erfc f32", erfc_scaled, one, mpf("-0.79"), mpf("0.45"), 9),
    Fit("normal slope", lambda u: mp.sqrt(2 / mp.pi) / erfcx(u), lambda u: u + mpf("0.02"), mpf(0), mpf("10.3"), 1),
    Quotient("normal middle", normal_middle, mpf(0), mpf("0.0625"), (5, 0)),
    Quotient("normal tail", lambda t: normal_tail(t + mpf("1.1875")), mpf("-0.0105"), mpf("9.0125"), (4, 4)),
    Fit("asin f32", asin_tail, one, mpf(0), mpf("0.25"), 5),
    Fit("asin f64", asin_tail, one, mpf(0), mpf("0.25"), 12),
    centred("inverse cbrt", lambda m: 1 / mp.cbrt(m), "1", "2", 4),
    Fit("log2 narrow", log2_slope, one, LOG_LOW, LOG_HIGH, 11),
    Fit("minus log narrow", lambda f: -log_slope(f), one, LOG_LOW, LOG_HIGH, 9),
    Fit("exp2 narrow", lambda r: mpf(2) ** r, lambda r: mpf(2) ** -r, mpf("-0.50005"), mpf("0.50005"), 7),
    Fit("exp2", lambda r: mpf(2) ** r, lambda r: mpf(2) ** -r, mpf("-0.50005"), mpf("0.50005"), 6),
    Fit("erf_inv central f32", erf_inv_central, one, mpf(0), mpf("6.25"), 10),
    Fit("erf_inv tail f32", erf_inv_tail, one, mpf("2.5"), mpf("4.1"), 8),
    centred("erf_inv middle f32", erf_inv_central, "0", "6.25", 10),
    centred("erf_inv outer f32", erf_inv_tail, "2.5", "4.1", 9),
    centred("erf_inv central f64", erf_inv_central, "0", "6.25", 24),
    centred("erf_inv tail f64", erf_inv_central, "6.25", "12.25", 18),
    centred("erf_inv far tail f64", erf_inv_central, "12.25", "22", 18),
    centred("erf_inv last tail f64", erf_inv_central, "22", "37.5", 16),
]


def main(names: list[str]) -> None:
    """Print the named fits, or all."""
    for fit in FITS:
        if names and not any(fit.name.startswith(name) for name in names):
            continue
        coefficients, error = remez(fit) if isinstance(fit, Fit) else lawson(fit)
        degree = f"degree {fit.degree}" if isinstance(fit, Fit) else f"degrees {fit.degrees}"
        print(f"{fit.name}: {degree}, error {mp.nstr(error, 3)}")
        for c in coefficients:
            print(f"    {float(c)!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
