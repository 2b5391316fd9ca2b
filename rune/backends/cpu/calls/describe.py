"""Cached calls made by native code: their description as words, and the method that makes them.

    NativeCall       one kind of call, as data: its arguments, its code, its results
    record_of(call)  the same for native code: (words, call); the call keeps their objects alive
    method(...)      of a class: tries the recorded calls of an instance, then a Python function
                     (operators.py has those of arrays' operators)

The code (call.py, match.py, results.py) is compiled once per process. It reads the memory of
Python's and NumPy's objects, so `host()` checks each offset against real objects. There is no
method if one of them differs from the known one, or if threads run without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
import sys
import sysconfig
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from enum import IntEnum
from typing import Any

import numpy as np

from rune.backends.cpu import compiler, conventions, host_abi
from rune.backends.cpu.calls import call, match, results
from rune.backends.cpu.calls.code import Code, Memory
from rune.backends.cpu.calls.process import Process
from rune.lowering.codegen.llvm.ir.names import pointer_to
from rune.records import dataclass

MOST_NODES = 4096  # of one call: native code keeps them on the stack
_NEW_FROM_DESCR = 94  # PyArray_NewFromDescr's index in NumPy's table of functions, part of its ABI

CallRecord = tuple[bytes, "NativeCall"]


class Fetch(IntEnum):
    """How native code gets a node of the arguments."""

    ARGUMENT, TUPLE, LIST, DICT, CONSTANT = range(5)


class Check(IntEnum):
    """The check of a node. From ARRAY on nodes are leaves, the last two in a device's memory.

    DONATED is an ARRAY that the call deletes.
    """

    SAME, SEQUENCE, DICT, ARRAY, DONATED, NUMPY, FLOAT, INT, BOOL, PLACED, COPIED = range(11)


class Build(IntEnum):
    """How native code builds a node of the result."""

    LEAF, NONE, TUPLE, LIST, DICT = range(5)


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the arguments: item `key` of node `parent`, and its check.

    expected: the object for SAME, the type for rune's arrays, the length for containers
    extra:    the class for SEQUENCE, Memory for arrays of the CPU, bytes for numbers, the place for
              PLACED, the device of the copy for COPIED
    """

    fetch: Fetch
    parent: int
    key: Any
    check: Check
    expected: Any = 0
    extra: Any = 0


@dataclass(frozen=True, slots=True)
class Result:
    """One result: its type, its memory, and a maker if NumPy's allocator should not be used.

    memory: None for memory of a device
    lender: the leaf, a donated array, whose memory it takes if nothing else refers to that
    """

    type: object
    memory: Memory | None = None
    maker: Callable[[], np.ndarray] | None = None
    lender: int | None = None


@dataclass(frozen=True, slots=True)
class Player:
    """Runs a plan on a device: a Python function from the arguments' buffers to the results'.

    It returns None, having done nothing, if the general call has to be made.
    """

    play: Callable[..., tuple[object, ...] | None]


@dataclass(frozen=True, slots=True)
class NativeCall:
    """One kind of call: its arguments, its code, and its results."""

    config: object
    positional: int
    names: tuple[str, ...]
    nodes: tuple[Node, ...]
    place: object  # of results, unless an argument is committed to a device
    results: tuple[Result, ...]
    build: tuple[tuple[Build, int, tuple[str, ...] | None], ...]  # children before their parents
    finish: Callable[[list[Any]], Any] | None  # builds the tree if `build` cannot
    code: Code | Player
    runs: array[int]  # counts all runs, in its first word


_HEAD = """
    CONFIG POSITIONAL NAMES NAMES_AT NODES NODES_AT INPUTS RESULTS RESULTS_AT ARENA_BYTES ARENAS ARENA_MAKER
    SIZES SIZES_AT FUNCTION PLAYER IS_BRIEF PLACE DONATED DONATED_AT BUILD BUILD_AT FINISH SUBMITTED FINISHED
    RUNS
""".split()


def record_of(call: NativeCall) -> CallRecord:
    """The words of a call, with the call."""
    # Objects are words with their ids, which stay valid because the record holds the call too.
    tables: list[int] = []
    base = len(_HEAD)

    def at(words: Sequence[int]) -> int:
        tables.extend(words)
        return base + len(tables) - len(words)

    def memory(m: Memory) -> int:
        return at([id(m.dtype), len(m.shape), *m.shape])

    def node(n: Node) -> list[int]:
        key = n.key if n.fetch < Fetch.DICT else id(n.key)
        expected = id(n.expected) if n.check in _EXPECTED_BY_ID else n.expected
        extra = memory(n.extra) if isinstance(n.extra, Memory) else n.extra
        return [n.fetch, n.parent, key, n.check, expected, id(extra) if n.check in _EXTRA_BY_ID else extra]

    leaves = [number for number, n in enumerate(call.nodes) if n.check >= Check.ARRAY]

    def result(r: Result) -> list[int]:
        at_table = 0 if r.memory is None else memory(r.memory)
        lender = [0, 0] if r.lender is None else [leaves[r.lender] + 1, r.lender]
        return [id(r.type), _id_or_0(r.maker), at_table, *lender]

    nodes = [word for n in call.nodes for word in node(n)]
    donated_nodes = [number for number, n in enumerate(call.nodes) if n.check is Check.DONATED]
    results = [word for r in call.results for word in result(r)]
    build = [word for op, n, keys in call.build for word in (op, n, _id_or_0(keys))]
    head = {
        "CONFIG": id(call.config),
        "POSITIONAL": call.positional,
        "PLACE": id(call.place),
        "NAMES": len(call.names),
        "NAMES_AT": at([*map(id, call.names)]),
        "NODES": len(call.nodes),
        "NODES_AT": at(nodes),
        "INPUTS": len(leaves),
        "RESULTS": len(call.results),
        "RESULTS_AT": at(results),
        "DONATED": len(donated_nodes),
        "DONATED_AT": at(donated_nodes),
        "BUILD": len(call.build),
        "BUILD_AT": at(build),
        "FINISH": _id_or_0(call.finish),
        "RUNS": call.runs.buffer_info()[0],
    }
    if isinstance(call.code, Player):
        head["PLAYER"] = id(call.code.play)
    else:
        head |= {"SIZES_AT": at(call.code.sizes), **_code_words(call.code)}
    words = [head.get(name, 0) for name in _HEAD] + tables
    return struct.pack(f"{len(words)}q", *words), call


_EXPECTED_BY_ID = (Check.SAME, Check.ARRAY, Check.DONATED, Check.PLACED, Check.COPIED)
_EXTRA_BY_ID = (Check.SEQUENCE, Check.PLACED, Check.COPIED)


def _code_words(code: Code) -> dict[str, int]:
    """The words of the machine code."""
    return {
        "ARENA_BYTES": code.arena_bytes,
        "ARENAS": id(code.arenas),
        "ARENA_MAKER": id(code.arena_maker),
        "SIZES": len(code.sizes),
        "FUNCTION": code.function,
        "IS_BRIEF": code.is_brief,
        "SUBMITTED": code.counters[0],
        "FINISHED": code.counters[1],
    }


def _id_or_0(x: object) -> int:
    return 0 if x is None else id(x)


# --- the method -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owner:
    """The class that gets the method, and rune's objects as the method needs them."""

    cls: type
    calls: str  # the slot of an instance that holds a tuple of Kept
    general: Callable[..., object]  # makes every other call
    array: type  # of arrays, with slots _buffer, _copy, type, place
    place: type  # of places, with slots device, committed
    free: object
    committed: object
    interpreter: ContextVar[Any]
    outermost: object
    config: ContextVar[Any]
    scope: type  # of that variable's value, with a slot `settings`, which may be unset


@dataclass(frozen=True, slots=True)
class CallCode:
    """The code that makes cached calls, and the process as it sees it."""

    code: compiler.Code
    process: Process


@functools.cache
def code_of(owner: Owner) -> CallCode | None:
    """The code for an owner; None if this interpreter is not a known one.

    Errors: CompileError.
    """
    known = host()
    slots = _slots(owner)
    if known is None or slots is None:
        return None
    process = Process({**known.pointers, **_objects(owner)}, {**_CODES, **known.numbers, **slots})
    text = "\n\n".join(part.text(process) for part in (call, match, results))
    # Compiled in each process, and with full effort, which takes three times as long, no faster.
    code = compiler.compile_module("call", text, conventions.LITTLE)
    compiler.LASTING.append(code)  # finalisers may call jitted functions until the process ends
    return CallCode(code, process)


def method(owner: Owner) -> object:
    """The method `__call__` of the class; None if this interpreter is not a known one.

    Errors: CompileError.
    """
    known = code_of(owner)
    if known is None:
        return None
    # `inspect.signature` parses the first lines of a built-in method's docstring.
    text_signature = "__call__($self, /, *args, **kwargs)\n--\n\n"
    document = text_signature + (owner.general.__doc__ or "")
    address, flags = known.code.address("call"), _METH_FASTCALL | _METH_KEYWORDS
    return new_method(owner.cls, "__call__", address, flags, document)


def new_method(cls: type, name: str, address: int, flags: int, document: str) -> Callable[..., object]:
    """A method of a class over native code that is never freed."""
    definition = host_abi.MethodDefinition(name.encode(), address, flags, document.encode())
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    # A method descriptor: the interpreter calls it without making a bound method.
    make = ctypes.pythonapi.PyDescr_NewMethod
    make.restype, make.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.c_void_p)
    return make(cls, ctypes.addressof(definition))


_METH_FASTCALL, _METH_KEYWORDS = 0x0080, 0x0002

_CODES = {
    **{f"W_{name}": number for number, name in enumerate(_HEAD)},
    **{f"F_{f.name}": int(f) for f in Fetch},
    **{f"C_{c.name}": int(c) for c in Check},
    **{f"B_{b.name}": int(b) for b in Build},
}
_FUNCTIONS = {
    "INCREF": "Py_IncRef",
    "DECREF": "Py_DecRef",
    "GET_VARIABLE": "PyContextVar_Get",
    "CLEAR_ERROR": "PyErr_Clear",
    "ERROR": "PyErr_Occurred",
    "ERROR_MATCHES": "PyErr_ExceptionMatches",
    "VECTORCALL": "PyObject_Vectorcall",
    "CALL_NO_ARGS": "PyObject_CallNoArgs",
    "CALL_ONE_ARG": "PyObject_CallOneArg",
    "GENERIC_ALLOC": "PyType_GenericAlloc",
    "SAVE_THREAD": "PyEval_SaveThread",
    "RESTORE_THREAD": "PyEval_RestoreThread",
    "FLOAT_VALUE": "PyFloat_AsDouble",
    "INT_VALUE": "PyLong_AsLongLongAndOverflow",
    "TUPLE_NEW": "PyTuple_New",
    "TUPLE_SET": "PyTuple_SetItem",
    "LIST_NEW": "PyList_New",
    "LIST_SET": "PyList_SetItem",
    "LIST_ITEM": "PyList_GetItem",
    "LIST_APPEND": "PyList_Append",
    "LIST_SET_SLICE": "PyList_SetSlice",
    "DICT_NEW": "PyDict_New",
    "DICT_SET": "PyDict_SetItem",
    "DICT_ITEM": "PyDict_GetItemWithError",
    "DICT_SIZE": "PyDict_Size",
    "METHOD_NEW": "PyMethod_New",
    "NEXT": "PyIter_Next",
    "ATTRIBUTE": "PyObject_GetAttr",
    "SET_ATTRIBUTE": "PyObject_SetAttr",
    "CALL_METHOD": "PyObject_VectorcallMethod",
    "IS_CALLABLE": "PyCallable_Check",
    "THREAD": "PyThread_get_thread_ident",
    "INT": "PyLong_FromUnsignedLongLong",
    "INT_BITS": "PyLong_AsUnsignedLongLongMask",
    "FETCH_ERROR": "PyErr_Fetch",
    "RESTORE_ERROR": "PyErr_Restore",
}


def _objects(owner: Owner) -> dict[str, str]:
    """Pointers to objects, by word."""
    objects = {
        "GENERAL": owner.general,
        "ARRAY_TYPE": owner.array,
        "FREE": owner.free,
        "COMMITTED": owner.committed,
        "INTERPRETER_VARIABLE": owner.interpreter,
        "OUTERMOST": owner.outermost,
        "CONFIG_VARIABLE": owner.config,
        "NONE": None,
        "TRUE": True,
        "DICT_TYPE": dict,
        "EXCEPTION": Exception,
        "MEMORY_ERROR": MemoryError,
        "FLOAT_TYPE": float,
        "INT_TYPE": int,
        "BOOL_TYPE": bool,
        "NDARRAY": np.ndarray,
    }
    return {word: pointer_to(id(x)) for word, x in objects.items()}


def _slots(owner: Owner) -> dict[str, int] | None:
    """Byte offsets of slots."""
    names = {"BUFFER": "_buffer", "COPY": "_copy", "TYPE": "type", "PLACE": "place"}
    offsets = {f"SLOT_{word}": slot_offset(owner.array, name) for word, name in names.items()}
    offsets |= {f"SLOT_{name.upper()}": slot_offset(owner.place, name) for name in ("device", "committed")}
    offsets["SLOT_CALLS"] = slot_offset(owner.cls, owner.calls)
    offsets["SLOT_SETTINGS"] = slot_offset(owner.scope, "settings")
    known = {word: offset for word, offset in offsets.items() if offset is not None}
    return known if len(known) == len(offsets) else None


def slot_offset(cls: type, name: str) -> int | None:
    """The byte offset of a slot in an instance, found by looking for a mark that is put there."""
    instance, mark = object.__new__(cls), object()
    object.__setattr__(instance, name, mark)  # works for frozen classes too
    offsets = range(object.__basicsize__, cls.__basicsize__, 8)
    matches = [k for k in offsets if _word(id(instance) + k) == id(mark)]
    return matches[0] if len(matches) == 1 else None


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


@functools.cache
def host() -> Process | None:
    """Functions and offsets of this process; None if they are not the known ones."""
    abi, make = host_abi.abi(), _new_from_descr()
    is_locked = not sysconfig.get_config_var("Py_GIL_DISABLED")
    is_known = sys.implementation.name == "cpython" and is_locked and _is_layout_known()
    if abi is None or make is None or not is_known:
        return None
    try:
        functions = {w: getattr(ctypes.pythonapi, name) for w, name in _FUNCTIONS.items()}
    except AttributeError:
        return None
    pointers = {w: pointer_to(host_abi.address_of(f)) for w, f in functions.items()}
    numbers = {
        "SIZE": object.__basicsize__,
        "TUPLE_ITEMS": tuple.__basicsize__,
        # The basic size of bytes includes the NUL at their end.
        "BYTES_DATA": bytes.__basicsize__ - 1,
        "TYPE": abi.type,
        "DATA": abi.data,
        "NDIM": abi.ndim,
        "SHAPE": abi.shape,
        "DESCR": abi.descr,
        "BASE": abi.base,
        "FLAGS": abi.flags,
        "REQUIRED_FLAGS": abi.required_flags,
        "WRITEABLE": host_abi.WRITEABLE,
        "REFERENCES": 0,
    }
    return Process({**pointers, "NEW_FROM_DESCR": pointer_to(make)}, numbers)


def _is_layout_known() -> bool:
    """Whether tuples, lists, deques, bytes and reference counts have the layout that native code
    reads."""
    marks = object(), object(), object()
    list_of_marks = [*marks, None]
    size, items = object.__basicsize__, tuple.__basicsize__
    text = bytes(range(7, 19))
    address = id(text) + bytes.__basicsize__ - 1
    alone, busy = object(), object()
    others = [busy] * 5
    queue = deque(marks)
    return (
        [_word(id(marks) + items + 8 * k) for k in range(3)] == [*map(id, marks)]
        and _word(id(marks) + size) == 3
        and _word(id(list_of_marks) + size) == 4
        and _word(length_at(queue)) == 3
        and ctypes.string_at(address, len(text)) == text
        and _references(busy) == _references(alone) + len(others)
    )


def length_at(queue: deque[Any]) -> int:
    """The address of a deque's length."""
    return id(queue) + object.__basicsize__


def _references(value: object) -> int:
    """The reference count of an object, read from its first word."""
    # Only 32 bits: from Python 3.14 on the upper half has flags.
    return ctypes.c_uint32.from_address(id(value)).value


def _new_from_descr() -> int | None:
    """The address of NumPy's PyArray_NewFromDescr; None if a trial of it fails."""
    try:
        core = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:
        # Its name before NumPy 2.
        core = importlib.import_module("numpy.core._multiarray_umath")
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = pointer(core._ARRAY_API, None)
    address = _word(table + 8 * _NEW_FROM_DESCR)
    make = ctypes.PYFUNCTYPE(
        ctypes.py_object,
        ctypes.py_object,
        ctypes.py_object,
        ctypes.c_int,
        *[ctypes.c_void_p] * 3,
        ctypes.c_int,
        ctypes.c_void_p,
    )(address)
    dtype, shape = np.dtype(np.int16), (ctypes.c_ssize_t * 2)(3, 5)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))  # the function takes a reference
    trial = make(np.ndarray, dtype, 2, ctypes.addressof(shape), None, None, 0, None)
    return address if trial.shape == (3, 5) and trial.dtype is dtype else None
