"""The keys of compiled programs on disk: a program with a stored key need not be lowered again."""

from __future__ import annotations

import os
from dataclasses import replace

from rune import config
from rune.backends import Device
from rune.backends.shared import disk_cache
from rune.backends.shared.protocol import KeepsCode
from rune.core.program import Program
from rune.core.words import program_words, value_words

DUMP = "RUNE_DUMP"  # stages to print (lowering/explain.py), which only lowering produces


def key_of(program: Program, device: Device, donations: tuple[int, ...]) -> bytes | None:
    """A digest of everything that the code of a program depends on; None if it must be lowered.

    That is so where searches store winners, which may differ in the next process.
    """
    if not isinstance(device.backend, KeepsCode) or disk_cache.current() is None:
        return None
    if os.environ.get(DUMP) or disk_cache.schedules(make=False) is not None:
        return None
    # The code does not depend on these three settings: a path, a log, and the size of a cache.
    settings = replace(config.current(), cache_dir=None, log_compiles=False, compiled_bytes=0)
    words = program_words(program), value_words(settings), value_words(device.target), value_words(donations)
    # A program with constants, say, has no words: another process could not compare them.
    known_words = [w for w in words if w is not None]
    return disk_cache.key_of("program", *known_words) if len(known_words) == len(words) else None
