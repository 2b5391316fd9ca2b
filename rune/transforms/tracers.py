"""Tracers with arithmetic: the core's tracers joined with the operators of `rune.ops`."""

from __future__ import annotations

from typing import Any, NoReturn

from rune.core.interpreter import Interpreter, Tracer, check_live, current
from rune.core.staging import Staged, StageTracer, stage
from rune.core.types import ArrayType
from rune.errors import (
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerError,
    TracerIntegerConversionError,
)
from rune.ops.operators import Operators


class ValueTracer(Tracer, Operators):
    """A tracer that refuses to be read, and says where it was made."""

    __slots__ = ()

    def _refuse(self, error: type[TracerError], what: str, hint: str) -> NoReturn:
        check_live(self)
        made = f"\nthe value was made at {self.frame}" if self.frame else ""
        raise error(f"tracer: cannot {what} (a traced {self.type} has no value yet){made}", hint)

    def __bool__(self) -> bool:
        self._refuse(
            TracerBoolConversionError, "use a traced value as a truth value",
            "use rune.numpy.where, or mark the argument static with static_argnums",
        )  # fmt: skip

    def __index__(self) -> int:
        self._refuse(
            TracerIntegerConversionError, "use a traced value as a Python integer",
            "mark the argument static with static_argnums",
        )  # fmt: skip

    __int__ = __index__

    def __float__(self) -> float:
        self._refuse(
            TracerError, "convert a traced value to a Python number",
            "keep computing with rune.numpy, or return the value and convert it outside",
        )  # fmt: skip

    def __complex__(self) -> complex:
        return self.__float__()

    def item(self) -> Any:
        """Refused: a traced value has no contents."""
        return self.__float__()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        self._refuse(
            TracerArrayConversionError, "hand a traced value to NumPy",
            "use the function of the same name in rune.numpy",
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Traced<{self.type}>"

    def __hash__(self) -> int:
        return id(self)


class TracedArray(ValueTracer, StageTracer):
    """A variable of a program being staged, as the user's function sees it."""

    __slots__ = ()


def stage_function(function: Any, types: list[ArrayType], name: str) -> Staged:
    """`stage` for a user's function: its tracers have arithmetic."""
    return stage(function, types, name, TracedArray)


def outer() -> Interpreter:
    """The interpreter that a new transformation is nested in."""
    return current()
