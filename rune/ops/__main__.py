"""`python -m rune.ops` prints the primitive × rule matrix, of the primitives of all rooms.

It is a program that no module imports, so it may look into rooms above its folder.
"""

from rune.control.text import CONTROL
from rune.lowering.extremes import extreme_of_tiles
from rune.lowering.factorisations.elimination import eliminate_columns
from rune.lowering.factorisations.panels import factor_block, solve_rows
from rune.lowering.host_calls import host_call
from rune.lowering.kernelize.group_scans import scan_by_groups
from rune.lowering.kernelize.routines import routine_dot
from rune.lowering.kernelize.split_scans import join_axis
from rune.lowering.kernelize.two_step import split_axis
from rune.lowering.kernelize.walks import strided_dot
from rune.lowering.legalize.interleaved import interleave, part
from rune.lowering.scatters.atomic import scatter_atomically
from rune.lowering.scatters.by_sorting import combine_runs, write_last
from rune.lowering.scatters.fixed_point import first_marks, mark_exponents, rounded_sums, sum_integers
from rune.lowering.sorting.digits import count_digits, digit_starts
from rune.lowering.sorting.groups import move_by_groups
from rune.lowering.sorting.radix import digit_counts, move_digits
from rune.lowering.sorting.sorts import inverse_rows
from rune.lowering.source_calls import source_call
from rune.ops import LIBRARY, PRIMITIVES
from rune.ops.branch import branch
from rune.ops.collectives import COLLECTIVES
from rune.ops.fourier.expansion import fft_in_memory, fft_of_axes, line_irfft, line_rfft
from rune.ops.fourier.lines import line_fft
from rune.ops.linalg.cholesky import dense_cholesky
from rune.ops.linalg.householder import dense_geqrf, dense_product
from rune.ops.linalg.lu import dense_lu
from rune.ops.linalg.svd import square_svd
from rune.ops.linalg.triangular import dense_solve
from rune.ops.loop import loop, put_row, take_row
from rune.ops.memory import in_memory
from rune.ops.table import rule_matrix
from rune.transforms.programs.text import PRIMITIVES as HOLDING_PROGRAMS
from rune.transforms.sharding.reshard import mesh_part

# Lowering writes these after all derivatives and batches are taken, so they need no such rules.
_CONTROL = (in_memory, loop, branch, take_row, put_row, host_call, source_call, part, interleave, split_axis, join_axis)
_ROUTINES = (strided_dot, routine_dot, line_fft, line_rfft, line_irfft, fft_in_memory, fft_of_axes)
_DENSE = (dense_cholesky, dense_geqrf, dense_lu, dense_product, dense_solve, square_svd, mesh_part)
_TILES = (digit_counts, move_digits, inverse_rows, scan_by_groups, extreme_of_tiles, factor_block, solve_rows)
_SCATTERS = (
    eliminate_columns,
    scatter_atomically,
    combine_runs,
    write_last,
    count_digits,
    digit_starts,
    move_by_groups,
)
_FIXED_POINT = (first_marks, mark_exponents, sum_integers, rounded_sums)
WRITTEN_BY_LOWERING = (*_CONTROL, *_ROUTINES, *_DENSE, *_TILES, *_SCATTERS, *_FIXED_POINT)

EVERY_PRIMITIVE = (*PRIMITIVES, *LIBRARY, *COLLECTIVES, *HOLDING_PROGRAMS, *CONTROL, *WRITTEN_BY_LOWERING)

if __name__ == "__main__":
    print(rule_matrix(EVERY_PRIMITIVE))
