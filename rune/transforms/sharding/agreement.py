"""Agreement: all devices of a mesh take the same steps and the same branches.

The deciding value is unsplit, and every device computes the same one, to the last bit if it is an
integer or the devices are identical. Floats on devices of different kinds may differ, and then
devices would wait for each other for ever: so the largest value on any of them decides.
"""

from __future__ import annotations

from rune import dtypes
from rune.core.interpreter import type_of
from rune.core.program import Program
from rune.core.values import Value
from rune.ops.arithmetic import convert
from rune.ops.collectives import pmax
from rune.transforms.sharding.blocks import Region


def agreed(value: Value, region: Region) -> Value:
    """A truth value or an integer on which all devices of a region agree."""
    # Identical devices compute identical bits, so nothing has to be exchanged.
    if len({(d.target.backend, d.target.description) for d in region.mesh.in_order}) == 1:
        return value
    largest: Value = convert(value, dtype=dtypes.i32)
    for name in region.manual:
        largest = pmax(largest, axis_name=name)
    return convert(largest, dtype=type_of(value).dtype)


def is_exact(program: Program) -> bool:
    """Whether a program computes only with integers and truth values."""
    atoms = (a for e in program.equations for a in (*e.operands, *e.results))
    return not any(a.type.dtype in dtypes.INEXACT for a in atoms)
