"""Arrays between guards: NumPy's own hook for allocators, in native code.

    CANARIES   every array ends at its block's end, bytes around it are known, and looked at when it
               is freed: a write beside an array is noticed, unless it wrote the same bytes
    AFTER      every array ends where an inaccessible page begins: a read or write past its end
               ends the process at once
    BEFORE     every array begins behind such a page

Results, arguments and arenas of the CPU executor are NumPy arrays, of the host's memory of other
executors as well. NumPy's handler belongs to a context: threads that a test starts have NumPy's.
"""

from __future__ import annotations

import ctypes
import importlib
from enum import Enum
from typing import Any

from rune.backends.cpu import compiler

PAGE, CANARY, MARK = 4096, 64, 0xA5


class Guards(Enum):
    """The guards around arrays."""

    NONE = "none"
    CANARIES = "canaries"
    AFTER = "after"
    BEFORE = "before"


_COMMON = """
@damaged = global i64 0
@last_size = global i64 0

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @mark(ptr %begin, ptr %end) {
  %a = ptrtoint ptr %begin to i64
  %b = ptrtoint ptr %end to i64
  %count = sub i64 %b, %a
  call void @llvm.memset.p0.i64(ptr %begin, i8 MARK, i64 %count, i1 false)
  ret void
}

; Count a block of which a byte between begin and end is no longer as it was.
define internal void @look(ptr %begin, ptr %end, i64 %size) {
entry:
  br label %head
head:
  %at = phi ptr [ %begin, %entry ], [ %next, %step ]
  %more = icmp ult ptr %at, %end
  br i1 %more, label %step, label %done
step:
  %byte = load i8, ptr %at
  %next = getelementptr i8, ptr %at, i64 1
  %good = icmp eq i8 %byte, MARK
  br i1 %good, label %head, label %bad
bad:
  %count = load i64, ptr @damaged
  %counted = add i64 %count, 1
  store i64 %counted, ptr @damaged
  store i64 %size, ptr @last_size
  br label %done
done:
  ret void
}

define ptr @guarded_malloc(ptr %context, i64 %size) {
  %data = call ptr @take(i64 %size)
  ret ptr %data
}

define ptr @guarded_calloc(ptr %context, i64 %count, i64 %each) {
entry:
  %size = mul i64 %count, %each
  %data = call ptr @take(i64 %size)
  %failed = icmp eq ptr %data, null
  br i1 %failed, label %done, label %clear
clear:
  call void @llvm.memset.p0.i64(ptr %data, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %data
}

define ptr @guarded_realloc(ptr %context, ptr %old, i64 %size) {
entry:
  %new = call ptr @take(i64 %size)
  %failed = icmp eq ptr %new, null
  %fresh = icmp eq ptr %old, null
  %no_copy = or i1 %failed, %fresh
  br i1 %no_copy, label %done, label %copy
copy:
  %base = call ptr @base(ptr %old)
  %before = load i64, ptr %base
  %least = call i64 @llvm.umin.i64(i64 %before, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %old, i64 %least, i1 false)
  call void @leave(ptr %old)
  br label %done
done:
  ret ptr %new
}
declare i64 @llvm.umin.i64(i64, i64)

define void @guarded_free(ptr %context, ptr %data, i64 %size) {
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %free
free:
  call void @leave(ptr %data)
  br label %done
done:
  ret void
}
"""

# A block: its size | base of what was allocated | marks | data, up to a cache line's end | marks.
_CANARIES = """
declare i32 @posix_memalign(ptr, i64, i64)
declare void @free(ptr)

define internal ptr @take(i64 %size) {
entry:
  %slot = alloca ptr
  %negative = sub i64 0, %size
  %slack = and i64 %negative, 63
  %plus = add i64 %size, %slack
  %total = add i64 %plus, 192
  %code = call i32 @posix_memalign(ptr %slot, i64 64, i64 %total)
  %made = icmp eq i32 %code, 0
  br i1 %made, label %fill, label %failed
failed:
  ret ptr null
fill:
  %start = load ptr, ptr %slot
  %front = getelementptr i8, ptr %start, i64 64
  %inside = getelementptr i8, ptr %front, i64 64
  %data = getelementptr i8, ptr %inside, i64 %slack
  %end = getelementptr i8, ptr %data, i64 %size
  %behind = getelementptr i8, ptr %end, i64 64
  store i64 %size, ptr %start
  call void @mark(ptr %front, ptr %data)
  call void @mark(ptr %end, ptr %behind)
  ret ptr %data
}

define internal ptr @base(ptr %data) {
  %number = ptrtoint ptr %data to i64
  %line = and i64 %number, -64
  %base = sub i64 %line, 128
  %pointer = inttoptr i64 %base to ptr
  ret ptr %pointer
}

define internal void @leave(ptr %data) {
  %start = call ptr @base(ptr %data)
  %size = load i64, ptr %start
  %front = getelementptr i8, ptr %start, i64 64
  %end = getelementptr i8, ptr %data, i64 %size
  %behind = getelementptr i8, ptr %end, i64 64
  call void @look(ptr %front, ptr %data, i64 %size)
  call void @look(ptr %end, ptr %behind, i64 %size)
  call void @free(ptr %start)
  ret void
}
"""

# Pages: its size and the bytes of all | nobody's | data, at one end, and marks | nobody's.
_PAGES = """
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @mprotect(ptr, i64, i32)
declare i32 @munmap(ptr, i64)

define internal ptr @take(i64 %size) {
entry:
  %up = add i64 %size, 4095
  %room = and i64 %up, -4096
  %total = add i64 %room, 12288
  %start = call ptr @mmap(ptr null, i64 %total, i32 0, i32 MAP_FLAGS, i32 -1, i64 0)
  %number = ptrtoint ptr %start to i64
  %failed = icmp eq i64 %number, -1
  br i1 %failed, label %none, label %open
none:
  ret ptr null
open:
  %inside = getelementptr i8, ptr %start, i64 8192
  %code = call i32 @mprotect(ptr %start, i64 4096, i32 3)
  %more = call i32 @mprotect(ptr %inside, i64 %room, i32 3)
  %both = or i32 %code, %more
  %opened = icmp eq i32 %both, 0
  br i1 %opened, label %fill, label %close
close:
  %ignored = call i32 @munmap(ptr %start, i64 %total)
  ret ptr null
fill:
  store i64 %size, ptr %start
  %total_at = getelementptr i64, ptr %start, i64 1
  store i64 %total, ptr %total_at
  %slack = sub i64 %room, %size
  %offset = mul i64 %slack, AT_END
  %data = getelementptr i8, ptr %inside, i64 %offset
  %end = getelementptr i8, ptr %data, i64 %size
  %last = getelementptr i8, ptr %inside, i64 %room
  call void @mark(ptr %inside, ptr %data)
  call void @mark(ptr %end, ptr %last)
  ret ptr %data
}

define internal ptr @base(ptr %data) {
  %number = ptrtoint ptr %data to i64
  %page = and i64 %number, -4096
  %base = sub i64 %page, 8192
  %pointer = inttoptr i64 %base to ptr
  ret ptr %pointer
}

define internal void @leave(ptr %data) {
  %start = call ptr @base(ptr %data)
  %size = load i64, ptr %start
  %total_at = getelementptr i64, ptr %start, i64 1
  %total = load i64, ptr %total_at
  %inside = getelementptr i8, ptr %start, i64 8192
  %end = getelementptr i8, ptr %data, i64 %size
  %room = sub i64 %total, 12288
  %last = getelementptr i8, ptr %inside, i64 %room
  call void @look(ptr %inside, ptr %data, i64 %size)
  call void @look(ptr %end, ptr %last, i64 %size)
  %ignored = call i32 @munmap(ptr %start, i64 %total)
  ret void
}
"""
_MAP_FLAGS = 0x22  # private and anonymous, on Linux


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        *((name, ctypes.c_void_p) for name in "context malloc calloc realloc free".split()),
    )


_SET_HANDLER = 304  # its place in NumPy's table of functions, a part of NumPy's ABI


class GuardedMemory:
    """The NumPy allocator of this context from now on; it lives as long as the process."""

    def __init__(self, guards: Guards):
        text = _COMMON + (_CANARIES if guards is Guards.CANARIES else _PAGES)
        words = {"MARK": str(MARK), "MAP_FLAGS": str(_MAP_FLAGS), "AT_END": str(int(guards is Guards.AFTER))}
        for word, value in words.items():
            text = text.replace(word, value)
        self._code = compiler.compile_module("guarded", text)
        names = (f"guarded_{name}" for name in "malloc calloc realloc free".split())
        functions = map(self._code.address, names)
        self._handler = _Handler(b"guarded", 1, None, *functions)
        words = map(self._code.address, ("damaged", "last_size"))
        self._damaged, self._last_size = map(ctypes.c_int64.from_address, words)
        _set_handler(self._handler)

    @property
    def damaged(self) -> int:
        """How many freed arrays had been written out of bounds."""
        return self._damaged.value

    @property
    def last_size(self) -> int:
        """Bytes of the last such array."""
        return self._last_size.value


def _set_handler(handler: _Handler) -> None:
    try:
        core: Any = importlib.import_module("numpy._core._multiarray_umath")
    except ImportError:
        core = importlib.import_module("numpy.core._multiarray_umath")
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)
    table = api.PyCapsule_GetPointer(core._ARRAY_API, None)
    address = ctypes.c_size_t.from_address(table + 8 * _SET_HANDLER).value
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = api.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None)
    ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)(capsule)
