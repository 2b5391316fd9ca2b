"""Compiled plans on disk: from a program's words to code that runs, without lowering it again.

    keep(key, executable, host)         after a plan was compiled
    load(key, host, lower, work)        the executable of an earlier process, or None

An entry is what calls need to know of the plan (its form), object code, and a word for each
address that the code's symbols stand for: a function of Python's or of rune's, a dtype, a routine
for certain products. The next process looks them up anew. Plans with addresses that have no word
(a callback, a table of a Fourier transform), symbolic sizes or collectives are not stored.

Invariant: an entry is used under the whole key alone: the program's words, settings, the state of
rune's source, the device, the processor with all its features, the versions of LLVM, NumPy, Python.
"""

from __future__ import annotations

import functools
import json
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from functools import partial

import numpy as np

from rune import dtypes
from rune.backends.cpu import compiler, pulse
from rune.backends.cpu.array_checks import CHECKS, array_checks
from rune.backends.cpu.crew.talk import Talk
from rune.backends.cpu.dots import products_of
from rune.backends.cpu.drafts import DraftExecutable
from rune.backends.cpu.factors import factors_of
from rune.backends.cpu.gemm.library import Product
from rune.backends.cpu.host import Host
from rune.backends.cpu.plan import render_kernels, render_plan
from rune.backends.cpu.run import Form
from rune.backends.shared import disk_cache
from rune.backends.shared.fingerprint import fingerprint
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.core.words import value_words
from rune.lowering.factors import Factor
from rune.lowering.plan import Call, Plan, all_steps
from rune.records import dataclass

_LENGTH = struct.Struct("<Q")  # bytes of the text before the object code
_DTYPES: Mapping[str, np.dtype] = {dtypes.short(d): d for d in dtypes.ANY}
_OF_PYTHON = ("ndarray", "save_thread", "restore_thread", "from_long", "long_value", "error")


Word = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """The routines that a plan calls: products by routine and dtype, and factorisations."""

    products: Mapping[tuple[str, np.dtype], Sequence[Product]]
    factors: Mapping[np.dtype, Sequence[Factor]]

    def addresses(self, host: Host) -> dict[Word, int]:
        """Where they begin, compiled if they are not there."""
        routines = {"dot": host.dot, "strided_dot": host.strided_dot}
        addresses: dict[Word, int] = {}
        for (routine, dtype), listed in self.products.items():
            addresses[routine, dtypes.short(dtype)] = routines[routine](dtype, [*listed])
        for dtype, listed in self.factors.items():
            library = host.factors(dtype)
            library.need(listed)
            addresses |= {("factor", dtypes.short(dtype), name): place for name, place in library.addresses.items()}
        return addresses


class StoredExecutable(DraftExecutable):
    """Code of an earlier process. The plan is made by lowering when somebody asks for it."""

    def __init__(self, form: Form, code: compiler.Code, host: Host, lower: Callable[[], Plan], work: Work):
        self.talk, self._host = Talk((), (), True), host
        # Made once: asked again, or by a twin on another device, it is the same plan.
        self._lower = functools.cache(lower)
        self._rendered = functools.cache(lambda: render_plan(self.plan, host, render_kernels(self.plan, host)))
        self._begin(form, code, host, work)

    def assembly(self) -> str:
        """The machine code of the whole plan, as text."""
        return compiler.compile_module(self.form.name, self.rendering.text).assembly()


# --- keys and entries -------------------------------------------------------------------------


def keep(key: bytes, executable: DraftExecutable, host: Host) -> None:
    """Have another process find the code, if it can be stored; a draft until there is better."""
    plan, form, code = executable.plan, executable.form, executable.code
    calls = [step for step in all_steps(plan) if isinstance(step, Call)]
    if form.calls_python or form.size_sources or any(c.routine == "line_fft" for c in calls):
        return
    if not all(map(_is_plain, (*form.arguments, *form.results))):
        return
    needs = Needs(products_of(plan, ("dot", "strided_dot")), factors_of(plan))
    words = _words(code.addresses, needs, host.of_effort(code.effort))
    if words is None:
        return
    disk_cache.store(_key(key, host), _entry(form, needs, words, code))
    if executable.is_draft:
        executable.when_refined = partial(keep, key, host=host)


def load(key: bytes, host: Host, lower: Callable[[], Plan], work: Work) -> StoredExecutable | None:
    """The executable that an earlier process has stored. lower: makes its plan."""
    entry = disk_cache.load(_key(key, host))
    if entry is None:
        return None
    form, needs, words, effort, image = _read(entry)
    known = {**_of_process(host), **needs.addresses(host.of_effort(effort))}
    addresses = [known[word] if word in known else _late_address(word, host) for word in words]
    executable = StoredExecutable(form, compiler.link(image, addresses, effort), host, lower, work)
    if executable.is_draft:
        executable.when_refined = partial(keep, key, host=host)
    return executable


def _key(key: bytes, host: Host) -> bytes:
    processor, llvm = compiler.host(), compiler.library().llvm_version_info
    machine = value_words(host.machine)
    assert machine is not None
    versions = str(llvm), np.__version__, sys.version
    return disk_cache.key_of("cpu plan", fingerprint(), *versions, processor.name, processor.features, machine, key)


def _entry(form: Form, needs: Needs, words: Sequence[Word], code: compiler.Code) -> bytes:
    said = {
        "name": form.name,
        "arguments": [*map(_type_words, form.arguments)],
        "results": [*map(_type_words, form.results)],
        "arena_bytes": form.arena_bytes,
        "donations": form.donations,
        "cost": form.cost,
        "has_entry": form.has_entry,
        "products": [[name, dtypes.short(d), [*map(astuple, ps)]] for (name, d), ps in needs.products.items()],
        "factors": [[dtypes.short(d), [*map(astuple, fs)]] for d, fs in needs.factors.items()],
        "words": words,
        "effort": code.effort,
    }
    text = json.dumps(said).encode()
    return _LENGTH.pack(len(text)) + text + code.image


def _read(entry: bytes) -> tuple[Form, Needs, list[Word], int, bytes]:
    (length,) = _LENGTH.unpack_from(entry)
    said = json.loads(entry[_LENGTH.size : _LENGTH.size + length])
    arguments, results = ([_type(*t) for t in said[name]] for name in ("arguments", "results"))
    donations = tuple((argument, result) for argument, result in said["donations"])
    sizes, how = (said["arena_bytes"], ()), (said["cost"], False, said["has_entry"])
    form = Form(said["name"], tuple(arguments), tuple(results), *sizes, donations, *how)
    products = {(name, _DTYPES[d]): [Product(*p) for p in listed] for name, d, listed in said["products"]}
    factors = {_DTYPES[d]: [Factor(*f) for f in listed] for d, listed in said["factors"]}
    words, image = [tuple(w) for w in said["words"]], entry[_LENGTH.size + length :]
    return form, Needs(products, factors), words, said["effort"], image


def _type_words(type: ArrayType) -> tuple[list[int], str, bool]:
    return [n for n in type.shape if isinstance(n, int)], dtypes.short(type.dtype), type.weak


def _type(shape: Sequence[int], dtype: str, weak: bool) -> ArrayType:
    return ArrayType(tuple(shape), _DTYPES[dtype], weak)


def _is_plain(type: ArrayType) -> bool:
    """Whether an entry says all of a type."""
    return dtypes.short(type.dtype) in _DTYPES and _type(*_type_words(type)) is type


# --- words of addresses -----------------------------------------------------------------------


def _of_process(host: Host) -> dict[Word, int]:
    """What is in every process."""
    python = {("python", name): getattr(host.abi, name) for name in _OF_PYTHON}
    checks = {("check", name): getattr(array_checks(host.abi), name) for name in CHECKS}
    return python | checks | {("dtype", name): id(dtype) for name, dtype in _DTYPES.items()}


def _late_address(word: Word, host: Host) -> int:
    """What is compiled, or begun, when a plan first needs it."""
    late: Mapping[Word, Callable[[], int]] = {_PULSE: pulse.address, _WATCH: pulse.watch_address, _POOL: host.parallel}
    return late[word]()


_PULSE, _WATCH, _POOL = ("pulse",), ("watch",), ("pool",)


def _words(addresses: Sequence[int], needs: Needs, host: Host) -> list[Word] | None:
    """The word of each address; None where one has none."""
    known = {**_of_process(host), **needs.addresses(host)}
    words = {address: word for word, address in known.items()}
    for word in (_PULSE, _WATCH, *([_POOL] if host.cores > 1 else [])):
        if not words.keys() >= set(addresses):
            words[_late_address(word, host)] = word
    return [words[a] for a in addresses] if words.keys() >= set(addresses) else None
