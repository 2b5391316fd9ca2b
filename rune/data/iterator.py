"""A run of a pipeline: its position, and the work in progress for it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from rune import profiling
from rune.data.display import pipeline_text
from rune.data.numbers import ENDLESS, fingerprint, length, order
from rune.data.running import elements
from rune.data.stages import Node
from rune.data.threads import Scope
from rune.errors import DataError


class Iterator(AbstractContextManager["Iterator"]):
    """A run of a pipeline, starting at some element. Workers start with the first `next`.

    It ends with the last element, with an error, with `close` or at the end of a `with` block, and
    leaves no thread, process or shared memory behind. When it is no longer referenced, its workers
    stop after their current elements. After an error or Ctrl-C it does not silently continue; use
    `pipeline.restore(iterator.state())`.

    Errors: none by itself; `next` raises those of the functions, and DataError after an error.

    >>> from rune import data
    >>> with iter(data.sequence(range(9)).batch(4)) as batches:
    ...     print(next(batches), batches.element)
    [0 1 2 3] 1
    """

    def __init__(self, stage: Node, number: int):
        self._stage, self._number = stage, number
        self._scope = Scope()
        self._elements = elements(stage, number, self._scope)
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator:
        return self

    def __repr__(self) -> str:
        return f"Iterator(before element {self._number} of {pipeline_text(self._stage)})"

    def __next__(self) -> Any:
        if self._failure is not None:
            raise DataError(
                f"iterator: cannot go on (it ended with {type(self._failure).__name__} at element {self._number})",
                hint="pipeline.restore(iterator.state()) is a new one from there",
            )
        try:
            with profiling.span("data.next", profiling.Kind.DATA):
                element = next(self._elements)
        except StopIteration:
            raise
        except BaseException as error:
            self._failure = error
            error.add_note(f"at element {self._number} of {order(self._stage)}")
            self.close()
            raise
        self._number += 1
        return element

    def __length_hint__(self) -> int:
        size = length(self._stage)
        return NotImplemented if size is None or size == ENDLESS else max(0, int(size) - self._number)

    @property
    def element(self) -> int:
        """The number of the element that comes next."""
        return self._number

    def state(self) -> dict[str, int]:
        """The position of the run, as two numbers; elements that were only read ahead do not count.

        >>> from rune import data
        >>> letters = iter(data.sequence("abc"))
        >>> next(letters), letters.state()["element"]
        ('a', 1)
        """
        return {"element": self._number, "order": fingerprint(self._stage)}

    def close(self) -> None:
        """End the run, and wait until its workers have finished their current elements."""
        self._scope.is_awaited = True
        self._elements.close()

    def __exit__(self, *_: object) -> None:
        self.close()
