"""A compiled plan on the CPU: one native function, called from Python or from native code.

Invariant: many threads may call an executable at once; each call has its own arena, which a later
call uses again.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import call
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import numpy as np

from rune import dtypes, locks
from rune.backends.cpu import compiler, host_abi
from rune.backends.cpu.array_checks import native_entry
from rune.backends.cpu.calls.code import Code, Memory
from rune.backends.cpu.host import Host
from rune.backends.cpu.signature import Signature
from rune.backends.shared import host_memory
from rune.backends.shared.executor import concrete_type, evaluate, size_values, static_shape
from rune.backends.shared.protocol import Buffer
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.errors import LayoutError, OutOfMemory
from rune.records import dataclass

if TYPE_CHECKING:
    from rune.backends.cpu.crew.messages import Talk
    from rune.backends.cpu.plan import Rendering
    from rune.backends.shared.callbacks import Callbacks
    from rune.lowering.plan import Plan

T = TypeVar("T")

# Estimated instructions of a plan that runs with the interpreter's lock: about 10 µs, less than
# releasing the lock and getting it back may cost.
BRIEF_COST = 30_000.0
KEPT_LAYOUTS = 1024  # layouts of distinct symbolic sizes
_NO_ARENA = np.empty(0, np.uint8)


# The modules that write plans, imported for the first one that is not on disk.
plans = locks.late_module("rune.backends.cpu.plan")
# Calls of Python, imported for the first plan that has one.
_callbacks = locks.late_module("rune.backends.shared.callbacks")
# Calls of Python on the CPU, imported for the first plan that has one.
_cpu_callbacks = locks.late_module("rune.backends.cpu.callbacks")
# Errors for lack of memory, imported for the first one.
_shortage = locks.late_module("rune.backends.shared.shortage")


class Entry(Protocol):
    """The entry into a plan."""

    @property
    def call(self) -> Callable[..., int]:
        """Takes arguments, results and an arena; returns 0, or a number that says what went
        wrong."""
        ...


def entry_of(signature: Signature, code: compiler.Code, abi: host_abi.Abi) -> host_abi.NativeFunction:
    """The plan's own entry, or the one shared by all plans of fixed sizes."""
    if signature.has_entry:
        return host_abi.native_function(signature.name, code.address("entry"))
    return native_entry(signature.name, signature.arguments, signature.results, abi, code.address("run"))


def _itself(value: T) -> T:
    return value


class CpuExecutable:
    """A compiled plan: its machine code, and the arenas of calls that have ended."""

    runs_natively = True  # whether native code may call the plan, without `__call__`

    def __init__(self, plan: Plan, host: Host, work: Work):
        self.talk: Talk = plans().talk_of(plan)
        self._callbacks = self.callbacks_of(plan)
        rendering, code = self._compiled(plan, replace(host, call_back=self._callbacks.function))
        self._lower, self._rendering = partial(_itself, plan), partial(_itself, rendering)
        self._begin(plans().signature_of(plan, rendering), code, host, work)

    @property
    def is_waiting(self) -> bool:
        """Whether native code may call the plan later, once calls are worth better code."""
        return False

    def _compiled(self, plan: Plan, host: Host) -> tuple[Rendering, compiler.Code]:
        return plans().compiled(plan, host, plans().render_kernels(plan, host))

    def callbacks_of(self, plan: Plan) -> Callbacks:
        """The Python functions that the plan calls."""
        return _cpu_callbacks().CpuCallbacks(plan)

    def _begin(self, signature: Signature, code: compiler.Code, host: Host, work: Work) -> None:
        """Prepare for calls."""
        self.code, self.cores, self.work = code, host.cores, work
        self.native = self.entry_into(signature, code, host)
        self._call = self.native.call
        self._axes = [(s.argument, s.axis) for s in signature.size_sources]
        self._layouts: dict[tuple[int, ...], _Layout] = {}
        self._arenas: list[np.ndarray] = []
        self.lay_out(signature)

    def lay_out(self, signature: Signature) -> None:
        """Decide what later calls allocate. The only layout exists if no size is symbolic."""
        self.signature = signature
        self._only_layout = None if self._axes else _layout(signature, {})

    def entry_into(self, signature: Signature, code: compiler.Code, host: Host) -> Entry:
        """The entry that calls the code with array objects."""
        return entry_of(signature, code, host.abi)

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self._lower()

    @property
    def rendering(self) -> Rendering:
        """The plan as text."""
        return self._rendering()

    @property
    def calls_python(self) -> bool:
        """Whether Python functions are steps of the plan."""
        return self.signature.calls_python

    def refine(self) -> None:
        """Replace a draft by the final code; nothing here (drafts.py)."""

    def on(self, work: Work) -> Self:
        """The same code with its arenas, counted as work of another device."""
        # Both share one list of arenas: the devices of the processor have the same memory.
        twin = copy.copy(self)
        twin.work = work
        return twin

    def __call__(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> list[Buffer]:
        """Run the plan.

        Errors: ArgumentError for an array that does not fit the plan; DimensionError for a size
        outside its range; OutOfMemory.
        """
        self.work.begin()
        try:
            results, arena = self.memory(arguments, donated)
            self.checked(self._call, arguments, (*results, arena))
            self.give_back(arena)
            if self.calls_python:
                # A function that failed has ended the plan, and left its error for this thread.
                _callbacks().raise_pending()
            return results
        finally:
            self.work.end()

    def direct(self) -> Callable[..., Sequence[Buffer]]:
        """The plan as a function of its arguments, for many short calls; it copies views.

        Errors: those of `__call__`.
        """
        layout, function = self._only_layout, self._call
        if layout is None or self.calls_python:
            return lambda *arguments: self(_dense(arguments))
        makers, begin, end, nbytes = layout.makers, self.work.begin, self.work.end, layout.arena_bytes

        def run(*arguments: Buffer) -> Sequence[Buffer]:
            begin()
            try:
                results = [make() for make in makers]
                arena = self._take_arena(nbytes) if nbytes else _NO_ARENA
                # Views are refused, and only then copied: no other call pays for a check in Python.
                if function(*arguments, *results, arena):
                    self.checked(function, _dense(arguments), (*results, arena))
                if nbytes:
                    self._arenas.append(arena)
                return results
            finally:
                end()

        return run

    def memory(self, arguments: Sequence[Buffer], donated: Sequence[int] = ()) -> tuple[list[Buffer], np.ndarray]:
        """Results and an arena for one call. Errors: OutOfMemory; those of arguments."""
        try:
            layout = self._only_layout or self._layout_for(arguments)
            if donated:
                results = self._results(arguments, donated, layout)
            else:
                results = [*map(call, layout.makers)]
            return results, self._take_arena(layout.arena_bytes) if layout.arena_bytes else _NO_ARENA
        except OutOfMemory as error:
            sizes = size_values(self.plan, [a.shape for a in arguments])
            raise _shortage().of_plan(error, self.plan, sizes, self.plan.target) from error

    def checked(
        self, function: Callable[..., int], arguments: Sequence[Buffer], others: Sequence[Buffer]
    ) -> Sequence[Buffer]:
        """Call native code that checks its arguments; returns the arguments that it accepted.

        Errors: ArgumentError; DimensionError.
        """
        code = function(*arguments, *others)
        if code:
            arguments = self._repaired(code, arguments)
            # Dtypes are right now, so what is refused again does not fit.
            if function(*arguments, *others):
                raise self._misfit(arguments)
        return arguments

    def give_back(self, arena: np.ndarray) -> None:
        """Keep an arena for a later call."""
        if arena.size:
            self._arenas.append(arena)

    def for_native_calls(self, arguments: Sequence[Buffer]) -> NativePlan | None:
        """The plan for calls by native code with arguments like these; None if it cannot call it.

        Plans that call Python are excluded: native calls do not raise the errors of callbacks.
        """
        if self.calls_python or not self.runs_natively:
            return None
        signature = self.signature
        sizes = size_values(self.plan, [a.shape for a in arguments]) if signature.size_sources else {}
        layout = _layout(signature, sizes)
        size_values_in_order = tuple(sizes[s.name] for s in signature.size_sources)
        code = Code(
            self.code.address("run"),
            size_values_in_order,
            layout.arena_bytes,
            self._arenas,
            partial(self.new_arena, layout.arena_bytes),
            self.is_brief,
            self.work.addresses(),
            self,
        )
        takes = tuple(_memory(concrete_type(t, sizes)) for t in signature.arguments)
        gives = tuple(map(_memory, layout.types))
        # Large results need blocks of the free list (host_memory.py), which Python code hands out.
        large = [math.prod(m.shape) * m.dtype.itemsize >= host_memory.LARGE_BYTES for m in gives]
        makers = tuple(m if big else None for m, big in zip(layout.makers, large, strict=True))
        # The planner pairs a result only with an argument of exactly its type.
        lenders = {result: argument for argument, result in signature.donations}
        return NativePlan(code, takes, gives, makers, tuple(map(lenders.get, range(len(gives)))))

    @property
    def is_brief(self) -> bool:
        """Whether the plan ends so soon that it may keep the interpreter's lock meanwhile."""
        cost = self.signature.cost
        return cost is not None and cost <= BRIEF_COST and not self.calls_python

    def sources(self) -> dict[str, str]:
        """The LLVM IR of each kernel."""
        return dict(self.rendering.kernels)

    def assembly(self) -> str:
        """The machine code of the plan, as text."""
        return self.code.assembly()

    def _take_arena(self, nbytes: int) -> np.ndarray:
        """An arena that no other call uses."""
        # Without a lock: `pop` is atomic, and fails if another thread was faster.
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = _NO_ARENA
        return arena if len(arena) >= nbytes else self.new_arena(nbytes)

    def new_arena(self, nbytes: int) -> np.ndarray:
        """Memory for the intermediates of a call. Errors: OutOfMemory."""
        return host_memory.arena(nbytes, self.signature.name)

    def _layout_for(self, arguments: Sequence[Buffer]) -> _Layout:
        """The layout of results and arena for these arguments, kept for later calls."""
        try:
            sizes = tuple([arguments[a].shape[axis] for a, axis in self._axes])
        except (IndexError, AttributeError):
            raise self._misfit(arguments) from None
        known = self._layouts.get(sizes)
        if known is None:
            if len(self._layouts) >= KEPT_LAYOUTS:
                self._layouts.clear()
            values = size_values(self.plan, [a.shape for a in arguments])
            known = self._layouts[sizes] = _layout(self.signature, values)
        return known

    def _results(self, arguments: Sequence[Buffer], donated: Sequence[int], layout: _Layout) -> list[Buffer]:
        """The results: in donated memory where no other argument shares it, else in new memory."""
        if not donated:
            return [make() for make in layout.makers]
        uses = Counter(map(id, arguments))
        donors = {r: arguments[a] for a, r in self.signature.donations if a in donated and _is_only(arguments[a], uses)}
        return [
            _taken_over(donors[number], type) if number in donors else make()
            for number, (type, make) in enumerate(zip(layout.types, layout.makers, strict=True))
        ]

    def _repaired(self, code: int, arguments: Sequence[Buffer]) -> Sequence[Buffer]:
        """The arguments, with equal dtypes replaced by the identical objects that native code
        expects.

        Errors: those of the argument that was refused, if that is not the reason.
        """
        size_values(self.plan, [a.shape for a in arguments])
        actual, expected_type = arguments[code - 1], self.plan.arguments[code - 1]
        equal = actual.dtype == expected_type.dtype and actual.dtype is not expected_type.dtype
        if equal and actual.flags.c_contiguous and actual.flags.aligned:
            # Equal dtypes can be distinct objects, for example after unpickling.
            return [a.view(t.dtype) for a, t in zip(arguments, self.plan.arguments, strict=True)]
        raise self._misfit(arguments)

    def _misfit(self, arguments: Sequence[Buffer]) -> LayoutError:
        """The error for arguments that are not dense arrays of the right rank and dtype."""
        parameters = ", ".join(map(str, self.plan.arguments))
        actual = ", ".join(map(_described, arguments))
        return LayoutError(f"{self.plan.name}: cannot run with these arguments ({actual} given, {parameters} expected)")


def _taken_over(array: np.ndarray, type: ArrayType) -> np.ndarray:
    """Donated memory as a result of this type: the array itself if possible, to be donated again.

    A view would have a base, and so would count as memory shared with another array.
    """
    if array.dtype is type.dtype and array.shape == type.shape:
        return array
    return array.reshape(-1).view(type.dtype).reshape(static_shape(type))


def _dense(arguments: Sequence[Buffer]) -> list[Buffer]:
    """The arguments in C order."""
    # Not those of rank 0, which would get an axis.
    return [np.ascontiguousarray(x) if x.ndim else x for x in arguments]


def _is_only(array: np.ndarray, uses: Mapping[int, int]) -> bool:
    """Whether an argument may be overwritten: it is passed once, and not read-only."""
    return array.flags.writeable and uses[id(array)] == 1


def _described(array: object) -> str:
    """An argument, for messages."""
    if type(array) is not np.ndarray:
        return type(array).__name__
    dense = "" if array.flags.c_contiguous else " not contiguous"
    return f"{dtypes.short(array.dtype)}{list(array.shape)}{dense}"


@dataclass(frozen=True, slots=True)
class NativePlan:
    """A plan for native calls: its code, the memory that it takes and gives, makers of large
    results, and the argument in whose memory each result may be written if that is donated."""

    code: Code
    takes: tuple[Memory, ...]
    gives: tuple[Memory, ...]
    makers: tuple[Callable[[], np.ndarray] | None, ...]
    lenders: tuple[int | None, ...]


def _memory(type: ArrayType) -> Memory:
    return Memory(type.dtype, static_shape(type))


@dataclass(frozen=True, slots=True)
class _Layout:
    """The allocations of one call, for one choice of sizes."""

    types: tuple[ArrayType, ...]
    makers: tuple[Callable[[], np.ndarray], ...]
    arena_bytes: int


def _layout(signature: Signature, sizes: Mapping[str, int]) -> _Layout:
    types = tuple(concrete_type(t, sizes) for t in signature.results)
    makers = tuple(_maker(static_shape(t), t.dtype) for t in types)
    return _Layout(types, makers, evaluate(signature.arena_bytes, sizes))


def _maker(shape: tuple[int, ...], dtype: np.dtype) -> Callable[[], np.ndarray]:
    large = math.prod(shape) * dtype.itemsize >= host_memory.LARGE_BYTES
    return partial(host_memory.empty if large else np.empty, shape, dtype)
