"""Dtypes: NumPy's dtype objects, their short names, and the promotion lattice.

A dtype is always a `numpy.dtype` (bf16, fp8 and int4 come from ml_dtypes). Names in programs count
bits, and `FROM_SHORT` maps them to dtypes. `named` reads a dtype that a user names, and gives
NumPy's meaning to names that NumPy knows ("i4" has four bytes); `as_dtype` does the same for the
dtype of a new array. Promotion follows JAX's lattice: the result is the least upper bound, and weak
(Python scalar) operands take the other side's width. The default types are 32-bit; an explicit
64-bit dtype is kept, or truncated if the settings say so. Strict promotion
(`rune.numpy_dtype_promotion`) is another lattice, in which only weak types can be promoted.

Random keys have dtypes, too, one for each generator: records of two words, which NumPy can move but
not compute with. Users see them as `KeyDtype`, which prints as `key<fry>`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from rune import config
from rune.errors import DtypeError, PromotionError, user_frame
from rune.records import dataclass

bool_ = np.dtype(np.bool_)
i4, i8, i16, i32, i64 = (np.dtype(t) for t in (ml_dtypes.int4, np.int8, np.int16, np.int32, np.int64))
u4, u8, u16, u32, u64 = (np.dtype(t) for t in (ml_dtypes.uint4, np.uint8, np.uint16, np.uint32, np.uint64))
bf16, f16, f32, f64 = (np.dtype(t) for t in (ml_dtypes.bfloat16, np.float16, np.float32, np.float64))
f8_e4m3, f8_e5m2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
c64, c128 = np.dtype(np.complex64), np.dtype(np.complex128)
float0 = np.dtype([("float0", np.void, 0)])

KEY_TAGS = {"threefry2x32": "fry", "philox4x32": "phx4"}  # generators, and the tags of their keys
KEY_OF = {impl: np.dtype([(tag, np.uint32, (2,))], align=True) for impl, tag in KEY_TAGS.items()}
IMPL_OF = {dtype: impl for impl, dtype in KEY_OF.items()}
KEYS = frozenset(IMPL_OF)

SHORT: dict[np.dtype, str] = {
    bool_: "bool",
    i4: "i4",
    i8: "i8",
    i16: "i16",
    i32: "i32",
    i64: "i64",
    u4: "u4",
    u8: "u8",
    u16: "u16",
    u32: "u32",
    u64: "u64",
    f8_e4m3: "f8_e4m3",
    f8_e5m2: "f8_e5m2",
    bf16: "bf16",
    f16: "f16",
    f32: "f32",
    f64: "f64",
    c64: "c64",
    c128: "c128",
    float0: "float0",
    **{dtype: f"key<{KEY_TAGS[impl]}>" for dtype, impl in IMPL_OF.items()},
}
FROM_SHORT = {name: dtype for dtype, name in SHORT.items()}

SIGNED = frozenset({i4, i8, i16, i32, i64})
UNSIGNED = frozenset({u4, u8, u16, u32, u64})
INTEGER = SIGNED | UNSIGNED
FLOATING = frozenset({f8_e4m3, f8_e5m2, bf16, f16, f32, f64})
COMPLEX = frozenset({c64, c128})
INEXACT = FLOATING | COMPLEX
NUMERIC = INTEGER | INEXACT
ANY = NUMERIC | {bool_}


def short(dtype: np.dtype) -> str:
    """The short name used in programs and messages.

    >>> short(f32), short(bool_)
    ('f32', 'bool')
    """
    name = SHORT.get(dtype)
    return name if name is not None else str(dtype)


def one_of(dtype: np.dtype) -> np.dtype:
    """The unique object for a dtype; unpickling and metadata create others that are equal."""
    return FROM_SHORT.get(SHORT.get(dtype, ""), dtype)


# --- keys -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class KeyDtype:
    """The dtype of the keys of one generator. It prints as `key<fry>`, and its items have 64 bits.

    It equals the NumPy dtype that stores the keys, and `numpy.dtype` converts it to that dtype.

    >>> import rune
    >>> rune.random.key(0).dtype, rune.random.key(0).dtype == rune.random.KeyDtype("threefry2x32")
    (key<fry>, True)
    """

    impl: str

    @property
    def dtype(self) -> np.dtype:
        """The NumPy record dtype that stores such keys."""
        return KEY_OF[self.impl]

    @property
    def name(self) -> str:
        """`key<fry>`."""
        return SHORT[self.dtype]

    @property
    def type(self) -> type:
        """The class of its scalars, by which libraries recognise keys: `prng_key`."""
        return prng_key

    @property
    def itemsize(self) -> int:
        """The size of a key in bytes."""
        return self.dtype.itemsize

    def __eq__(self, other: object) -> bool:
        return self.dtype == (other.dtype if isinstance(other, KeyDtype) else other)

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


_PUBLIC = {dtype: KeyDtype(impl) for dtype, impl in IMPL_OF.items()}


def public(dtype: np.dtype) -> Any:
    """The dtype as users see it: itself, or for keys their KeyDtype."""
    return _PUBLIC.get(dtype, dtype)


def stored_words(keys: np.ndarray) -> np.ndarray:
    """The words of NumPy keys along a new last axis, as a view."""
    assert keys.dtype.names is not None
    return keys[keys.dtype.names[0]]


def stored_keys(words: Sequence[Any], dtype: np.dtype) -> np.ndarray:
    """The NumPy keys that have these words, each of which is an array or a number."""
    keys = np.empty(np.broadcast_shapes(*map(np.shape, words)), dtype)
    for number, word in enumerate(words):
        stored_words(keys)[..., number] = word
    return keys


# --- kinds ------------------------------------------------------------------------------------


class extended(np.generic):
    """The kind of dtypes whose elements are not numbers."""


class prng_key(extended):
    """The kind of the dtypes of keys.

    >>> import rune
    >>> rune.dtypes.issubdtype(rune.random.key(0).dtype, rune.dtypes.prng_key)
    True
    """


_KINDS: dict[type, frozenset[np.dtype]] = {
    np.generic: ANY | KEYS,
    np.number: NUMERIC,
    np.integer: INTEGER,
    np.signedinteger: SIGNED,
    np.unsignedinteger: UNSIGNED,
    np.inexact: INEXACT,
    np.floating: FLOATING,
    np.complexfloating: COMPLEX,
    extended: KEYS,
    prng_key: KEYS,
    np.flexible: frozenset(),
    np.character: frozenset(),
}


def issubdtype(a: object, b: object) -> bool:
    """Whether a dtype belongs to a kind such as `numpy.floating`, or is the same dtype.

    Errors: DtypeError for an unknown dtype.

    >>> issubdtype("bf16", np.floating), issubdtype(int, np.floating)
    (True, False)
    """
    if isinstance(a, type) and a in _KINDS:
        return isinstance(b, type) and issubclass(a, b)
    if isinstance(b, type) and b in _KINDS:
        return named(a) in _KINDS[b]
    return named(a) == named(b)


# --- names ------------------------------------------------------------------------------------

_PYTHON: dict[type, np.dtype] = {float: f64, int: i64, bool: bool_, complex: c128}
_NARROW = {i64: i32, u64: u32, f64: f32, c128: c64}


def as_dtype(dtype: object) -> np.dtype:
    """The dtype of a new array, from a Python type, NumPy type, dtype or short name.

    Types:  as `named`, but 64 bits become 32 if wide_dtypes="truncated" is set without x64.
    Errors: DtypeError if an argument is not a dtype of rune. Warns when it truncates.

    >>> short(as_dtype("float64")), short(as_dtype(float))
    ('f64', 'f32')
    """
    target = named(dtype)
    if target in _NARROW and target is not (available_dtype := available(target)):
        _warn_of_truncation(target, available_dtype)
        return available_dtype
    return target


def named(dtype: object) -> np.dtype:
    """The dtype that a Python type, NumPy type, dtype or short name stands for.

    Types:  float, int and complex mean the defaults: 32 bits, or 64 under x64. Names that NumPy
            knows have its meaning and count bytes; short names that it does not know count bits.
    Errors: DtypeError if an argument is not a dtype of rune.

    >>> short(named(float)), short(named("bf16")), short(named(np.int64))
    ('f32', 'bf16', 'i64')
    >>> short(named("i4")), short(named("int4")), short(named("i16"))
    ('i32', 'i4', 'i16')
    """
    if type(dtype) is type and dtype in _PYTHON:
        return canonical(_PYTHON[dtype])
    if not isinstance(dtype, Hashable):  # such as an array in place of a dtype
        raise DtypeError(f"dtype: cannot use {type(dtype).__name__} (not a dtype of rune)")
    return _named(dtype)


def available(dtype: np.dtype) -> np.dtype:
    """The dtype of an array that is requested in this dtype, after any truncation to 32 bits.

    >>> short(available(f64))
    'f64'
    """
    return dtype if config.current().wide_dtypes == "honoured" else canonical(dtype)


def canonicalize_dtype(dtype: object, allow_extended_dtype: bool = False) -> Any:
    """The 32-bit dtype for a 64-bit one, unless x64 is set; others unchanged.

    allow_extended_dtype: whether to accept the dtype of keys.
    Errors: DtypeError for an unknown dtype, and for that of keys unless allowed.

    >>> canonicalize_dtype("int64"), canonicalize_dtype(float), canonicalize_dtype("bf16")
    (dtype('int32'), dtype('float32'), dtype(bfloat16))
    """
    target = named(dtype)
    if target in KEYS and not allow_extended_dtype:
        raise DtypeError(f"canonicalize_dtype: cannot take {short(target)} (a dtype of numbers required)")
    return public(canonical(target))


def itemsize_bits(dtype: object) -> int:
    """The number of bits of an element: 4 for int4, however it is stored.

    Errors: DtypeError for an unknown dtype.

    >>> itemsize_bits("int4"), itemsize_bits("complex64"), itemsize_bits(bool)
    (4, 64, 8)
    """
    target = named(dtype)
    return 4 if target in (i4, u4) else 8 * target.itemsize


def scalar_type_of(x: object) -> type:
    """The Python type of the same kind as an array, a number or a dtype.

    Errors: DtypeError for keys, and for an unknown dtype.

    >>> import rune.numpy as rnp
    >>> scalar_type_of(rnp.arange(2)), scalar_type_of(np.float32(1)), scalar_type_of("bool")
    (<class 'int'>, <class 'float'>, <class 'bool'>)
    """
    if type(x) in _PYTHON:
        return type(x)
    target = named(getattr(x, "dtype", x))
    for kind, python in ((INTEGER, int), (FLOATING, float), (COMPLEX, complex), ({bool_}, bool)):
        if target in kind:
            return python
    raise DtypeError(f"scalar_type_of: cannot find a Python type for {short(target)} (a dtype of numbers required)")


def _warn_of_truncation(dtype: np.dtype, narrow: np.dtype) -> None:
    text = f"Explicitly requested dtype {dtype.name} is not available, and will be truncated to dtype {narrow.name}"
    warn_user(f"{text}; rune.enable_x64() makes 64 bits available", UserWarning)


def warn_user(text: str, category: type[Warning]) -> None:
    """A warning at the user's line."""
    frame = user_frame()
    if frame is None:
        warnings.warn(text, category, stacklevel=4)
    else:
        warnings.warn_explicit(text, category, frame.file, frame.line)


@functools.cache
def _named(dtype: Any) -> np.dtype:
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if result not in SHORT and isinstance(dtype, str):  # NumPy's "f16" is a long double
        result = FROM_SHORT.get(dtype)
    if result is None or result not in SHORT:
        raise DtypeError(
            f"dtype: cannot use {dtype!r} (not a dtype of rune)",
            hint="names are NumPy's, as float32, i4 (of four bytes), or short, as f32, bf16, i16",
        )
    return one_of(result)


def native(values: Any) -> Any:
    """NumPy values in this machine's byte order; those from files may have the other one."""
    dtype = values.dtype
    return values if dtype.isnative else values.astype(dtype.newbyteorder("="))


def canonical(dtype: np.dtype) -> np.dtype:
    """The 32-bit dtype that data take if the user names no dtype; under x64 the dtype itself."""
    if config.current().x64:
        return dtype
    return _NARROW.get(dtype, dtype)


# Hints on how to turn other data into numbers, by NumPy's kind of dtype.
_TO_NUMBERS = dict.fromkeys("US", "number the labels: np.unique(labels, return_inverse=True)[1]")
_TO_NUMBERS |= dict.fromkeys("mM", "count from a start: (times - times[0]) / np.timedelta64(1, 's')")
_TO_NUMBERS["O"] = "arrays hold numbers: take df.select_dtypes('number') of a table, float('nan') for None"


def on_arrival(dtype: np.dtype, kind: str) -> np.dtype:
    """The dtype that host data of `dtype` get if the user names none.

    Errors: DtypeError with a hint if the data are not numbers; `kind` is their name in it.
    """
    if dtype not in ANY:
        raise DtypeError(f"array: cannot hold {kind} (dtype {dtype})", hint=_TO_NUMBERS.get(dtype.kind))
    return canonical(dtype)


# Edges of JAX's promotion lattice: each type points to the types directly above it. The weak types
# "i*", "f*", "c*" are those of Python scalars.
_Node = np.dtype | str
_ABOVE: dict[_Node, tuple[_Node, ...]] = {
    bool_: ("i*",),
    "i*": (u8, i8, u4, i4),
    u4: (),
    i4: (),
    u8: (i16, u16),
    u16: (i32, u32),
    u32: (i64, u64),
    u64: ("f*",),
    i8: (i16,),
    i16: (i32,),
    i32: (i64,),
    i64: ("f*",),
    "f*": (bf16, f16, f8_e4m3, f8_e5m2, "c*"),
    f8_e4m3: (),
    f8_e5m2: (),
    bf16: (f32,),
    f16: (f32,),
    f32: (f64, c64),
    f64: (c128,),
    "c*": (c64,),
    c64: (c128,),
    c128: (),
    **dict.fromkeys(KEYS, ()),
}
_ABOVE_STRICTLY: dict[_Node, tuple[_Node, ...]] = {
    **dict.fromkeys(ANY | KEYS, ()),
    "i*": ("f*", *INTEGER),
    "f*": ("c*", *FLOATING),
    "c*": (*COMPLEX,),
}
_LATTICES = {"standard": _ABOVE, "strict": _ABOVE_STRICTLY}
_WEAK_DTYPE: dict[str, np.dtype] = {"i*": i32, "f*": f32, "c*": c64}


@functools.cache
def _upper(node: _Node, mode: str) -> frozenset[_Node]:
    nodes = {node}
    for above in _LATTICES[mode][node]:
        nodes |= _upper(above, mode)
    return frozenset(nodes)


def _node(dtype: np.dtype, weak: bool) -> _Node:
    if not weak or dtype == bool_:
        return dtype
    if dtype in INTEGER:
        return "i*"
    return "f*" if dtype in FLOATING else "c*"


def _least_upper_bound(nodes: frozenset[_Node], mode: str) -> _Node:
    common = frozenset.intersection(*(_upper(n, mode) for n in nodes))
    least = [n for n in common if common <= _upper(n, mode)]
    if len(least) != 1:
        names = " and ".join(sorted(n if isinstance(n, str) else short(n) for n in nodes))
        why = "no implicit path" if mode == "standard" else f"{mode} promotion"
        hint = "cast one side with .astype(...)"
        if not nodes.isdisjoint(KEYS):
            why = "keys promote only with keys of the same generator"
            hint = "rune.random.key_data gives the words of keys"
        raise PromotionError(f"promote: cannot promote {names} ({why})", hint)
    return least[0]


def promote(*types: tuple[np.dtype, bool]) -> tuple[np.dtype, bool]:
    """The (dtype, weak) that operands of (dtype, weak) share.

    Errors: PromotionError if the lattice has no single least upper bound (fp8 with f16, int4).

    >>> short(promote((bf16, False), (f16, False))[0]), short(promote((i8, False), (u8, False))[0])
    ('f32', 'i16')
    >>> promote((i32, False), (f32, True)), promote((i64, False), (f32, True))
    ((dtype('float32'), True), (dtype('float64'), True))
    """
    dtype, weak = _promoted(types, config.current().promotion)
    # With 64 bits truncated, promotion must not yield them either: i8 with u32 is i32, as in JAX.
    if dtype in _NARROW and not any(d in _NARROW for d, _ in types):
        dtype = available(dtype)
    return dtype, weak


@functools.cache
def _promoted(types: tuple[tuple[np.dtype, bool], ...], mode: str) -> tuple[np.dtype, bool]:
    distinct = frozenset(_node(dtype, weak) for dtype, weak in types)
    if len(distinct) == 1 and len({d for d, _ in types}) == 1:
        return types[0][0], all(weak for _, weak in types)
    bound = _least_upper_bound(distinct, mode)
    if isinstance(bound, str):
        # Weak operands of one kind may still differ in width (a weak f64): the widest one wins.
        kind = [d for d, w in types if _node(d, w) == bound] or [_WEAK_DTYPE[bound]]
        if any(d in (i64, u64) and not w for d, w in types):
            kind += [{"f*": f64, "c*": c128}.get(bound, i64)]
        return max(kind, key=lambda d: d.itemsize), True
    return bound, False


_SCALARS = {bool: (bool_, False), int: (i32, True), float: (f32, True), complex: (c64, True)}
_SCALARS_X64 = {bool: (bool_, False), int: (i64, True), float: (f64, True), complex: (c128, True)}


def scalar_type(value: Any) -> tuple[np.dtype, bool] | None:
    """(dtype, weak) of a Python scalar, such as a member of an IntEnum; None for anything else."""
    default = _SCALARS.get(type(value))
    if default is None and (number := plain_number(value)) is not None:
        return scalar_type(number)
    if default is not None and config.current().x64:
        return _SCALARS_X64[type(value)]
    return default


def plain_number(value: object) -> complex | None:
    """A scalar of a subclass of int, float or complex, converted to that class; else None."""
    if isinstance(value, int | float | complex) and not isinstance(value, np.generic):
        return next(kind(value) for kind in (bool, int, float, complex) if isinstance(value, kind))  # type: ignore[arg-type]
    return None


def require_whole(name: str, dtype: np.dtype, target: np.dtype) -> None:
    """Errors: DtypeError if converting from `dtype` to `target` would drop imaginary parts."""
    if dtype in COMPLEX and target not in COMPLEX:
        raise DtypeError(
            f"{name}: cannot convert {short(dtype)} to {short(target)} (the imaginary part would be lost)",
            hint="take .real first",
        )


def default_float(dtype: np.dtype) -> np.dtype:
    """The floating dtype to which real arithmetic converts integers of `dtype`.

    >>> short(default_float(i32)), short(default_float(i64))
    ('f32', 'f64')
    """
    return f64 if dtype in (i64, u64) else f32
