"""The text of a pipeline: the calls that made it and the types of a row, but never its data.

Pipeline(46 elements: file('x.npz', label i64[], signal f32[257]).shuffle().batch(128, 'drop'))
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rune import dtypes, tree
from rune.data.numbers import ENDLESS, length
from rune.data.stages import (
    Batch,
    Enumerate,
    FileRows,
    Items,
    Map,
    Node,
    Prefetch,
    Processes,
    Repeat,
    Rows,
    Shard,
    Shuffle,
    Stage,
    Stream,
    Workers,
)
from rune.transforms.arguments import function_name

LEAVES = 6  # the most leaves of a row that are shown


def pipeline_text(stage: Node) -> str:
    """The number of elements, and the calls in the order in which they were made."""
    size = length(stage)
    count = "a stream" if size is None else "endless" if size == ENDLESS else f"{int(size)} element{'s' * (size != 1)}"
    return f"{count}: {'.'.join(reversed([*_calls(stage)]))}"


def _calls(stage: Node) -> Iterator[str]:
    """The calls, the last one first."""
    while isinstance(stage, Stage):
        yield _call(stage)
        stage = stage.upstream
    yield _source(stage)


def _source(stage: Node) -> str:
    match stage:
        case FileRows():
            return f"file({Path(stage.path).name!r}, {_row(stage)})"
        case Rows():
            return f"arrays({_row(stage)})"
        case Items(sequence):
            return f"sequence({type(sequence).__name__})"
        case Stream(iterable):
            return f"iterable({type(iterable).__name__})"
        case _:
            raise AssertionError(stage)


def _call(stage: Stage) -> str:
    match stage:
        case Shuffle(buffer=buffer):
            return "shuffle()" if buffer is None else f"shuffle(buffer={buffer})"
        case Shard(index=index, count=count):
            return f"shard({index}, {count})"
        case Repeat(epochs=epochs):
            return f"repeat({'' if epochs is None else epochs})"
        case Map(function=function, workers=workers):
            return f"map({function_name(function)}{_crew(workers)})"
        case Enumerate():
            return "enumerate()"
        case Batch(size=size, remainder=remainder):
            return f"batch({size}, {remainder!r})"
        case Prefetch(device=device, depth=depth):
            return f"prefetch({'' if device is None else f'{device}, '}depth={depth})"
        case _:
            raise AssertionError(stage)


def _crew(workers: Workers | None) -> str:
    if workers is None:
        return ""
    return f", workers={f'Processes({workers.count})' if isinstance(workers, Processes) else workers.count}"


def _row(stage: Rows) -> str:
    """The leaves of a row with their types."""
    leaves = tree.leaves_with_path(stage.arrays)
    leaf_texts = [
        f"{tree.keystr(path, simple=True, separator='.')} {dtypes.short(a.dtype)}{_sizes(a.shape[1:])}".strip()
        for path, a in leaves[:LEAVES]
    ]
    return ", ".join([*leaf_texts, *["..."] * (len(leaves) > LEAVES)])


def _sizes(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]"
