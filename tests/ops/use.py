"""Uses of library primitives: operands, and the part of the results that is determined.

The elements of a factorisation are not unique: signs and phases are free. So a use says what to
compare, `observe(outputs, *inputs)` in rune.numpy (Q R, Qᵀ Q, what lies below R's diagonal), and
what that has to be, `expected(*inputs)` by NumPy or SciPy. Where all is determined the two are the
results.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import rune.numpy as rnp
from rune import dtypes
from rune.core.primitive import Primitive
from tests.ops.calls import Operand
from tests.support.arrays import array

NARROW = {dtypes.f64: dtypes.f32, dtypes.c128: dtypes.c64}


def outputs_as_they_are(outputs: Sequence[Any], *inputs: Any) -> Sequence[Any]:
    """All of the results, where they are determined."""
    return outputs


@dataclass(frozen=True)
class Use:
    """A call of a library primitive.

    prepare:  what the primitive is called on, a differentiable function of what is drawn (a
              symmetric matrix, a triangle)
    limit:    the tolerance in steps of the dtype, of elements of about 1
    smooth:   whether `observe` has derivatives where `operands` are drawn
    """

    primitive: Primitive
    operands: tuple[Operand, ...]
    expected: Callable[..., Sequence[Any]]
    observe: Callable[..., Sequence[Any]] = outputs_as_they_are
    params: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[..., Sequence[Any]] = lambda *inputs: inputs
    limit: float = 200.0
    smooth: bool = True

    def __str__(self) -> str:
        types = ", ".join(str(o.type) for o in self.operands)
        return f"{self.primitive.name}({types}) {dict(self.params)}"

    def draw(self, *lanes: int, narrow: bool = False) -> list[Any]:
        """Arrays as they are drawn, in f64 and c128 or in f32 and c64."""
        rng = np.random.default_rng(zlib.crc32(str(self).encode()))
        values = [o.draw(rng, *lanes) for o in self.operands]
        return [array(d.astype(NARROW.get(d.dtype, d.dtype)) if narrow else d) for d in values]

    def observed(self, *operands: Any) -> list[Any]:
        """The observed outputs, as a function of the drawn operands."""
        inputs = self.prepare(*operands)
        results = self.primitive(*inputs, **self.params)
        outputs = results if self.primitive.multiple_results else [results]
        return list(self.observe(outputs, *inputs))

    def truth(self, *operands: Any) -> list[np.ndarray]:
        """The expected value."""
        return [np.asarray(x) for x in self.expected(*map(np.asarray, self.prepare(*operands)))]

    def tolerance(self, narrow: bool) -> float:
        """For elements of about 1."""
        return self.limit * float(np.finfo(np.float32 if narrow else np.float64).eps)

    def of_reals(self) -> tuple[Callable[..., Any], list[Any]]:
        """All observed outputs in one array, as a function of the differentiable operands."""
        operands = self.draw()
        active = [k for k, o in enumerate(self.operands) if o.dtype in dtypes.INEXACT]

        def function(*values: Any) -> Any:
            full = dict(enumerate(operands)) | dict(zip(active, values, strict=True))
            outs = [x for x in self.observed(*full.values()) if x.dtype in dtypes.INEXACT]
            return rnp.concatenate([rnp.ravel(x) for x in outs])

        return function, [operands[k] for k in active]
