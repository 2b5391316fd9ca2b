"""Which loops carry a value from one iteration to the next, for the interpreter.

All iterations of a SERIAL loop may run at once, statement by statement, unless an iteration reads
what an earlier one has written: a Var, or an element of memory. The analysis compares names, not
indices, so it errs on the safe side. Answers are cached per loop object.
"""

from __future__ import annotations

from dataclasses import field

from rune.lowering.kernel.nodes import Accumulate, Alloc, Assign, Barrier, For, Kind
from rune.lowering.kernel.rewrite import buffer_written, buffers_read, names_bound, names_used, walk
from rune.records import dataclass


@dataclass(slots=True)
class Carried:
    """The analysis and its caches: loop id -> (loop, answer)."""

    # The loop is stored with its answer to keep it alive: a freed object's id may be reused.
    dependence: dict[int, tuple[For, bool]] = field(default_factory=dict)
    nested_stores: dict[int, tuple[For, bool]] = field(default_factory=dict)
    inside: dict[int, tuple[For, int]] = field(default_factory=dict)

    def has_dependence(self, loop: For) -> bool:
        """Whether iterations of a SERIAL loop must run one after the other."""
        if id(loop) not in self.dependence:
            self.dependence[id(loop)] = loop, self._dependence(loop)
        return self.dependence[id(loop)][1]

    def _dependence(self, loop: For) -> bool:
        bound = names_bound(loop.body)
        inside = list(walk(loop.body))
        outer_stores = [name for s in inside if (name := buffer_written(s)) is not None and name not in bound]
        for stmt in inside:
            # Barriers separate iterations, and the race check works between barriers.
            if isinstance(stmt, Barrier):
                return True
            if isinstance(stmt, For) and outer_stores and self._stays_in_order(stmt):
                return True
        buffers_stored = set(outer_stores)
        # Run at once, two stores to one buffer could take effect in the wrong order.
        is_single_store = len(buffers_stored) == len(outer_stores)
        return not is_single_store or bool(buffers_stored & buffers_read(loop.body)) or carries_var(loop)

    def _stays_in_order(self, inner: For) -> bool:
        """Whether the inner loop's stores would change order, or its race check would mislead."""
        if inner.kind is Kind.VECTOR:
            return self.has_nested_store(inner)
        return self.has_dependence(inner)

    def has_nested_store(self, loop: For) -> bool:
        """Whether the loop stores to memory from outside it."""
        if id(loop) not in self.nested_stores:
            bound = names_bound(loop.body)
            stores = (name for s in walk(loop.body) if (name := buffer_written(s)) is not None)
            self.nested_stores[id(loop)] = loop, any(name not in bound for name in stores)
        return self.nested_stores[id(loop)][1]

    def lanes_inside(self, loop: For) -> int:
        """Values that one iteration holds side by side: threads, and scratch elements."""
        if id(loop) not in self.inside:
            threads, scratch = 1, 1
            for stmt in walk(loop.body):
                if isinstance(stmt, For) and stmt.kind is Kind.WORKGROUP:
                    assert isinstance(stmt.extent, int)
                    threads *= max(1, stmt.extent)
                elif isinstance(stmt, Alloc):
                    scratch = max(scratch, stmt.size // 4)
            self.inside[id(loop)] = loop, threads * scratch
        return self.inside[id(loop)][1]


def carries_var(loop: For) -> bool:
    """Whether an iteration needs the value that an earlier one gave a Var."""
    bound = names_bound(loop.body)
    reductions: dict[str, set[str]] = {}
    for stmt in walk(loop.body):
        if isinstance(stmt, Assign) and stmt.name not in bound:
            return True
        if isinstance(stmt, Accumulate) and stmt.name not in bound:
            reductions.setdefault(stmt.name, set()).add(stmt.combine)
    has_two_operations = any(len(combines) > 1 for combines in reductions.values())
    return has_two_operations or bool(names_used(loop.body) & reductions.keys())
