"""Machine code of modules, from disk or compiled by LLVM, and its lifetime.

    code = compile_module("softmax", text)        IR text
    code.address("run")

A Code object owns its machine code, and frees it when it dies.

Code is kept on disk (disk_cache.py). Addresses of this process, `inttoptr (i64 N to ptr)`, become
symbols, so that the next process writes the same text and binds the symbols to its own addresses.
Code from disk runs without LLVM (llvm.py), which is loaded when something is compiled.
"""

from __future__ import annotations

import functools
import marshal
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, Protocol

from rune import locks
from rune.backends.cpu import processor
from rune.backends.cpu.conventions import EFFORT, declared, model, symbol_of
from rune.backends.cpu.images import loader
from rune.backends.cpu.processor import Processor
from rune.backends.shared import disk_cache
from rune.backends.shared.fingerprint import fingerprint
from rune.backends.shared.interrupts import deferred
from rune.lowering.codegen.machine import Machine
from rune.records import dataclass

_ADDRESS = r"inttoptr \(i64 (\d+) to ptr\)"
_IMAGE, _OBJECT = b"image\n", b"object\n"  # the first bytes of code on disk


# LLVM, imported for the first module that is compiled.
_llvm = locks.late_module("rune.backends.cpu.llvm")
# The linker of object code, imported on systems without images.
_linker = locks.late_module("rune.backends.cpu.llvm_binding")


@functools.cache
def host() -> Processor:
    """The host's processor. Errors: ImportError where llvmlite is missing."""
    return processor.known(lambda: _llvm().processor())


@functools.cache
def features() -> dict[str, bool]:
    """The instruction sets that code may use, by LLVM's names."""
    words = filter(None, host().features.split(","))
    return {word[1:]: word[0] == "+" for word in words}


@functools.cache
def machine() -> Machine:
    """The processor as the renderer sees it."""
    available = features()
    # AVX512F alone masks elements of 32 and 64 bits; elements of 8 and 16 bits need BW.
    wide = all(available.get(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq"))
    if wide:
        scalef = frozenset({"<16 x float>", "<8 x double>"})
        return Machine(64, has_cheap_masks=True, scalef=scalef, waits_for_denormals=True)
    is_x86 = platform.machine().lower() in ("x86_64", "amd64")
    return Machine(32 if available.get("avx2") else 16, has_cheap_masks=False, waits_for_denormals=is_x86)


def has_half() -> bool:
    """Whether the processor converts f16. Otherwise LLVM would call a library that is not
    linked."""
    return platform.machine().lower() in ("arm64", "aarch64") or bool(features().get("f16c"))


@functools.cache
def attributes() -> str:
    """The attributes of every function, `#0`."""
    # Otherwise LLVM splits 512-bit vectors on processors that clock lower with them.
    width = f'"prefer-vector-width"="{8 * machine().vector_bytes}" '
    width += f'"min-legal-vector-width"="{8 * machine().vector_bytes}"'
    return f"attributes #0 = {{ nounwind {width} }}"


def target_words(effort: int) -> tuple[str, ...]:
    """All that machine code depends on besides its text: LLVM, the processor, model and effort."""
    return processor.llvm_words(), *model(), host().name, host().features, str(effort)


class Linked(Protocol):
    """Machine code in memory."""

    def address(self, name: str) -> int:
        """The address of a function or of data."""
        ...


P = ParamSpec("P")
LASTING: list[Code] = []  # code that is never freed


@dataclass(slots=True)
class Code:
    """Machine code of one module, alive as long as this object."""

    engine: Linked
    text: str
    binary: bytes  # the code as it is stored on disk
    addresses: Sequence[int]  # of its symbols, in order
    effort: int  # LLVM's

    def address(self, name: str) -> int:
        """The address of a function or of data."""
        return self.engine.address(name)

    def assembly(self) -> str:
        """The module as assembly, compiled again for reading."""
        return _llvm().assembly(self.text, host())


def compile_module(name: str, text: str, effort: int = EFFORT) -> Code:
    """Compile IR text.

    Errors: CompileError "cpu: cannot compile f (LLVM's words)" with the numbered lines; OutOfMemory
    if LLVM could run out of memory, at which it would end the process.
    """
    text, addresses = _with_symbols(f"{text}\n\n{attributes()}\n")
    key = disk_cache.key_of("code", *target_words(effort), text)
    binary = disk_cache.load(key)
    if binary is not None:
        return link(binary, addresses, effort, text)
    code = _compiled(name, text, addresses, effort)
    disk_cache.store(key, code.binary)
    return code


def compile_routine(
    name: str, words: Sequence[object], outside: Mapping[str, int], write: Callable[[], str], effort: int
) -> Code:
    """A module whose text is the same in every process: looked up on disk before it is written.

    words:   all that its text depends on, besides rune's source
    outside: the addresses that it may refer to, by names that are the same in every process
    write:   returns its text
    Errors: those of `compile_module`.
    """
    if not disk_cache.is_on():
        return compile_module(name, write(), effort)
    key = disk_cache.key_of("routine", name, repr(tuple(words)), fingerprint(), *target_words(effort))
    entry = disk_cache.load(key)
    if entry is not None:
        names, binary = marshal.loads(entry)
        return link(binary, [outside[name] for name in names], effort)
    code = _compiled(name, *_with_symbols(f"{write()}\n\n{attributes()}\n"), effort)
    # Symbols are numbers; their names tell the next process which addresses to bind to them.
    known = {address: name for name, address in outside.items()}
    disk_cache.store(key, marshal.dumps(([known[address] for address in code.addresses], code.binary)))
    return code


def lasting(make: Callable[P, Code]) -> functools._lru_cache_wrapper[Code]:
    """Decorates a function that returns code whose addresses are passed on: cached, never freed.

    `functools.cache` alone does not suffice: if two threads make the same code at once, it keeps
    one of the two, and an address in the other may be in use already.
    """

    @functools.wraps(make)
    def made_to_last(*args: P.args, **kwargs: P.kwargs) -> Code:
        code = make(*args, **kwargs)
        LASTING.append(code)
        return code

    return functools.cache(made_to_last)


def _compiled(name: str, text: str, addresses: Sequence[int], effort: int) -> Code:
    code, is_image = _llvm().compiled(name, text, effort, host())
    return link((_IMAGE if is_image else _OBJECT) + code, addresses, effort, text)


def link(binary: bytes, addresses: Sequence[int], effort: int, text: str = "") -> Code:
    """Link code of this process or an earlier one, its symbols bound to these addresses.

    Errors: OutOfMemory.
    """
    if not binary.startswith(_IMAGE):
        engine = _linker().linked(binary.removeprefix(_OBJECT), addresses, host())
        return Code(engine, text, binary, addresses, effort)
    with deferred():  # an interrupt between mapping memory and noting it would leak the memory
        image = loader.image_of(memoryview(binary)[len(_IMAGE) :])
        return Code(loader.load(image, addresses), text, binary, addresses, effort)


def _with_symbols(text: str) -> tuple[str, list[int]]:
    """The text with a symbol for each address of this process, and those addresses."""
    numbers: dict[int, int] = {}

    def symbol(match: re.Match[str]) -> str:
        return f"@{symbol_of(numbers.setdefault(int(match[1]), len(numbers)))}"

    text = re.sub(_ADDRESS, symbol, text)
    return declared(len(numbers)) + text, list(numbers)


def available_cores() -> int:
    """The number of processors on which this process may run."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
