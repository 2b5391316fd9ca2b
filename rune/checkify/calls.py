"""The state of a checked call, which its code carries into jitted functions and onto devices.

The state is an array of words in a reference. Jitted functions and the body of a shard_map take it
as an argument and return it; from several devices, the state of one that failed is kept.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, cast

import numpy as np

import rune.numpy as rnp
from rune import dtypes, tree
from rune.array import Array, as_array
from rune.config import setting
from rune.context import innermost, inside
from rune.errors import TransformError
from rune.records import dataclass
from rune.sharding import P
from rune.transforms.arguments import put_on
from rune.transforms.callers import Callers, callers
from rune.transforms.checks.failures import last_failure, of_lanes
from rune.transforms.compile.jit import Jitted
from rune.transforms.references import Ref
from rune.transforms.sharding.shard_map import Sharded


@dataclass(frozen=True, slots=True)
class Site:
    """A call of `check`: its message, and the dtypes, shapes and tree of the arrays in it."""

    fmt: str
    treedef: tree.TreeDef
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]

    def text(self, words: np.ndarray) -> str:
        """The message, filled with the numbers in these words."""
        values, start = [], 0
        for dtype, shape in self.types:
            count = int(np.prod(shape)) * carrier(dtype).itemsize // 4
            numbers = words[start : start + count].view(carrier(dtype))
            values.append(as_array(numbers.astype(dtype).reshape(shape), dtype))
            start += count
        args, kwargs = tree.unflatten(self.treedef, values)
        return f"{self.fmt.format(*args, **kwargs)} (`check` failed)"


def carrier(dtype: np.dtype) -> np.dtype:
    """A dtype of 32 bits or more that can represent every value of the given dtype."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype(np.float32) if dtype in dtypes.INEXACT else np.dtype(np.int32)


class Noting:
    """A record of the checks in some code.

    width: how many words the longest message needs for its numbers; may exceed the current state's
    """

    __slots__ = ()
    sites: dict[int, Site]
    width: int

    def note(self, other: Noting) -> None:
        """Add the checks in the other record."""
        self.sites.update(other.sites)
        self.width = max(self.width, other.width)


class State(Ref, Noting):
    """A reference to the words of a checked call, which its code updates."""

    __slots__ = ("sites", "width")

    def __init__(self, words: Array):
        super().__init__(words)
        self.sites = {}
        self.width = 0

    def settled(self, value: Any) -> Any:
        """The value to write: one state for all lanes."""
        return last_failure(value)

    def refuse(self, owner: str, use: str) -> NoReturn:
        """Errors: TransformError, always: the state cannot be carried into this code."""
        raise TransformError(f"checkify.check: cannot check in {owner.rpartition(' ')[2]}", hint="check in the body")

    def note_failure(self, fails: Any, words: Any) -> None:
        """Store these words if `fails` is true, nothing has failed before, and there is room."""
        before = self[...]
        self.width = max(self.width, words.shape[0] - 1)
        room = before.shape[0] - words.shape[0]
        if room < 0:
            return
        is_first = fails & (before[0] == 0)
        self[...] = rnp.where(is_first, rnp.pad(words, (0, room)), before)


class NullState(State):
    """The state of a call that ignores failed checks: it stores nothing."""

    __slots__ = ()

    def note_failure(self, fails: object, words: object) -> None:
        """Do nothing."""


class Wider(Exception):
    """Raised if a message needs more words, `width`; `checkify` catches it and runs again."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width


class Part(Noting):
    """A function that also takes and returns the words of the checked call.

    Thanks to it, jit traces, compiles and caches the function as it would without checks, and the
    user's code sees tracers, as it expects.
    sites, width: the checks that its traces recorded, for calls that are not traced again
    """

    def __init__(self, function: Callable[..., object]):
        put_on(self, function, functools.WRAPPER_UPDATES)
        self.function = function
        self.sites = {}
        self.width = 0

    def __call__(self, *args: object, **kwargs: object) -> tuple[Array, object]:
        state = State(kwargs.pop(_WORDS))  # type: ignore[arg-type]
        result = within(state, self.function, args, kwargs)
        self.note(state)
        return state[...], result


_WORDS = "rune_checkify_words"


def _call_jitted(jit_function: Jitted[..., object], args: tuple, kwargs: Mapping[str, object]) -> object:
    """Call a jitted function inside a checked call, and continue with the words it returns."""
    state = innermost(State)
    assert state is not None
    if jit_function.check_parts is None:
        jit_function.check_parts = _part_of(jit_function)
    function, part = cast("_Checked", jit_function.check_parts)
    with inside(Callers, replace(callers(), of_jitted=None)):
        words, result = part(*args, **kwargs, **{_WORDS: state[...]})
    state.note(function)
    state[...] = words
    return result


_Checked = tuple[Part, Jitted[..., tuple[Array, object]]]


def _part_of(jit_function: Jitted[..., object]) -> _Checked:
    function = Part(jit_function.function)
    options = (
        jit_function.marks,
        jit_function.symbolic,
        jit_function.device,
        jit_function.schedules,
        (),
        jit_function.inline,
    )
    return function, Jitted(function, *options)


def _call_sharded(shard_map_call: Sharded, args: tuple) -> object:
    """Call a shard_map inside a checked call; each device has its own words."""
    state = innermost(State)
    assert state is not None
    part = Part(shard_map_call.function)

    @functools.wraps(shard_map_call.function)
    def on_a_device(words: Array, *args: object) -> tuple[Array, object]:
        words, result = part(*args, **{_WORDS: words})
        return words[None], result

    names = shard_map_call.region_here().manual
    checked_call = replace(
        shard_map_call,
        function=on_a_device,
        in_specs=(P(), *shard_map_call.specs_of(args)),
        out_specs=(P(names), shard_map_call.out_specs),
    )
    with inside(Callers, replace(callers(), of_sharded=None)):
        words, result = cast("tuple[Array, object]", checked_call(state[...], *args))
    state.note(part)
    state[...] = of_lanes(words)
    return result


def within(state: State, f: Callable[..., object], args: tuple, kwargs: Mapping[str, object]) -> object:
    """f(*args, **kwargs), with its failed checks stored in `state`."""
    with inside(State, state), inside(Callers, _CALLERS), setting(checkified=True):
        return f(*args, **kwargs)


_CALLERS = Callers(_call_jitted, _call_sharded)
