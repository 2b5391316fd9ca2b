"""rune.scipy.sparse: linear systems solved by products alone. Sparse matrices are in
rune.sparse.
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.sparse import linalg as linalg

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals(), "linalg")
