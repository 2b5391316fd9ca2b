"""Operations of one's own, which every transformation, compiler and device takes like rune's.

    primitive(name, ...)    an operation from what it means, in NumPy, C or rune's own operations
    check(op, samples)      whether its rules agree with each other, sample by sample
    Native                  a function of C that computes it on the CPU
    Source, Launch          a kernel in CUDA C or OpenCL C, and how it is launched
    leading, lane_by_lane   two ways to do with lanes
    ZERO, NOT_DIFFERENTIABLE    derivatives that are zero, or refused

The guide is docs/guide/your-own-operation.md.

>>> import numpy as np, rune
>>> from rune import extend
>>> double = extend.primitive("double", expand=lambda x: x + x, meaning=lambda x: np.multiply(x, 2))
>>> rune.grad(lambda x: double(x) * x)(3.0)
Array(12., f32*[], cpu:0)
"""

from rune.core.primitive import NOT_DIFFERENTIABLE, ZERO
from rune.core.source import Launch, Source
from rune.extend.check import Disagreement, Report, check
from rune.extend.operation import Native, Operation, lane_by_lane, leading, primitive
from rune.listing import names as _names

__all__ = [
    "NOT_DIFFERENTIABLE",
    "ZERO",
    "Disagreement",
    "Launch",
    "Native",
    "Operation",
    "Report",
    "Source",
    "check",
    "lane_by_lane",
    "leading",
    "primitive",
]

__dir__ = _names(globals())
