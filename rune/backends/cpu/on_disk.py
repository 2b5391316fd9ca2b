"""Compiled plans on disk: from a program's text to code that runs, without lowering it again.

    keep(key, executable, host)         after a plan was compiled
    load(key, host, lower, work)        the executable of an earlier process, or None

An entry has the plan's signature, its code, and a word for the address of each symbol of the code:
a function of Python or of rune, a dtype, a routine for certain products. The next process looks the
addresses up. Plans with addresses that have no word (a callback, a table of a Fourier transform),
with symbolic sizes or with collectives are not stored.

Invariant: an entry is used only under its entire key: the program's text, settings, the fingerprint
of rune's source, the device, the processor with all features, the versions of LLVM, NumPy, Python.
"""

from __future__ import annotations

import functools
import marshal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from rune import dtypes, locks
from rune.backends.cpu import compiler, conventions, pulse
from rune.backends.cpu.array_checks import CHECKS, array_checks
from rune.backends.cpu.crew.messages import SILENT
from rune.backends.cpu.drafts import DraftExecutable
from rune.backends.cpu.host import Host
from rune.backends.cpu.host_abi import ADDRESSES
from rune.backends.cpu.libraries import Need, Word
from rune.backends.cpu.run import plans
from rune.backends.cpu.signature import Signature
from rune.backends.shared import disk_cache
from rune.backends.shared.fingerprint import fingerprint
from rune.backends.shared.work import Work
from rune.core.types import ArrayType
from rune.core.words import value_words

if TYPE_CHECKING:
    from rune.backends.cpu.plan import Rendering
    from rune.lowering.plan import Plan

_DTYPES: Mapping[str, np.dtype] = {dtypes.short(d): d for d in dtypes.ANY}


# Plans' needs of routines, imported for the first plan that is stored.
_needs = locks.late_module("rune.backends.cpu.needs")


class StoredExecutable(DraftExecutable):
    """Code of an earlier process. `plan` lowers the program when it is first used."""

    def __init__(
        self,
        signature: Signature,
        code: compiler.Code,
        host: Host,
        code_host: Host,
        lower: Callable[[], Plan],
        work: Work,
    ):
        self.talk, self._host, self.code_host = SILENT, host, code_host
        # Cached, so that a second use, or a twin on another device, gets the same plan.
        self._lower = functools.cache(lower)
        self._lanes = functools.cache(lambda: plans().layouts_of(self.plan, host))
        self._kernels = functools.cache(lambda: plans().render_in_lanes(self.plan, host, self._lanes()))
        self._rendering = functools.cache(self._rendered)
        self._begin(signature, code, host, work)

    def _rendered(self) -> Rendering:
        return plans().render_plan(self.plan, self._host, self.kernels_of_code(self.plan, self._lanes()))

    def assembly(self) -> str:
        """The machine code of the whole plan, as text."""
        return compiler.compile_module(self.signature.name, self.rendering.text).assembly()


# --- keys and entries -------------------------------------------------------------------------


def keep(key: bytes, executable: DraftExecutable, host: Host) -> None:
    """Store the code if that is possible. A draft is stored now, and replaced when it is
    refined."""
    signature, code, code_host = executable.signature, executable.code, executable.code_host
    is_storable = (
        not signature.calls_python
        and not signature.size_sources
        and all(map(_is_plain, (*signature.arguments, *signature.results)))
    )
    if not disk_cache.is_on() or not is_storable:
        return
    needs: list[Need] | None = _needs().needs_of(executable.plan, code_host)
    words = None if needs is None else _words(code.addresses, needs, code_host)
    if needs is None or words is None:
        return
    disk_cache.store(_key(key, host), _entry(signature, needs, words, code))
    if executable.is_draft:
        executable.when_refined = partial(keep, key, host=host)


def load(key: bytes, host: Host, lower: Callable[[], Plan], work: Work) -> StoredExecutable | None:
    """The executable that an earlier process has stored, or None. lower: makes its plan."""
    entry = disk_cache.load(_key(key, host)) if disk_cache.is_on() else None
    if entry is None:
        return None
    signature, needs, words, effort, binary = _read(entry)
    code_host = host.of_effort(effort).on_one_core() if effort == conventions.HURRY else host
    known = {**_of_process(host), **code_host.libraries.addresses(needs)}
    addresses = [known[word] if word in known else _late_address(word, host) for word in words]
    executable = StoredExecutable(signature, compiler.link(binary, addresses, effort), host, code_host, lower, work)
    if executable.is_draft:
        executable.when_refined = partial(keep, key, host=host)
    return executable


def _key(key: bytes, host: Host) -> bytes:
    machine = value_words(host.machine)
    assert machine is not None
    # Code contains the layouts of NumPy's and Python's objects.
    versions = *compiler.target_words(host.effort), np.__version__, sys.version
    return disk_cache.key_of("cpu plan", fingerprint(), *versions, machine, key)


def _entry(signature: Signature, needs: Sequence[Need], words: Sequence[Word], code: compiler.Code) -> bytes:
    assert isinstance(signature.arena_bytes, int)
    types = tuple(map(_type_words, signature.arguments)), tuple(map(_type_words, signature.results))
    numbers = signature.arena_bytes, signature.donations, signature.cost, signature.has_entry, signature.gives_up
    routines = tuple((n.kind, n.dtype, tuple(n.pieces), tuple(n.functions)) for n in needs)
    return marshal.dumps((signature.name, types, numbers, routines, tuple(words), code.effort, code.binary))


def _read(entry: bytes) -> tuple[Signature, list[Need], Sequence[Word], int, bytes]:
    name, types, numbers, routines, words, effort, binary = marshal.loads(entry)
    arguments, results = (tuple(_type(*t) for t in triples) for triples in types)
    arena_bytes, donations, cost, has_entry, gives_up = numbers
    signature = Signature(name, arguments, results, arena_bytes, (), donations, cost, False, has_entry, gives_up)
    return signature, [Need(*routine) for routine in routines], words, effort, binary


def _type_words(type: ArrayType) -> tuple[tuple[int, ...], str, bool]:
    return tuple(n for n in type.shape if isinstance(n, int)), dtypes.short(type.dtype), type.weak


def _type(shape: tuple[int, ...], dtype: str, weak: bool) -> ArrayType:
    return ArrayType(shape, _DTYPES[dtype], weak)


def _is_plain(type: ArrayType) -> bool:
    """Whether a type can be stored without loss."""
    # Types are interned, so `is` compares all of them, extensions and symbolic sizes included.
    return dtypes.short(type.dtype) in _DTYPES and _type(*_type_words(type)) is type


# --- words of addresses -----------------------------------------------------------------------


def _of_process(host: Host) -> dict[Word, int]:
    """The addresses that every process has."""
    python = {("python", name): getattr(host.abi, name) for name in ADDRESSES}
    return python | {("dtype", name): id(dtype) for name, dtype in _DTYPES.items()}


def _late_address(word: Word, host: Host) -> int:
    """The address of something that is compiled or started when a plan first needs it."""
    if word[0] == _CHECK:
        return getattr(array_checks(host.abi), word[1])
    late: Mapping[Word, Callable[[], int]] = {_PULSE: pulse.address, _WATCH: pulse.watch_address, _POOL: host.parallel}
    return late[word]()


_CHECK, _PULSE, _WATCH, _POOL = "check", ("pulse",), ("watch",), ("pool",)
_LATE: Sequence[Word] = (_PULSE, _WATCH, *((_CHECK, name) for name in CHECKS), _POOL)


def _words(addresses: Sequence[int], needs: Sequence[Need], host: Host) -> list[Word] | None:
    """The word of each address; None if one has no word."""
    known = {**_of_process(host), **host.libraries.addresses(needs)}
    words = {address: word for word, address in known.items()}
    for word in _LATE:
        # Only as far as needed: looking an address up may compile code or start the pool.
        if not words.keys() >= set(addresses) and (word != _POOL or host.cores > 1):
            words[_late_address(word, host)] = word
    return [words[a] for a in addresses] if words.keys() >= set(addresses) else None
