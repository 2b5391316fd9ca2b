"""Targets of GPUs that need not be present."""

from __future__ import annotations

from rune.backends.cuda.devices import native
from rune.lowering.codegen.c.cuda import CUDA_C
from rune.lowering.codegen.target import Target

H100 = Target(
    "cuda:0", "cuda", "cuda", "H100", frozenset(CUDA_C.scalars), 16, 132, 1024, 227 << 10, 1024, frozenset(),
    native=native(90),
)  # fmt: skip
