"""rune.scipy.spatial: rotations of space, and distances of points."""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.spatial import distance as distance
from rune.scipy.spatial import transform as transform

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "distance", "transform")
