"""Code for processors with narrower vectors than the host's, which the host also runs.

    RUNE_TEST_PROCESSOR=avx2 ./scripts/test tests/laws

Everything is taken from the record of the processor: what LLVM may use, the lanes of a vector,
the registers of the matrix product, whether there are masks, fused products, halves.
"""

from __future__ import annotations

from rune.backends.cpu import compiler
from rune.backends.cpu.compiler import Processor

_V3 = "+avx,+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.1,+sse4.2"
_V4 = f"{_V3},+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl"
PROCESSORS = {
    "sse2": Processor("x86-64", "+sse2"),
    "sse4": Processor("x86-64-v2", "+popcnt,+sse4.1,+sse4.2"),
    "avx2": Processor("x86-64-v3", _V3),
    "avx512": Processor("x86-64-v4", _V4),
}
VECTOR_BYTES = {"sse2": 16, "sse4": 16, "avx2": 32, "avx512": 64}


def runs_here(name: str) -> bool:
    """Whether the host has all features of this processor."""
    names = [word[1:] for word in PROCESSORS[name].features.split(",")]
    features = compiler.features()
    return all(features.get(feature) for feature in names)


def compile_for(name: str) -> None:
    """Compile for this processor from now on; nothing may have been compiled before."""
    processor = PROCESSORS[name]
    compiler.host = lambda: processor
    for query in (compiler.features, compiler.machine, compiler.attributes):
        query.cache_clear()
    assert compiler.machine().vector_bytes == VECTOR_BYTES[name]
