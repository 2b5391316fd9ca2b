"""The second-order law of a `Case`: how the gradient changes along a direction.

Forward over reverse, the product of the Hessian with a vector, against central differences of the
gradient, in f64. Every run tries a sample of the names that have derivatives; RUNE_TEST_WHOLE=1
with `-k second` tries all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from tests.numpy.spelling import Case
from tests.support.close import near
from tests.support.derivatives import WHY, differences, directions
from tests.support.sampling import one_in
from tests.support.surface_laws import Laws, drawn, of_reals, pulled, smooth


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients of a weighted sum of a function's elements, as one array."""
    pull = pulled(function)
    return lambda *xs: rnp.concatenate([rnp.zeros(0, "f64"), *map(rnp.ravel, pull(*xs))])


class SecondOrder(Laws):
    """The laws, and that of second derivatives."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """The law with a sample of the cases that have derivatives."""
        if "second" in metafunc.fixturenames:
            metafunc.parametrize("second", one_in(61, smooth(self.cases)), ids=str)
        super().pytest_generate_tests(metafunc)

    def test_a_second_derivative_is_the_limit_of_differences_of_the_gradient(self, second: Case):
        function, primals = of_reals(second, drawn(second))
        tangents = directions(np.random.default_rng(2), primals)

        _, tangent = rune.jvp(gradient(function), primals, tangents)

        expected = differences(gradient(function), primals, tangents)
        near(expected, tangent, relative=1e-5 * second.slack, why=WHY)
