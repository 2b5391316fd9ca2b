"""Functions of several operations: eager calls with many elements run as one kernel.

Operation by operation, hypot is twenty passes through memory. A call with LARGE elements or more is
compiled once for its types, as under jit, and runs on all cores in one pass. The values are those
of jit, which for functions like sin may be a few ulps from NumPy's (docs/accuracy.md).

Not done: calls with checks for NaN or bounds, and operands on devices; these run operation by
operation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from rune import config
from rune.array import COMMITTED_CPU, CPU, Array
from rune.core.interpreter import is_evaluating
from rune.numpy.operands import parameters_of, refuse_options
from rune.options import FIRST_CPU
from rune.transforms.compile.jit import Jitted, jit
from rune.transforms.compile.tiers import LARGE, tiered

P = ParamSpec("P")
R = TypeVar("R")


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """`function` as one kernel, where an eager call has a large array and no keywords."""
    code = function.__code__  # type: ignore[attr-defined]
    parameters = parameters_of(function)
    takes_numbers = code.co_posonlyargcount == code.co_argcount  # otherwise a number may be an axis

    @functools.cache
    def compiled() -> Jitted[P, R]:
        return jit(function)

    # Calls that are specialised have small arrays, and never come here.
    @tiered
    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if kwargs:
            refuse_options(call.__name__, kwargs, parameters)
        if kwargs or not is_evaluating() or not is_large(args, takes_numbers):
            return function(*args, **kwargs)
        with config.setting(symbolic="auto"):  # after a second size, nothing is compiled again
            return compiled()(*args, **kwargs)

    return call


def is_large(args: tuple[object, ...], takes_numbers: bool = False, least: int = LARGE) -> bool:
    """Whether the operands are CPU arrays or numbers, one of them large, and no check is on.

    Not where compiled code flushes denormal numbers, which eager functions keep.
    """
    sizes = [x.buffer.size for x in args if type(x) is Array and (x.place is CPU or x.place is COMMITTED_CPU)]
    if not sizes or max(sizes) < least:
        return False
    others = len(args) - len(sizes)
    if others and not (takes_numbers and others == sum(type(x) in (int, float) for x in args)):
        return False
    settings = config.current()
    is_checked = settings.check_nans or settings.check_infs or settings.check_bounds
    return not (is_checked or settings.device not in FIRST_CPU or settings.flush_denormals)
