"""Python functions that plans of the CPU call: users' functions, and references of primitives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rune.backends.cpu.meanings import meaning
from rune.backends.shared.callbacks import Callbacks
from rune.core.types import ArrayType
from rune.lowering.host_calls import HostFunction, LibraryCall
from rune.lowering.plan import Call
from rune.records import dataclass


class CpuCallbacks(Callbacks):
    """The functions of one plan."""

    def called(self, step: Call) -> HostFunction:
        """The function that a step calls. Its results are bitwise those of an eager call."""
        function = super().called(step)
        call = function.call
        return replace(function, call=_Meant(call)) if isinstance(call, LibraryCall) else function


@dataclass(frozen=True, slots=True)
class _Meant:
    """A library call by the function that eager calls use."""

    call: LibraryCall

    def __call__(self, arrays: Sequence[np.ndarray], types: Sequence[ArrayType]) -> list[np.ndarray]:
        return self.call.by(meaning(self.call.primitive), arrays, types)

    def __str__(self) -> str:
        return str(self.call)
