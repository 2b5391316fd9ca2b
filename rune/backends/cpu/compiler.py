"""Machine code of modules: found on disk, or made by LLVM, and its lifetime.

    code = compile_module("softmax", text)        IR text
    code.address("run")

A Code object owns what it compiled: dropped, it frees the machine code.

Code is kept on disk (disk_cache.py): addresses of this process, `inttoptr (i64 N to ptr)`, become
symbols, so that the next process makes the same text and binds them to its own. What is found there
runs without LLVM (llvm.py), which is loaded when something is compiled.
"""

from __future__ import annotations

import functools
import marshal
import os
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
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
_IMAGE, _OBJECT = b"image\n", b"object\n"  # what the bytes of code on disk begin with


@functools.cache
def _llvm() -> ModuleType:
    """LLVM: for the first module that is compiled."""
    return locks.load("rune.backends.cpu.llvm")


@functools.cache
def _linker() -> ModuleType:
    """What links object code: where images are not known."""
    return locks.load("rune.backends.cpu.llvm_binding")


@functools.cache
def host() -> Processor:
    """The host's processor. Errors: ImportError where llvmlite is missing."""
    return processor.known(lambda: _llvm().processor())


@functools.cache
def features() -> dict[str, bool]:
    """The instruction sets that code may use, by LLVM's names."""
    listed = filter(None, host().features.split(","))
    return {word[1:]: word[0] == "+" for word in listed}


@functools.cache
def machine() -> Machine:
    """What the renderer needs to know of the processor."""
    available = features()
    wide = all(available.get(f) for f in ("avx512f", "avx512bw", "avx512vl", "avx512dq"))
    if wide:
        return Machine(64, masked=True, scalef=frozenset({"<16 x float>", "<8 x double>"}))
    return Machine(32 if available.get("avx2") else 16, masked=False)


def has_half() -> bool:
    """Whether f16 converts in hardware; LLVM would call a library that is not there."""
    return platform.machine().lower() in ("arm64", "aarch64") or bool(features().get("f16c"))


@functools.cache
def attributes() -> str:
    """The attributes of every function, `#0`."""
    width = f'"prefer-vector-width"="{8 * machine().vector_bytes}" '
    width += f'"min-legal-vector-width"="{8 * machine().vector_bytes}"'
    return f"attributes #0 = {{ nounwind {width} }}"


def target_words(effort: int) -> tuple[str, ...]:
    """What machine code depends on besides its text: LLVM, the processor, how it is made."""
    return processor.llvm_words(), *model(), host().name, host().features, str(effort)


class Linked(Protocol):
    """Machine code that runs."""

    def address(self, name: str) -> int:
        """Where a function or data begins."""
        ...


P = ParamSpec("P")
LASTING: list[Code] = []  # code that is never freed


@dataclass(slots=True)
class Code:
    """Machine code of one module, alive as long as this object."""

    linked: Linked
    text: str
    stored: bytes  # code as it is on disk, ...
    addresses: Sequence[int]  # ... and what its symbols stand for, in order
    effort: int  # LLVM's

    def address(self, name: str) -> int:
        """Where a function or data begins."""
        return self.linked.address(name)

    def assembly(self) -> str:
        """The module as assembly, compiled again for reading."""
        return _llvm().assembly(self.text, host())


def compile_module(name: str, text: str, effort: int = EFFORT) -> Code:
    """Compile IR text.

    Errors: CompileError "cpu: cannot compile f (LLVM's words)" with the numbered lines; OutOfMemory
    where LLVM could run short of memory, at which it would end the process.
    """
    text, addresses = _with_symbols(f"{text}\n\n{attributes()}\n")
    key = disk_cache.key_of("code", *target_words(effort), text)
    stored = disk_cache.load(key)
    if stored is not None:
        return link(stored, addresses, effort, text)
    code = _made(name, text, addresses, effort)
    disk_cache.store(key, code.stored)
    return code


def compile_routine(
    name: str, words: Sequence[object], outside: Mapping[str, int], write: Callable[[], str], effort: int
) -> Code:
    """A module that rune writes alike in each process: found on disk before it is written.

    words:   all that its text depends on, besides rune's source
    outside: the addresses that it may refer to, by names that stay
    write:   gives its text
    Errors: those of `compile_module`.
    """
    if not disk_cache.is_on():
        return compile_module(name, write(), effort)
    key = disk_cache.key_of("routine", name, repr(tuple(words)), fingerprint(), *target_words(effort))
    entry = disk_cache.load(key)
    if entry is not None:
        names, stored = marshal.loads(entry)
        return link(stored, [outside[name] for name in names], effort)
    code = _made(name, *_with_symbols(f"{write()}\n\n{attributes()}\n"), effort)
    known = {address: name for name, address in outside.items()}
    disk_cache.store(key, marshal.dumps(([known[address] for address in code.addresses], code.stored)))
    return code


def lasting(make: Callable[P, Code]) -> functools._lru_cache_wrapper[Code]:
    """A function of code whose addresses are passed on: remembered by its arguments, never freed.

    `functools.cache` does not suffice. Where two threads make the same code at once it keeps one of
    them, and an address of the other may be in use already.
    """

    @functools.wraps(make)
    def made_to_last(*args: P.args, **kwargs: P.kwargs) -> Code:
        code = make(*args, **kwargs)
        LASTING.append(code)
        return code

    return functools.cache(made_to_last)


def _made(name: str, text: str, addresses: Sequence[int], effort: int) -> Code:
    code, is_image = _llvm().compiled(name, text, effort, host())
    return link((_IMAGE if is_image else _OBJECT) + code, addresses, effort, text)


def link(stored: bytes, addresses: Sequence[int], effort: int, text: str = "") -> Code:
    """Code, of this process or an earlier one, with its symbols bound to addresses of this one.

    Errors: OutOfMemory.
    """
    if not stored.startswith(_IMAGE):
        engine = _linker().linked(stored.removeprefix(_OBJECT), addresses, host())
        return Code(engine, text, stored, addresses, effort)
    with deferred():
        image = loader.image_of(memoryview(stored)[len(_IMAGE) :])
        return Code(loader.load(image, addresses), text, stored, addresses, effort)


def _with_symbols(text: str) -> tuple[str, list[int]]:
    """The text with a symbol for each address of this process, and those addresses."""
    numbers: dict[int, int] = {}

    def symbol(match: re.Match[str]) -> str:
        return f"@{symbol_of(numbers.setdefault(int(match[1]), len(numbers)))}"

    text = re.sub(_ADDRESS, symbol, text)
    return declared(len(numbers)) + text, list(numbers)


def available_cores() -> int:
    """Processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
