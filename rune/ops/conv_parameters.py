"""The parameters of a convolution, as one record.

`specs` = (lhs, rhs, out) name the axes by role: (batch, feature, *spatial) of the array and of the
result, (out feature, in feature, *spatial) of the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rune.core.types import Shape
from rune.dims import Size
from rune.ops.movement import inverse
from rune.ops.sliding import reach, window_count
from rune.records import dataclass

Ints = tuple[int, ...]
Pads = tuple[tuple[Size, Size], ...]
Specs = tuple[Ints, Ints, Ints]


@dataclass(frozen=True, slots=True)
class Conv:
    """All parameters of a convolution. `groups` = (feature groups, batch groups), one of which is
    1.
    """

    strides: Ints
    padding: Pads
    lhs_dilation: Ints
    rhs_dilation: Ints
    specs: Specs
    groups: tuple[Size, Size] = (1, 1)

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.strides)

    @property
    def pads(self) -> dict[str, tuple]:
        """The parameters of `pad` for the array with axes in the order batch, feature, spatial."""
        return {
            "low": (0, 0, *(lo for lo, _ in self.padding)),
            "high": (0, 0, *(hi for _, hi in self.padding)),
            "interior": (0, 0, *(d - 1 for d in self.lhs_dilation)),
        }

    @property
    def is_padded(self) -> bool:
        """Whether the padding adds or crops anything."""
        return any(v != 0 for values in self.pads.values() for v in values)


def fields_of(conv: Conv) -> dict[str, Any]:
    """The parameters of the primitive."""
    names = ("strides", "padding", "lhs_dilation", "rhs_dilation", "specs", "groups")
    return {name: getattr(conv, name) for name in names}


def pick(shape: Shape, spec: Ints) -> Shape:
    """The sizes of `shape`, by role."""
    return tuple(shape[a] for a in spec)


def arranged(shape: Sequence[Size], spec: Ints) -> tuple[Size, ...]:
    """The sizes given by role, in the order of the axes."""
    return tuple(shape[k] for k in inverse(spec))


def counts(lhs: Shape, rhs: Shape, conv: Conv) -> Shape:
    """The spatial sizes of the result; a size is negative where the padding crops more than there
    is.
    """
    sizes = []
    for k in range(conv.rank):
        low, high = conv.padding[k]
        length = reach(lhs[conv.specs[0][k + 2]], conv.lhs_dilation[k]) + low + high
        size = rhs[conv.specs[1][k + 2]]
        if isinstance(length, int) and length < 0:
            return (-1,)
        sizes.append(window_count(length, size, conv.strides[k], conv.rhs_dilation[k]))
    return tuple(sizes)
