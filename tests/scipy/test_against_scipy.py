"""Every name of rune.scipy against SciPy, then against itself under jit, vmap and derivatives.

The table of calls is cases.py; what holds of each is said in tests/support/surface_laws.py.
"""

from __future__ import annotations

import pytest

from tests.numpy.spelling import Case
from tests.scipy.cases import CASES
from tests.support import surface_laws as laws

each = pytest.mark.parametrize("case", CASES, ids=str)
# To compile these takes seconds each: RUNE_TEST_WHOLE=1 tries all of them.
each_dynamic = pytest.mark.parametrize("case", laws.one_in(8, laws.dynamic(CASES)), ids=str)
each_of_some = pytest.mark.parametrize("case", laws.one_in(16, laws.dynamic(CASES)), ids=str)
each_smooth = pytest.mark.parametrize("case", laws.smooth(CASES), ids=str)


@each
def test_a_function_means_what_scipy_means(case: Case):
    laws.means_what_the_library_means(case)


@each_dynamic
def test_a_program_compiled_once_for_every_batch_is_the_loop_over_lanes(case: Case):
    laws.compiled_for_every_batch_is_looped(case)


@each_of_some
def test_a_jitted_call_gives_what_the_eager_call_gives(case: Case):
    laws.jitted_is_eager(case)


@each_of_some
def test_a_batched_call_is_the_loop_over_lanes(case: Case):
    laws.batched_is_looped(case)


@each_smooth
def test_a_forward_derivative_is_the_limit_of_differences(case: Case):
    laws.forward_is_the_limit_of_differences(case)


@each_smooth
def test_a_reverse_derivative_is_the_transpose_of_the_forward_one(case: Case):
    laws.reverse_is_the_transpose_of_forward(case)
