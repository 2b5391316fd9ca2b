"""Functions that have nothing to compute return a new array.

Each public function is called with one array, alone and with arguments that make many functions an
identity: no axes, the same shape, an order of 0. The result stays valid when the argument is
donated, except for the functions that also return their argument in jax 0.10.2.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import GenericAlias, ModuleType
from typing import Any

import numpy as np
import pytest

import rune
import rune.image
import rune.numpy as rnp
import rune.scipy as rsp
from rune import lax, nn, tree

MODULES = {
    m.__name__: m
    for m in (rnp, rnp.linalg, rnp.fft, lax, lax.linalg, nn, rune.image, rsp.fft, rsp.linalg, rsp.ndimage, rsp.signal)
}
ARRAYS = {
    "one axis": np.array([1.5, 2.5, -3.5], np.float32),
    "one element": np.array([[2.5]], np.float32),
    "integers": np.array([1, 2, 3], np.int32),
    "rank 0": np.array(2.5, np.float32),
}
EMPTY = np.zeros(0, np.float32)
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "x": lambda f, x: f(x),
    "[x]": lambda f, x: f([x]),
    "[[x]]": lambda f, x: f([[x]]),
    "x, 0": lambda f, x: f(x, 0),
    "x, 1": lambda f, x: f(x, 1),
    "x, ()": lambda f, x: f(x, ()),
    "x, None": lambda f, x: f(x, None),
    "x, shape": lambda f, x: f(x, x.shape),
    "x, axes": lambda f, x: f(x, tuple(range(x.ndim))),
    "x, ones": lambda f, x: f(x, (1,) * x.ndim),
    "x, zeros": lambda f, x: f(x, (0,) * x.ndim),
    "x, 0, 0": lambda f, x: f(x, 0, 0),
    "x, 0, 1": lambda f, x: f(x, 0, 1),
    "x, 1, 0": lambda f, x: f(x, 1, 0),
    "x, axis=()": lambda f, x: f(x, axis=()),
    "x, axes=()": lambda f, x: f(x, axes=()),
    "x, axis=0": lambda f, x: f(x, axis=0),
    "x, x": lambda f, x: f(x, x),
    "0, x": lambda f, x: f(0, x),
    "0, [x]": lambda f, x: f(0, [x]),
    "[x], 0": lambda f, x: f([x], 0),
    "x, nothing": lambda f, x: f(x, EMPTY),
    "x, nowhere": lambda f, x: f(x, EMPTY.astype(np.int32)),
    "x, nowhere, nothing": lambda f, x: f(x, EMPTY.astype(np.int32), EMPTY),
    "x, no padding": lambda f, x: f(x, np.zeros((), x.dtype), [(0, 0, 0)] * x.ndim),
    "x, no border": lambda f, x: f(x, [(0, 0)] * x.ndim),
    "the whole": lambda f, x: f(x, (0,) * x.ndim, x.shape),
    "the whole in place": lambda f, x: f(x, x, (0,) * x.ndim),
    "i -> i": lambda f, x: f("i->i", x),
    "... -> ...": lambda f, x: f("...->...", x),
    "x, [0], [0]": lambda f, x: f(x, [0], [0]),
    "the same size, nearest": lambda f, x: f(x, x.shape, "nearest"),
    "the same size, linear": lambda f, x: f(x, x.shape, "linear"),
    "x, 0.0": lambda f, x: f(x, 0.0),
    "x, 1.0": lambda f, x: f(x, 1.0),
    "true, x, x": lambda f, x: f(True, x, x),
}
# What answers with its argument in jax 0.10.2 as well; `cho_factor` returns the flag `lower`.
AS_IT_IS = """
    cho_factor
    array asarray asanyarray asarray_chkfinite astype convert_element_type full full_like
    broadcast_to broadcast_like transpose permute_dims matrix_transpose concatenate concat column_stack trim_zeros
    apply_along_axis apply_over_axes stop_gradient pvary with_sharding_constraint associative_scan
    """.split()


def functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The public functions of a module; none that reads or writes files."""
    for name in dir(module):
        function = getattr(module, name)
        if isinstance(function, type | GenericAlias) or name.startswith(("_", "save", "load", "from")):
            continue
        if callable(function):
            yield name, function


def is_its_answer(call: Callable[[Any, Any], Any], function: Callable[..., Any], numbers: np.ndarray) -> bool:
    """Whether the argument itself is among the results; not where the call is refused."""
    x = rnp.array(numbers)
    try:
        return any(leaf is x for leaf in tree.leaves(call(function, x)))
    except Exception:  # of any kind: what matters is what comes back
        return False


@pytest.mark.parametrize("name", MODULES)
def test_a_function_without_work_returns_a_new_array(name: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        passing = [
            f"{function_name}({call_name}) of {array_name}"
            for function_name, function in functions(MODULES[name])
            if function_name not in AS_IT_IS
            for call_name, call in CALLS.items()
            for array_name, numbers in ARRAYS.items()
            if is_its_answer(call, function, numbers)
        ]
    assert passing == []
