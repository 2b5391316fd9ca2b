"""Elements of concrete arrays on the CPU, read by NumPy at once: `x[3]`, `x[1:5, None]`, `x[rows]`.

Most indices mean the same to NumPy: integers within bounds, slices, new axes, integer arrays within
bounds and masks. Parsing them and choosing among slices and gathers takes ten times as long as
reading. All other indices are read as under a transformation (ops/subscript.py), which also words
the errors.
"""

from __future__ import annotations

import numpy as np

from rune import config, dtypes
from rune.array import CPU, Array
from rune.core.interpreter import is_evaluating
from rune.ops.subscript import read
from rune.transforms.eager import is_plain


def item(self: Array, index: object) -> Array:
    """The elements at an index; an integer out of bounds is clamped."""
    elements = _elements(self, index) if self.place.device is None and _computes_at_once() else None
    return read(self, index) if elements is None else Array(elements, self.type.with_shape(elements.shape), self.place)


def reshaped(x: Array, shape: object) -> Array | None:
    """The elements in row-major order in another shape; None unless NumPy reshapes as we do."""
    sizes = shape if type(shape) is tuple else (shape,)
    if x.place.device is not None or not all([type(d) is int for d in sizes]) or not _computes_at_once():
        return None
    try:
        elements = x.buffer.reshape(sizes)
    except ValueError:  # another number of elements
        return None
    return Array(elements, x.type.with_shape(elements.shape), x.place)


def attach() -> None:
    """Give the method to `Array`: traced values keep that of `Operators`."""
    Array.__getitem__ = item  # type: ignore[method-assign,assignment]


def _computes_at_once() -> bool:
    return is_plain(config.current()) and is_evaluating()


def _elements(x: Array, index: object) -> np.ndarray | None:
    """NumPy's elements, a view for a basic index; None for an index that it may read otherwise."""
    buffer = x.buffer
    if type(index) is Array:
        return _elements_at(buffer, index) if index.place is CPU else None
    entries = index if type(index) is tuple else (index,)
    # The ellipsis makes NumPy return an array, and not a scalar.
    return buffer[(*entries, ...)] if _is_basic(entries, buffer.shape) else None


def _is_basic(entries: tuple[object, ...], shape: tuple[int, ...]) -> bool:
    """Whether there are only integers within bounds, slices between known numbers and new axes."""
    axis = 0
    for entry in entries:
        if entry is None:
            continue
        if axis == len(shape):
            return False
        if type(entry) is int:
            if not -shape[axis] <= entry < shape[axis]:
                return False
        elif type(entry) is not slice or not _is_known(entry):
            return False
        axis += 1
    return True


def _is_known(run: slice) -> bool:
    start, stop, step = run.start, run.stop, run.step
    is_plain_range = (start is None or type(start) is int) and (stop is None or type(stop) is int)
    return is_plain_range and (step is None or (type(step) is int and step != 0))


def _elements_at(buffer: np.ndarray, index: Array) -> np.ndarray | None:
    """The elements at an array of positions, or where a mask is true."""
    dtype, shape = index.type.dtype, index.type.shape
    if dtype == dtypes.bool_:
        return buffer[index.buffer] if shape and shape == buffer.shape[: len(shape)] else None
    if dtype not in dtypes.INTEGER or not buffer.shape:
        return None
    try:
        return np.asarray(buffer.take(index.buffer, axis=0))
    except (IndexError, TypeError):  # out of bounds, or positions of 64 bits without a sign
        return None
