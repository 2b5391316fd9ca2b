"""A plan's needs of routines, by names that are the same in every process (libraries.py)."""

from __future__ import annotations

from rune import dtypes
from rune.backends.cpu import kinds_of_calls
from rune.backends.cpu.host import Host
from rune.backends.cpu.libraries import DOT, FACTOR, SORT, STRIDED_DOT, Need, linalg, of_system, pieces_of
from rune.backends.shared.callbacks import is_callback
from rune.lowering.factors import ROUTINES as FACTORS
from rune.lowering.host_calls import CALLBACK
from rune.lowering.plan import Call, Plan, all_steps


def needs_of(plan: Plan, host: Host) -> list[Need] | None:
    """The needs of a plan, to be stored; None if one of its routines cannot be named."""
    routines = {step.routine for step in all_steps(plan) if isinstance(step, Call)}
    sorts = _sorts(plan) if CALLBACK in routines else []
    if "line_fft" in routines or sorts is None:
        return None  # their code refers to tables, or to functions of others
    needs = _products(plan, host) if routines & {DOT, STRIDED_DOT} else []
    return [*sorts, *needs, *(_factors(plan, host) if routines & {*FACTORS} else [])]


def _sorts(plan: Plan) -> list[Need] | None:
    """The keys by which a plan sorts; None if it calls something else than sorts."""
    sorts = [kinds_of_calls.sorts().sort_of(step) for step in all_steps(plan) if is_callback(step)]
    if None in sorts:
        return None
    return [Need(SORT, "", sorted({key.words for sort in sorts if sort for _, key in sort.keys}))]


def _products(plan: Plan, host: Host) -> list[Need]:
    needs = []
    for (routine, dtype), products in kinds_of_calls.dots().products_of(plan, host).items():
        if routine == DOT and of_system(dtype):
            needs.append(Need(routine, dtypes.short(dtype), ()))
            continue
        library = host.libraries.pieces(routine, dtype)
        groups = library.groups_of(pieces_of(routine, library.shape, host.cores, products))
        needs.append(Need(routine, dtypes.short(dtype), groups))
    return needs


def _factors(plan: Plan, host: Host) -> list[Need]:
    needs = []
    for dtype, factors in kinds_of_calls.factors().factors_of(plan).items():
        library = host.libraries.factors(dtype)
        functions, tiles = linalg().routines().functions_of(factors, library.shape)
        needs.append(Need(FACTOR, dtypes.short(dtype), library.tiles.groups_of(tiles), library.groups_of(functions)))
    return needs
