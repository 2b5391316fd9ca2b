"""Raises the faults that watched programs report; rune/lowering/watch.py makes such programs.

    with rune.configure(check_nans=True): ...          as rune.debug.checks(nans=True)

NumPy computes eager operations on the CPU, and each is checked after it; everything else runs as a
watched program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from rune import config, dtypes, tree
from rune.array import Array
from rune.config import Config
from rune.core.memo import per_program
from rune.core.primitive import Primitive
from rune.core.program import Program
from rune.core.types import ArrayType
from rune.core.values import Value
from rune.errors import BoundsError, NaNError, in_copied_context, set_line
from rune.transforms import late_modules
from rune.transforms.arguments import key_path

if TYPE_CHECKING:
    from rune.lowering.watch import Site

_IS = {"NaN": np.isnan, "infinity": np.isinf}
# Behind a `where`, a value that is not selected still has a derivative: 0 times infinity.
MASKED = (
    "no result has one; if it is masked out, a derivative may be NaN all the same: mask the operand as well, "
    "where(ok, f(where(ok, x, 1)), 0)"
)


def is_watching(settings: Config) -> bool:
    """Whether these settings ask for watched programs."""
    return settings.check_bounds or settings.check_nans or settings.check_infs


def watched_families() -> frozenset[str]:
    """The families of primitives whose results are watched."""
    return late_modules.watch().COMPUTING


def watched_program(program: Program) -> Any:
    """The program with the checks that the current settings ask for."""
    settings = config.current()
    return _watched(program, settings.check_bounds, settings.check_nans, settings.check_infs)


@per_program
def _watched(program: Program, bounds: bool, nans: bool, infs: bool) -> Any:
    watch = late_modules.watch()
    return watch.watched(program, watch.Modes(bounds, nans, infs))


def without_faults(sites: Sequence[Site], results: list[Array], site: int, index: int) -> list[Array]:
    """The results, if there is no fault.

    site, index: the last two results of a watched program: the first site that failed, 0 for none,
                 and the position or index there.
    Errors:      BoundsError or NaNError if there was a fault.
    """
    if site:
        # Raised in a copied context, so that the line set for the error is not left behind.
        in_copied_context(_raise, sites[site - 1], index, results)
    return results


def _raise(site: Site, index: int, results: Sequence[Array]) -> NoReturn:
    set_line(site.frame)
    if site.axis is None:
        shape = tuple(d for d in site.type.shape if isinstance(d, int))
        # A row-major position can be split into indices only if sizes are known.
        is_static = len(shape) == site.type.ndim
        where = list(map(int, np.unravel_index(index, shape))) if is_static else index
        # No result may have the number, as after a `where`; then a hint says why it matters.
        number = next((n for n, r in enumerate(results) if _has(site.kind, r)), None)
        hint = None if number is not None else MASKED
        raise _number_error(site.kind, site.operation, site.type, where, number, hint)
    raise BoundsError(
        f"{site.operation}: found index {index} out of bounds (axis {site.axis} of {site.type})",
        hint="without checks it is clamped when read, and dropped when written",
    )


def _number_error(
    kind: str, operation: str, type: ArrayType, where: object, result: int | None, hint: str | None
) -> NaNError:
    error = NaNError(f"{operation}: found {kind} in its result {type} (first at {where})", hint)
    error.result = result
    return error


def _has(kind: str, value: Value) -> bool:
    data = np.asarray(value)
    return data.dtype in dtypes.INEXACT and bool(_IS[kind](data).any())


def name_result(error: NaNError, out_tree: tree.TreeDef) -> None:
    """Add to the message which of the function's results show the number, if any."""
    if error.result is not None:
        path = key_path(error.result, out_tree)
        error.restate(f"{error.message.removesuffix(')')}; seen in result{path})")
        error.result = None


def check_eager(primitive: Primitive, operands: Sequence[np.ndarray], result: Array) -> None:
    """Check the result of an eager operation on the CPU. Errors: NaNError."""
    settings = config.current()
    if result.type.dtype not in dtypes.INEXACT:
        return
    kinds = ("NaN",) * settings.check_nans + ("infinity",) * settings.check_infs
    data = result.numpy()
    # The operation in which the number arose is to blame, not those that pass it on.
    for kind in kinds:
        if _has(kind, data) and not any(_has(kind, x) for x in operands):
            where = np.argwhere(_IS[kind](data))[0].tolist()
            raise _number_error(kind, primitive.name, result.type, where, None, None)
