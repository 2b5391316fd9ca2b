"""Reports of eager CPU operations to the current profile."""

from __future__ import annotations

from collections.abc import Sequence

from rune import profiling
from rune.array import Array
from rune.backends.shared import allocations
from rune.core.values import Value
from rune.errors import user_frame
from rune.profiling import Kind, Moment, current_row, ended
from rune.scopes import scope


def tell(name: str, operands: Sequence[Value], results: Sequence[Array], begin: Moment) -> None:
    """Report an operation that began at that time and has ended, with the user's line."""
    profile = profiling.current()
    if profile is None:  # `rune.configure(profile=True)` without a block that gathers
        return
    event, frame = ended(Kind.EAGER, name, begin, current_row("cpu:0"), scope()), user_frame()
    profile.add_total(event if frame is None else event._replace(line=frame.place))
    # A result may be a view of an operand, which takes no new memory.
    operand_ids = {id(allocations.root(x)) for x in operands}
    for result in results:
        allocations.note(result.buffer, result.type, None, operand_ids)
