"""The C interface of libnccl, as far as rune uses it.

A call that NCCL refuses raises `Refused` with NCCL's message. Calls for several devices form a
group, which NCCL starts as one.

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
# Sums computed in NVLink's switches (NVLS) may differ from call to call, according to NCCL's
# maintainers (NVIDIA/nccl, issue 1497). A variable that the user has set is not changed.
_SAME_EVERY_TIME = ("NCCL_NVLS_ENABLE", "0")


class Result(IntEnum):
    """ncclResult_t, without its errors, which ncclGetErrorString describes."""

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
# By function: the type of its result, then those of its parameters.
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
    """The functions of a libnccl. error_text: its ncclGetErrorString. path: of the file."""

    def __init__(self, functions: Mapping[str, Callable[..., int]], error_text: Callable[[int], bytes], path: str):
        self.functions, self.path = functions, path
        self._error_text = error_text

    def call(self, name: str, *arguments: object) -> None:
        """Call a function. Errors: Refused."""
        code = self.functions[name](*arguments)
        if code != Result.SUCCESS:
            raise Refused(f"{name}: {self.text(code)}")

    def text(self, code: int) -> str:
        """NCCL's description of an ncclResult_t."""
        return self._error_text(code).decode()

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Calls inside the block start together at its end."""
        self.call("ncclGroupStart")
        try:
            yield
        except BaseException:
            # The group must be ended, or later calls would join it. The first error says more.
            self.functions["ncclGroupEnd"]()
            raise
        self.call("ncclGroupEnd")

    @functools.cached_property
    def version(self) -> int:
        """NCCL's version as a number: 23203 is 2.32.3."""
        number = c_int()
        self.call("ncclGetVersion", ctypes.byref(number))
        return number.value

    def __str__(self) -> str:
        n = self.version
        return f"NCCL {n // 10000}.{n // 100 % 100}.{n % 100} ({self.path})"


def _load() -> Library:
    """The installed library. Errors: those of finding and loading it."""
    path = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nccl").abs_path
    os.environ.setdefault(*_SAME_EVERY_TIME)
    dll = ctypes.CDLL(path)
    functions = {name: ctypes.CFUNCTYPE(*types)((name, dll)) for name, types in SIGNATURES.items()}
    error_text = ctypes.CFUNCTYPE(c_char_p, c_int)(("ncclGetErrorString", dll))
    return Library(functions, error_text, path)


_lock = locks.lock()


@functools.cache
def _search() -> Library | str:
    try:
        library = _load()
        if library.version < OLDEST:
            return f"{library} is older than 2.10"
    except Exception as error:  # finding and loading a library may fail in any way: it is reported
        # The message may be empty.
        return f"libnccl cannot be loaded ({': '.join([type(error).__name__, *str(error).splitlines()[:1]])})"
    return library


def find() -> Library | str:
    """The library, loaded on first use, or the reason why there is none."""
    # `functools.cache` alone would let two threads load it at once.
    with _lock:
        return _search()
