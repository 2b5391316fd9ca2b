"""What type checkers know about carries and rows: types for the signatures of loops.

A loop gives its function what it was given: a carry of type C arrives as C. Python's and NumPy's
numbers arrive as arrays, so trees with numbers in them have signatures of their own. Those must not
fit trees of arrays as well: of a lambda mypy infers Any where two signatures fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = complex | np.generic | np.ndarray

Deep: TypeAlias = "Number | Mapping[Any, Deep] | Sequence[Deep]"  # a tree of numbers and of nothing else

# The first elements of a tuple decide; later and deeper ones are not checked.
Numbers: TypeAlias = (
    tuple[Number, *tuple[Any, ...]]
    | tuple[Any, Number, *tuple[Any, ...]]
    | tuple[Any, Any, Number, *tuple[Any, ...]]
    | Mapping[Any, Deep]
    | Sequence[Deep]
)

# A display of numbers and arrays fits these, and so does one of arrays alone: they come last.
Mixed: TypeAlias = dict[str, object] | list[object]

Rows: TypeAlias = np.ndarray | Numbers | Mixed

Numeric: TypeAlias = Number | Numbers | Mixed  # an operand that may arrive as another type
