"""Message passing over graphs: nodes as rows, edges as pairs of node numbers.

Padding: an edge whose receiver is the number of nodes (or any number out of range) is ignored, so
         that graphs of any size can share one compiled program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import rune.numpy as rnp
from rune import ops
from rune.array import Array
from rune.dims import Size
from rune.errors import ArgumentError, ShapeError
from rune.ops.family import wide
from rune.typing import ArrayLike

Combine = Literal["sum", "mean", "max"]


def aggregate(values: ArrayLike, segments: ArrayLike, count: Size, combine: Combine = "sum") -> Array:
    """The sum, mean or maximum of the rows of each segment; 0 for a segment without rows.

    Shapes: values [E, *F], segments i32[E] of 0…count-1 -> [count, *F]; rows of other segments are
            left out.
    Types:  numeric, that of `values`; the mean of integers is a float.
    Errors: ArgumentError for another way to combine.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.aggregate(rnp.array([1.0, 2.0, 4.0]), rnp.array([0, 0, 2]), 3)
    Array([3., 0., 4.], f32[3], cpu:0)
    """
    values, segments = rnp.asarray(values), rnp.asarray(segments)
    if combine not in ("sum", "mean", "max"):
        raise ArgumentError(f"aggregate: cannot combine by {combine!r} (sum, mean or max)")
    rows = ops.segment_sum(rnp.ones(segments.shape, "i32"), segments, count)
    sizes = rnp.reshape(rows, (count, *(1,) * (values.ndim - 1)))
    if combine == "max":
        return rnp.where(sizes > 0, ops.segment_max(values, segments, count), 0)
    # A sum of half types would stop growing, and a count of many rows be infinite.
    total = ops.segment_sum(values.astype(wide(values.dtype)), segments, count)
    combined = total if combine == "sum" else total / rnp.maximum(sizes, 1).astype(total.dtype)
    return combined if total.dtype == values.dtype else combined.astype(values.dtype)


def message_passing(
    nodes: Any,
    senders: ArrayLike,
    receivers: Any,
    message: Callable[..., Array] | None = None,
    edges: ArrayLike | None = None,
    combine: Combine = "sum",
) -> Array:
    """The combined messages that each node receives along its edges.

    Shapes: nodes [N, *F], senders and receivers i32[E], edges [E, *G] or None -> [N, *M].
    Types:  numeric, those of the results of `message`.
    message: (sender rows, receiver rows, edge rows) -> [E, *M]; by default the sender's row.
    Source: Gilmer et al. 2017, arXiv:1704.01212.
    Errors: DtypeError if an argument is not an array, for bools as `nodes`, unless `senders` are
            integers or bools, and unless `receivers` are integers; ShapeError if the shapes do not
            match; AxisError for an axis out of range.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> nn.message_passing(rnp.array([1.0, 2.0]), rnp.array([0, 1]), rnp.array([1, 1]))
    Array([0., 3.], f32[2], cpu:0)
    """
    nodes = rnp.asarray(nodes)
    messages = nodes[rnp.asarray(senders)]
    if message is not None:
        messages = message(messages, nodes[rnp.asarray(receivers)], edges)
    return aggregate(messages, receivers, nodes.shape[0], combine)


def gcn_layer(
    nodes: ArrayLike, senders: ArrayLike, receivers: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None
) -> Array:
    """D^-½ (A + I) D^-½ X W + b: a graph convolution with self-loops.

    Shapes: nodes [N, F], weight [F, H], bias [H] -> [N, H]; degrees D count edges by receiver,
            and the loop. For a symmetric graph list every edge both ways.
    Types:  bools and integers become floats.
    Source: Kipf & Welling 2016, arXiv:1609.02907.
    Errors: DtypeError if an argument is not an array, unless `senders` are integers or bools, and
            unless `receivers` are integers; ShapeError if the shapes do not match.

    >>> import rune.nn as nn, rune.numpy as rnp
    >>> x, none = rnp.array([[1.0], [2.0]]), rnp.zeros(0, "i32")
    >>> nn.gcn_layer(x, none, none, rnp.ones((1, 1)))
    Array([[1.],
           [2.]], f32[2,1], cpu:0)
    """
    features, weight = rnp.asarray(nodes), rnp.asarray(weight)
    if features.ndim != 2 or weight.ndim != 2:
        raise ShapeError(f"gcn_layer: cannot take nodes {features.type} and weight {weight.type} (matrices)")
    x = features @ weight
    count = x.shape[0]
    receivers = rnp.asarray(receivers)
    degrees = aggregate(rnp.ones(receivers.shape, x.dtype), receivers, count) + 1
    roots = 1 / rnp.sqrt(degrees)[:, None]
    out = roots * (message_passing(x * roots, senders, receivers) + x * roots)
    return out if bias is None else out + bias
