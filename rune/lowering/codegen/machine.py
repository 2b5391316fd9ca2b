"""What the LLVM IR renderer needs to know of a processor, and its dtypes: pure data."""

from __future__ import annotations

from rune import dtypes
from rune.records import dataclass

_FLOATS = (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64)
SUPPORTED = frozenset({dtypes.bool_, *(dtypes.INTEGER - {dtypes.i4, dtypes.u4}), *_FLOATS})  # that have a rendering


@dataclass(frozen=True, slots=True)
class Machine:
    """What the renderer must know of the processor."""

    vector_bytes: int
    has_cheap_masks: bool  # masked loads and stores of any element cost no more than plain ones
    scalef: frozenset[str] = frozenset()  # vector types that one instruction scales by 2ⁿ
    waits_for_denormals: bool = False  # operations on denormal numbers take a hundred times as long
