"""The cache of traces: which jitted functions share them, and how much memory they may use.

The traces of a function belong to the function (decision 0044): every `jit(f)` with the same
options shares them, so a library may write `rune.jit(f)(x)` in each call. They live as long as the
function. Functions are distinguished as in Python: bound methods of one object are equal, partial
objects and lambdas are equal only to themselves.

The cache is bounded by `rune.configure(compiled_bytes=...)`: beyond it the least recently used
traces are dropped, with their machine code, and made again when they are called. A running call
keeps its own trace alive.
"""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import Protocol

from rune import config, counts, effects, locks, tree
from rune.array import Place
from rune.backends.shared import heap
from rune.backends.shared.protocol import Executable
from rune.core import axes
from rune.core.interpreter import Axis, Tracer
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.records import dataclass
from rune.transforms.compile import automatic_sizes
from rune.transforms.inspect.cache_misses import Key

TRACE_BYTES = 16 << 10  # estimate for a trace with its plan, and ...
EQUATION_BYTES = 2 << 10  # ... this many bytes more for each equation
EVICTED_SHARE = 4  # a quarter of all traces is dropped at once: returning memory is expensive


@dataclass(slots=True, eq=False, weakref_slot=True)
class Traced:
    """One trace: the program, its captured values, the tree of the result, the compiled code."""

    program: Program
    captured: tuple[Value, ...]
    out_tree: tree.TreeDef
    donations: tuple[int, ...]
    out_types: tuple[ArrayType, ...]
    needs: tuple[effects.Need, ...] = ()  # the hidden inputs, which come last
    leaks: bool = False  # an effect was answered for one call alone
    axes: Mapping[Hashable, Axis] = field(default_factory=dict)  # the named axes around it
    key: Key = (None, (), (), None)  # the key under which it is stored
    on_cpu: Executable | None = None  # stored here so that a cached call needs no other look-up
    constants: dict[Place, list[Value]] = field(default_factory=dict)  # captured values beside arguments
    place: Place | None = None  # of the last call, if that ran nothing but compiled code on a device
    descriptions: int = 0  # attempts to describe a call to native code
    was_used: bool = True  # since the last eviction
    is_symbolic: bool = field(init=False)  # whether the size of a result depends on the arguments

    def __post_init__(self) -> None:
        self.is_symbolic = any(t.is_symbolic for t in self.out_types)

    @property
    def serves_one_call(self) -> bool:
        """True if the trace belongs to one call, as inside an outer transformation."""
        return self.leaks or any(isinstance(v, Tracer) for v in self.captured)

    def hidden(self) -> list[Value] | None:
        """The current values of the hidden inputs; None if the trace does not fit the context."""
        if not axes.fits(self.axes):
            return None
        values = [need.values() for need in self.needs]
        return None if None in values else [v for group in values for v in group or ()]


# A protocol, since jit.py, which has the class, imports this module.
class User(Protocol):
    """A jitted function, as its traces see it."""

    def forget_calls(self) -> None:
        """Drop the traces that it stores for itself."""
        ...


class Traces:
    """The traces of one function under one set of options."""

    __slots__ = ("__weakref__", "automatic", "by_key", "lock", "name", "users")

    def __init__(self, name: str):
        self.name, self.lock = name, locks.reentrant()
        self.by_key: dict[Key, list[Traced]] = {}
        self.automatic = automatic_sizes.Automatic(name)
        self.users: weakref.WeakSet[User] = weakref.WeakSet()
        _all_caches.add(self)

    def fitting(self, key: Key) -> tuple[Traced, list[Value]] | None:
        """A trace that fits the current handlers and named axes, and its hidden inputs."""
        # Traces of one key differ in the effect handlers and named axes that they were made for.
        for trace in self.by_key.get(key, ()):
            hidden_values = trace.hidden()
            if hidden_values is not None:
                trace.was_used = True
                return trace, hidden_values
        return None

    def keep(self, key: Key, trace: Traced) -> None:
        """Store a trace, if other calls can use it, and drop others to make room if necessary."""
        if not trace.serves_one_call:
            # The user may change static data of a registered class later; the key has a copy.
            treedef, *others = key
            trace.key = key = (treedef.settled(), *others)  # type: ignore[assignment]
            self.by_key[key] = [*self.by_key.get(key, ()), trace]
            _recent.add(self, trace)

    def forget(self, trace: Traced) -> None:
        """Drop one trace."""
        remaining = [t for t in self.by_key.pop(trace.key, ()) if t is not trace]
        if remaining:
            self.by_key[trace.key] = remaining
        self.forget_calls()

    def clear(self) -> None:
        """Drop all traces."""
        self.by_key.clear()
        self.automatic = automatic_sizes.Automatic(self.name)
        self.forget_calls()

    def forget_calls(self) -> None:
        """Make every jitted function drop the traces that it stores for itself."""
        for user in list(self.users):
            user.forget_calls()


_all_caches: weakref.WeakSet[Traces] = weakref.WeakSet()
_shared: weakref.WeakKeyDictionary[object, dict[Hashable, Traces]] = weakref.WeakKeyDictionary()
_lock = locks.reentrant()  # the collector may run code that jits


def traces_of(function: Callable[..., object], options: Hashable, name: str) -> Traces:
    """The traces shared by all jitted versions of a function with these options.

    A function that cannot be a key, or be referenced weakly, gets new ones each time.
    """
    with _lock:
        try:
            by_options = _shared.setdefault(function, {})
        except TypeError:
            return Traces(name)
        if options not in by_options:
            by_options[options] = Traces(name)
        return by_options[options]


def clear_all() -> None:
    """Drop the traces of every jitted function."""
    with _lock:
        alive = list(_all_caches)
    for traces in alive:
        traces.clear()
    give_back()


# --- how much is stored -----------------------------------------------------------------------


class _Recent:
    """All stored traces, in the order of creation, and their total bytes."""

    def __init__(self) -> None:
        self.lock = locks.reentrant()
        # Weak on both sides: this list must not keep the traces of a dead function alive.
        self.traces: dict[weakref.ref[Traced], weakref.ref[Traces]] = {}
        # Finalisers run at any time, even under the lock, so they only append to queues.
        self.dead: deque[weakref.ref[Traced]] = deque()
        self.changes: deque[int] = deque()
        self.bytes, self.next = 0, 0  # total bytes, and the total that starts the next eviction

    def count(self, thing: object, nbytes: int) -> None:
        """Count these bytes for as long as an object lives."""
        self.changes.append(nbytes)
        # At exit nobody asks for the total any more.
        weakref.finalize(thing, self.changes.append, -nbytes).atexit = False

    def total(self) -> int:
        """Bytes of living traces and machine code."""
        with self.lock:
            while self.changes:
                self.bytes += self.changes.popleft()
            while self.dead:
                self.traces.pop(self.dead.popleft(), None)
            return self.bytes

    def add(self, traces: Traces, trace: Traced) -> None:
        """Add a new trace, and evict others if there is too much."""
        self.count(trace, TRACE_BYTES + EQUATION_BYTES * len(trace.program.equations))
        limit = config.current().compiled_bytes
        with self.lock:
            is_full = self.total() > max(limit, self.next)
            if is_full:
                self.evict()
            self.traces[weakref.ref(trace, self.dead.append)] = weakref.ref(traces)
        if is_full:
            give_back()
            live_bytes = self.total()
            # Memory that cannot be freed must not turn every new trace into an eviction.
            self.next = live_bytes + limit // EVICTED_SHARE if live_bytes > limit else 0

    def evict(self) -> None:
        """Drop a share of the traces: those not used since the last eviction, oldest first."""
        alive = [(r(), home()) for r, home in [*self.traces.items()]]
        stored_traces = [(t, home) for t, home in alive if t is not None and home is not None]
        # The sort is stable, so among those not used the oldest remain first.
        stored_traces.sort(key=lambda pair: pair[0].was_used)
        for trace, home in stored_traces[: -(-len(stored_traces) // EVICTED_SHARE)]:
            home.forget(trace)
            next(counts.evictions)
        for trace, _ in stored_traces:
            trace.was_used = False


_recent = _Recent()


def count_bytes(thing: object, nbytes: int) -> None:
    """Count machine code as stored, for as long as it lives."""
    _recent.count(thing, nbytes)


def compiled_bytes() -> int:
    """Estimated bytes of all living traces and machine code."""
    return _recent.total()


def give_back() -> None:
    """Return free memory to the system. Programs are cyclic, so only the collector frees them."""
    gc.collect()
    heap.trim()
