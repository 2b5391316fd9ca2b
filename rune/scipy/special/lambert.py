"""The Lambert W function: the solutions w of w exp(w) = z, one on each branch.

Halley's method, lane by lane, from a start on the right branch: a series at the branch point -1/e,
a rational function of logarithms near 0, the asymptotic series elsewhere. On real branches every
step is real, so that the imaginary part is exactly 0 there.

Source: Corless, Gonnet, Hare, Jeffrey & Knuth 1996, Advances in Computational Mathematics 5.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import rune.numpy as rnp
from rune.array import Array
from rune.control import while_loop
from rune.errors import DtypeError
from rune.ops import complex_numbers as parts
from rune.ops.promote import promoted
from rune.scipy.special.arguments import as_array, with_slopes
from rune.typing import ArrayLike

_STEPS = 20  # 7 are enough; near -1/e steps stay as long as rounding, and would not end


def lambertw(z: ArrayLike, k: ArrayLike | list[int] = 0) -> Array:
    """The w with w exp(w) = z on branch k, as a complex number; it is real for real z >= -1/e and k
    = 0, and for real z in [-1/e, 0) and k = -1.

    k:      integers; 0 is the principal branch.
    Shapes: z and k broadcast together.
    Types:  c64, or c128 for 64-bit dtypes. Differentiable in z, except at -1/e.
    Errors: DtypeError for a k that is not an integer. Accurate to a few roundings, except near
            -1/e, where w changes by the square root of the change of z.
    Source: Corless, Gonnet, Hare, Jeffrey & Knuth 1996, Advances in Computational Mathematics 5.

    >>> import rune.numpy as rnp
    >>> from rune.scipy.special import lambertw
    >>> rnp.round(lambertw(1.0), 3)
    Array(0.567+0.j, c64[], cpu:0)
    """
    branch = rnp.asarray(k)
    if not rnp.issubdtype(branch.dtype, rnp.integer):
        raise DtypeError(f"lambertw: cannot use k of {branch.dtype} (integers required)")
    (x,) = promoted("lambertw", z, kind="inexact")
    x = as_array(x) * (1.0 + 0.0j)
    branch = rnp.astype(branch, rnp.real(x).dtype)
    return _lambertw(*rnp.broadcast_arrays(x, branch))


class _State(NamedTuple):
    w: Array
    is_done: Array
    n: Array


# (w exp(w))' = exp(w) (1 + w)
@with_slopes(lambda t, w, z, k: t / (rnp.exp(w) * (1.0 + w)), None)
def _lambertw(z: Array, k: Array) -> Array:
    x = rnp.real(z)
    is_finite = rnp.isfinite(x) & rnp.isfinite(rnp.imag(z))
    is_inner = is_finite & (z != 0)
    inner = _solved(rnp.where(is_inner, z, 1.0), k)
    at_zero = rnp.where(k == 0, 0.0, -rnp.inf) + 0.0j
    turn = math.pi * (2.0 * k + rnp.where(x < 0, 1.0, 0.0))
    at_infinity = parts.complex(rnp.where(rnp.isinf(x), rnp.abs(x), rnp.nan), turn)
    return rnp.where(is_inner, inner, rnp.where(is_finite, at_zero, at_infinity))


def _solved(z: Array, k: Array) -> Array:
    eps = 4 * float(rnp.finfo(z.dtype).eps)

    def goes_on(s: _State) -> Array:
        return rnp.any(~s.is_done) & (s.n < _STEPS)

    def again(s: _State) -> _State:
        # exp(w) is scaled to at most 1 on both sides, so that nothing overflows.
        is_low = rnp.real(s.w) < -1.0
        power = rnp.exp(rnp.where(is_low, s.w, -s.w))
        w_scale, z_scale = rnp.where(is_low, power, 1.0), rnp.where(is_low, 1.0, power)
        residual = s.w * w_scale - z * z_scale
        more = s.w + 1.0
        safe = rnp.where(more == 0, 1.0, more)
        below = w_scale * more - (s.w + 2.0) * residual / (2.0 * safe)
        step = rnp.where((more == 0) | (below == 0), 0.0, residual / rnp.where(below == 0, 1.0, below))
        w = rnp.where(s.is_done, s.w, s.w - step)
        return _State(w, s.is_done | (rnp.abs(step) <= eps * rnp.abs(w)), s.n + 1)

    start = _start(z, k)
    return while_loop(goes_on, again, _State(start, rnp.isnan(z), rnp.asarray(0))).w


def _start(z: Array, k: Array) -> Array:
    x, y = rnp.real(z), rnp.imag(z)
    log = rnp.log(z) + (2.0 * math.pi * k) * 1.0j
    flat = rnp.where(log == 0, 1.0, log)
    start = log - rnp.log(flat) + rnp.log(flat) / flat
    is_near = (rnp.abs(y) < 1) & (x > -1) & (x < 1.5) & (-2.5 * rnp.abs(y) - 0.2 < x) & (k == 0)
    one = rnp.log(1.0 + rnp.where(is_near, z, 0.5))
    start = rnp.where(is_near, one * (1.0 - rnp.log(1.0 + one) / (2.0 + one)), start)
    is_real = (k == -1) & (y == 0) & (x < 0) & (x > -1 / math.e)
    size = rnp.log(rnp.where(is_real, -x, 0.1))
    start = rnp.where(is_real, size - rnp.log(-size), start)
    p = rnp.sqrt(2.0 * (math.e * z + 1.0))
    is_end = rnp.abs(z + 1 / math.e) < 0.3
    side = rnp.where(k == 0, 1.0, -1.0) * p
    series = -1.0 + side * (1.0 - side * (1 / 3 - side * (11 / 72)))
    has_end = (k == 0) | ((k == -1) & (y >= 0)) | ((k == 1) & (y < 0))
    return rnp.where(is_end & has_end, series, start)
