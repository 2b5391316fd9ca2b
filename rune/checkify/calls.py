"""What a checked call has found so far, wherever its code runs.

The state is an array of words in a reference. A jitted function, and the body of a shard_map, take
and return them, as they do any other value; of several devices the one counts that has failed.
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
    """A `check`: its message, and the arrays in it, as a tree of these dtypes and shapes."""

    fmt: str
    treedef: tree.TreeDef
    types: tuple[tuple[np.dtype, tuple[int, ...]], ...]

    def text(self, words: np.ndarray) -> str:
        """The message with these numbers."""
        values, start = [], 0
        for dtype, shape in self.types:
            count = int(np.prod(shape)) * carrier(dtype).itemsize // 4
            numbers = words[start : start + count].view(carrier(dtype))
            values.append(as_array(numbers.astype(dtype).reshape(shape), dtype))
            start += count
        args, kwargs = tree.unflatten(self.treedef, values)
        return f"{self.fmt.format(*args, **kwargs)} (`check` failed)"


def carrier(dtype: np.dtype) -> np.dtype:
    """A dtype of whole words that holds all of another one's values."""
    if dtype.itemsize >= 4:
        return dtype
    return np.dtype(np.float32) if dtype in dtypes.INEXACT else np.dtype(np.int32)


class Noting:
    """What notes the checks of some code.

    width: how many words the numbers of its longest message need; fewer there may be at first
    """

    __slots__ = ()
    sites: dict[int, Site]
    width: int

    def note(self, other: Noting) -> None:
        """Note what the other has noted."""
        self.sites.update(other.sites)
        self.width = max(self.width, other.width)


class State(Ref, Noting):
    """The words of a checked call, wherever its code runs."""

    __slots__ = ("sites", "width")

    def __init__(self, words: Array):
        super().__init__(words)
        self.sites = {}
        self.width = 0

    def settled(self, value: Any) -> Any:
        """What is written: one state for all lanes."""
        return last_failure(value)

    def refuse(self, owner: str, use: str) -> NoReturn:
        """Its value cannot be carried there."""
        raise TransformError(f"checkify.check: cannot check in {owner.rpartition(' ')[2]}", hint="check in the body")

    def note_failure(self, fails: Any, words: Any) -> None:
        """Remember these words if nothing has failed before, and there is room."""
        before = self[...]
        self.width = max(self.width, words.shape[0] - 1)
        room = before.shape[0] - words.shape[0]
        if room < 0:
            return
        is_first = fails & (before[0] == 0)
        self[...] = rnp.where(is_first, rnp.pad(words, (0, room)), before)


class NullState(State):
    """The state of a call that is not asked for failed checks: it takes no notes."""

    __slots__ = ()

    def note_failure(self, fails: object, words: object) -> None:
        """Remember nothing."""


class Wider(Exception):
    """A message needs so many words: the function is to run again. Caught by `checkify`."""

    def __init__(self, width: int):
        super().__init__()
        self.width = width


class Part(Noting):
    """A function that takes and returns the words of the call as well.

    So a jitted function's own is traced, compiled and kept as it would be without checks, and the
    user's code in it sees tracers, as it expects.
    sites, width: what its traces noted, for calls that need no trace
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


def _call_jitted(jitted: Jitted[..., object], args: tuple, kwargs: Mapping[str, object]) -> object:
    """The result of a jitted function inside of a checked call, which goes on with its words."""
    state = innermost(State)
    assert state is not None
    if jitted.checked is None:
        jitted.checked = _part_of(jitted)
    function, part = cast("_Checked", jitted.checked)
    with inside(Callers, replace(callers(), of_jitted=None)):
        words, result = part(*args, **kwargs, **{_WORDS: state[...]})
    state.note(function)
    state[...] = words
    return result


_Checked = tuple[Part, Jitted[..., tuple[Array, object]]]


def _part_of(jitted: Jitted[..., object]) -> _Checked:
    function = Part(jitted.function)
    options = jitted.marked, jitted.symbolic, jitted.device, jitted.schedules, (), jitted.inline
    return function, Jitted(function, *options)


def _call_sharded(sharded: Sharded, args: tuple) -> object:
    """The result of a shard_map inside of a checked call; each device has words of its own."""
    state = innermost(State)
    assert state is not None
    part = Part(sharded.function)

    @functools.wraps(sharded.function)
    def on_a_device(words: Array, *args: object) -> tuple[Array, object]:
        words, result = part(*args, **{_WORDS: words})
        return words[None], result

    names = sharded.region_here().manual
    checked = replace(
        sharded, function=on_a_device, in_specs=(P(), *sharded.specs_of(args)), out_specs=(P(names), sharded.out_specs)
    )
    with inside(Callers, replace(callers(), of_sharded=None)):
        words, result = cast("tuple[Array, object]", checked(state[...], *args))
    state.note(part)
    state[...] = of_lanes(words)
    return result


def within(state: State, f: Callable[..., object], args: tuple, kwargs: Mapping[str, object]) -> object:
    """f(*args, **kwargs), whose checks are noted in `state`."""
    with inside(State, state), inside(Callers, _CALLERS), setting(checkified=True):
        return f(*args, **kwargs)


_CALLERS = Callers(_call_jitted, _call_sharded)
