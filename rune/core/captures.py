"""Captures: outside values that a program being written reads become its leading inputs."""

from __future__ import annotations

import numpy as np

from rune.core.escapes import check_encloses
from rune.core.interpreter import Interpreter, Tracer, type_of
from rune.core.program import Var
from rune.core.values import Value


class Captures:
    """The values that an interpreter's program reads from outside, and their variables, in order.

    outside: the parent of that interpreter; a captured tracer may belong to one further out
    copies:  whether NumPy data is copied, since it may be written to later; an inner program leaves
             this to the outermost one
    entries: variable and value, by the id of the value
    """

    __slots__ = ("_copies", "_outside", "copies", "entries")

    def __init__(self, outside: Interpreter | None, copies: bool):
        self._outside, self.copies = outside, copies
        # Entries hold the values, so that no other object can get the id of one. They do not hold
        # the interpreter: in a cycle, its values would outlive it.
        self.entries: dict[int, tuple[Var, Value]] = {}
        self._copies: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def variable(self, value: Value) -> Var:
        """The variable of a value. Errors: EscapedTracerError for a tracer from anywhere else."""
        if self.copies and isinstance(value, np.ndarray):
            value = self._as_now(value)
        if id(value) not in self.entries:
            if isinstance(value, Tracer):
                check_encloses(value, self._outside)
            self.entries[id(value)] = (Var(type_of(value)), value)
        return self.entries[id(value)][0]

    def _as_now(self, value: np.ndarray) -> np.ndarray:
        _, copy = self._copies.get(id(value), (value, None))
        if copy is None or copy.tobytes() != value.tobytes():
            copy = value.copy()
            self._copies[id(value)] = value, copy
        return copy
