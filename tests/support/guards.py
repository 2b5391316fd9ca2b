"""The guards of this run, as RUNE_TEST_GUARDS says: canaries, after, before, or none.

One run of the tests of the CPU with pages behind all that is read or written:

    RUNE_TEST_GUARDS=after ./scripts/test tests/lowering tests/laws
"""

from __future__ import annotations

import os

from tests.support.guarded_arena import GuardedArenas, guard_arenas
from tests.support.guarded_memory import GuardedMemory, Guards


class _Guard:
    """What was put in place, and whether it held."""

    def __init__(self, guards: Guards):
        self.guards = guards
        self.arenas: list[GuardedArenas] = []
        self.damage_count = 0
        self.memory = None if guards is Guards.NONE else GuardedMemory(guards)
        if self.memory is not None:
            guard_arenas(guards, self.arenas)

    def damage(self) -> list[str]:
        """What was written beside since the last look."""
        if self.memory is None:
            return []
        arenas = [f"bytes {a} to {b} of an arena" for w in self.arenas for a, b in w.damaged()]
        self.arenas.clear()
        count, self.damage_count = self.memory.damaged - self.damage_count, self.memory.damaged
        arrays = [f"beside {count} arrays, the last of {self.memory.last_size} bytes"]
        return arenas + (arrays if count else [])


_default = Guards.CANARIES if os.name == "posix" else Guards.NONE
GUARD = _Guard(Guards(os.environ.get("RUNE_TEST_GUARDS", _default.value)))
