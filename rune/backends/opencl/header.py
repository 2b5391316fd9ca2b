"""Short declarations that replace PoCL's header in front of rune's programs.

PoCL makes its compiler read a header of 18,500 lines, twice for each program, which takes three
times as long as all other work on a small kernel. Defining the header's include guard keeps it out,
and the functions that rune's kernels use are declared here, in 140 lines. They have the header's
attributes, so the compiler produces the same code.

Functions of one instruction are defined here through the compiler's builtins instead. PoCL's
library is built for a few processors, and on others its functions are not inlined: on AMD's Zen,
`fabs` was a call for each element, which kept every loop over work items from being vectorised.

The program TRIAL calls every function that is declared. If it does not build, PoCL's own header is
used, since PoCL does not promise to keep the include guard. Kernels that users write always get the
header, because they may call anything.
"""

from __future__ import annotations

from rune.lowering.codegen.c.opencl import ATOMICS, OPENCL_C
from rune.records import dataclass


@dataclass(frozen=True, slots=True)
class Header:
    """Options of a build, and text before the source, which does not count in line numbers."""

    options: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Function:
    result: str
    name: str
    operands: tuple[str, ...]
    attribute: str = "const"  # besides `overloadable`
    code: str = ""  # its body over a0, a1, ...; "" for a function of PoCL's library

    def declaration(self) -> str:
        """The declaration of a library function, or the definition of an inlined one."""
        if not self.code:
            return f"{self._head('overloadable')}({', '.join(self.operands)});"
        operands = ", ".join(f"{type_} a{k}" for k, type_ in enumerate(self.operands))
        return f"static {self._head('overloadable, always_inline')}({operands}) {{ {self.code}; }}"

    def _head(self, attributes: str) -> str:
        attributes = f"{attributes}, {self.attribute}" if self.attribute else attributes
        return f"{self.result} __attribute__(({attributes})) {self.name}"

    def call(self, number: int) -> str:
        """A function that calls it, for the trial program."""
        operands = ", ".join(f"{type_} a{k}" for k, type_ in enumerate(self.operands))
        values = ", ".join(f"a{k}" for k in range(len(self.operands)))
        value = f"{self.name}({values})"
        return f"{self.result} call_{number}({operands}) {{ {'' if self.result == 'void' else 'return '}{value}; }}"


_UNSIGNED = tuple(f"typedef unsigned {t} u{t};" for t in ("char", "short", "int", "long"))
_INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
_SPACES = ("__global", "__local", "__private")
_POSITIONS = ("get_global_id", "get_global_offset", "get_group_id", "get_local_id")
_PIECES = tuple((base, n) for base, most in OPENCL_C.pieces.values() for n in (2, 4, 8) if n <= most)


def _of_floats(type_: str) -> list[_Function]:
    suffix = "f" if type_ == "float" else ""

    def inlined(name: str, count: int) -> _Function:
        call = f"__builtin_{name}{suffix}({', '.join(f'a{k}' for k in range(count))})"
        return _Function(type_, name, (type_,) * count, code=f"return {call}")

    return [
        *(inlined(name, 1) for name in ("floor", "ceil", "trunc", "sqrt", "fabs", "rint")),
        inlined("copysign", 2),
        inlined("fma", 3),
        *(_Function(type_, name, (type_, type_)) for name in ("nextafter", "fmod")),
        _Function("int", "isfinite", (type_,), code="return __builtin_isfinite(a0)"),
        _Function("void", "vstore_half_rte", (type_, "size_t", "__private half*"), ""),
    ]


def _of_pieces(base: str, count: int) -> list[_Function]:
    """Loads and stores of neighbouring elements, the first of which may be any element."""
    # The type `_anywhere` has the alignment of one element: a plain vector type would let the
    # compiler use aligned instructions.
    piece, anywhere = f"{base}{count}", f"{base}{count}_anywhere"
    load, store = f"return *(const {{}} {anywhere}*)(a1 + {count} * a0)", f"*({{}} {anywhere}*)(a2 + {count} * a1) = a0"
    loads = [
        _Function(piece, f"vload{count}", ("size_t", f"const {s} {base}*"), "pure", load.format(s)) for s in _SPACES
    ]
    stores = [
        _Function("void", f"vstore{count}", (piece, "size_t", f"{s} {base}*"), "", store.format(s)) for s in _SPACES
    ]
    return loads + stores


def _atomics() -> list[_Function]:
    kinds = {(combine, OPENCL_C.scalars[dtype].register) for combine, dtype in ATOMICS}
    return [
        _Function(type_, f"atomic_{combine}", (f"volatile {space} {type_}*", type_), "")
        for combine, type_ in sorted(kinds)
        for space in _SPACES[:2]
        if type_ != "long"
    ]


_FUNCTIONS = (
    *(_Function("size_t", name, ("uint",)) for name in _POSITIONS),
    *(_Function(t, name, (t,)) for name in ("popcount", "clz") for t in _INTEGERS),
    *_of_floats("float"),
    _Function("float", "vload_half", ("size_t", "const __private half*"), "pure"),
    *(function for piece in _PIECES for function in _of_pieces(*piece)),
    *_atomics(),
)
_OF_DOUBLES = tuple(_of_floats("double"))
_OF_LONGS = (_Function("long", "atom_add", ("volatile __global long*", "long"), ""),)
# Not among the functions of the trial, because it may be called only from a kernel.
_BARRIER = _Function("void", "barrier", ("uint",), "convergent")


def _with_extension(name: str, lines: list[str]) -> list[str]:
    """Lines for devices that have the extension, which is enabled for these lines only."""
    pragma = f"#pragma OPENCL EXTENSION {name} :"
    return [f"#ifdef {name}", f"{pragma} enable", *lines, f"{pragma} disable", "#endif"]


_DECLARATIONS = "\n".join(
    [
        *_UNSIGNED,
        "typedef __SIZE_TYPE__ size_t;",
        *(f"typedef {base} {base}{n} __attribute__((ext_vector_type({n})));" for base, n in _PIECES),
        *(f"typedef {base}{n} {base}{n}_anywhere __attribute__((aligned(sizeof({base}))));" for base, n in _PIECES),
        *(f"#define as_{t}(x) __builtin_astype((x), {t})" for t in ("uint", "ulong", "float", "double")),
        "#define CLK_LOCAL_MEM_FENCE 1",
        "#define CLK_GLOBAL_MEM_FENCE 2",
        _BARRIER.declaration(),
        *(f.declaration() for f in _FUNCTIONS),
        *_with_extension("cl_khr_fp64", [f.declaration() for f in _OF_DOUBLES]),
        *_with_extension("cl_khr_int64_base_atomics", [f.declaration() for f in _OF_LONGS]),
    ]
)

OF_THE_DRIVER = Header()
# The first macro is the header's include guard; the second a type that PoCL itself uses after it.
DECLARED = Header(("-D_OPENCL_H_", "-Duintptr_t=__UINTPTR_TYPE__"), f"{_DECLARATIONS}\n#line 1\n")


def _calls(functions: tuple[_Function, ...], first: int) -> list[str]:
    return [f.call(number) for number, f in enumerate(functions, first)]


TRIAL = "\n".join(
    [
        *_calls(_FUNCTIONS, 0),
        *_with_extension("cl_khr_fp64", _calls(_OF_DOUBLES, 1000)),
        *_with_extension("cl_khr_int64_base_atomics", _calls(_OF_LONGS, 2000)),
        f"__kernel void smallest(__global int *x) {{ {OPENCL_C.barrier}; x[get_global_id(0)] = as_uint(1.0f); }}",
    ]
)
