"""Elements that lie a few apart, as whole vectors: the parts of pairs, the coordinates of points.

Of s·L elements in a row, L lanes read or write every s-th. A load reads vectors and picks from
them; a store writes vectors under masks that leave the other elements alone. Nothing before the
first element or behind the last is touched, nor what belongs to a lane without its bit in a mask.
"""

from __future__ import annotations

from collections.abc import Callable

from rune import dims
from rune.dims import Size
from rune.lowering.codegen.llvm.text import Value
from rune.lowering.kernel.rewrite import mentions

WIDEST = 4  # from this step on, as many vectors cost as much as single elements

Read = Callable[[int, Value | None], Value]  # (elements on, mask) -> as many neighbours as lanes
Write = Callable[[Value, int, Value], None]  # (values, elements on, mask)


def step_of(index: Size, var: str, varying: frozenset[str]) -> int | None:
    """The step from lane to lane, if it is one of 2 to WIDEST."""
    if mentions(index, varying - {var}):
        return None
    step = dims.coefficient(index, var)
    return step if isinstance(step, int) and 1 < step <= WIDEST else None


def load_apart(step: int, count: int, mask: Value | None, read: Read) -> Value:
    """Every step-th element, one for each lane."""
    last = step * (count - 1)
    picked: Value | None = None
    done = 0  # lanes whose elements were in the vectors before
    for k in range(step):
        # The last vector ends with the last element.
        start = min(k * count, last + 1 - count)
        behind = min(count, -(-(k + 1) * count // step))
        if behind == done:
            continue
        vector = read(start, None if mask is None else _spread(mask, step, start, count))
        places = [lane * step - start for lane in range(done, behind)]
        if picked is None:
            picked = vector.writer.shuffle(vector, vector, [*places, *[0] * (count - behind)])
        else:
            lanes = [*range(done), *(count + place for place in places), *range(behind, count)]
            picked = vector.writer.shuffle(picked, vector, lanes)
        done = behind
    assert picked is not None
    return picked


def store_apart(raw: Value, step: int, mask: Value | None, write: Write) -> None:
    """Write each lane to every step-th element."""
    count, writer = raw.lanes, raw.writer
    alive = mask or writer.constant(f"<{count} x i1>", 1)
    for start in range(0, step * count, count):
        places = range(start, start + count)
        values = writer.shuffle(raw, raw, [place // step for place in places])
        write(values, start, _spread(alive, step, start, count))


def _spread(mask: Value, step: int, start: int, count: int) -> Value:
    """The mask of elements start, start + 1, ...: those that a lane of `mask` has."""
    none = mask.writer.constant(mask.type, 0)
    places = range(start, start + count)
    return mask.writer.shuffle(mask, none, [count if place % step else place // step for place in places])
