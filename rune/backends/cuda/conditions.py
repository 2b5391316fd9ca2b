"""Kernels that set the conditions of graphs: a program of their own, which may be missing.

They call a function that the driver has (`cudaGraphSetConditional`). In PTX it is declared, and the
driver's own compiler resolves it; machine code has it as a symbol that is undefined, which not
every driver is known to resolve. So PTX comes first, and machine code where a driver is older than
NVRTC's PTX. Where neither loads, the host walks loops and branches (graph.py, `needs_host`).
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cuda.kernels import CONDITIONS
from rune.backends.cuda.launch import Program
from rune.errors import DeviceError

SINCE = (12, 4)  # the version of CUDA: of the driver, and of NVRTC


def load(build: Callable[[str, str, str], Program], architecture: str, oldest: tuple[int, int]) -> Program | str:
    """The program, or why there is none.

    build:  a program from its source, name and architecture
    oldest: the version of the driver or of NVRTC, whichever is older
    """
    if oldest < SINCE:
        return "CUDA {}.{} has none, 12.4 does".format(*oldest)
    refusals, plain = [], architecture.rstrip("a")  # nothing here is of one architecture alone
    for code in dict.fromkeys((f"compute_{plain.partition('_')[2]}", plain)):
        try:
            return build(CONDITIONS, "conditions of graphs", code)
        except DeviceError as error:
            refusals.append(f"{code}: {error}")
    return "; ".join(refusals)
