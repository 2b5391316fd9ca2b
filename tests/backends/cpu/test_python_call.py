"""Calls of Python functions by native code: the answer says whether the function has failed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from rune.backends.cpu import python_call


def caller(address: int) -> Callable[[object, int], bool]:
    """The native code at this address as a Python function."""
    return ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.py_object, ctypes.c_void_p)(address)


def test_a_function_gets_the_address_and_fails_by_a_number():
    call, addresses = caller(python_call.address()), list[int]()

    assert not call(lambda address: addresses.append(address) or 0, 4096)
    assert call(lambda address: 1, 4096)
    assert addresses == [4096]


def test_an_address_for_which_there_is_no_memory_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda address: None)
    address_of, number = python_call.address_of, ctypes.pythonapi.PyLong_FromVoidPtr

    def replaced(function: Any) -> int:
        return address_of(nothing if function is number else function)

    monkeypatch.setattr(python_call, "address_of", replaced)
    code = python_call._code.__wrapped__()

    assert caller(code.address("call"))(lambda address: 0, 4096)
