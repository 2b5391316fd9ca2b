"""User-defined operations, which every transformation, compiler and device treats like rune's own.

    primitive(name, ...)    defines an operation in NumPy, in C or by rune's own operations
    check(op, samples)      checks on samples that its rules agree with each other
    Native                  a C function that computes it on the CPU
    Source, Launch          a kernel in CUDA C or OpenCL C, and how to launch it
    leading, lane_by_lane   two batch rules that are ready to use
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

__all__ = ["NOT_DIFFERENTIABLE", "ZERO", "Disagreement", "Launch", "Native", "Operation", "Report", "Source"]
__all__ += ["check", "lane_by_lane", "leading", "primitive"]

__dir__ = _names(globals())
