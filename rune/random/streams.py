"""Draws without a key: a handler around the call gives each draw its own key.

The n-th draw under `seed(s)` has the key fold_in(key(s), n). A named draw has a key that depends on
the name and not on n, so it stays the same when other draws come and go.

Inside a lane of vmap or a step of a loop, the number of the lane or step is folded in as well.
Names and numbers cannot collide: a number is below 2**32, and a name is hashed to a position from
2**63 on. Across jit and loops a stream is passed as hidden inputs of the program: the key, the
number of the next draw, and the folded numbers. One trace therefore serves all streams.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn

from rune import dtypes, effects, ops
from rune.array import Array, as_array
from rune.core.interpreter import Interpreter, current, literal, type_of
from rune.core.staging import Stage
from rune.core.values import Value
from rune.errors import ArgumentError, Frame, UnhandledEffect, user_frame
from rune.ops.random import random_fold_in
from rune.random.keys import Key, as_keys, is_keys, key, single_key
from rune.records import dataclass
from rune.transforms.derivatives.linearize import Partial
from rune.typing import ArrayLike

MANY = 1 << 32  # draws in one stream, numbered by one word
NAMED = 1 << 63  # the positions of names


@dataclass(frozen=True, slots=True)
class Draw(effects.Effect[Key]):
    """An operation's request for a key."""

    by: str
    name: str | None = None
    recorded: ClassVar[bool] = True

    @property
    def kind(self) -> type[Draw]:
        return Draw

    def at(self, answer: Key, index: ArrayLike) -> Key:
        return fold(answer, index)

    def refuse(self) -> NoReturn:
        raise UnhandledEffect(
            f"{self.by}: cannot draw without a key here (traced once, it would be a constant)",
            hint="pass a key, or call the function inside `with rune.random.seed(0):`",
        )

    def unhandled(self) -> Key:
        """A key from the operating system's randomness in eager code; an error while tracing."""
        if _is_staging(current()):
            self.refuse()
        return fold(_root(), next(_draw_numbers))


_draw_numbers = itertools.count()


@functools.cache
def _root() -> Key:
    """The key for draws outside any `seed`."""
    return key(int.from_bytes(os.urandom(8), "little"))


def _is_staging(interpreter: Interpreter | None) -> bool:
    """Whether a program that may run again is being traced."""
    while interpreter is not None:
        if isinstance(interpreter, Stage) and not isinstance(interpreter, Partial):
            return True
        interpreter = interpreter.parent
    return False


def fold(key: Key, index: ArrayLike) -> Key:
    """The key with a number below 2**32 folded in: a Python integer, or an array of one word."""
    low = literal(index, dtypes.u32) if isinstance(index, int) else index
    return random_fold_in(key, literal(0, dtypes.u32), low)


@dataclass(frozen=True, slots=True)
class Usage:
    """What a traced program draws from the outer stream: numbered draws, and names with lines."""

    count: int
    names: Mapping[str, Frame | None]

    def then(self, more: Usage) -> Usage:
        """The sum of this and a later use. Errors: ArgumentError for a name in both."""
        for name, frame in more.names.items():
            if name in self.names:
                raise ArgumentError(
                    f"draw: cannot name two draws {name!r} (the first was at {self.names[name]})",
                    hint="give each call a scope: `with rune.random.seed(0).fold(step):`",
                    frame=frame,
                )
        return Usage(self.count + more.count, {**self.names, **more.names} if more.names else self.names)

    def or_else(self, other: Usage) -> Usage:
        """The use of a program that runs one of two others: enough draws for either."""
        return Usage(max(self.count, other.count), {**self.names, **other.names})


NOTHING = Usage(0, MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a stream's keys, as values."""

    key: Key
    first: Value  # the number of the next draw
    folds: Sequence[Any] = ()

    @property
    def values(self) -> Sequence[Value]:
        """The inputs that a program needs for the stream."""
        return [self.key, self.first, *self.folds]

    @property
    def signature(self) -> Hashable:
        """What a trace depends on besides values: types, and the number of folds."""
        return tuple(map(type_of, self.values))

    def inside(self, values: Sequence[Array]) -> Stream:
        """The stream that a program draws from, made from its inputs."""
        key, first, *folds = values
        return Stream(Origin(key, first, tuple(folds)))

    def at(self, index: ArrayLike) -> Origin:
        """The origin for one lane or step."""
        return Origin(self.key, self.first, (*self.folds, index))

    def after(self, count: int) -> Origin:
        """The origin after a number of draws."""
        if isinstance(self.first, int):
            return replace(self, first=as_array(self.first + count, dtypes.u32))
        return replace(self, first=ops.add(self.first, as_array(count, dtypes.u32)))

    def next_key(self) -> Key:
        """The key of the next draw."""
        return self._key_at(literal(0, dtypes.u32), self.first)

    def named_key(self, name: str) -> Key:
        """The key of the draw with this name."""
        return self._key_at(*_position(name))

    def _key_at(self, high: Value, low: Value) -> Key:
        draw_key = random_fold_in(self.key, high, low)
        for index in self.folds:
            draw_key = fold(draw_key, index)
        return draw_key


@dataclass(slots=True, eq=False)
class Stream(effects.Handler):
    """A handler of draws, made by `seed`. A second `with` continues where the first stopped."""

    kind: ClassVar[type[effects.Effect[Array]]] = Draw
    origin: Origin  # of the first draw
    draws: Usage = NOTHING

    def fold(self, index: int) -> Stream:
        """The stream that lane or step `index` of a transformation sees, from its beginning.

        Under `seed(0)` lane i of vmap(f) is f under `seed(0).fold(i)`. In a training loop,
        `with rune.random.seed(0).fold(step):` gives every step its own draws.
        """
        return Stream(self.origin.at(as_array(index, dtypes.u32)))

    def answer(self, effect: Draw | effects.Ask | effects.Tell) -> Any:
        """The answer to an effect: a key, the origin, or None for a note."""
        answer, note = _answer(effect, self.origin, self.draws.count)
        self.draws = self.draws.then(note)
        return answer

    def note(self) -> Usage:
        """The draws so far."""
        return self.draws


def _answer(effect: Draw | effects.Ask | effects.Tell, origin: Origin, count: int) -> tuple[Key | Origin | None, Usage]:
    """The answer of a stream after `count` draws from its origin, and the draws that it uses."""
    match effect:
        case Draw(name=None):
            return origin.after(count).next_key(), Usage(1, {})
        case Draw(name=str() as name):
            return origin.named_key(name), Usage(0, {name: user_frame()})
        case effects.Tell(note=note):
            return None, note
    return origin.after(count), NOTHING


def _position(name: str) -> tuple[Value, Value]:
    """The high and the low word of the position of a name."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    number = int.from_bytes(digest, "little") | NAMED
    return literal(number >> 32, dtypes.u32), literal(number % MANY, dtypes.u32)


def seed(seed: ArrayLike) -> Stream:
    """A handler that gives every draw inside its block its own key, derived from a seed or key.

    Inserting a draw changes those after it, except named draws. Jitted functions take the keys as
    inputs, so nothing is traced again. Lanes of vmap and steps of loops differ.
    Shapes: seed int[], or a key [].
    Errors: ArgumentError for a name used twice. Blocks may be nested; the innermost one applies.

    >>> import rune
    >>> with rune.random.seed(0):
    ...     a, b = rune.random.uniform(), rune.random.uniform()
    >>> bool(a != b)
    True
    """
    is_number = isinstance(seed, int) or not getattr(seed, "shape", ())
    root = key(seed) if is_number and not is_keys(seed) else seed
    return Stream(Origin(single_key("seed", root), 0))


def draw(name: str | None = None) -> Key:
    """The next key of the current handler; with a name, the key of that name.

    Shapes: a key [].
    Errors: UnhandledEffect while tracing outside `seed`.

    >>> import rune
    >>> with rune.random.seed(0):
    ...     key = rune.random.draw()
    >>> bool(key == rune.random.fold_in(rune.random.key(0), 0))
    True
    """
    return effects.perform(Draw("draw", name))


def take_key(by: str, key: ArrayLike | None, name: str | None = None) -> ArrayLike:
    """The key passed to an operation, or one drawn for it.

    Errors: ArgumentError if `key` is not a key, or if both a name and a key are given.
    """
    if key is None:
        return effects.perform(Draw(by, name))
    if name is not None:
        raise ArgumentError(f"{by}: cannot use a key and a name (a name is for draws without one)")
    as_keys(by, key)
    return key
