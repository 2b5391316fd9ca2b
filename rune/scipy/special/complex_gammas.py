"""The gamma function of complex numbers, its logarithm and its logarithmic derivative.

log Γ has one branch cut, along the negative real axis, where the sign of a zero imaginary part says
which side is meant. All three are computed in the upper half plane: their values at conjugates are
conjugates.

    Re z >= 1/2     Stirling's series at z + 8, less log z + log(z + 1) + … + log(z + 7): in the
                    right half plane no sum of logarithms crosses a branch cut
    near 1 and 2    the power series, as the logarithm is zero there
    Re z < 1/2      the reflection Γ(z) Γ(1 - z) sin(πz) = π

With q = exp(2πiz), whose size is at most 1, log sin(πz) is -iπz + log(1 - q) - log 2 + iπ/2: this
is analytic in the upper half plane and real between 0 and 1, so that no multiple of 2πi is added.

Source: DLMF 5.5.3, 5.5.4, 5.7.3, 5.11.1 and 5.11.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.scipy.special.arguments import leading, polynomial, with_slopes
from rune.scipy.special.stirling import HALF_LOG_2PI, SHIFT, digamma_series, stirling_series
from rune.scipy.special.tables_gamma import LGAMMA_SERIES

_NEAR = 0.4  # the radius of the power series around 1 and 2
_TERMS_OF_F32 = 16


def _by_conjugates(function: Callable[[Array], Array], z: Array) -> Array:
    """The values of a function that is NaN at poles, from those in the upper half plane."""
    x, y = rnp.real(z), rnp.imag(z)
    is_pole = (y == 0.0) & (x <= 0.0) & (x == rnp.floor(x))
    is_regular = rnp.isfinite(x) & rnp.isfinite(y) & ~is_pole
    is_below = rnp.signbit(y)
    value = function(rnp.where(is_regular, rnp.where(is_below, rnp.conj(z), z), 1.0))
    value = rnp.where(is_below, rnp.conj(value), value)
    return rnp.where(is_regular, value, complex(math.nan, math.nan))


def _reflected(z: Array) -> tuple[Array, Array]:
    """Where Re z < 1/2, and 1 - z there, else z."""
    is_left = rnp.real(z) < 0.5
    return is_left, rnp.where(is_left, 1.0 - z, z)


def _shifted(z: Array) -> tuple[Array, Array, Array]:
    """Where Re z is below the series' reach; z moved within it; and the unmoved z there, else 1."""
    is_low = rnp.real(z) < SHIFT
    return is_low, rnp.where(is_low, z + float(SHIFT), z), rnp.where(is_low, z, 1.0)


def _one_less_turn(z: Array) -> Array:
    """1 - exp(2πiz), accurate near whole numbers, of Im z >= 0."""
    angle = math.pi * (rnp.real(z) - rnp.round(rnp.real(z)))
    sine, decay = rnp.sin(angle), -2.0 * math.pi * rnp.imag(z)
    real = 2.0 * sine * sine * rnp.exp(decay) - rnp.expm1(decay)
    return ops.complex(real, -rnp.exp(decay) * rnp.sin(2.0 * angle))


# --- the logarithm ------------------------------------------------------------------------------


def _log_gamma_near_one(u: Array) -> Array:
    return u * polynomial(u, leading(LGAMMA_SERIES, _TERMS_OF_F32, rnp.real(u)))


def _log_gamma_on_the_right(z: Array) -> Array:
    """log Γ(z) of Re z >= 1/2."""
    is_low, far, low = _shifted(z)
    steps = sum(rnp.log(low + float(k)) for k in range(SHIFT))
    stirling = (far - 0.5) * rnp.log(far) - far + HALF_LOG_2PI + stirling_series(far)
    value = stirling - rnp.where(is_low, steps, 0.0)
    for centre in (1.0, 2.0):
        is_near = rnp.abs(z - centre) < _NEAR
        u = rnp.where(is_near, z - centre, 0.0)
        near = _log_gamma_near_one(u) + (rnp.log1p(u) if centre == 2.0 else 0.0)
        value = rnp.where(is_near, near, value)
    return value


def _log_gamma_above(z: Array) -> Array:
    is_left, right = _reflected(z)
    value = _log_gamma_on_the_right(right)
    turn = ops.complex(math.pi * rnp.imag(z), math.pi * (0.5 - rnp.real(z)))  # -iπz + iπ/2
    log_sine = turn + rnp.log(rnp.where(is_left, _one_less_turn(z), 1.0)) - math.log(2.0)
    return rnp.where(is_left, math.log(math.pi) - log_sine - value, value)


@with_slopes(lambda t, y, z: t * digamma_of_complex(z))
def log_gamma_of_complex(z: Array) -> Array:
    """log Γ(z)."""
    return _by_conjugates(_log_gamma_above, z)


@with_slopes(lambda t, y, z: t * y * digamma_of_complex(z))
def gamma_of_complex(z: Array) -> Array:
    """Γ(z)."""
    return rnp.exp(log_gamma_of_complex(z))


# --- its derivative -----------------------------------------------------------------------------


def _digamma_above(z: Array) -> Array:
    is_left, right = _reflected(z)
    is_low, far, low = _shifted(right)
    steps = sum(1.0 / (low + float(k)) for k in range(SHIFT))
    value = digamma_series(far) - rnp.where(is_low, steps, 0.0)
    cot = -1j * (2.0 / rnp.where(is_left, _one_less_turn(z), 1.0) - 1.0)  # of πz
    return rnp.where(is_left, value - math.pi * cot, value)


def digamma_of_complex(z: Array) -> Array:
    """ψ(z) = Γ'(z) / Γ(z)."""
    return _by_conjugates(_digamma_above, z)
