"""Dialect: what distinguishes one C-family language from another, as data.

The renderer (render.py) knows the structure that all of them share; a dialect has spelling, types,
address spaces and built-in functions. Format strings take their operands as {0}, {1}, {2}.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from rune import dtypes
from rune.lowering.codegen.target import Native, every
from rune.lowering.scalar.number import Ability
from rune.lowering.scalar.table import COMPARISONS, PARTIAL
from rune.records import dataclass

# Operations that all of them spell alike, by operators, casts and conditions.
_ALL_FLOATS = COMPARISONS | PARTIAL.keys() | set("add sub mul div neg".split())
_ALL_INTEGERS = COMPARISONS | PARTIAL.keys() | set("add sub mul neg and or xor not select bitcast".split())
# Their compilers, or the devices themselves, put work items into lanes.
_ABILITIES = frozenset({Ability.BRANCHES})
_ALL_BOOLS = COMPARISONS | set("and or xor not max min".split())


@dataclass(frozen=True, slots=True)
class Scalar:
    """The form of a dtype. Narrow floats live in f32 registers, rounded after each operation."""

    register: str  # the type of a value
    storage: str  # the type of an element in memory, of the dtype's own size
    suffix: str = ""  # of a literal
    load: str = "{0}"  # register value of a storage value
    store: str = "{0}"  # storage value of a register value
    computes_as: np.dtype | None = None  # the dtype it computes in; None for itself


def narrow_float(name: str, storage: str) -> Scalar:
    """A float of 16 bits, in f32 registers, converted by the helpers of its name."""
    return Scalar("float", storage, "f", f"rune_{name}_load({{0}})", f"rune_{name}_store({{0}})", dtypes.f32)


def exact_calls(suffix: str = "", is_finite: str = "(isfinite({0}) != 0)") -> dict[str, str]:
    """Operation -> call of functions that all of them round exactly; `suffix`: for float."""
    return {
        **{name: f"{name}{suffix}({{0}})" for name in ("floor", "ceil", "trunc", "sqrt")},
        **{name: f"{name}{suffix}({{0}}, {{1}})" for name in ("nextafter", "copysign")},
        "abs": f"fabs{suffix}({{0}})",
        "round": f"rint{suffix}({{0}})",
        "rem": f"fmod{suffix}({{0}}, {{1}})",
        "fma": f"fma{suffix}({{0}}, {{1}}, {{2}})",
        "is_finite": is_finite,
    }


@dataclass(frozen=True, slots=True)
class Together:
    """How a language spells products of four subgroups.

    multiply:     functions, by the dtype of the factors
    swizzle:      the index of element {0} of an array that they read
    start:        declares a thread's record of its writes
    store_record: records that a thread has stored into such an array; a fetch does so itself
    fetch:        of {0} bytes into such an array, as in Dialect
    barrier_wait: waits, before a barrier, for all but {0} products and all but {1} fetches
    product_wait: waits for all products, whose sums are {0}
    """

    multiply: Mapping[np.dtype, str]
    swizzle: str
    start: str
    store_record: str
    fetch: str
    barrier_wait: str
    product_wait: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """One language of the C family."""

    name: str
    scalars: Mapping[np.dtype, Scalar]
    # Operation -> call of a function of the language that is exact enough, by dtype: f32, f64 and
    # integers. legalize/scalars.py writes the others.
    functions: Mapping[np.dtype, Mapping[str, str]]
    to_bits: Mapping[np.dtype, str]  # a float's bits as the unsigned integer of its size
    from_bits: Mapping[np.dtype, str]
    casts: Mapping[tuple[np.dtype, np.dtype], str]  # where a plain cast would round twice
    helpers: Mapping[str, str]  # functions by name, written out where a kernel mentions them
    preamble: str  # first lines of every program
    extensions: Mapping[np.dtype, str]  # lines that a program with this dtype needs

    kernel: str  # before a kernel's name
    function: str  # before a helper function, with the space after it
    global_pointer: str  # {0} type, {1} name, for parameters that the kernel writes
    const_pointer: str  # ... and only reads
    restrict: str  # before a pointer's name, where nothing else aliases it
    shared_qualifier: str  # before the type of an array shared by a workgroup
    barrier: str
    index_type: str  # a signed 64-bit integer
    grid_point: str  # position in launch dimension {0}, of type {1}, if threads are grid points
    group: str  # ... of the workgroup, which has {2} threads along the dimension
    thread: str  # ... of the thread in its workgroup
    grid_dims: int  # launch dimensions
    pointer_offsets: bool  # every buffer comes with the number of its first element
    reserved_words: frozenset[str] = field(default=frozenset())  # words that no name may be
    thread_bound: str = ""  # before the name of a kernel whose workgroup has {0} threads
    positions: str = ""  # parameters after all others that say which grid point a call computes
    argument_table: str = ""  # the one parameter of every kernel: 64-bit words, addresses, sizes
    in_memory: str = ""  # promises that the address {0} from the table is in global memory
    narrow_index: str = ""  # a signed 32-bit integer, for kernels whose indices all fit
    read_only: str = ""  # what lies at an address {0} in a buffer that nothing writes
    # By dtype: the vector type of neighbouring elements, whose name the number of elements follows,
    # and the most elements that one access may cover.
    pieces: Mapping[np.dtype, tuple[str, int]] = field(default_factory=dict)
    piece_elements: tuple[str, ...] = ("x", "y", "z", "w")
    piece_load: str = "*(const {0}*){1}"  # a piece of type {0} from an address {1}, {2} elements
    piece_store: str = "*({0}*){1} = make_{0}({2})"  # values {2} to it, {3} elements
    no_piece: str = "{0}()"  # a piece of type {0} of zeros
    # Whether bodies that accumulate have pieces, too, or only those that read and then write.
    pieces_for_sums: bool = True
    # By the number of neighbouring threads that wait; without an entry, all threads do.
    barriers: Mapping[int | None, str] = field(default_factory=dict)
    # (combine, dtype) -> a call that changes an element {0} by {1} atomically
    atomics: Mapping[tuple[str, np.dtype], str] = field(default_factory=dict)
    # Shared arrays with more bytes in all are cut from one array, whose size the launch chooses;
    # `pool` declares it as {0}.
    static_shared_bytes: int | None = None
    pool: str = ""
    # Functions for products of matrices (codegen/units.py), by the dtype of the factors.
    multiply: Mapping[np.dtype, str] = field(default_factory=dict)
    fetch: str = ""  # {0} bytes into shared memory at {1} from {2}, zeros where not {3}
    fetch_wait: str = ""  # waits for all fetches of a thread, before a barrier
    unroll: str = ""  # before a loop that the compiler should unroll {0} times
    one_by_one: str = ""  # before a loop that writes elements at computed places
    copy: str = ""  # of an f32 {0}, in another register
    together: Together | None = None  # products of four subgroups; None: the language has none
    native: Native = field(init=False)

    def __post_init__(self) -> None:
        """Derive the operations that the language has from the other fields."""
        floats = self.scalars.keys() & dtypes.FLOATING
        operations = every(_ALL_INTEGERS, dtypes.INTEGER) | every(_ALL_BOOLS, [dtypes.bool_])
        operations |= every(_ALL_FLOATS, floats) | every(["select", "bitcast"], self.scalars)
        for dtype, calls in self.functions.items():
            operations |= every(calls, [dtype])
        registers = {d: s.computes_as for d, s in self.scalars.items() if s.computes_as is not None}
        object.__setattr__(self, "native", Native(operations, registers, frozenset(self.casts), _ABILITIES))
