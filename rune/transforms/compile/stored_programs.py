"""Programs that an earlier process has compiled: looked up by their text, and not lowered."""

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


def key_of(program: Program, device: Device, donated: tuple[int, ...]) -> bytes | None:
    """Everything that the code of a program depends on; None if it has to be lowered anyway.

    Winners of searches may be different the next time.
    """
    if not isinstance(device.backend, KeepsCode) or disk_cache.current() is None:
        return None
    if os.environ.get(DUMP) or disk_cache.schedules(make=False) is not None:
        return None
    # The code does not depend on where files are, nor on what is logged and counted.
    settings = replace(config.current(), cache_dir=None, log_compiles=False, compiled_bytes=0)
    words = program_words(program), value_words(settings), value_words(device.target), value_words(donated)
    known_words = [w for w in words if w is not None]
    return disk_cache.key_of("program", *known_words) if len(known_words) == len(words) else None
