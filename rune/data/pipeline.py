"""Pipelines: where elements come from, their order, the work on them, and the device they go to.

A pipeline is a chain of frozen stages (stages.py); each method adds one. No work is done until it
is iterated; an `Iterator` is one run of it, with a position.

If the source has a length, a pipeline is a function of an element's number: numbers continue from
one pass over the source (an epoch) to the next, and each stage computes which elements of the
stage before it an element is made of (numbers.py). So a run can start anywhere, and its state is a
number. A source that can only be iterated is a stream; its state is how much of it has been used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, SupportsInt

from rune import processes, random
from rune.array import Array
from rune.data.display import pipeline_text
from rune.data.elements import element
from rune.data.iterator import Iterator
from rune.data.numbers import ENDLESS, fingerprint, length, order
from rune.data.placing import Where, destination
from rune.data.stages import (
    Batch,
    Enumerate,
    Map,
    Node,
    Prefetch,
    Remainder,
    Repeat,
    Shard,
    Shuffle,
    Stage,
    Threads,
    Workers,
)
from rune.errors import ArgumentError, BoundsError, user_frame
from rune.records import dataclass


@dataclass(frozen=True, repr=False)
class Pipeline:
    """Elements of a source, and the stages that they pass through. Each method appends a stage.

    stage:  the last stage
    Errors: none; `rune.data.arrays` and the other sources make pipelines.

    >>> from rune import data
    >>> batches = data.sequence(range(5)).map(lambda x: x * 10).batch(2)
    >>> len(batches), batches[1], [b.tolist() for b in batches]
    (3, array([20, 30]), [[0, 10], [20, 30], [40]])
    >>> batches
    Pipeline(3 elements: sequence(range).map(lambda).batch(2, 'keep'))
    """

    stage: Node

    def __repr__(self) -> str:
        return f"Pipeline({pipeline_text(self.stage)})"

    # --- order --------------------------------------------------------------------------------

    def shuffle(self, key: int | Array, buffer: int | None = None) -> Pipeline:
        """The same elements in an order drawn by the key, different in each epoch.

        key:    a key of `rune.random`, or the seed of one
        buffer: for streams, the number of waiting elements from which the next one is drawn
        Errors: ArgumentError if `key` is not a key, for a stream without `buffer`, and for `buffer`
                with any other source.

        >>> from rune import data
        >>> sorted(data.sequence(range(5)).shuffle(0))
        [0, 1, 2, 3, 4]
        """
        if (length(self.stage) is None) != (buffer is not None):
            specifics = "streams need one, of at least 1" if buffer is None else "the length is known"
            raise ArgumentError(f"shuffle: cannot shuffle with buffer={buffer} ({specifics})")
        if buffer is not None:
            _require_count("shuffle", "buffer", buffer)
        return Pipeline(Shuffle(self.stage, _words(key), buffer, line=user_frame()))

    def shard(self, index: int | None = None, count: int | None = None) -> Pipeline:
        """The part of one process: every `count`-th element, beginning with `index`.

        All parts have the same length, so up to `count` - 1 elements at the end are left out.
        Without arguments it is the part of this process of `rune.distributed`.

        Errors: ArgumentError if the index is not in 0 .. count - 1.

        >>> from rune import data
        >>> list(data.sequence(range(7)).shard(1, 3))
        [1, 4]
        """
        world = processes.current()
        index, count = world.index if index is None else index, world.count if count is None else count
        if not 0 <= index < count:
            raise ArgumentError(f"shard: cannot take part {index} of {count} (0 to {count - 1} required)")
        return Pipeline(Shard(self.stage, index, count, line=user_frame()))

    def repeat(self, epochs: int | None = None) -> Pipeline:
        """Several passes over the elements, one after another; None repeats without end.

        Errors: ArgumentError if `epochs` is not at least 1.

        >>> from rune import data
        >>> list(data.sequence("ab").repeat(2))
        ['a', 'b', 'a', 'b']
        """
        if epochs is not None:
            _require_count("repeat", "epochs", epochs)
        return Pipeline(Repeat(self.stage, epochs, line=user_frame()))

    # --- work ---------------------------------------------------------------------------------

    def map(self, function: Callable[[Any], Any], workers: int | Workers | None = None) -> Pipeline:
        """`function(element)` for each element, in order.

        workers: None runs it in the thread that iterates; otherwise a number of threads,
                 `Threads(n)` or `Processes(n)`. Workers also run all earlier stages, including
                 reading the source, and a `batch` that follows directly; a batch is then one task.
        Errors:  those of the function, with a note that names the line that called `map`;
                 ArgumentError if the number of workers is not at least 1.

        >>> from rune import data
        >>> [b.tolist() for b in data.sequence(range(4)).map(lambda x: -x, workers=2).batch(2)]
        [[0, -1], [-2, -3]]
        """
        if not callable(function):
            raise ArgumentError(f"map: cannot call {type(function).__name__} (a function required)")
        crew = Threads(workers) if isinstance(workers, int) else workers
        if crew is not None:
            _require_count("map", "workers", crew.count)
        return Pipeline(Map(self.stage, function, crew, line=user_frame()))

    def enumerate(self) -> Pipeline:
        """Pairs of an element's number and the element; numbers continue across epochs.

        `rune.random.fold_in(key, number)` gives each element a key that does not depend on workers.

        Errors: none.

        >>> from rune import data
        >>> list(data.sequence("ab").enumerate().repeat(2))
        [(0, 'a'), (1, 'b'), (2, 'a'), (3, 'b')]
        """
        return Pipeline(Enumerate(self.stage, line=user_frame()))

    def batch(self, size: int, remainder: Remainder = "keep") -> Pipeline:
        """Elements in batches of `size`: trees of NumPy arrays with a new leading axis.

        remainder: what to do with fewer than `size` elements at the end of an epoch: "keep" makes
                   a smaller batch, for which a function with a symbolic size (`dims`) is not
                   compiled again; "drop" leaves them out; "pad" fills the batch up with zeros. With
                   "pad" every batch is a pair of the batch and a mask bool[size], which is True for
                   elements and False for padding.
        Errors:    ArgumentError if the size is not at least 1, and for an unknown remainder;
                   ShapeError, during iteration, if elements do not stack.

        >>> from rune import data
        >>> pairs = data.sequence([1.0, 2.0, 3.0]).batch(2, remainder="pad")
        >>> [(x.tolist(), mask.tolist()) for x, mask in pairs]
        [([1.0, 2.0], [True, True]), ([3.0, 0.0], [True, False])]
        """
        _require_count("batch", "size", size)
        if remainder not in ("drop", "keep", "pad"):
            raise ArgumentError(f"batch: cannot use remainder={remainder!r} ('drop', 'keep' or 'pad' required)")
        return Pipeline(Batch(self.stage, size, remainder, line=user_frame()))

    def prefetch(self, device: Where = None, depth: int = 2) -> Pipeline:
        """The same elements as arrays on a device, prepared ahead of their use by other threads.

        device: a device, its name, or a Sharding, to which each process contributes its own rows;
                None means the default device, without committing arrays to it. Leaves that are not
                numbers stay as they are. On CUDA devices, copies go through pinned memory on a
                separate stream, while programs run.
        depth:  how many elements may be ready on the device while one is in use; meanwhile one
                thread reads the next element and another sends it
        Errors: ArgumentError if the depth is not at least 1; DeviceError for an unknown device.

        >>> from rune import data
        >>> list(data.sequence([1.0, 2.0]).batch(2).prefetch("cpu"))
        [Array([1., 2.], f32[2], cpu:0)]
        """
        _require_count("prefetch", "depth", depth)
        return Pipeline(Prefetch(self.stage, destination(device), depth, line=user_frame()))

    # --- use ----------------------------------------------------------------------------------

    def __iter__(self) -> Iterator:
        return Iterator(self.stage, 0)

    def restore(self, state: Mapping[str, SupportsInt]) -> Iterator:
        """A run that continues at the position that `Iterator.state` returned.

        The pipeline must produce the same order: the same kind of source, length, shuffles, shards,
        batches and epochs. Functions, workers and devices may differ. A stream is read again up to
        that position; functions mapped before a shuffle or repetition of it are called again.

        Errors: ArgumentError for anything but a state of a pipeline with the same order.

        >>> from rune import data
        >>> letters = iter(data.sequence("abc"))
        >>> first, state = next(letters), letters.state()
        >>> list(data.sequence("abc").restore(state))
        ['b', 'c']
        """
        if not isinstance(state, Mapping) or set(state) != {"element", "order"}:
            raise ArgumentError(f"restore: cannot go on from {state!r} (the state() of an iterator required)")
        if int(state["order"]) != fingerprint(self.stage):
            raise ArgumentError(
                f"restore: cannot go on from the state of another order (this one is {order(self.stage)})",
                hint="a state fits pipelines of the same source, shuffles, shards, batches and epochs",
            )
        return Iterator(self.stage, int(state["element"]))

    def __len__(self) -> int:
        size = length(self.stage)
        if size is None or size == ENDLESS:
            raise TypeError(f"a pipeline of {order(self.stage)} has no length")
        return int(size)

    def __getitem__(self, number: int) -> Any:
        """An element by its number; numbers past the length belong to later epochs."""
        if length(self.stage) is None:
            raise ArgumentError(f"pipeline: cannot find element {number} of a stream (it can be iterated only)")
        if length(self.stage) == 0 or number < 0:
            raise BoundsError(
                f"pipeline: cannot find element {number} ({length(self.stage)} in an epoch, counted from 0)"
            )
        return element(self.stage, number)

    @property
    def dims(self) -> dict[str, tuple[int, int]]:
        """The range of batch sizes, in the form that `rune.jit` takes as `dims`.

        Errors: ArgumentError if the pipeline makes no batches.

        >>> import rune, rune.numpy as rnp
        >>> batches = rune.data.arrays(rnp.arange(5.0)).batch(2)
        >>> total = rune.jit(rnp.sum, dims=batches.dims)
        >>> [float(total(b)) for b in batches], total.cache_size()
        ([1.0, 5.0, 4.0], 1)
        """
        stage = self.stage
        while isinstance(stage, Stage) and not isinstance(stage, Batch):
            stage = stage.upstream
        if not isinstance(stage, Batch):
            raise ArgumentError(f"dims: cannot read the size of batches of {order(self.stage)} (it has none)")
        return {"batch": (1 if stage.remainder == "keep" else stage.size, stage.size)}


def _require_count(operation: str, name: str, count: object) -> None:
    """Errors: ArgumentError "batch: cannot use size=0 (a whole number of at least 1 required)"."""
    if type(count) is not int or count < 1:
        raise ArgumentError(f"{operation}: cannot use {name}={count!r} (a whole number of at least 1 required)")


def _words(key: int | Array) -> tuple[int, ...]:
    """The words of a key as numbers."""
    return tuple(map(int, random.key_data(random.key(key) if isinstance(key, int) else key).numpy().ravel()))
