"""LLVM's functions are called as llvmlite declares them, and do what its own module does."""

from __future__ import annotations

import ctypes
import importlib
import itertools

import pytest
from llvmlite.binding import ffi

from rune.backends.cpu import conventions, llvm, llvm_binding, llvm_functions
from rune.lowering.codegen.llvm.underflow import TWO_FORMS

pytestmark = pytest.mark.skipif(not llvm_functions.is_available(), reason="this llvmlite is not known")

TEXT = """
declare float @llvm.fma.f32(float, float, float)
define float @polynomial(float %x, i64 %n) {
entry:
  %slot = alloca float
  store float 1.0, ptr %slot
  br label %again
again:
  %k = phi i64 [ 0, %entry ], [ %next, %again ]
  %before = load float, ptr %slot
  %after = call float @llvm.fma.f32(float %before, float %x, float 1.0)
  store float %after, ptr %slot
  %next = add i64 %k, 1
  %is_over = icmp eq i64 %next, %n
  br i1 %is_over, label %end, label %again
end:
  ret float %after
}
"""
BROKEN = {
    "another type": "define i32 @f() {\n  ret i64 0\n}\n",
    "an operand that comes later": "define i32 @f() {\n  %x = add i32 %y, 1\n  %y = add i32 1, 1\n  ret i32 %x\n}\n",
    "no IR": "jit",
}


def kind(type: type | None) -> object:
    """A type as the calling convention sees it: the size of an integer, or a pointer."""
    if type in (None, ctypes.c_int):  # also for what gives nothing: ctypes takes it for an int
        return "int"
    if type in (ctypes.c_bool, ctypes.c_size_t):
        return type
    assert type in (ctypes.c_void_p, ctypes.c_char_p) or issubclass(type, ctypes._Pointer)
    return "pointer"


@pytest.mark.parametrize("name", llvm_functions.FUNCTIONS)
def test_a_function_has_the_types_that_llvmlite_declares(name: str):
    importlib.import_module("llvmlite.binding")
    declaration = getattr(ffi.lib, f"LLVMPY_{name}")
    result, arguments = llvm_functions.FUNCTIONS[name]

    assert kind(result) == kind(declaration.restype)
    if declaration.argtypes is not None:
        assert [*map(kind, arguments)] == [*map(kind, declaration.argtypes)]


@pytest.mark.parametrize("text", [TEXT, f"{TWO_FORMS}\n{TEXT}"], ids=["one form", "two forms"])
@pytest.mark.parametrize(
    ("effort", "how", "form"),
    [
        *itertools.product(
            (conventions.HURRY, conventions.LITTLE, conventions.EFFORT),
            (conventions.IN_ONE_PIECE, conventions.ANYWHERE),
            (conventions.ASSEMBLY, conventions.OBJECT),
        )
    ],
)
def test_code_is_byte_for_byte_that_of_llvmlite(text: str, effort: int, how: tuple[str, str], form: int):
    codes = [room.emit(text, effort, how, llvm.processor(), form) for room in (llvm_functions, llvm_binding)]

    assert codes[0] == codes[1] != b""


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_module_is_refused_in_the_words_of_llvmlite(text: str):
    reports: list[str] = []
    for room in (llvm_functions, llvm_binding):
        with pytest.raises(RuntimeError) as error:
            room.emit(text, conventions.HURRY, conventions.IN_ONE_PIECE, llvm.processor(), conventions.OBJECT)
        reports.append(str(error.value))

    assert reports[0] == reports[1] != ""


def test_the_processor_is_the_one_that_llvmlite_names():
    assert llvm_functions.processor() == llvm_binding.processor()


@pytest.mark.parametrize("version", ["0.44.0", "0.51.0", "1.0", "0.50", "unknown"])
def test_another_llvmlite_is_called_by_its_own_module(version: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("llvmlite.__version__", version)

    assert not llvm_functions.is_available()
    assert llvm._library.__wrapped__() is llvm_binding


@pytest.mark.parametrize("version", ["0.45.0", "0.50.3", "0.49.0rc1"])
def test_a_known_llvmlite_is_called_without_it(version: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("llvmlite.__version__", version)

    assert llvm._library.__wrapped__() is llvm_functions


@pytest.mark.parametrize("size", [0, llvm_functions.MOST_JOINED, llvm_functions.MOST_JOINED + 1])
def test_only_modules_with_two_forms_that_are_not_long_get_the_passes_that_join_them(size: int):
    assert llvm_functions.joins_forms(TWO_FORMS.ljust(size)) == (size <= llvm_functions.MOST_JOINED)
    assert not llvm_functions.joins_forms(" " * size)
