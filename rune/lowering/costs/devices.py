"""Which record describes a target: the one named in its driver's description, or a similar one.

A device that is not in the table counts as a similar one of its kind (a CUDA device as an H100,
say), with as many units as its driver reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rune import dtypes
from rune.lowering.codegen.target import Target
from rune.lowering.costs.records import DeviceRecord
from rune.lowering.costs.table import (
    A100,
    ADRENO_740,
    APPLE_M1,
    ARC_A770,
    H100,
    IRIS_XE,
    L4,
    MALI_G710,
    MI300X,
    PROCESSOR,
    RTX_4090,
    RX_7900_XTX,
)

# Words of drivers' descriptions, in lower case; the first match counts.
_WORDS: Mapping[str, DeviceRecord] = {
    "h100": H100,
    "h200": H100,
    "a100": A100,
    "nvidia l40": RTX_4090,  # and the L40S: both are AD102, as the RTX 4090 is
    "nvidia l4": L4,
    "rtx": RTX_4090,
    "geforce": RTX_4090,
    "mi300": MI300X,
    "gfx94": MI300X,
    "gfx9": MI300X,
    "radeon": RX_7900_XTX,
    "gfx": RX_7900_XTX,
    "arc": ARC_A770,
    "iris": IRIS_XE,
    "intel": IRIS_XE,
    "apple": APPLE_M1,
    "adreno": ADRENO_740,
    "mali": MALI_G710,
    "nvidia": A100,
}
_LANGUAGES: Mapping[str, DeviceRecord] = {"cuda": H100, "llvm": PROCESSOR}
_PLAIN = IRIS_XE  # for an unknown GPU, which is more likely a small one
# Their drivers report the number of units; for all others, `cores` is a guess.
_COUNTED = frozenset({"cuda", "llvm", "opencl"})


def record_of(target: Target) -> DeviceRecord:
    """The table's record for a device.

    A processor has as many units as cores, and the operations that fit its vectors.
    """
    if target.language == "llvm" or target.is_processor:
        return _processor(target)
    words = target.description.lower()
    record = next((r for word, r in _WORDS.items() if word in words), _LANGUAGES.get(target.language, _PLAIN))
    return replace(record, units=target.cores) if target.language in _COUNTED else record


def _processor(target: Target) -> DeviceRecord:
    lanes = max(1, target.vector_bytes // 4) / 16
    narrow = dtypes.f16, dtypes.bf16
    operations = {d: n if d in narrow else n * lanes for d, n in PROCESSOR.operations.items()}
    # Memory and the last cache serve all cores: more cores do not make them faster.
    caches = tuple(c if c.is_shared else replace(c, rate=c.rate * target.cores) for c in PROCESSOR.caches)
    # Vectors of 64 bytes came with twice as many registers.
    vectors = PROCESSOR.thread_registers if lanes >= 1 else PROCESSOR.thread_registers // 2
    return replace(PROCESSOR, units=target.cores, operations=operations, caches=caches, thread_registers=vectors)


__all__ = ["record_of"]
