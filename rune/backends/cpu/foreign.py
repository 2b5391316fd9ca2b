"""C functions of users, called on arrays of the host.

    void f(const float *x, const float *y, float *sum, int64_t n)

The function gets a pointer for each operand, then one for each result, to dense arrays in C order;
then the numbers that `sizes` returns, integers as int64_t and floats as double. It may be called
from any thread, without Python's lock, and must not keep the pointers.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rune.core.types import ArrayType
from rune.errors import ArgumentError
from rune.records import dataclass

Rule = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Foreign:
    """A C function as the reference of a primitive: NumPy arrays -> an array, or a list of them.

    address:   of the function
    type_rule: rule(*types, **params) -> the types of the results
    sizes:     rule(*types, **params) -> the numbers that follow the pointers
    """

    name: str
    address: int
    type_rule: Rule
    sizes: Rule

    def __call__(self, *arrays: np.ndarray, **params: object) -> np.ndarray | list[np.ndarray]:
        """The results, in new memory."""
        operands = [np.require(a, requirements=["C", "A"]) for a in arrays]
        types = [ArrayType(a.shape, a.dtype) for a in operands]
        result_types = self.type_rule(*types, **params)
        results = [
            np.empty(t.shape, t.dtype) for t in (result_types if isinstance(result_types, tuple) else (result_types,))
        ]
        numbers = self.sizes(*types, **params)
        pointers = [a.ctypes.data for a in (*operands, *results)]
        _function(self.address, len(pointers), _kinds(self.name, numbers))(*pointers, *numbers)
        return results if isinstance(result_types, tuple) else results[0]


def _kinds(name: str, numbers: Sequence[object]) -> tuple[type, ...]:
    for number in numbers:
        # ctypes would silently drop the upper bits of a larger integer.
        is_number = isinstance(number, float) or (isinstance(number, int) and -(1 << 63) <= number < 1 << 63)
        if not is_number:
            raise ArgumentError(
                f"{name}: cannot pass {number!r} to a C function (a float, or an int of 64 bits required)"
            )
    return tuple(ctypes.c_double if isinstance(n, float) else ctypes.c_int64 for n in numbers)


def _function(address: int, pointers: int, kinds: tuple[type, ...]) -> Callable[..., None]:
    return ctypes.CFUNCTYPE(None, *(ctypes.c_void_p,) * pointers, *kinds)(address)


def address_of(name: str, function: object) -> int:
    """The address of a ctypes function, of an object with an `address` (numba's cfunc), or a
    number.

    Errors: ArgumentError for any other object, and for 0.
    """
    address = getattr(function, "address", function)
    if hasattr(function, "restype"):  # as functions of ctypes have
        address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    if not isinstance(address, int) or not address:
        raise ArgumentError(f"{name}: cannot call {function!r:.60} (an address or a function of ctypes required)")
    return address
