"""Effects: requests of a function to its surroundings, which are answered while it is traced.

`perform(effect)` calls the innermost enclosing handler for effects of that class. While a handler
answers, only the handlers outside it are active. Programs contain no effects.

A transformation puts a boundary between its function and the handlers outside:

    vmap                    `Each`: each lane gets its own answer, effect.at(answer, lane)
    jit, scan, while, cond  `Recorder`: a program is traced once and runs many times, so answers
                            have to depend on its inputs. It asks outside for their source (`Ask`),
                            answers inside, and each run reports what it consumed (`Tell`)
    grad, jvp, linearize    none: the function runs once, in place

>>> class Name(Effect[str]):
...     pass
>>> class Answer(Handler):
...     kind = Name
...     def answer(self, effect):
...         return "inner"
>>> with Answer():
...     perform(Name())
'inner'
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Generic, NoReturn, Protocol, TypeVar

from rune.context import innermost, inside
from rune.errors import UnhandledEffect
from rune.records import dataclass

R = TypeVar("R")


class Effect(Generic[R]):
    """A request with an answer of type R. Subclasses are the kinds of effects."""

    recorded: ClassVar[bool] = False  # whether handlers of this kind answer Ask and Tell

    @property
    def kind(self) -> type[Effect[Any]]:
        """The class that selects the handler."""
        return type(self)

    def at(self, answer: R, index: Any) -> R:
        """The answer for one lane or one step."""
        return answer

    def refuse(self) -> NoReturn:
        """Raise the error for an effect that no handler answers."""
        raise UnhandledEffect(f"perform: cannot answer {self.kind.__name__} (no handler around it)")

    def unhandled(self) -> R:
        """The answer without a handler: an error, unless the kind has a default."""
        self.refuse()


class Source(Protocol):
    """The source of a kind's answers: what a program needs in order to answer itself."""

    values: Sequence[object]  # arrays: they become inputs of the program
    signature: Hashable  # everything else: a trace is valid for sources of one signature

    def inside(self, values: Sequence[object]) -> Handler:
        """The handler that answers from these values; its `note()` says what it has answered."""
        ...


@dataclass(frozen=True, slots=True)
class Ask(Effect[Any]):
    """Asks for the Source of answers to effects like `about`."""

    about: Effect[Any]

    @property
    def kind(self) -> type[Effect[object]]:
        return self.about.kind

    def unhandled(self) -> Any:
        self.about.refuse()

    def at(self, answer: Any, index: Any) -> Any:
        return answer.at(index)


@dataclass(frozen=True, slots=True)
class Tell(Effect[None]):
    """Tells a handler that a program has answered effects like `about`; the note says which."""

    about: Effect[Any]
    note: Any

    @property
    def kind(self) -> type[Effect[object]]:
        return self.about.kind


class Handler:
    """Answers the effects of one kind inside its `with` block."""

    kind: ClassVar[type[Effect[Any]]] = Effect
    __slots__ = ("_blocks",)

    def answer(self, effect: Any) -> Any:
        """The answer; a call of `perform(effect)` in it asks the handlers outside."""
        raise NotImplementedError(type(self).__name__)

    def __enter__(self):
        block = inside(Handlers, Handlers((*_handlers(), self)))
        self._blocks: list[inside[Handlers]] = [*getattr(self, "_blocks", ()), block]
        block.__enter__()
        return self

    def __exit__(self, error: object, value: object, traceback: object) -> None:
        self._blocks.pop().__exit__(error, value, traceback)


class Handlers(tuple[Handler, ...]):
    """The active handlers, the innermost last."""

    __slots__ = ()


def _handlers() -> Handlers:
    return innermost(Handlers) or Handlers()


def perform(effect: Effect[R]) -> R:
    """The answer of the innermost handler for this kind of effect.

    Errors: UnhandledEffect if there is none and the kind has no default.
    """
    handlers = _handlers()
    for depth in range(len(handlers) - 1, -1, -1):
        if issubclass(effect.kind, handlers[depth].kind):
            with inside(Handlers, Handlers(handlers[:depth])):
                return handlers[depth].answer(effect)
    return effect.unhandled()


class Each(Handler):
    """The boundary of vmap: each lane gets a different answer from outside, by its `index()`."""

    __slots__ = ("_index",)

    def __init__(self, index: Callable[[], object]):
        self._index = index

    def answer(self, effect: Effect[object]) -> Any:
        """The answer from outside, for this lane."""
        return effect.at(perform(effect), self._index())


@dataclass(frozen=True, slots=True)
class Need:
    """What a traced program needs from a handler in each run, for effects like `about`."""

    about: Effect[Any]
    signature: Hashable
    note: Any

    def values(self) -> Sequence[Any] | None:
        """The program's inputs for this run; None if the source has changed its signature.

        Errors: UnhandledEffect if no handler is active.
        """
        source: Source = perform(Ask(self.about))
        return source.values if source.signature == self.signature else None

    def tell(self) -> None:
        """Tell the handlers outside what one run consumes."""
        perform(Tell(self.about, self.note))

    def or_else(self, other: Need) -> Need:
        """The need of a branch, where one of two programs runs; the notes say how to join them."""
        return replace(self, note=self.note.or_else(other.note))


class Inputs:
    """The inputs that a program takes from the handlers outside, to answer effects itself.

    enter:    makes a value from outside an input of the program, and returns its tracer
    outside:  the context for calls of handlers outside, which keeps their work out of the trace
    entered:  the values that became inputs, in order
    """

    __slots__ = ("_enter", "_outside", "_sources", "entered")

    def __init__(
        self, enter: Callable[[Any], object], outside: Callable[[], AbstractContextManager[object]] = nullcontext
    ):
        self._enter, self._outside = enter, outside
        self._sources: dict[type[Effect[Any]], tuple[Effect[Any], Source, Any]] = {}
        self.entered: list[Any] = []

    def handler(self, effect: Effect[object]) -> Any:
        """The handler that answers this kind from inputs; the first effect creates them."""
        if effect.kind not in self._sources:
            about = effect.about if isinstance(effect, Ask) else effect
            with self._outside():
                source: Source = perform(Ask(about))
            self.entered += source.values
            handler = source.inside([self._enter(v) for v in source.values])
            self._sources[effect.kind] = about, source, handler
        return self._sources[effect.kind][2]

    def needs(self) -> tuple[Need, ...]:
        """What the traced program needs in each run; () if it performed no effect."""
        return tuple(Need(about, source.signature, h.note()) for about, source, h in self._sources.values())


class Recorder(Handler):
    """The boundary of a program: its answers depend only on the program's inputs.

    index: returns the step number in the body of a loop
    leaks: whether an answer was not recorded, so that the trace is valid for this call only
    """

    __slots__ = ("_index", "inputs", "leaks")

    def __init__(self, inputs: Inputs, index: Callable[[], object] | None = None):
        self.inputs, self._index, self.leaks = inputs, index, False

    def answer(self, effect: Effect[object]) -> Any:
        """The answer, computed from inputs of the program."""
        if effect.kind.recorded:
            answer = self.inputs.handler(effect).answer(effect)
        else:
            answer, self.leaks = perform(effect), True
        return answer if self._index is None else effect.at(answer, self._index())
