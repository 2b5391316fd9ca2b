"""Write the stream of a group: its sinks as one statement (kernels.Stream).

The scores and the peak come first. From there on the peak's name means the largest score so far,
and weights are written in terms of it; degrees (streams.py) say how sums change when it grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rune.core.lower import Contraction
from rune.core.program import Var
from rune.dims import Dim, Size
from rune.lowering.kernel.expr import Local
from rune.lowering.kernelize.emit import Emitter, Term
from rune.lowering.kernelize.group import Group
from rune.lowering.kernelize.roots import Root, inner_places, stream_operands
from rune.lowering.kernelize.stored import Storage
from rune.lowering.kernelize.views import Indices
from rune.lowering.kernels import Axes, Axis, Peak, Stream, Sum
from rune.ops.family import wide
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class StreamWriter:
    """Writes the stream of a group at a point of the domain, whose axes have these symbols."""

    storage: Storage
    group: Group
    emit: Emitter
    symbols: tuple[Dim, ...]

    def stream(self, roots: Sequence[Root]) -> tuple[Stream, Mapping[Var, str]]:
        """The statement of the sinks `roots`, and the names of their results."""
        first = self.storage.sinks[roots[0].var]
        axes = self.axes("j", (first.scores.type.shape[a] for a in first.along))
        at = tuple(a.symbol for a in axes)
        self.emit.begin(a.name for a in axes)
        peaks = [r for r in roots if self.storage.sinks[r.var].combine == "max"]
        peak = self.peak(peaks[0], at) if peaks else None
        # Lets written so far belong to the scores; without a peak there is none yet.
        scores, self.emit.lets = tuple(self.emit.lets), []
        sums = [r for r in roots if r not in peaks]
        # All weights before the first sum: what they need must not be within a loop over columns.
        summands = [self.weight(r, at) for r in sums]
        weights, self.emit.lets = tuple(self.emit.lets), []
        totals = tuple(self.total(r, w, at) for r, w in zip(sums, summands))
        self.emit.end()
        names = {r.var: s.name for r, s in zip(sums, totals)}
        if peak is not None:
            names[peaks[0].var] = peak.name
        return Stream(axes, scores, peak, weights, totals), names

    def peak(self, root: Root, at: Indices) -> Peak:
        """The largest score, which weights may read from here on."""
        ((atom, position),) = stream_operands(self.storage.sinks[root.var], self.place(root, ()), at)
        value = self.emit.value(atom, position)
        name = self.emit.fresh("max")
        self.emit.scalars[root.var] = Local(name, value.expr.dtype)
        return Peak(name, value.expr)

    def weight(self, root: Root, at: Indices) -> Term:
        """The scalar that a sum adds, or by which it multiplies a row."""
        columns = (0,) * len(inner_places(root, self.group.places[root.number]))
        atom, position = stream_operands(self.storage.sinks[root.var], self.place(root, columns), at)[0]
        return self.emit.cast(self.emit.value(atom, position), wide(root.var.type.dtype))

    def total(self, root: Root, weight: Term, at: Indices) -> Sum:
        """A sum of a stream."""
        sink, name = self.storage.sinks[root.var], self.emit.fresh("sum")
        degree = self.storage.degrees.get(root.var, 0)
        if not isinstance(sink.equation.primitive.lower, Contraction):
            return Sum(name, weight.expr, degree)
        places = inner_places(root, self.group.places[root.number])
        columns = self.axes("c", (root.sizes[k] for k in places))
        outer = self.emit.nested(columns)
        indices = self.place(root, tuple(a.symbol for a in columns))
        atom, position = stream_operands(sink, indices, at)[1]
        factor = self.emit.cast(self.emit.value(atom, position), wide(root.var.type.dtype))
        return Sum(name, weight.expr, degree, columns, self.emit.leave(outer), factor.expr)

    def axes(self, prefix: str, sizes) -> Axes:
        """Axes of these sizes."""
        return tuple(Axis(self.emit.unreserved(f"{prefix}{n}"), size) for n, size in enumerate(sizes))

    def place(self, root: Root, columns: Indices) -> Indices:
        """The indices of a sink's result at the point of the domain, and at these columns."""
        places = self.group.places[root.number]
        at: dict[int, Size] = dict.fromkeys(range(len(root.sizes)), 0)
        at |= dict(zip(places, self.symbols)) | dict(zip(inner_places(root, places), columns))
        return tuple(at[k] for k in range(len(root.sizes)))
