"""jit: trace once per exact key, then run compiled code.

The key is everything that the trace depends on: the argument tree, every leaf's type (shape,
dtype, weakness), static values, and the configuration. Closed-over arrays are captured once;
closed-over tracers of an outer transformation become extra inputs, and such a trace is not stored.
Answers to effects come from hidden inputs after the others (effect_boundaries.py), so no random key
is ever a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, Unpack, overload

from rune import config, counts, effects, profiling, scopes, tree
from rune.array import COMMITTED_CPU, CPU, Array, Place, committed_to, default_place, on
from rune.backends import Device, device_of, platform_name
from rune.backends.shared.protocol import Executable
from rune.core.interpreter import Tracer, current, is_evaluating, type_of
from rune.core.program import Program
from rune.core.staging import Stage
from rune.core.types import ArrayType
from rune.core.values import Operand, Value
from rune.errors import ArgumentError, DimensionError, NaNError, ShapeError
from rune.sharding import Mesh
from rune.sharding.memory import Spread
from rune.transforms import late_modules, references
from rune.transforms.arguments import SignatureOfWrapped, flatten_values, function_name, named, value_leaves
from rune.transforms.checks.nans_and_bounds import name_result
from rune.transforms.compile import automatic_sizes, stages
from rune.transforms.compile.by_layouts import ByLayouts
from rune.transforms.compile.declared_sizes import SymbolicAxes
from rune.transforms.compile.direct_runs import PUBLIC, Bound, jitted_text, release, run_on_cpu
from rune.transforms.compile.executables import Schedules, compiled, device_for
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.compile.passed_references import Passing, call_beside, trace_beside
from rune.transforms.compile.placement import arriving, constants_beside, place_of_call
from rune.transforms.compile.run import needs_stages, run_program
from rune.transforms.compile.static_arguments import Marked, Names, Options, as_key, as_set, call_inline, with_statics
from rune.transforms.compile.trace_cache import Traced, traces_of
from rune.transforms.effect_boundaries import recorder
from rune.transforms.inspect.cache_misses import Key, note
from rune.transforms.programs.size_witnesses import with_witnesses
from rune.transforms.sharding.explicit.stage import Layouts, staged
from rune.transforms.sharding.laid_out import laid_out
from rune.tree import TreeDef

if TYPE_CHECKING:
    from rune.backends.cpu.calls.describe import CallRecord

WITHOUT_SEARCH = ("stored", "off")  # values of `rune.configure(search=...)` that search nothing
NATIVE_CALLS = 8  # kinds of calls that native code makes for one function; each call tries them all
DESCRIPTIONS = 2  # attempts to describe a call of one trace whose sizes are numbers

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
S = TypeVar("S")


class Jitted(ByLayouts, Generic[P, R]):
    """A function compiled on first call for each kind of arguments; see `jit`.

    Native code (native_calls.py) makes calls of a known kind: at the second call of a kind the
    function becomes an instance of a subclass whose `__call__` is native. Calls of other kinds are
    passed on to the `__call__` here.
    """

    __slots__ = ("__dict__", "__weakref__", "_native_calls")
    __signature__ = SignatureOfWrapped()

    def __init__(
        self,
        function: Callable[P, R],
        marks: Marked,
        symbolic: SymbolicAxes | None,
        device: str | Device | None,
        schedules: Schedules,
        options: Hashable,
        inline: bool = False,
        layouts: Layouts | None = None,
    ):
        self.function: Callable[..., R] = function
        self.symbolic, self.device, self.marks, self.schedules = symbolic, device, marks, schedules
        self.inline, self.options = inline, options
        self.passing: Passing | None = None  # once a call has references
        self.layouts = layouts  # of the arguments along Explicit axes of a mesh
        self._by_layouts = {}
        self.check_parts: tuple[Callable[..., object], ...] | None = None  # what checkify calls instead
        # Calls whose key is more than the types of positional arguments.
        self.general = bool(marks.static or symbolic or device or inline)
        self._trace_cache = traces_of(function, options, function_name(function))
        self._trace_cache.users.add(self)
        self._plain: dict[Hashable, Traced] = {}  # traces of calls with only positional arrays
        self._home = COMMITTED_CPU if device else CPU
        self._native_calls: tuple[CallRecord, ...] = ()
        named(self, function, "jit")  # type: ignore[arg-type]

    @property
    def native_calls(self) -> tuple[CallRecord, ...]:
        """The calls that native code makes."""
        return self._native_calls

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, tracing and compiling if need be."""
        if self.general or kwargs:
            return self._call_general(args, kwargs)
        if Mesh.has_explicit and self.layouts is None:
            function = self.for_layouts_of(tree.leaves(args))
            if function is not self:
                return function(*args, **kwargs)
        leaves, treedef = args, None  # arrays are their own leaves
        types = [x.type for x in args if type(x) is Array]
        if len(types) < len(args):
            leaves, treedef = tree.flatten(args)
            types = [x.type for x in leaves if type(x) is Array or isinstance(x, Tracer)]
            if len(types) < len(leaves) or references.are_there():
                return self._call_general(args, kwargs)
        # The least key that determines a plain call; the full key is only built for a miss.
        key = (treedef, config.current(), *types)
        trace = self._plain.get(key)
        if trace is not None:
            return self._run_again(trace, leaves, args, kwargs)
        if key[1].disable_jit or references.are_there():
            return self._call_general(args, kwargs)
        # Not `args` again: another thread may have changed a container in the meantime.
        call_args = args if treedef is None else tree.unflatten(treedef, leaves)
        full, full_tree = tree.flatten((call_args, kwargs))
        trace, leaves = self._find(full, full_tree, ())
        if not (trace.serves_one_call or trace.needs or trace.axes):
            if len(self._plain) >= automatic_sizes.KEPT:
                self._plain.clear()
            self._plain[(treedef and treedef.settled(), *key[1:])] = trace
        return self._finish(trace, leaves)

    def _call_general(self, args: tuple, kwargs: Mapping[str, object]) -> Any:
        if config.current().disable_jit:
            return self.function(*args, **kwargs)
        if self.inline and not is_evaluating():
            return call_inline(self.function, self.marks, args, kwargs)
        if references.are_there():
            return call_beside(self, args, kwargs)
        return self.call_with_arrays(args, kwargs)

    def call_with_arrays(self, args: tuple, kwargs: Mapping[str, object]) -> Any:
        """A call without references."""
        trace, leaves = self._lookup(args, kwargs)
        if trace.on_cpu is None and trace.place is None:
            return self._finish(trace, leaves)
        return self._run_again(trace, leaves, args, kwargs)

    def alike(self, function: Callable[..., S], layouts: Layouts | None = None) -> Jitted[..., S]:
        """Another function with the same parameters, compiled in the same way."""
        options = self.options if layouts is None else (self.options, layouts)
        return Jitted(function, self.marks, self.symbolic, self.device, self.schedules, options, self.inline, layouts)

    def _run_again(self, trace: Traced, leaves: Sequence[Any], args: tuple, kwargs: Mapping[str, object]) -> Any:
        result = self._finish(trace, leaves)
        if trace.descriptions < NATIVE_CALLS:
            self._describe(trace, leaves, args, kwargs)
        return result

    def _finish(self, trace: Traced, leaves: Sequence[Operand]) -> Any:
        for need in trace.needs:
            need.tell()
        return trace.out_tree.unflatten(self._run(trace, leaves))

    def _lookup(self, args: tuple, kwargs: Mapping[str, object]) -> tuple[Traced, list[Value]]:
        dynamic, statics = self.marks.split(args, kwargs) if self.marks.static else ((args, kwargs), ())
        leaves, treedef = flatten_values(dynamic)
        leaves = value_leaves("jit", leaves, treedef)
        return self._find(leaves, treedef, statics)

    def traced(self, *args: object, **kwargs: object) -> Traced:
        """The trace for these arguments, made if there is none."""
        return self._lookup(args, kwargs)[0]

    def inputs(self, *args: object, **kwargs: object) -> list[Value]:
        """The values of the program's inputs for these arguments."""
        trace, leaves = self._lookup(args, kwargs)
        return [*trace.captured, *leaves]

    def program(self, *args: object, **kwargs: object) -> Program:
        """The program traced for these arguments, captured values leading the inputs."""
        return self.traced(*args, **kwargs).program

    def trace(self, *args: object, **kwargs: object) -> stages.Traced:
        """The function traced for arguments like these, which may be ShapeDtypeStructs.

        >>> import rune, rune.numpy as rnp
        >>> traced = rune.jit(rnp.sin).trace(rune.ShapeDtypeStruct((3,), "f32"))
        >>> traced.lower().compile()(rnp.zeros(3))
        Array([0., 0., 0.], f32[3], cpu:0)
        """
        return (trace_beside if references.are_there() else stages.trace)(self, args, kwargs)

    def lower(self, *args: object, **kwargs: object) -> stages.Lowered:
        """The function lowered for arguments like these, as `trace(...).lower()`."""
        return self.trace(*args, **kwargs).lower()

    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """The results as ShapeDtypeStructs; nothing is computed."""
        return self.trace(*args, **kwargs).out_info

    def __repr__(self) -> str:
        return jitted_text(
            function_name(self.function), (t for group in self._trace_cache.by_key.values() for t in group)
        )

    def __dir__(self) -> list[str]:
        return [*PUBLIC, *(n for n in object.__dir__(self) if n[:2] == "__")]

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: Jitted[Concatenate[S, Q], R], instance: S, owner: type | None = None) -> Callable[Q, R]: ...
    def __get__(self, instance: object, owner: object = None) -> Any:
        """Methods can be jitted: the instance is then the first argument."""
        return self if instance is None else Bound(self, instance)

    # --- calls by native code ---------------------------------------------------------------

    def _describe(self, trace: Traced, leaves: Sequence[Operand], args: tuple, kwargs: Mapping[str, object]) -> None:
        """Let native code make calls like this one from now on, if it can."""
        run_info = self._ran(trace) if is_evaluating() else None
        if run_info is None or late_modules.native_calls().is_waiting(run_info[0]):
            return
        # Static values that are new objects in every call would make a new kind for each call.
        if self.symbolic is None and trace.descriptions >= DESCRIPTIONS:
            return
        trace.descriptions += 1
        if len(self._native_calls) >= NATIVE_CALLS or not self._is_describable(trace, run_info[1]):
            return
        # Other threads may have changed the containers in the meantime, and may do so again while
        # they are read here.
        dynamic, statics = self.marks.split(args, kwargs)
        dynamic_leaves, treedef = tree.flatten(dynamic)
        if treedef != trace.key[0] or [*map(id, dynamic_leaves)] != [*map(id, leaves)]:
            return
        positional, keywords = with_statics(tree.unflatten(treedef, dynamic_leaves), statics)
        keywords = {name: keywords[name] for name in kwargs}
        description = late_modules.native_calls().described(
            positional,
            keywords,
            self.marks.static_test(len(args)),
            trace.captured,
            run_info[0],
            trace.out_types,
            trace.out_tree,
            run_info[1],
            trace.donations,
        )
        if description is None:
            return
        native = late_modules.native_calls().native_class(Jitted, "_native_calls", Jitted.__call__)
        if native is not None:
            self._native_calls = (*self._native_calls, description)
            self.__class__ = native  # type: ignore[assignment]

    def _ran(self, trace: Traced) -> tuple[Executable, Place] | None:
        """The executable of the last run of the trace, and its place; None without native calls."""
        place = trace.place
        if place is not None:
            return compiled(trace.program, device_for(place.device), (), self.schedules), place
        return None if trace.on_cpu is None else (trace.on_cpu, self._home)

    def _is_describable(self, trace: Traced, place: Place) -> bool:
        """Whether a description can express everything that the trace and its run depend on."""
        is_special = trace.serves_one_call or trace.needs or trace.axes
        return not is_special and self._is_plain(trace, place)

    def forget_calls(self) -> None:
        """Drop the calls stored here, since one of their traces is being dropped."""
        self._plain.clear()
        self._native_calls = ()

    # --- finding the trace ------------------------------------------------------------------

    def _find(self, leaves: Sequence[Value], treedef: tree.TreeDef, statics: tuple) -> tuple[Traced, list[Value]]:
        """The trace for these arguments, and its inputs: the arguments, then the hidden ones."""
        jitted = self.for_layouts_of(leaves)
        trace, hidden_values = jitted.fitting(tuple([type_of(x) for x in leaves]), treedef, statics)
        return trace, [*leaves, *hidden_values]

    def fitting(self, types: tuple[ArrayType, ...], treedef: TreeDef, statics: tuple) -> tuple[Traced, list[Value]]:
        """The trace for arguments of these types, and its hidden inputs."""
        if self.symbolic is not None:
            positions = tuple(where for where, *_ in statics if isinstance(where, int))
            name = function_name(self.function)
            types = self.symbolic.generalise(types, treedef, positions, name)
        key = (treedef, types, statics, config.for_traces(config.current()))
        # Only one thread at a time may trace a function; the look-up needs no lock.
        cache = self._trace_cache
        entry = cache.fitting(key)
        if entry is None:
            with cache.lock:
                if self.symbolic is None and automatic_sizes.applies(types):
                    traces = automatic_sizes.Traces(cache.fitting, self._get, self._make, self._keep)
                    entry = cache.automatic.find(key, traces)
                else:
                    entry = self._get(key)
        return entry

    def _get(self, key: Key) -> tuple[Traced, list[Value]]:
        entry = self._trace_cache.fitting(key)
        if entry is None:
            entry = self._make(key)
            self._keep(key, entry)
        return entry

    def _make(self, key: Key) -> tuple[Traced, list[Value]]:
        note(self.function, key, self._trace_cache.by_key)
        treedef, types, statics, _ = key
        with profiling.span(f"trace {function_name(self.function)}", profiling.Kind.TRACE):
            entry = self._trace(types, treedef, statics)
        entry[0].key = key
        return entry

    def _keep(self, key: Key, entry: tuple[Traced, list[Value]]) -> None:
        self._trace_cache.keep(key, entry[0])

    def _trace(self, types: Sequence[ArrayType], treedef: tree.TreeDef, statics: tuple) -> tuple[Traced, list[Value]]:
        next(counts.traces)
        if config.current().log_compiles:
            late_modules.compile_log().tell_trace(function_name(self.function), types)
        out_trees: list[TreeDef] = []
        recorders: list[effects.Recorder] = []

        def flat(*values: Value) -> list[Value]:
            writer = current()
            assert isinstance(writer, Stage)
            writer.is_stored = True  # the trace is stored, so programs in it are kept alive by it
            scopes.set_scope("")  # a trace also serves calls in other scopes
            args, kwargs = with_statics(tree.unflatten(treedef, values), statics)
            with recorder(writer) as recording, references.closed("jit"):
                outs, out_tree = flatten_values(self.function(*args, **kwargs))
            recorders.append(recording)
            out_trees.append(out_tree)
            return value_leaves("jit", outs, out_tree)

        with self.symbolic.explaining() if self.symbolic else nullcontext():
            closure = staged(flat, list(types), function_name(self.function), self.layouts)
        # Witnesses carry the sizes that the function closes over.
        program, witnesses = with_witnesses(closure.program, {})
        captures = (*witnesses, *closure.captured)
        donations = self.marks.donated_leaves(treedef, len(captures)) if self.marks.donations else ()
        needs, leaks = recorders[-1].inputs.needs(), recorders[-1].leaks
        trace = Traced(program, captures, out_trees[-1], donations, program.output_types, needs, leaks, closure.axes)
        return trace, recorders[-1].inputs.entered

    # --- running it -------------------------------------------------------------------------

    def _run(self, trace: Traced, leaves: Sequence[Any]) -> list[Array]:
        values = [*constants_beside(leaves, trace), *leaves] if trace.captured else leaves
        # Donation needs the general way, which deletes the arguments.
        if trace.on_cpu is not None and not trace.donations and is_evaluating():
            outs = run_on_cpu(trace.on_cpu, trace, values, self._home)
            if outs is not None:
                trace.place = None
                return outs
        try:
            # Under a transformation a call is one equation, with the program as its parameter.
            if not is_evaluating():
                device = {"device": device_of(self.device).name} if self.device else {}
                return jit_primitive(*values, program=trace.program, **device)
            return self._run_first(trace, values)
        except (ShapeError, DimensionError) as error:  # a form may fail where exact sizes succeed
            return self._run_exact(trace, leaves, error)

    def _run_exact(self, trace: Traced, leaves: Sequence[Value], error: ShapeError | DimensionError) -> list[Array]:
        """Run the exact trace in place of a form that failed to compile or to be transformed.

        The form is dropped, unless the exact trace fails too. Errors of other traces are genuine.
        """
        treedef, form_types, *_ = form = trace.key
        dynamic_leaves = leaves[: treedef.num_leaves]
        types = tuple(map(type_of, dynamic_leaves))
        if self.symbolic is not None or types == form_types:
            raise error
        with self._trace_cache.lock:
            exact, hidden_values = self._get(automatic_sizes.with_types(form, types))
        # Raises if the exact trace fails too: then the form is not to blame, and stays.
        outs = self._run(exact, [*dynamic_leaves, *hidden_values])
        self._trace_cache.forget(trace)
        self._trace_cache.automatic.withdraw(form, error)
        return outs

    def _run_first(self, trace: Traced, values: Sequence[Value]) -> list[Array]:
        """The general call: any device, donation, checks. Prepares plain calls on the CPU."""
        values = arriving(trace.program, values)
        place = committed_to(on(self.device)) if self.device else place_of_call("jit", trace.program, values)
        if config.current().search not in WITHOUT_SEARCH:
            self._search(trace, values, place)
        try:
            outs = run_program(trace.program, values, place, trace.donations, self.schedules)
        except NaNError as error:
            name_result(error, trace.out_tree)
            raise
        self._note_run(trace, place)
        # Donated arguments are unusable after the call, whether or not their memory was used.
        for number in trace.donations:
            release(values[number], place.device)
        return outs

    def _search(self, trace: Traced, values: Sequence[Value], place: Place) -> None:
        """Search for the fastest loops, if the settings ask for it and a call is one program."""
        if not needs_stages(trace.program) and not isinstance(place.device, Spread):
            shapes = [type_of(v).shape for v in values]
            late_modules.tune().search_first(trace.program, shapes, device_for(place.device), self.schedules)

    def _note_run(self, trace: Traced, place: Place) -> None:
        """Record that a run was compiled code and nothing else, for similar calls."""
        is_plain = self._is_plain(trace, place)
        if place.device is None and is_plain:
            trace.on_cpu = compiled(trace.program, device_for(None), trace.donations, self.schedules)
        native_place = place if is_plain and type(place.device) is Device and not trace.donations else None
        before, trace.place = trace.place, native_place
        if (before and before.device) is not (native_place and native_place.device):
            trace.descriptions = 0  # earlier descriptions were of calls on another device

    def _is_plain(self, trace: Traced, place: Place) -> bool:
        """Whether a run at this place is compiled code and nothing else."""
        # Free arguments would follow to the default device, which a look-up by type does not see.
        if place.device is None and self.device is None and default_place() is not CPU:
            return False
        return not needs_stages(trace.program)


@overload
def jit(function: Callable[P, R], **options: Unpack[Options]) -> Jitted[P, R]: ...
@overload
def jit(**options: Unpack[Options]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    function: Callable[..., object] | None = None,
    *,
    static_argnums: Names = None,
    static_argnames: Names = None,
    donate_argnums: Names = None,
    donate_argnames: Names = None,
    dims: Mapping[str, tuple[int | str, int | str | None]] | None = None,
    in_dims: object = None,
    device: str | Device | None = None,
    schedule: Mapping[str, object] | None = None,
    in_shardings: object = None,
    out_shardings: object = None,
    keep_unused: bool = False,
    inline: bool = False,
    backend: str | None = None,
    compiler_options: Mapping[str, object] | None = None,
) -> Any:
    """Compile `function` for the arguments it is called with; composes with every transformation.

    static_argnums, static_argnames:  arguments that are Python values, part of the cache key.
    donate_argnums, donate_argnames:  arguments that the call deletes: results may use their bytes.
    dims:     symbolic sizes and their inclusive ranges, {"n": (1, 4096), "m": (0, "n")}; None as
              an end leaves it open. One trace and one compilation serve every size in the range.
    in_dims:  which axes have these sizes: a tree prefix of the positional arguments whose leaves
              are None or a pattern like "n,_,2*m + 1" ("_" leaves an axis as it is, "..." is any
              number of axes). Axes with one name are equal. Without in_dims the leading axis of
              every argument that is itself an array is the only size of `dims`.
              `rune.configure(symbolic="auto")` finds symbolic axes by itself.
    device, backend:  where to run, by default where the arguments are ("gpu" is CUDA).
    schedule: the arrangement of the loops of some kernels, {kernel: schedule}, as text or as in
              `rune.explain(f)(x)["schedules"]`. It changes speed and the order of sums; functions
              that grad, vmap, an outer jit and checks derive from this one use the defaults.
    in_shardings, out_shardings:  tree prefixes of positional arguments and of results: how these
              are laid out on the devices of a mesh; None leaves them as they are. An argument
              that is committed to as many other devices moves.
    inline:   inside another transformation, write the function's operations instead of a call.
    keep_unused, compiler_options:  without effect, and None: XLA's options have no meaning here.
    Errors:   ArgumentError for a leaf that is not an array, an unhashable static argument, static
              or donated arguments that the function does not take, and a schedule that a kernel
              cannot have; DimensionError for a size out of range, axes that contradict each other,
              and while tracing, for a question that the declared sizes leave open.

    >>> import rune, rune.numpy as rnp
    >>> rune.jit(lambda x: rnp.sum(x * x))(rnp.arange(4.0))
    Array(14., f32[], cpu:0)
    """
    if compiler_options:
        raise ArgumentError(f"jit: cannot use compiler_options={compiler_options!r} (they are those of XLA)")
    place = device or platform_name(backend)
    static, donations = as_set(static_argnums, static_argnames), as_set(donate_argnums, donate_argnames)
    schedules = tuple((name, str(text)) for name, text in (schedule or {}).items())
    symbolic, options = SymbolicAxes.of(dims, in_dims), (as_key(dims, in_dims), schedules, inline)

    def jitted(f: Callable[P, R]) -> Jitted[P, R]:
        marks = Marked.of(f, static, donations)
        target = laid_out(f, in_shardings, out_shardings, marks)
        return Jitted(target, marks, symbolic, place, schedules, (static, donations, place, *options), inline)

    return jitted if function is None else jitted(function)
