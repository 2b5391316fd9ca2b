"""The oracle: the NumPy meaning of a primitive, and of a program with nested programs inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rune.core.evaluate import eval_program
from rune.core.higher import HigherOrder
from rune.core.interpreter import Interpreter, current, use
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.ops.parts import PARTS
from tests.support.arrays import array


class Oracle(Interpreter):
    """Evaluates and never compiles, not even the programs that equations hold."""

    __slots__ = ()

    def process(self, primitive: Primitive, args: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if isinstance(primitive, HigherOrder) and primitive.interpret is not None:
            with use(self):
                return _arrays(primitive.interpret(eval_program, *args, **params))
        assert self.parent is not None
        return self.parent.process(primitive, args, params)


def _arrays(values: Sequence[Any]) -> list[Any]:
    """Numbers in a program as arrays; users' functions would canonicalise them."""
    return [array(v) if isinstance(v, np.ndarray) else v for v in values]


def reference(primitive: Primitive, *arrays: np.ndarray, **params: Any) -> np.ndarray:
    """The result by the primitive's own reference, without warnings."""
    assert primitive.reference is not None
    with np.errstate(all="ignore"):
        return np.asarray(primitive.reference(*arrays, **params))


def by_reference(program: Program, args: Sequence[Any]) -> list[Any]:
    """The outputs of a program, with no compiled code anywhere."""
    with use(Oracle(current())):
        return eval_program(program, args)


def by_parts(primitive: Primitive, *arrays: np.ndarray) -> np.ndarray:
    """The result of a function of complex numbers by the formulas of ops/parts.py, in NumPy."""
    parts = [(array(np.real(x).copy()), array(np.imag(x).copy())) if np.iscomplexobj(x) else array(x) for x in arrays]
    results = PARTS[primitive](*parts)
    if not isinstance(results, tuple):
        return np.asarray(results)
    out = np.empty(arrays[0].shape, arrays[-1].dtype)
    out.real, out.imag = results
    return out
