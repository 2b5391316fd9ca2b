"""The guards of this run, which RUNE_TEST_GUARDS chooses: canaries, after, before, or none.

This runs tests of the CPU with an inaccessible page after every array:

    RUNE_TEST_GUARDS=after ./scripts/test tests/lowering tests/laws
"""

from __future__ import annotations

import os

from tests.support.guarded_arena import GuardedArenas, guard_arenas
from tests.support.guarded_memory import GuardedMemory, Guards


class _Guard:
    """The guards in place, and whether they were damaged."""

    def __init__(self, guards: Guards):
        self.guards = guards
        self.arenas: list[GuardedArenas] = []
        self.damage_count = 0
        self.memory = None if guards is Guards.NONE else GuardedMemory(guards)
        if self.memory is not None:
            guard_arenas(guards, self.arenas)

    def damage(self) -> list[str]:
        """The writes out of bounds since the last call."""
        if self.memory is None:
            return []
        arenas = [f"bytes {a} to {b} of an arena" for w in self.arenas for a, b in w.damaged()]
        self.arenas.clear()
        count, self.damage_count = self.memory.damaged - self.damage_count, self.memory.damaged
        arrays = [f"beside {count} arrays, the last of {self.memory.last_size} bytes"]
        return arenas + (arrays if count else [])


_default = Guards.CANARIES if os.name == "posix" else Guards.NONE
GUARD = _Guard(Guards(os.environ.get("RUNE_TEST_GUARDS", _default.value)))
