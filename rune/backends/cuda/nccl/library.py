"""The C interface of libnccl, as far as rune calls it.

A call that NCCL refuses is a `Refused` with its own words. Calls for several devices stand in a
group, which NCCL starts as a whole.

Source: nccl.h of NCCL 2.32 and the NCCL user guide, "API" and "Types". The numbers below are part
of the binary interface, and the same in every release from 2.10 on.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from enum import IntEnum
from importlib import import_module

from rune import locks

OLDEST = 21000  # 2.10, the first that adds up bf16
# Sums in the switches of NVLink (NVLS) may differ from call to call, as NCCL's maintainers say
# (NVIDIA/nccl, issue 1497). Who sets the variable decides otherwise.
_SAME_EVERY_TIME = ("NCCL_NVLS_ENABLE", "0")


class Result(IntEnum):
    """ncclResult_t: what a call answers, but for the errors, which have a text."""

    SUCCESS = 0
    IN_PROGRESS = 7


class DataType(IntEnum):
    """ncclDataType_t."""

    INT8 = 0
    UINT8 = 1
    INT32 = 2
    UINT32 = 3
    INT64 = 4
    UINT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9


class Operation(IntEnum):
    """ncclRedOp_t."""

    SUM = 0
    MAX = 2
    MIN = 3


_PEER = (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p)  # buffer, count, dtype, peer, comm, stream
# Of each function the type of its result, then those of its parameters.
SIGNATURES = {
    "ncclGetVersion": (c_int, POINTER(c_int)),
    "ncclCommInitAll": (c_int, POINTER(c_void_p), c_int, POINTER(c_int)),
    "ncclCommAbort": (c_int, c_void_p),
    "ncclCommGetAsyncError": (c_int, c_void_p, POINTER(c_int)),
    "ncclGroupStart": (c_int,),
    "ncclGroupEnd": (c_int,),
    "ncclAllReduce": (c_int, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclReduceScatter": (c_int, c_void_p, c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclAllGather": (c_int, c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_void_p),
    "ncclSend": (c_int, *_PEER),
    "ncclRecv": (c_int, *_PEER),
}


class Refused(Exception):
    """NCCL has refused a call."""


class Library:
    """The functions of a libnccl. error_text: its ncclGetErrorString. path: where it is."""

    def __init__(self, functions: Mapping[str, Callable[..., int]], error_text: Callable[[int], bytes], path: str):
        self.functions, self.path = functions, path
        self._error_text = error_text

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Errors: Refused."""
        code = self.functions[name](*arguments)
        if code != Result.SUCCESS:
            raise Refused(f"{name}: {self.text(code)}")

    def text(self, code: int) -> str:
        """What a code of ncclResult_t means."""
        return self._error_text(code).decode()

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """All calls within are started as one, at the end."""
        self.call("ncclGroupStart")
        try:
            yield
        except BaseException:
            self.functions["ncclGroupEnd"]()  # the group has to be left; the first error says more
            raise
        self.call("ncclGroupEnd")

    @functools.cached_property
    def version(self) -> int:
        """2.32.3 is 23203."""
        number = c_int()
        self.call("ncclGetVersion", ctypes.byref(number))
        return number.value

    def __str__(self) -> str:
        n = self.version
        return f"NCCL {n // 10000}.{n // 100 % 100}.{n % 100} ({self.path})"


def _load() -> Library:
    """The library on this machine. Errors: whatever finding and loading it raises."""
    path = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nccl").abs_path
    os.environ.setdefault(*_SAME_EVERY_TIME)
    loaded = ctypes.CDLL(path)
    functions = {name: ctypes.CFUNCTYPE(*types)((name, loaded)) for name, types in SIGNATURES.items()}
    error_text = ctypes.CFUNCTYPE(c_char_p, c_int)(("ncclGetErrorString", loaded))
    return Library(functions, error_text, path)


_lock = locks.lock()


@functools.cache
def _search() -> Library | str:
    try:
        library = _load()
        if library.version < OLDEST:
            return f"{library} is older than 2.10"
    except Exception as error:  # finding and loading a library may fail in any way: it is reported
        return f"libnccl cannot be loaded ({type(error).__name__}: {str(error).splitlines()[0]})"
    return library


def find() -> Library | str:
    """The library, loaded on first use, or why there is none."""
    with _lock:
        return _search()
