"""Tracers with arithmetic: the core's tracers joined with the operators of `rune.ops`.

Reading one is an error that says where it was created, except under a derivative of concrete
values: there the primal is known, so Python may branch on it.
"""

from __future__ import annotations

import operator
from typing import Any, NoReturn

import numpy as np

from rune.array import Array
from rune.core.escapes import check_live
from rune.core.interpreter import Tracer
from rune.core.staging import StageTracer
from rune.core.values import Value
from rune.errors import (
    ConcretizationTypeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerError,
    TracerIntegerConversionError,
)
from rune.ops.operators import Operators


class ValueTracer(Tracer, Operators):  # pyright: ignore[reportIncompatibleVariableOverride]
    """A tracer that refuses to be read, with the line where it was created."""

    __slots__ = ()

    def known(self) -> Any:
        """The concrete value of the tracer, if its transformation computes one; otherwise None."""
        return None

    def underlying(self) -> Value | None:
        """The value that it stands for, a primal or all lanes; None while a program is written."""
        return None

    def _refuse(self, error: type[TracerError], action: str, hint: str) -> NoReturn:
        origin = f"\nthe value was made at {self.frame}" if self.frame else ""
        raise error(f"tracer: cannot {action} (a traced {self.type} has no value yet){origin}", hint)

    def _read(self, error: type[TracerError], action: str, hint: str) -> Any:
        # Checked first, because a tracer that outlived its trace has its own error.
        check_live(self)
        value = self.known()
        return self._refuse(error, action, hint) if value is None else value

    # The reads below raise JAX's three classes of errors, which users' code may catch one by one.
    def __bool__(self) -> bool:
        return bool(
            self._read(
                TracerBoolConversionError,
                "use a traced value as a truth value",
                "use rune.numpy.where, or mark the argument static with static_argnums",
            )
        )

    def _integer(self) -> Any:
        return self._read(
            TracerIntegerConversionError,
            "use a traced value as a Python integer",
            "mark the argument static with static_argnums",
        )

    def __index__(self) -> int:
        return operator.index(self._integer())

    def __int__(self) -> int:
        return int(self._integer())

    def _number(self) -> Any:
        return self._read(
            ConcretizationTypeError,
            "convert a traced value to a Python number",
            "keep computing with rune.numpy, or return the value and convert it outside",
        )

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    @property
    def device(self) -> None:
        """None: the device of a program is not known while it is traced.

        To functions that make arrays, None means the device of the other arrays.
        """
        return None

    def item(self) -> Any:
        """The single element as a Python scalar, if there is a value."""
        return np.asarray(self._number()).item()

    def tolist(self) -> object:
        """Nested Python lists, if there is a value."""
        return np.asarray(self._number()).tolist()

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Any:
        check_live(self)
        self._refuse(
            TracerArrayConversionError,
            "hand a traced value to NumPy",
            "use the function of the same name in rune.numpy",
        )

    # A traced value cannot change, so a copy is the value itself, as in JAX.
    def __copy__(self) -> ValueTracer:
        return self

    def __deepcopy__(self, memo: object) -> ValueTracer:
        return self

    def __repr__(self) -> str:
        return f"Traced<{self.type}>"

    # `==` compares elements, and an entry with a tracer as its key would outlive the trace.
    __hash__ = None  # type: ignore[assignment]


class TracedArray(ValueTracer, StageTracer):
    """A variable of a program being staged, as the user's function sees it."""

    __slots__ = ()


# So that isinstance(x, rune.Array), which users write in tree.map, holds while tracing as well; of
# the base class, so that functools.singledispatch prefers a function for tracers, as JAX's (sepes).
Array.register(Tracer)
