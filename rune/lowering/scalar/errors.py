"""The error function, its complement and its inverse in plain arithmetic, for f32 and f64.

Every range is computed, and selects pick the right one. Sums and products that would round twice
are kept as pairs. Error: at most 2 ulp (tests measure it).

Source: coefficients by tools/minimax.py. erfc(x) exp(x²) (1 + 2x) over (x - 4)/(x + 4) is nearly
a polynomial: Shepherd & Laframboise 1981, Math. Comp. 36. erf_inv over w = -log(1 - x²) and its
root: Giles 2010, GPU Computing Gems 2. The square of an argument in two parts is fdlibm's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rune.lowering.scalar import exponential as e
from rune.lowering.scalar.number import Ability, Number, Pair, at_most, halves, horner, pair, residual, select
from rune.number_tables import numbers

ERF_SMALL_F32 = numbers("""
    0.1283791664055886      -0.3761263145826597       0.11283660385011628     -0.02685746164973524
    0.00519628229077071     -0.0008089680353398748    8.150346618170229e-05
""")
ERF_LARGE_F32 = numbers("""
   -1.628325227952982       -0.9162098468018266      -0.15346465427273853      0.03445058787304821
   -0.005334636814614422     0.0004852338631509671   -1.81477168067908e-05
""")
ERF_SMALL_F64 = numbers("""
    0.1283791670955126      -0.37612638903183754      0.1128379167095512      -0.026866170645129868
    0.005223977625423609    -0.0008548327021955948    0.00012055332903809765  -1.4925647594429222e-05
    1.6462045979441729e-06  -1.6364649539335366e-07   1.4792469558975683e-08  -1.2164968252277171e-09
    8.710464533081299e-11   -4.233128950811745e-12
""")
ERFC_F64 = numbers("""
    1.2329951186255526      -0.13962111684056253      0.01537965210261999      0.06809705425469384
   -0.10103906603632132      0.09373283499830547     -0.0663303658117631       0.03716751553829739
   -0.016197734064027594     0.005031969969125694    -0.0007577732390756907   -0.00019925663240010513
    0.00015062143408950428  -2.439950527607309e-05   -1.1221292818072915e-05   5.710636894986153e-06
    2.924322571728684e-07   -8.272638997877417e-07    7.609306343749951e-08    1.1240637110297168e-07
   -1.8559036605620705e-08  -1.5825413115801117e-08   1.6677091485158202e-09   1.8163524193041273e-09
    2.0023993044937913e-10
""")
INVERSE_CENTRAL_F32 = numbers("""
    0.8862269319289345       0.23201336495105043      0.011551664895317943    -0.0023420926675369316
   -0.00011722304781313352   3.6818627736513634e-05   7.539465718361107e-06   -2.9853210714360097e-06
    3.9372535219746815e-07  -2.5135049251174705e-08   6.566036331674995e-10
""")
INVERSE_CENTRAL_F64 = numbers("""
    1.6536545626831027       0.24015818242558834     -0.006033670871426948    -0.0007407025341546147
    0.0001867342080202872   -1.3882523394034986e-05  -1.365469176792082e-06    4.234788169195768e-07
   -2.9070390369264728e-08  -4.1126605048675736e-09   1.0512228467731317e-09  -5.4143004136617676e-11
   -1.2978608800692901e-11   2.6305190325208257e-12  -8.076720473504121e-14   -4.0018644430800974e-14
    6.529131778877854e-15   -3.9562405950234126e-17  -1.2299387195428515e-16   1.5522441479915975e-17
    6.645285710661888e-19   -3.4782976231852406e-19   1.776271042778936e-20    3.2026689079180708e-21
   -3.2117786403993674e-22
""")
INVERSE_TAIL_F64 = numbers("""
    2.8744430381381054       0.1647967184938644      -0.004222815468751149     0.00019821695457748924
   -9.344582833884657e-06    1.9196206104915808e-07   3.9297272615044644e-08  -7.78450133494467e-09
    8.96991967384485e-10    -7.438024643998188e-11    4.021788569792386e-12   -1.1001093017666995e-14
   -2.949469792621206e-14    4.340922611242825e-15   -4.029752429078927e-16    2.6846066611230284e-17
   -6.813777060933271e-19   -2.0182049736927834e-19   2.6290700209835093e-20
""")
INVERSE_FAR_F64 = numbers("""
    3.979354340165679        0.12200788668187319     -0.0017675103434396562    5.035120609791152e-05
   -1.7745855631289637e-06   6.931257353272117e-08   -2.845932495252631e-09    1.1721369222775181e-10
   -4.501939831207061e-12    1.336947053192084e-13   -1.2351763386786843e-16  -4.462571546617544e-16
    5.074297663573177e-17   -4.1044973624053e-18      2.773255258535004e-19   -1.6496555524221342e-20
    8.727551155444685e-22   -3.5453260132633077e-23   6.953263139901e-25
""")
INVERSE_LAST_F64 = numbers("""
    5.308896624835222        0.0925926008439895      -0.0007810606151035213    1.3042080360205943e-05
   -2.7062825809945127e-07   6.264461921002486e-09   -1.5490563717775997e-10   4.003487967306675e-12
   -1.067897666982159e-13    2.9165291036562514e-15  -8.110396678955292e-17    2.287079057232651e-18
   -6.500886590756534e-20    1.834637039154808e-21   -5.246839741268286e-23    1.6404181986186508e-24
   -3.852238941776854e-26
""")
ERFC_F32 = numbers("""
    1.232995117234906       -0.13962105861927548      0.015379877206013146     0.06809415937557037
   -0.10104593448416894      0.0937708196418598      -0.06624941818303993      0.03699069522321719
   -0.016605616755817683     0.005251217234365989
""")
INVERSE_MIDDLE_F32 = numbers("""
    1.6536545691355098       0.2401581803248365      -0.0060337171572722      -0.0007406966368379542
    0.000186787986429903    -1.3888015292740539e-05  -1.388359939247556e-06    4.258263018163481e-07
   -2.4651389510009114e-08  -4.616185714690347e-09    6.566036331674995e-10
""")
INVERSE_OUTER_F32 = numbers("""
    3.1341615248364407       1.0057691353631342       0.004844174116487726    -0.0032932447514376563
    0.002096077369321751    -0.0014173264636219128    0.0008647237199948981   -0.00035155205223882534
   -1.1328529544797576e-05   6.517808576162835e-05
""")


def erf(x: Number) -> Number:
    """The error function: an odd polynomial near 0, else 1 minus the complement."""
    return (_erf_of_f32 if x.is_single else _erf_of_f64)(x)


def _erf_of_f32(x: Number) -> Number:
    """erf. Both polynomials have the same degree, so that one walk computes either."""
    size = x.abs()
    is_small, t = size < 0.95, at_most(size, 4.0)
    coefficients = [select(is_small, x.like(a), b) for a, b in zip(ERF_SMALL_F32, ERF_LARGE_F32, strict=True)]
    polynomial = horner(select(is_small, x * x, t), coefficients)
    far = _one_minus_power(polynomial * t)
    return select(is_small, _with_multiple(size, polynomial), far).copysign(x)


def _with_multiple(size: Number, factor: Number) -> Number:
    """size (1 + factor), whose product would lose digits if it were denormal."""
    multiple, scale = _scaled_up(size)
    return factor.times_plus(multiple, multiple) * scale


def _one_minus_power(x: Number) -> Number:
    """1 - 2ˣ for -26 < x < 0, where no factor is denormal."""
    n, integer = e.nearest(x)
    return (-horner(x - n, e.EXP2)).times_plus(e.power_of_two(integer), 1.0)


def _erf_of_f64(x: Number) -> Number:
    size = x.abs()
    near = horner(x * x, ERF_SMALL_F64).times_plus(size, size)
    return select(size < 1.0, near, 1.0 - _erfc_positive(size)).copysign(x)


def _scaled_up(size: Number) -> Pair:
    """A number scaled up so that small parts of it are normal, and the factor to scale back."""
    is_tiny = size < 2.0**-90
    return size * select(is_tiny, size.like(2.0**64), 1.0), select(is_tiny, size.like(2.0**-64), 1.0)


def erfc(x: Number) -> Number:
    """The complement 1 - erf(x), with small results as accurate as large ones."""
    tail = x * horner(x * x, ERF_SMALL_F32 if x.is_single else ERF_SMALL_F64)
    # From 1/4 to 1 the difference x - 1/2 is exact.
    near = select(x < 0.25, 1.0 - (x + tail), 0.5 - ((x - 0.5) + tail))
    upper = _erfc_positive(x.abs())
    far = select(x < 0.0, 2.0 - upper, upper)
    return select(x.abs() < 0.65, near, far)


def _erfc_positive(x: Number) -> Number:
    """erfc(x) = exp(-x²) g(t)/(1 + 2x) with t = (x - 4)/(x + 4), for x >= 0."""
    if x.has(Ability.FUSED):
        return _erfc_of_f64(x)
    x = at_most(x, 10.5 if x.is_single else 28.0)
    first = x.short()
    high, low, n = e.reduce(-(first * first))
    tail = e.exp_tail(high, low + (first - x) * (first + x))
    g, g_low = _polynomial((x - 4.0) / (x + 4.0), ERFC_F32 if x.is_single else ERFC_F64)
    denominator = x * 2.0 + 1.0
    quotient = g / denominator
    # The rounding errors of g, quotient and denominator, over g; 1/g is nearly 1.8 - 0.8 g.
    error = residual(g, quotient, denominator) + g_low
    error = error - (x * 2.0 - (denominator - 1.0)) * quotient
    correction = tail + error * (1.8 - g * 0.8) * (tail + 1.0)
    return e.scale_twice(quotient + quotient * correction, n)


def _erfc_of_f64(x: Number) -> Number:
    """The same where fused products give the rounding errors."""
    x = at_most(x, 28.0)
    square, denominator = x * x, x.fma(2.0, 1.0)
    high, low, n = e.reduce(-square)
    tail = e.exp_tail(high, low - x.fma(x, -square))
    g = horner((x - 4.0) / (x + 4.0), ERFC_F64)
    quotient = g / denominator
    # The rounding errors of denominator and quotient; 0.88 is close enough to 1/g.
    error = residual(g, quotient, denominator) - (x * 2.0 - (denominator - 1.0)) * quotient
    return e.scale_twice(error.fma(0.88, tail).fma(quotient, quotient), n)


def _polynomial(x: Number, coefficients: Sequence[float]) -> Pair:
    """The polynomial and its rounding error, if the first coefficient outweighs the rest."""
    first, first_low = halves(coefficients[0], x.dtype)
    tail = horner(x, coefficients[1:]).times_plus(x, first_low)
    value = tail + first
    return value, (first - value) + tail


def erf_inv(x: Number) -> Number:
    """The inverse of erf: infinite at ±1, NaN beyond."""
    size = x.abs()
    w = _minus_log(size)
    high, low = pair(*(_inverse_f32(w) if x.is_single else _inverse_f64(w)))
    # Products of short numbers are exact.
    multiple, factor = _scaled_up(size) if x.is_single else (size, size.like(1.0))
    first = multiple.short()
    inside = (first * high + ((multiple - first) * high + multiple * low)) * factor
    outside = select(size.equals(1.0), math.inf, x.like(math.nan))
    return select(size < 1.0, inside, outside).copysign(x)


def _minus_log(x: Number) -> Number:
    """-log(1 - x²) for 0 <= x < 1; below 1/2 with the rounding error of 1 - x²."""
    square, is_small = x * x, x < 0.5
    difference = select(is_small, 1.0 - square, (1.0 - x) * (x + 1.0))
    residual = select(is_small, (1.0 - difference) - square, 0.0)
    return -e.log_of_sum(difference, residual)


def _inverse_f32(w: Number) -> Pair:
    """erf_inv(x)/x over w = -log(1 - x²), as a sum."""
    pieces = (
        _polynomial(w, INVERSE_CENTRAL_F32),
        _polynomial(w - 3.125, INVERSE_MIDDLE_F32),
        _polynomial(w.sqrt() - 3.3, INVERSE_OUTER_F32),
    )
    return _piece(w, (1.25, 6.25), pieces)


def _inverse_f64(w: Number) -> Pair:
    """erf_inv(x)/x; the polynomials are in the distance from the middle of their ranges."""
    pieces = (
        _polynomial(w - 3.125, INVERSE_CENTRAL_F64),
        _polynomial(w - 9.25, INVERSE_TAIL_F64),
        _polynomial(w - 17.125, INVERSE_FAR_F64),
        _polynomial(w - 29.75, INVERSE_LAST_F64),
    )
    return _piece(w, (6.25, 12.25, 22.0), pieces)


def _piece(w: Number, bounds: Sequence[float], pieces: Sequence[Pair]) -> Pair:
    """The pair of the interval that w lies in; `bounds` separate the intervals."""
    high, low = pieces[-1]
    for bound, piece in zip(reversed(bounds), reversed(pieces[:-1]), strict=True):
        is_below = w < bound
        high, low = select(is_below, piece[0], high), select(is_below, piece[1], low)
    return high, low
