"""The two formats in which functions are computed: their layout, limits and polynomials.

Source: coefficients by tools/minimax.py.
"""

from __future__ import annotations

from rune.lowering.scalar.number import Number
from rune.number_tables import numbers
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """What the functions need to know of f32 or f64."""

    mantissa: int  # stored bits of the fraction
    bias: int
    shifter: float  # adding it rounds to an integer held in the low bits
    exp_low: float  # exp of less is 0, and of more than exp_high infinite
    exp_high: float
    expm1_low: float  # expm1 of less is -1
    ln2_high: float  # ln 2 rounded to this type, and the rest
    ln2_low: float
    ln2_short: float  # ln 2 cut so that its product with every exponent is exact, and the rest
    ln2_rest: float
    log2e_low: float  # log2(e) minus its rounding to this type
    tiny: float  # the smallest normal number
    exp: tuple[float, ...]  # (exp(r) - 1 - r)/r²
    expm1: tuple[float, ...]  # the same, with a smaller error relative to r
    tanh_high: float  # tanh of more is 1
    tanh: tuple[float, ...]  # (tanh(x)/x - 1)/x², in x²
    sinh: tuple[float, ...]  # the same for sinh


F32 = Format(
    mantissa=23,
    bias=127,
    shifter=1.5 * 2.0**23,
    exp_low=-104.0,
    exp_high=90.0,
    expm1_low=-18.0,
    ln2_high=0.693147182464599609375,
    ln2_low=-1.904654299957768e-09,
    ln2_short=0.693145751953125,
    ln2_rest=1.4286068203094172e-06,
    log2e_low=1.9259629911266175e-08,
    tiny=2.0**-126,
    exp=(0.4999999344777851, 0.16666520631728898, 0.04166838805002984, 0.008368716878287654, 0.0013814598380327496),
    expm1=numbers("""
        0.5000000046182522       0.1666666681676568       0.04166635530256015      0.008333273113258832
        0.001394096954091843     0.00019914138957344922
    """),
    tanh_high=10.0,
    tanh=(-0.33333329249601945, 0.1333279455048458, -0.05385407011469991, 0.02101008270093737, -0.006113193029030405),
    sinh=(0.1666666664677854, 0.008333339687365918, 0.00019838098915429117, 2.8063006145818143e-06),
)
F64 = Format(
    mantissa=52,
    bias=1023,
    shifter=1.5 * 2.0**52,
    exp_low=-746.0,
    exp_high=711.0,
    expm1_low=-40.0,
    ln2_high=0.6931471805599453,
    ln2_low=2.3190468138462996e-17,
    ln2_short=0.6931471803691238,
    ln2_rest=1.9082149292705877e-10,
    log2e_low=2.0355273740931033e-17,
    tiny=2.0**-1022,
    exp=numbers("""
        0.5                      0.16666666666666682      0.041666666666666095     0.008333333333317034
        0.0013888888889115629    0.0001984126989638386    2.4801586926632463e-05   2.7557234861858035e-06
        2.7557581848841646e-07   2.5112036864457694e-08   2.0826626887899002e-09
    """),
    expm1=numbers("""
        0.5                      0.16666666666666666      0.04166666666666669      0.008333333333333338
        0.0013888888888871995    0.00019841269841245588   2.4801587349935766e-05   2.7557319277547796e-06
        2.7557252032516426e-07   2.5052047608752746e-08   2.0921545013516886e-09   1.6093371767297647e-10
    """),
    tanh_high=20.0,
    tanh=numbers("""
       -0.33333333333333326      0.1333333333332704      -0.05396825396171754      0.02186948827108377
       -0.008863230005697335     0.0035920606449047804   -0.0014553189843121911    0.0005874721210127222
       -0.0002308518758811011    7.969067582117154e-05   -1.7291484389488587e-05
    """),
    sinh=numbers("""
        0.16666666666666666      0.008333333333333299     0.0001984126984132424    2.7557319191363655e-06
        2.505211769940992e-08    1.6057679312513884e-10   7.746188969045864e-13
    """),
)


def format_of(x: Number) -> Format:
    """The constants for the dtype of `x`."""
    return F32 if x.is_single else F64
