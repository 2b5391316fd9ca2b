"""rune.scipy: SciPy's names with JAX's rules. A module is loaded when it is first used."""

import typing as _typing

from rune import locks as _locks
from rune.absent import of as _absent
from rune.listing import names as _names

if _typing.TYPE_CHECKING:
    from rune.scipy import (
        cluster,
        fft,
        integrate,
        interpolate,
        linalg,
        ndimage,
        optimize,
        signal,
        sparse,
        spatial,
        special,
        stats,
    )
else:
    _missing = _absent(__name__)

    def __getattr__(name: str):
        # `rune.lax` and `rune.nn` use special functions alone.
        return _locks.load(f"rune.scipy.{name}") if name in __all__ else _missing(name)

    def __dir__():
        return sorted({*globals(), *__all__})


__all__ = ["cluster", "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse"]
__all__ += ["spatial", "special", "stats"]

__dir__ = _names(globals())
