"""Elements by number, computed by one thread from the source through all stages.

If only reordering stages lie between the rows of arrays and a batch, the batch is read from the
arrays in one step; otherwise its elements are computed one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from rune import tree
from rune.data.numbers import members, sources
from rune.data.stages import Batch, Enumerate, Items, Map, Node, Prefetch, Repeat, Rows, Shard, Shuffle
from rune.errors import Frame, ShapeError
from rune.ops.promote import refuse_mask
from rune.transforms.tree_difference import paths


def element(stage: Node, number: int) -> object:
    """One element. Ignores workers and read-ahead of earlier stages: this thread does it all."""
    return next(each(stage, np.array([number])))


def each(stage: Node, numbers: np.ndarray) -> Iterator[object]:
    """Elements, each computed when the iterator reaches it."""
    match stage:
        case Rows(arrays, size):
            return (tree.map(lambda a, n=n: a[n], arrays) for n in (numbers % size).tolist())
        case Items(sequence):
            return (sequence[n] for n in (numbers % len(sequence)).tolist())
        case Shuffle(up) | Shard(up) | Repeat(up):
            return each(up, sources(stage, numbers))
        case Map(up):
            return (applied(stage, x) for x in each(up, numbers))
        case Enumerate(up):
            return zip(numbers.tolist(), each(up, numbers))
        case Batch():
            return (_batch(stage, members(stage, n)) for n in numbers.tolist())
        case Prefetch(up):
            return each(up, numbers)
        case _:
            raise AssertionError(stage)


def applied(stage: Map, x: object) -> object:
    """The function's result. Adds to its errors a note of where the user called `map`."""
    try:
        return stage.function(x)
    except Exception as error:
        if stage.line is not None:
            error.add_note(f"in the function of map, at {stage.line}")
        raise


def _batch(stage: Batch, numbers: np.ndarray) -> object:
    up = stage.upstream
    while isinstance(up, Shuffle | Shard | Repeat):
        numbers = sources(up, numbers)
        up = up.upstream
    if isinstance(up, Rows):
        indices = numbers % up.size
        return filled(stage, tree.map(lambda a: a[_slice(indices)], up.arrays), len(indices))
    return batch_of(stage, list(each(up, numbers)))


def _slice(indices: np.ndarray) -> slice | np.ndarray:
    """Consecutive indices as a slice, for which NumPy copies nothing."""
    first, count = int(indices[0]), len(indices)
    is_dense = int(indices[-1]) - first == count - 1 and (count < 3 or bool((np.diff(indices) == 1).all()))
    return slice(first, first + count) if is_dense else indices


def batch_of(stage: Batch, rows: Sequence[object]) -> object:
    """The elements stacked. Errors: ShapeError if they do not stack; ArgumentError for masks."""
    leaves, treedef = tree.flatten(rows[0])
    columns = [leaves] + [_same_leaves(stage, n, x, treedef) for n, x in enumerate(rows[1:], 1)]
    arrays = [_stack(stage.line, paths(treedef)[k], column) for k, column in enumerate(zip(*columns))]
    return filled(stage, tree.unflatten(treedef, arrays), len(rows))


def _same_leaves(stage: Batch, number: int, row: object, treedef: object) -> list[object]:
    leaves, other = tree.flatten(row)
    if other != treedef:
        raise ShapeError(
            f"batch: cannot stack element {number} with element 0 ({other} and {treedef})", frame=stage.line
        )
    return leaves


def _stack(line: Frame | None, path: str, column: Sequence[object]) -> np.ndarray:
    for x in column:
        refuse_mask("batch", x)
    arrays = [np.asarray(x) for x in column]
    odd = next((n for n, a in enumerate(arrays) if a.shape != arrays[0].shape), None)
    if odd is None:
        return np.stack(arrays)
    shapes = " and ".join(f"[{','.join(map(str, a.shape))}]" for a in (arrays[odd], arrays[0]))
    raise ShapeError(
        f"batch: cannot stack element {odd} with element 0 (shapes {shapes}{path and f' of {path}'})",
        hint="bring them to one shape in a map before the batch",
        frame=line,
    )


def filled(stage: Batch, batch: object, count: int) -> object:
    """The batch; if the remainder is "pad", a pair of the padded batch and its mask."""
    if stage.remainder != "pad":
        return batch
    missing = stage.size - count
    mask = np.arange(stage.size) < count
    return (tree.map(lambda a: _padded(a, missing), batch), mask) if missing else (batch, mask)


def _padded(a: np.ndarray, missing: int) -> np.ndarray:
    return np.concatenate([a, np.zeros((missing, *a.shape[1:]), a.dtype)])
