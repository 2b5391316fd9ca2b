"""rune.scipy.sparse.linalg: linear systems by products with the matrix alone.

cg        a Hermitian, positive definite matrix      bicgstab, gmres    any other
"""

import typing as _typing

from rune.absent import of as _absent
from rune.listing import names as _names
from rune.scipy.sparse.linalg.gradients import bicgstab as bicgstab
from rune.scipy.sparse.linalg.gradients import cg as cg
from rune.scipy.sparse.linalg.residuals import gmres as gmres

__all__ = ["bicgstab", "cg", "gmres"]

if not _typing.TYPE_CHECKING:
    __getattr__ = _absent(__name__)

__dir__ = _names(globals())
