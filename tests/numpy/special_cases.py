"""The special cases of the array API standard 2025.12, as data: inputs and results.

A row is "inputs: result", a line "functions | row; row; …". An input is a number or a set below.
A result is a number, with the sign of a zero; `~` before it leaves the sign open, and `a or b` says
that both are allowed. `x` and `y` are the operands, `+` and `-` any number of that sign. A complex
number is two inputs or results, its parts, and of the rows that match it the first one counts;
`cis inf` is an infinity in the direction of the imaginary part, `cis -1` -1 and a zero in it.

Source: https://data-apis.org/array-api/2025.12, "Elementwise functions", "Special cases".
"""

from __future__ import annotations

from math import inf, nan

_POSITIVE = [1e-30, 0.5, 1.0, 2.0, 2.5, 3.0, 7.0, 1e30]
_NEGATIVE = [-v for v in _POSITIVE]
_FINITE = [0.0, -0.0, *_POSITIVE, *_NEGATIVE]
_ALL = [*_FINITE, inf, -inf, nan]

SETS: dict[str, list[float]] = {
    "any": _ALL,
    "finite": _FINITE,
    "number": [v for v in _ALL if v == v],
    "positive": _POSITIVE,
    "negative": _NEGATIVE,
    "nonzero": [*_POSITIVE, *_NEGATIVE],
    ">0": [*_POSITIVE, inf],
    "<0": [*_NEGATIVE, -inf],
    "0": [0.0, -0.0],
    "+0": [0.0],
    "-0": [-0.0],
    ">1": [v for v in _ALL if v > 1],
    "<-1": [v for v in _ALL if v < -1],
    "<1": [v for v in _ALL if v < 1],
    "nan": [nan],
    "-nan": [-nan],
    "±inf": [inf, -inf],
    "inf": [inf],
    "-inf": [-inf],
    "not 1": [v for v in _ALL if v != 1],
    "not 0": [v for v in _ALL if v != 0],
    "|v|>1": [v for v in _ALL if abs(v) > 1],
    "|v|<1": [v for v in _ALL if abs(v) < 1],
    "±1": [1.0, -1.0],
    "whole": [v for v in [*_FINITE, -1e5] if v == int(v)],
    "broken": [0.5, -0.5, 2.5, -2.5, 1e-30],
    "odd>0": [1.0, 3.0, 7.0],
    "odd<0": [-1.0, -3.0, -7.0],
    "other>0": [0.5, 2.0, 2.5, 1e30, inf],
    "other<0": [-0.5, -2.0, -2.5, -1e30, -inf],
}

ONE = """
abs | nan: nan; -0: +0; -inf: inf
acos | nan: nan; >1: nan; <-1: nan; 1: +0
acosh | nan: nan; <1: nan; 1: +0; inf: inf
asin | nan: nan; >1: nan; <-1: nan; 0: x
asinh sinh | nan: nan; 0: x; ±inf: x
atan | nan: nan; 0: x; inf: pi/2; -inf: -pi/2
atanh | nan: nan; <-1: nan; >1: nan; -1: -inf; 1: inf; 0: x
ceil floor trunc round | whole: x; ±inf: x; nan: nan
round | 0.5: +0; -0.5: -0; 1.5: 2; -1.5: -2; 2.5: 2; -2.5: -2; 3.5: 4
cos | nan: nan; 0: 1; ±inf: nan
cosh | nan: nan; 0: 1; ±inf: inf
exp | nan: nan; 0: 1; inf: inf; -inf: +0
expm1 | nan: nan; 0: x; inf: inf; -inf: -1
isfinite | ±inf: 0; nan: 0; finite: 1
isinf | ±inf: 1; nan: 0; finite: 0
isnan | ±inf: 0; nan: 1; finite: 0
log log2 log10 | nan: nan; <0: nan; 0: -inf; 1: +0; inf: inf
log1p | nan: nan; <-1: nan; -1: -inf; 0: x; inf: inf
reciprocal | nan: nan; +0: inf; -0: -inf; inf: +0; -inf: -0
sign | nan: nan; <0: -1; 0: +0; >0: 1
signbit | +0: 0; -0: 1; inf: 0; -inf: 1; positive: 0; negative: 1; nan: 0; -nan: 1
sin tan | nan: nan; 0: x; ±inf: nan
sqrt | nan: nan; <0: nan; 0: x; inf: inf
square | nan: nan; 0: +0; ±inf: inf
tanh | nan: nan; 0: x; inf: 1; -inf: -1
"""

TWO = """
add | nan, any: nan; any, nan: nan; inf, -inf: nan; -inf, inf: nan; inf, inf: inf; -inf, -inf: -inf
add | ±inf, finite: x; finite, ±inf: y; -0, -0: -0; -0, +0: +0; +0, -0: +0; +0, +0: +0
add | 0, nonzero: y; nonzero, 0: x; 2.5, -2.5: +0; -7, 7: +0
subtract | nan, any: nan; any, nan: nan; inf, inf: nan; -inf, -inf: nan; ±inf, finite: x
subtract | -0, +0: -0; -0, -0: +0; +0, -0: +0; +0, +0: +0; nonzero, 0: x; 2.5, 2.5: +0
multiply | nan, any: nan; any, nan: nan; ±inf, 0: nan; 0, ±inf: nan
multiply | >0, >0: +; <0, <0: +; >0, <0: -; <0, >0: -; +0, positive: +0; +0, negative: -0
multiply | inf, >0: inf; inf, <0: -inf; -inf, >0: -inf; -inf, <0: inf; -0, negative: +0
divide floor_divide | nan, any: nan; any, nan: nan; ±inf, ±inf: nan; 0, 0: nan
divide floor_divide | +0, >0: +0; -0, >0: -0; +0, <0: -0; -0, <0: +0
divide floor_divide | >0, +0: inf; >0, -0: -inf; <0, +0: -inf; <0, -0: inf
divide | inf, positive: inf; inf, negative: -inf; -inf, positive: -inf; -inf, negative: inf
divide | positive, inf: +0; positive, -inf: -0; negative, inf: -0; negative, -inf: +0
floor_divide | inf, positive: inf or nan; inf, negative: -inf or nan; -inf, positive: -inf or nan
floor_divide | -inf, negative: inf or nan; positive, inf: +0; negative, -inf: +0
floor_divide | positive, -inf: -0 or -1; negative, inf: -0 or -1
divide floor_divide | positive, positive: +; negative, negative: +
divide floor_divide | positive, negative: -; negative, positive: -
remainder | nan, any: nan; any, nan: nan; ±inf, ±inf: nan; 0, 0: nan; 0, >0: +0; 0, <0: -0
remainder | >0, 0: nan; <0, 0: nan; ±inf, nonzero: nan; positive, inf: x; positive, -inf: y
remainder | negative, inf: y; negative, -inf: x; nonzero, positive: +; nonzero, negative: -
atan2 | nan, any: nan; any, nan: nan; >0, 0: pi/2; <0, 0: -pi/2; +0, >0: +0; +0, +0: +0
atan2 | +0, -0: pi; +0, <0: pi; -0, >0: -0; -0, +0: -0; -0, -0: -pi; -0, <0: -pi
atan2 | positive, inf: +0; positive, -inf: pi; negative, inf: -0; negative, -inf: -pi
atan2 | inf, finite: pi/2; -inf, finite: -pi/2; inf, inf: pi/4; inf, -inf: 3pi/4
atan2 | -inf, inf: -pi/4; -inf, -inf: -3pi/4
copysign | number, <0: -|x|; number, -0: -|x|; number, +0: |x|; number, >0: |x|
copysign | number, nan: |x|; number, -nan: -|x|
equal | nan, any: 0; any, nan: 0; inf, inf: 1; -inf, -inf: 1; 0, 0: 1; 2.5, 2.5: 1; inf, -inf: 0
not_equal | nan, any: 1; any, nan: 1; inf, -inf: 1; -inf, inf: 1; 2, 3: 1; 0, 0: 0; inf, inf: 0
hypot | ±inf, any: inf; any, ±inf: inf; 0, any: |y|; any, 0: |x|; finite, nan: nan; nan, finite: nan
hypot | nan, nan: nan
logaddexp | nan, any: nan; any, nan: nan; inf, number: inf; number, inf: inf; -inf, -inf: -inf
maximum minimum | nan, any: nan; any, nan: nan
nextafter | nan, any: nan; any, nan: nan; -0, +0: +0; +0, -0: -0
pow | not 1, nan: nan; any, 0: 1; nan, not 0: nan; |v|>1, inf: inf; |v|>1, -inf: +0; ±1, ±inf: 1
pow | 1, number: 1; |v|<1, inf: +0; |v|<1, -inf: inf; inf, >0: inf; inf, <0: +0
pow | -inf, odd>0: -inf; -inf, other>0: inf; -inf, odd<0: -0; -inf, other<0: +0
pow | +0, >0: +0; +0, <0: inf; -0, odd>0: -0; -0, other>0: +0; -0, odd<0: -inf; -0, other<0: inf
pow | negative, broken: nan
"""

PARTS = """
acos | 0, +0: pi/2, -0; 0, nan: pi/2, nan; finite, inf: pi/2, -inf; finite, nan: nan, nan
acos | -inf, positive: pi, -inf; inf, positive: +0, -inf; -inf, inf: 3pi/4, -inf
acos | inf, inf: pi/4, -inf; ±inf, nan: nan, ~inf; nan, finite: nan, nan; nan, inf: nan, -inf
acosh | 0, +0: +0, pi/2; finite, inf: inf, pi/2; +0, nan: nan, ~pi/2; nonzero, nan: nan, nan
acosh | -inf, positive: inf, pi; inf, positive: inf, +0; -inf, inf: inf, 3pi/4; inf, inf: inf, pi/4
acosh | ±inf, nan: inf, nan; nan, finite: nan, nan; nan, inf: inf, nan
asinh | +0, +0: +0, +0; positive, inf: inf, pi/2; finite, nan: nan, nan; inf, positive: inf, +0
asinh | inf, inf: inf, pi/4; nan, +0: nan, +0; nan, nonzero: nan, nan; nan, inf: ~inf, nan
atanh | +0, +0: +0, +0; +0, nan: +0, nan; 1, +0: inf, +0; positive, inf: +0, pi/2
atanh | nonzero, nan: nan, nan; inf, positive: +0, pi/2; inf, inf: +0, pi/2; inf, nan: +0, nan
atanh | nan, finite: nan, nan; nan, inf: ~0, pi/2
cosh | +0, +0: 1, +0; +0, inf: nan, ~0; +0, nan: nan, ~0; nonzero, inf: nan, nan
cosh | nonzero, nan: nan, nan; inf, +0: inf, +0; inf, nonzero: cis inf; inf, inf: ~inf, nan
cosh | inf, nan: inf, nan; nan, 0: nan, ~0; nan, nonzero: nan, nan
exp | 0, +0: 1, +0; finite, inf: nan, nan; finite, nan: nan, nan; inf, +0: inf, +0
exp | -inf, finite: cis 0; inf, nonzero: cis inf; -inf, inf: ~0, ~0; inf, inf: ~inf, nan
exp | -inf, nan: ~0, ~0; inf, nan: ~inf, nan; nan, +0: nan, +0; nan, not 0: nan, nan
expm1 | 0, +0: ~0, +0; finite, inf: nan, nan; finite, nan: nan, nan; inf, +0: inf, +0
expm1 | -inf, finite: cis -1; inf, nonzero: cis inf; -inf, inf: -1, ~0; inf, inf: ~inf, nan
expm1 | -inf, nan: -1, ~0; inf, nan: ~inf, nan; nan, +0: nan, +0; nan, not 0: nan, nan
log | -0, +0: -inf, pi; +0, +0: -inf, +0; finite, inf: inf, pi/2; finite, nan: nan, nan
log1p | -1, +0: -inf, +0; finite, inf: inf, pi/2; finite, nan: nan, nan
log log1p | -inf, positive: inf, pi; inf, positive: inf, +0; -inf, inf: inf, 3pi/4
log log1p | inf, inf: inf, pi/4; ±inf, nan: inf, nan; nan, finite: nan, nan; nan, inf: inf, nan
sinh | +0, +0: +0, +0; +0, inf: ~0, nan; +0, nan: ~0, nan; positive, inf: nan, nan
sinh | positive, nan: nan, nan; inf, +0: inf, +0; inf, positive: cis inf; inf, inf: ~inf, nan
sinh | inf, nan: ~inf, nan; nan, +0: nan, +0; nan, nonzero: nan, nan
sqrt | 0, +0: +0, +0; any, inf: inf, inf; finite, nan: nan, nan; -inf, positive: +0, inf
sqrt | inf, positive: inf, +0; -inf, nan: nan, ~inf; inf, nan: inf, nan; nan, finite: nan, nan
tanh | +0, +0: +0, +0; nonzero, inf: nan, nan; +0, inf: +0, nan; nonzero, nan: nan, nan
tanh | +0, nan: +0, nan; inf, positive: 1, ~0; inf, inf: 1, ~0; inf, nan: 1, ~0; nan, +0: nan, +0
tanh | nan, nonzero: nan, nan
sign | 0, 0: +0, +0; nan, any: nan, nan; any, nan: nan, nan
abs | ±inf, any: inf; any, ±inf: inf; 0, any: |y|; any, 0: |x|; nan, any: nan; any, nan: nan
isfinite | finite, finite: 1; any, any: 0
isinf | ±inf, any: 1; any, ±inf: 1; any, any: 0
isnan | nan, any: 1; any, nan: 1; any, any: 0
acos acosh asinh atanh cosh exp expm1 log log1p sinh sqrt tanh | nan, nan: nan, nan
"""
