"""What type checkers know about carries and rows: types for the signatures of loops.

A loop passes its function the carry it received: a carry of type C arrives as C. Python's and
NumPy's numbers arrive as arrays, so trees that contain numbers have signatures of their own. Those
must not also fit trees of arrays: where two signatures fit, mypy infers Any for a lambda.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Number: TypeAlias = complex | np.generic | np.ndarray

Deep: TypeAlias = "Number | Mapping[Any, Deep] | Sequence[Deep]"  # a tree of numbers only

# The first elements of a tuple decide; later and deeper ones are not checked.
Numbers: TypeAlias = (
    tuple[Number, *tuple[Any, ...]]
    | tuple[Any, Number, *tuple[Any, ...]]
    | tuple[Any, Any, Number, *tuple[Any, ...]]
    | Mapping[Any, Deep]
    | Sequence[Deep]
)

# A display of numbers and arrays fits these, but so does a display of arrays alone. So signatures
# that use them come last.
Mixed: TypeAlias = dict[str, object] | list[object]

Rows: TypeAlias = np.ndarray | Numbers | Mixed

Numeric: TypeAlias = Number | Numbers | Mixed  # an operand that may arrive as another type
