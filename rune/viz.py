"""rune.viz: pictures for everyday work, each by one call.

    viz.curves({"training": losses, "test": others}, y="loss")    lines over steps
    viz.schedule(rate, 1000)                                      a rate that depends on the step
    viz.timeline(profile)                                         what ran when, and memory
    viz.memory(rune.explain(f)(x))                                where intermediate values are
    viz.times(rune.explain(f)(x).measured(profile))               predicted and measured
    viz.shards(x)                                                 which device holds which block

A picture is SVG in the reader's text colour, so that it suits light and dark pages. A notebook
shows it as the last line of a cell, and `.save("loss.svg")` writes it. No other package is needed.
"""

from __future__ import annotations

import typing as _typing
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rune.absent import of as _absent
from rune.array import Array
from rune.drawing import bars as _bars
from rune.drawing import blocks as _blocks
from rune.drawing import curves as _curves
from rune.drawing.svg import Picture
from rune.errors import ArgumentError
from rune.listing import names as _names
from rune.lowering.kernelize.cost import estimate
from rune.profiling import Profile, time_text
from rune.sharding import Sharding, picture
from rune.transforms.inspect.explanations import Explanation
from rune.transforms.inspect.plan_picture import plan_picture
from rune.typing import ArrayLike

__all__ = ["Picture", "curves", "memory", "schedule", "shards", "timeline", "times"]

_K = _typing.TypeVar("_K")
Series = ArrayLike | Sequence[object] | tuple[object, object]  # heights, or positions and heights


def curves(
    series: Mapping[str, Series] | Series, *, title: str = "", x: str = "step", y: str = "", logarithmic: bool = False
) -> Picture:
    """Lines over steps: losses, accuracies, or any list of numbers.

    series:      the numbers of each line by its name, or the numbers of one line; a pair of vectors
                 of the same length gives the positions and heights of points
    title, x, y: the texts above the picture and at the axes
    logarithmic: whether the vertical axis is. Then numbers that are not positive leave gaps, as
                 those that are not finite always do
    Shapes: each line [N], or a pair of [N]
    Errors: ArgumentError if a line is not a vector, and for a pair of different lengths.

    >>> import rune
    >>> rune.viz.curves({"training": [3.0, 1.0, 0.5], "test": ([0, 2], [3.2, 0.7])}, y="loss")
    Picture(curves of training, test, 644 x 310; shown in a notebook, or by .save("picture.svg"))
    """
    lines = series if isinstance(series, Mapping) else {y or "value": series}
    points = {name: _points(name, numbers) for name, numbers in lines.items()}
    return _curves.curves(points, title, x, y, logarithmic)


def _points(name: str, numbers: object) -> list[tuple[float, float]]:
    """The (x, y) points of a line."""
    up = np.asarray(numbers[1] if _is_pair(numbers) else numbers, float)
    along = np.asarray(numbers[0], float) if _is_pair(numbers) else np.arange(up.size, dtype=float)
    if up.ndim != 1 or along.shape != up.shape:
        raise ArgumentError(f"viz.curves: cannot draw {name!r} ({list(along.shape)} and {list(up.shape)}; vectors)")
    return list(zip(along.tolist(), up.tolist(), strict=True))


def _is_pair(numbers: object) -> _typing.TypeGuard[tuple[object, object]]:
    """Whether this is a pair of vectors (positions, heights), and not two numbers."""
    return isinstance(numbers, tuple) and len(numbers) == 2 and all(np.ndim(np.asarray(n)) for n in numbers)


def _of(kind: type[_K], name: str, value: object) -> _K:
    """The value, checked to be of this class. Errors: ArgumentError."""
    if not isinstance(value, kind):
        raise ArgumentError(f"viz.{name}: cannot draw {type(value).__name__} ({kind.__name__} required)")
    return value


def schedule(rate: Callable[[int], ArrayLike], steps: int, *, title: str = "", y: str = "learning rate") -> Picture:
    """A rate that depends on the step, such as those of `rune.optim`.

    rate:   a function from a step to a number
    steps:  the number of steps to draw
    Shapes: a rate is a number, []
    Errors: TypeError if a rate is not a number

    >>> import rune
    >>> rune.viz.schedule(lambda step: 0.1 * 0.5 ** (step // 10), 30, title="halved")
    Picture(halved, 644 x 310; shown in a notebook, or by .save("picture.svg"))
    """
    return curves({y: [float(np.asarray(rate(step))) for step in range(steps)]}, title=title, y=y)


def timeline(profile: Profile) -> Picture:
    """What ran when: a band for each device and thread, with the memory of each device below.

    Errors: ArgumentError if it is not a profile.

    >>> import rune, rune.numpy as rnp
    >>> with rune.debug.profile() as p:
    ...     _ = rune.jit(rnp.sin)(rnp.ones(2))
    >>> rune.viz.timeline(p)  # doctest: +ELLIPSIS
    Picture(timeline of ...; shown in a notebook, or by .save("picture.svg"))
    """
    return _of(Profile, "timeline", profile).picture()


def memory(explanation: Explanation) -> Picture:
    """Where the intermediate values of a program are in memory, and over which steps.

    explanation: a result of `rune.explain`
    Errors: ArgumentError for a program without intermediate values in memory, or another value.

    >>> import rune, rune.numpy as rnp
    >>> e = rune.explain(lambda x: rnp.sum(x @ x @ x))(rnp.ones((64, 64)))
    >>> rune.viz.memory(e)  # doctest: +ELLIPSIS
    Picture(arena of 32 KiB over 3 steps, ...; shown in a notebook, or by .save("picture.svg"))
    """
    explanation = _of(Explanation, "memory", explanation)
    if not estimate(explanation.plan.arena_bytes):
        raise ArgumentError(
            f"viz.memory: cannot draw the memory of {explanation.name} (it has no intermediate values in memory)"
        )
    return plan_picture(explanation.plan)


def times(explanation: Explanation) -> Picture:
    """How long each step takes: predicted, and measured if the explanation has a profile.

    explanation: a result of `rune.explain`, or of its `.measured(profile)`
    Errors: ArgumentError if it is not an explanation.

    >>> import rune, rune.numpy as rnp
    >>> rune.viz.times(rune.explain(rnp.sin)(rnp.ones(64)))  # doctest: +ELLIPSIS
    Picture(steps of sin on cpu:0, ...; shown in a notebook, or by .save("picture.svg"))
    """
    explanation = _of(Explanation, "times", explanation)
    amounts = {t.name: (t.predicted, t.measured) for t in explanation.times()}
    title = f"steps of {explanation.name} on {explanation.device}"
    return _bars.bars(amounts, ("predicted", "measured"), title, time_text)


def shards(array: Array | Sequence[int], sharding: Sharding | None = None) -> Picture:
    """Which device holds which block of a vector or a matrix.

    array:     an array, or a shape together with the sharding of an array of that shape
    Shapes:    [N] or [N, M]
    Errors:    ArgumentError for another rank; ShapeError if the blocks would not be equal.

    >>> import rune, rune.numpy as rnp
    >>> from rune.sharding import Mesh, NamedSharding, P
    >>> halves = NamedSharding(Mesh(["cpu:0", "reference:0"], "data"), P("data"))
    >>> rune.viz.shards((6, 4), halves)  # doctest: +ELLIPSIS
    Picture([6, 4] by ...; shown in a notebook, or by .save("picture.svg"))
    """
    if type(array) is Array:
        shape, sharding = tuple(array.buffer.shape), array.sharding
    elif isinstance(array, Array):
        raise ArgumentError(
            f"viz.shards: cannot draw the blocks of a {type(array).__name__} (an Array or a shape required)",
            hint="inside a transformed function no device holds a value yet; draw what the function returns",
        )
    else:
        shape = tuple(array)
    if sharding is None:
        raise ArgumentError("viz.shards: cannot draw the blocks of a shape without a sharding")
    grid = picture.grid_of("viz.shards", shape, sharding)
    holders = [[picture.label(devices) for devices in row] for row in grid.holders]
    return _blocks.blocks(grid.rows, grid.columns, holders, f"{list(shape)} by {sharding!r}")


if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
