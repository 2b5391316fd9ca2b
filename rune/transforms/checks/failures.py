"""One failure for all lanes: the state of a checked call whose check is under vmap."""

from __future__ import annotations

from rune import dtypes
from rune.core.interpreter import literal, type_of
from rune.core.primitive import ZERO, Primitive
from rune.core.values import Value
from rune.dims import Size
from rune.ops import broadcast, eq, iota, ne, reduce_max, select, slice_
from rune.ops.family import fit, reduce_sum, reshape


def of_lanes(words: Value) -> Value:
    """The words of the last lane in [B, N] whose first word is not 0; those of lane 0 if none."""
    lanes, count = type_of(words).shape
    first = reshape(slice_(words, start=(0, 0), limit=(lanes, 1), stride=(1, 1)), shape=(lanes,))
    numbers = iota(shape=(lanes,), axis=0, dtype=dtypes.i32)
    is_failure = ne(first, literal(0, dtypes.u32))
    last = reduce_max(select(is_failure, numbers, literal(0, dtypes.i32)), axes=(0,))
    is_last = broadcast(eq(numbers, fit(last, (lanes,))), axes=(0,), shape=(lanes, count))
    return reduce_sum(select(is_last, words, literal(0, dtypes.u32)), axes=(0,))


def _batch(batched: object, size: Size, words: Value) -> tuple[Value, bool]:
    return of_lanes(words), False


last_failure = Primitive(
    "last_failure",
    "identity",
    lambda x: x,
    lambda x: x,
    jvp=(ZERO,),
    batch=_batch,
    # Without lanes there is one state.
    expand=lambda x: x,
)
