"""What an eager operation on the CPU tells the profile in force."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

from rune import profiling
from rune.array import Array
from rune.backends.shared import allocations
from rune.core.values import Value
from rune.errors import user_frame
from rune.profiling import Event, Kind, here
from rune.scopes import scope


def tell(name: str, operands: Sequence[Value], results: Sequence[Array], begin: float) -> None:
    """An operation that began then [s] has ended; its results are told with the user's line."""
    profile = profiling.current()
    if profile is None:  # `rune.configure(profile=True)` without a block that gathers
        return
    seconds, frame = perf_counter() - begin, user_frame()
    place = "" if frame is None else frame.place
    profile.add_total(Event(Kind.EAGER, name, here("cpu:0"), begin, seconds, scope(), place))
    known = {id(allocations.root(x)) for x in operands}
    for result in results:
        allocations.note(result.buffer, result.type, None, known)
