"""rune.scipy.cluster: vq, the nearest code of each observation."""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.cluster import vq as vq

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "vq")
