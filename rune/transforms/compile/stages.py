"""The stages of a jitted function before it is called: traced, lowered, compiled.

    jit(f).trace(*args) -> Traced      the program
    .lower() -> Lowered                its lowering for a device
    .compile() -> Compiled             code; called with arguments of these types and no others

The stages share the trace that calls of the jitted function use, and its compiled code. A program
on several devices is lowered in parts, which `rune.explain` shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from rune import dims, tree
from rune.array import CPU, Array, Place, committed_to, default_place, on
from rune.backends import Device
from rune.core.interpreter import Tracer
from rune.core.program import OpenProgram, Program
from rune.core.sizes import match_sizes
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.dims import Dim, Size
from rune.errors import ArgumentError, TransformError
from rune.ops.arithmetic import convert
from rune.records import dataclass
from rune.sharding.shardings import NamedSharding, Sharding, SingleDeviceSharding
from rune.transforms.arguments import value_leaves
from rune.transforms.compile.executables import Schedules, compiled, device_for, lowered_by
from rune.transforms.compile.placement import array_of, place_of
from rune.transforms.compile.run import OnMesh, needs_stages, on_mesh_of
from rune.transforms.compile.static_arguments import Marked, Statics, with_statics
from rune.transforms.compile.trace_cache import Traced as Trace
from rune.transforms.eval_shape import ShapeDtypeStruct, abstract, leaf_types, typeof
from rune.transforms.references import Ref
from rune.transforms.sharding.blocks import Specs
from rune.transforms.sharding.localize import output_shardings
from rune.transforms.sharding.moves import put_at
from rune.transforms.tree_difference import mismatch

if TYPE_CHECKING:
    from rune.backends.shared.protocol import Executable
    from rune.lowering.explain import Costs
    from rune.lowering.explain import Lowered as Lowering

Places = tuple[Place | None, ...]


# A protocol, since jit.py, which has the class, imports this module.
class Called(Protocol):
    """A jitted function, as its stages see it."""

    schedules: Schedules
    device: str | Device | None
    marks: Marked

    def fitting(
        self, types: tuple[ArrayType, ...], treedef: tree.TreeDef, statics: Statics
    ) -> tuple[Trace, list[Value]]:
        """The trace for arguments of these types, and its hidden inputs."""
        ...

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        """The results."""
        ...


@dataclass(frozen=True, slots=True)
class ArgInfo:
    """An argument: its type, and whether it is donated."""

    aval: ArrayType
    donated: bool

    @property
    def shape(self) -> tuple:
        """Sizes of the axes."""
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        """Element type, as users see it."""
        return self.aval.public_dtype


@dataclass(frozen=True, slots=True)
class MemoryAnalysis:
    """Memory of one run [bytes]: arguments, results, intermediate values, code."""

    argument_size_in_bytes: int
    output_size_in_bytes: int
    temp_size_in_bytes: int
    alias_size_in_bytes: int  # of results that may use the memory of donated arguments
    generated_code_size_in_bytes: int  # of the source: the size of a driver's code is not known

    @property
    def peak_memory_in_bytes(self) -> int:
        """The total held at one time: arguments, results and intermediate values [bytes]."""
        total_bytes = self.argument_size_in_bytes + self.output_size_in_bytes + self.temp_size_in_bytes
        return total_bytes - self.alias_size_in_bytes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stage:
    """The data and properties that all stages share.

    in_tree:  of (args, kwargs), without static arguments; types: those of its leaves
    places:   of arguments that are committed, or described with a sharding; None for others
    out_tree: of the result; the last values of references follow it among the outputs
    """

    jitted: Called
    trace: Trace
    in_tree: tree.TreeDef
    types: tuple[ArrayType, ...]
    places: Places
    statics: Statics
    out_tree: tree.TreeDef

    @property
    def fun_name(self) -> str:
        """The name of the function, as programs have it."""
        return self.trace.program.name

    @property
    def in_avals(self) -> Any:
        """The types of the arguments, as (args, kwargs)."""
        return tree.unflatten(self.in_tree, self.types)

    @property
    def _parts(self) -> tuple[Called, Trace, tree.TreeDef, tuple[ArrayType, ...], Places, Statics, tree.TreeDef]:
        """What all stages share."""
        return self.jitted, self.trace, self.in_tree, self.types, self.places, self.statics, self.out_tree

    @property
    def out_types(self) -> Sequence[ArrayType]:
        """The types of the leaves of the result."""
        return self.trace.out_types[: self.out_tree.num_leaves]

    @property
    def out_avals(self) -> Any:
        """The types of the result, as its tree."""
        return tree.unflatten(self.out_tree, self.out_types)

    @property
    def out_info(self) -> Any:
        """The result as a tree of ShapeDtypeStructs."""
        return tree.unflatten(self.out_tree, map(abstract, self.out_types, output_shardings(self.trace.program)))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """The numbers of the leaves that are donated."""
        # The trace counts inputs of the program, where captured values come first.
        return tuple(n - len(self.trace.captured) for n in self.trace.donations)

    @property
    def args_info(self) -> Any:
        """The arguments, as (args, kwargs): type and donation of each leaf."""
        donations = self.donate_argnums
        return tree.unflatten(self.in_tree, [ArgInfo(t, i in donations) for i, t in enumerate(self.types)])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.fun_name}: {', '.join(map(str, self.types))})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Traced(Stage):
    """A function traced for arguments of one kind; `jit(f).trace(*args)` makes it.

    >>> import rune, rune.numpy as rnp
    >>> traced = rune.jit(rnp.sin).trace(rnp.ones(3))
    >>> traced.out_info, traced.jaxpr.eqns[0].primitive.name
    (ShapeDtypeStruct(shape=(3,), dtype=float32), 'sin')
    """

    @property
    def jaxpr(self) -> Program:
        """The program; values that the function closes over are its constants."""
        captured_values = self.trace.captured
        return OpenProgram(self.trace.program, len(captured_values)).with_constants(captured_values)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None) -> Lowered:
        """The program lowered for the device where calls run.

        Errors: ArgumentError for platforms: `device` of jit decides where the function runs.
        """
        if lowering_platforms is not None:
            raise ArgumentError(
                f"lower: cannot use lowering_platforms={lowering_platforms!r} (it is lowered for where it runs)",
                hint="jit(f, device=...) chooses the device",
            )
        device = self.jitted.device
        # Types do not say where arguments are: as for calls with free ones, which go to the default
        # device.
        place = committed_to(on(device)) if device else default_place()
        where, program = device_for(place.device), self.trace.program
        lowering = None
        # A program in parts has no single lowering: each part is lowered when it runs.
        if not needs_stages(program):
            lowering = lowered_by(program, where, self.trace.donations, self.jitted.schedules)
        return Lowered(*self._parts, where, lowering)


def trace(jitted: Called, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Traced:
    """A function traced for arguments like these, which are not references."""
    in_tree, types, places, statics = _kinds(jitted, args, kwargs)
    entry = jitted.fitting(types, in_tree, statics)[0]
    return Traced(jitted, entry, in_tree, types, places, statics, entry.out_tree)


def of_trace(
    jitted: Called, args: tuple[object, ...], kwargs: Mapping[str, object], trace: Trace, out_tree: tree.TreeDef
) -> Traced:
    """A function of these arguments whose trace was made in another way."""
    in_tree, types, places, statics = _kinds(jitted, args, kwargs)
    return Traced(jitted, trace, in_tree, types, places, statics, out_tree)


def _kinds(
    jitted: Called, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> tuple[tree.TreeDef, tuple[ArrayType, ...], Places, Statics]:
    dynamic, statics = jitted.marks.split(args, kwargs)
    # Only types and places count, so arguments may be ShapeDtypeStructs.
    leaves, in_tree = tree.flatten(dynamic)
    return in_tree, tuple(leaf_types("jit", leaves, in_tree)), tuple(map(_place, leaves)), statics


def _place(leaf: object) -> Place | None:
    if isinstance(leaf, ShapeDtypeStruct) and leaf.sharding is not None:
        return place_of(leaf.sharding)
    return leaf.place if type(leaf) is Array and leaf.committed else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lowered(Stage):
    """A program lowered for a device. lowering: its stages; None where it runs in parts."""

    device: Device
    lowering: Lowering | None

    def compile(self, compiler_options: Mapping[str, object] | None = None) -> Compiled:
        """Machine code, or the device driver's equivalent.

        Errors: ArgumentError for options, which are XLA's.
        """
        if compiler_options:
            raise ArgumentError(f"compile: cannot use compiler_options={compiler_options!r} (they are those of XLA)")
        executable = None
        # A program in parts has no code of its own: its parts are compiled when they run.
        if self.lowering is not None:
            executable = compiled(self.trace.program, self.device, self.trace.donations, self.jitted.schedules)
        return Compiled(*self._parts, self.device, self.lowering, executable)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as it is compiled, after all simplification.

        debug_info: the user's line of each equation as a comment.
        Errors: ArgumentError for a dialect: MLIR and HLO are XLA's.
        """
        if dialect is not None:
            raise ArgumentError(
                f"as_text: cannot write {dialect!r} (dialects are those of XLA's compiler)",
                hint="as_text() is the program in rune's language; rune.explain shows every stage",
            )
        program = self.trace.program if self.lowering is None else self.lowering.simplified
        return program.text(frames=debug_info)

    def compiler_ir(self, dialect: str | None = None) -> NoReturn:
        """Errors: ArgumentError, always: it would be an object of XLA's compiler."""
        raise ArgumentError(
            "compiler_ir: cannot give a module of XLA's compiler (rune has one of its own)",
            hint="as_text() is the program as text; rune.explain shows every stage",
        )

    def cost_analysis(self) -> dict[str, float]:
        """The costs of one run: "flops", and "bytes accessed".

        Errors: ArgumentError for a function that runs in parts on several devices.
        """
        costs, evaluate = self._costs("cost_analysis"), self._evaluated
        # The keys are those of XLA, which code written for JAX looks up.
        return {"flops": float(evaluate(costs.flops)), "bytes accessed": float(evaluate(costs.bytes_moved))}

    def _costs(self, operation: str) -> Costs:
        if self.lowering is None:
            raise ArgumentError(
                f"{operation}: cannot count the costs of {self.fun_name} (it runs in parts on several devices)",
                hint="rune.explain(f)(*args) shows the parts and their costs",
            )
        return self.lowering.costs()

    def _evaluated(self, size: Size) -> int:
        """A size of the program, for the arguments that it was traced with."""
        if not isinstance(size, Dim):
            return size
        arguments = self.trace.program.input_types[len(self.trace.captured) :]
        # The costs of a form are polynomials in its sizes; the types of this stage may be numbers.
        actual = match_sizes(arguments, self.types, f"{self.fun_name}: cannot give its costs")
        sizes = {name: x for name, x in actual.items() if not isinstance(x, Dim)}
        unknown = ", ".join(sorted({s.name for s in dims.symbols(size)} - sizes.keys()))
        if unknown:
            raise ArgumentError(
                f"{self.fun_name}: cannot give its costs in numbers (the size {unknown} is open)",
                hint="rune.explain(f)(*args) shows costs as functions of the sizes",
            )
        return dims.evaluate(size, sizes)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Compiled(Lowered):
    """A function compiled for arguments of one kind: call it with the non-static ones.

    Errors: TypeError for arguments of another tree, shape or dtype, and for traced values.
    """

    executable: Executable | None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The results."""
        leaves, treedef = tree.flatten((args, kwargs))
        if treedef != self.in_tree:
            difference = mismatch(
                self.in_tree,
                treedef,
                "argument{} is missing".format,
                "it takes no argument{}".format,
                "{} required, not {}",
            )
            raise TransformError(f"compiled: cannot call {self.fun_name} ({difference})")
        # Compiled code has no equations from which a derivative or a batch could be made.
        if any(isinstance(x, Tracer) for x in leaves):
            raise TransformError(
                f"compiled: cannot transform {self.fun_name} (it is compiled code, for values)",
                hint="transform the jitted function instead",
            )
        types = self._checked_types(leaves, treedef)
        # Uncommitted arguments go where the described ones were.
        if any(self.places):
            leaves = [*map(_following, leaves, self.places)]
            args, kwargs = tree.unflatten(treedef, leaves)
        # Of the right types, arguments lead the jitted function to the same trace and this code.
        # Weakness, in which they may differ, would lead it to another one.
        if [t.weak for t in types] != [t.weak for t in self.types]:
            values = [_of_type(x, a, e) for x, a, e in zip(leaves, types, self.types, strict=True)]
            args, kwargs = tree.unflatten(treedef, values)
        full, keywords = with_statics((args, kwargs), self.statics)
        return self.jitted(*full, **keywords)

    def _checked_types(self, leaves: Sequence[Value], treedef: tree.TreeDef) -> list[ArrayType]:
        """The types of the leaves. Errors: TransformError for another shape or dtype."""
        # References are checked by their values, but passed on themselves, to be written.
        values = [x.value if isinstance(x, Ref) else x for x in leaves]
        types = [typeof(x) for x in value_leaves("compiled", values, treedef)]
        for actual, expected_type in zip(types, self.types, strict=True):
            # A jitted function would trace again; here other types are an error, as in JAX.
            if (actual.shape, actual.dtype) != (expected_type.shape, expected_type.dtype):
                raise TransformError(
                    f"compiled: cannot call {self.fun_name} with {actual} (it was compiled for {expected_type})"
                )
        return types

    # JAX has both spellings.
    call = __call__

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The source of every kernel, in the language of the device. Errors: as Lowered."""
        if dialect is None and self.executable is not None:
            return "\n\n".join(self.executable.sources().values())
        return Lowered.as_text(self, dialect, debug_info=debug_info)

    def memory_analysis(self) -> MemoryAnalysis:
        """Memory of one run. Errors: ArgumentError for a function that runs in parts."""
        costs = self._costs("memory_analysis")
        inputs, donations = self.trace.program.input_types, self.trace.donations
        code = "" if self.executable is None else "".join(self.executable.sources().values())
        return MemoryAnalysis(
            argument_size_in_bytes=sum(map(self._size_bytes, inputs)),
            output_size_in_bytes=sum(map(self._size_bytes, self.trace.out_types)),
            temp_size_in_bytes=self._evaluated(costs.arena_bytes),
            alias_size_in_bytes=sum(self._size_bytes(inputs[n]) for n in donations),
            generated_code_size_in_bytes=len(code),
        )

    def _size_bytes(self, type: ArrayType) -> int:
        return self._evaluated(type.size) * type.dtype.itemsize

    @property
    def input_shardings(self) -> tuple[object, object]:
        """Where the arguments are, as (args, kwargs). Errors: as memory_analysis."""
        captures = len(self.trace.captured)
        places = self._shardings("input_shardings", len(self.types), lambda run: run.in_specs[captures:])
        return tree.unflatten(self.in_tree, places)

    @property
    def output_shardings(self) -> object:
        """Where the results are, as their tree. Errors: as memory_analysis."""
        results = len(self.out_types)
        places = self._shardings("output_shardings", results, lambda run: run.out_specs[:results])
        return tree.unflatten(self.out_tree, places)

    def _shardings(self, operation: str, count: int, specs: Callable[[OnMesh], Specs]) -> list[Sharding]:
        """The shardings by the specs of a run on a mesh; without a mesh, that of the one device."""
        captures = (x.place if type(x) is Array else CPU for x in self.trace.captured)
        on_devices = on_mesh_of(self.trace.program, (*captures, *(place or CPU for place in self.places)))
        if on_devices is not None:
            return [NamedSharding(on_devices.mesh, spec) for spec in specs(on_devices)]
        self._costs(operation)  # refuses programs on several devices
        return [SingleDeviceSharding(self.device)] * count

    def runtime_executable(self) -> Executable | None:
        """The executable of rune's backend; None for a program that runs in parts."""
        return self.executable


def _following(value: Value, place: Place | None) -> Value:
    """The value, at a place unless it is committed to one."""
    if place is None or isinstance(value, Ref) or (type(value) is Array and value.committed):
        return value
    return put_at(array_of(value), place)


def _of_type(value: Value, actual: ArrayType, expected_type: ArrayType) -> Value:
    """The value, as weak as this type, from which it differs in nothing else."""
    # A reference keeps its own weakness: it is written, and so passed on itself.
    if actual.weak == expected_type.weak or isinstance(value, Ref):
        return value
    return convert(value, dtype=expected_type.dtype, weak=expected_type.weak)
