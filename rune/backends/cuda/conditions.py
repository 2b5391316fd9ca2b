"""Kernels that set the conditions of graphs: a separate program, which a driver may refuse.

They call a function of the driver (`cudaGraphSetConditional`). PTX declares it, and the driver's
own compiler resolves it; in machine code it is an undefined symbol, which not every driver is known
to resolve. So PTX is tried first, then machine code, for drivers older than NVRTC's PTX. Where
neither loads, the host walks loops and branches (graph.py, `needs_host`).
"""

from __future__ import annotations

from collections.abc import Callable

from rune.backends.cuda.kernels import CONDITIONS
from rune.backends.cuda.launch import Program
from rune.errors import DeviceError

SINCE = (12, 4)  # the first version of CUDA with conditions, for the driver and for NVRTC


def load(build: Callable[[str, str, str], Program], architecture: str, oldest: tuple[int, int]) -> Program | str:
    """The program, or the reason why there is none.

    build:  makes a program from its source, name and architecture
    oldest: the version of the driver or of NVRTC, whichever is older
    """
    if oldest < SINCE:
        return "CUDA {}.{} has none, 12.4 does".format(*oldest)
    # PTX for sm_90a would load on no later device, and these kernels need none of its instructions.
    refusals, plain = [], architecture.rstrip("a")
    for code in dict.fromkeys((f"compute_{plain.partition('_')[2]}", plain)):
        try:
            return build(CONDITIONS, "conditions of graphs", code)
        except DeviceError as error:
            refusals.append(f"{code}: {error}")
    return "; ".join(refusals)
