"""Complex derivatives as in JAX: the gradient is ∂f/∂x - i ∂f/∂y, pullbacks conjugate nothing.

jax_complex_0_10_2.json was made with jax 0.10.2 on the CPU, in 64 bits: `vjp` holds pull(1), and
pull(1j) where the result is complex, of jnp.<name> at each point; `pow` both pullbacks of
jnp.power. First these numbers; then what follows from the convention; then where rune differs.
"""

from __future__ import annotations

import cmath
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import dtypes, ops
from rune.errors import DtypeError, TransformError
from tests.support.arrays import array
from tests.support.close import near

JAX = json.loads((Path(__file__).parent / "jax_complex_0_10_2.json").read_text())
POINTS = [complex(*p) for p in JAX["points"]]
WHY = "JAX's libm against NumPy's, in 64 bits"


def number(value: complex) -> Any:
    return array(np.complex128(value))


def pulled(function: Any, *at: complex, by: complex = 1) -> list[complex]:
    """The cotangents of the arguments for the cotangent `by` of the result."""
    out, pull = rune.vjp(function, *map(number, at))
    ct = array(np.asarray(by if out.dtype == dtypes.c128 else by.real).astype(out.dtype))
    return [complex(c) for c in pull(ct)]


@pytest.mark.parametrize("name", JAX["vjp"])
def test_a_pullback_of_complex_numbers_is_that_of_jax(name: str):
    for point, rows in zip(POINTS, JAX["vjp"][name], strict=True):
        for by, expected in zip((1, 1j), rows):
            if name == "arccosh" and point.real < 0:
                continue
            (cotangent,) = pulled(getattr(rnp, name), point, by=by)

            near(complex(*expected), cotangent, relative=1e-12, why=WHY)


def test_the_derivative_of_arccosh_is_right_in_the_left_half_plane_too():
    # JAX 0.10.2 gives the other sign there: its root of (z-1)(z+1) is that of one product.
    z, h = -0.5 + 0.25j, 1e-6

    (cotangent,) = pulled(rnp.arccosh, z)

    difference = (cmath.acosh(z + h) - cmath.acosh(z - h)) / (2 * h)
    near(difference, cotangent, relative=1e-8, why="central differences")


@pytest.mark.parametrize("at", JAX["pow"])
def test_both_pullbacks_of_a_power_are_those_of_jax(at: str):
    expected = [complex(*c) for c in JAX["pow"][at]]

    near(expected, pulled(rnp.power, *map(complex, at.split())), relative=1e-12, why=WHY)


def test_the_gradient_of_a_real_function_is_the_conjugate_of_the_direction_of_ascent():
    gradient = rune.grad(lambda z: rnp.abs(z) ** 2)(number(1 + 2j))

    near(2 - 4j, complex(gradient), relative=1e-12, why=WHY)


def test_a_step_along_the_conjugate_gradient_descends():
    def loss(z: Any) -> Any:
        return rnp.abs(rnp.exp(z) - 1j) ** 2

    z = number(0.3 + 0.2j)

    step = z - 1e-2 * rnp.conj(rune.grad(loss)(z))

    assert loss(step) < loss(z)


def test_the_pullback_of_a_square_conjugates_nothing():
    assert pulled(lambda z: z * z, 1j) == [2j]


def test_a_holomorphic_gradient_is_the_complex_derivative():
    gradient = rune.grad(lambda z: z**3, holomorphic=True)(number(1 + 2j))

    near(3 * (1 + 2j) ** 2, complex(gradient), relative=1e-12, why=WHY)


def test_a_function_with_a_complex_result_has_no_gradient_unless_it_is_declared_holomorphic():
    with pytest.raises(TransformError, match="cannot differentiate a result c128"):
        rune.grad(lambda z: z * z)(number(1j))


def test_the_absolute_value_of_a_complex_number_has_gradient_zero_at_zero():
    assert complex(rune.grad(rnp.abs)(number(0))) == complex(*JAX["abs at 0"])


def test_a_real_gradient_through_complex_numbers_is_real():
    def function(x: Any) -> Any:
        return rnp.real(rnp.exp(1j * x) * (2 - 1j))

    gradient = rune.grad(function)(array(np.float64(0.3)))

    assert gradient.dtype == dtypes.f64
    near(JAX["real through complex"], float(gradient), relative=1e-12, why=WHY)


def test_jacfwd_goes_from_real_to_complex():
    jacobian = rune.jacfwd(lambda x: rnp.exp(1j * x))(array(np.array([0.1, 0.7])))

    expected = [complex(*v) for v in JAX["jacfwd"]]
    near(np.array(expected), np.diagonal(np.asarray(jacobian)), relative=1e-12, why=WHY)


def test_the_transpose_of_a_conversion_from_real_numbers_takes_the_real_part():
    _, pull = rune.vjp(lambda x: ops.convert(x, dtype=dtypes.c128), array(np.float64(1)))

    assert float(pull(number(2 + 3j))[0]) == 2.0


def test_the_sign_of_a_complex_number_has_its_true_derivative_and_not_zero():
    # JAX 0.10.2 gives 0, as for real numbers; the direction z/|z| does turn.
    z, dz = number(3 + 4j), number(1j)

    _, tangent = rune.jvp(ops.sign, (z,), (dz,))

    direction = (3 + 4j) / 5
    across = (direction.conjugate() * 1j).imag
    near(1j * direction * across / 5, complex(tangent), relative=1e-12, why=WHY)


@pytest.mark.parametrize("name", ["floor", "hypot", "arctan2", "isposinf"])
def test_an_operation_that_needs_an_order_refuses_complex_numbers(name: str):
    function, z = getattr(rnp, name), number(1j)

    with pytest.raises(DtypeError, match="cannot take c128"):
        function(z) if name in ("floor", "isposinf") else function(z, z)


def test_an_element_indexed_twice_is_multiplied_twice():
    product = rnp.ones(3, "c64").at[rnp.array([0, 0])].multiply(2j)

    assert np.asarray(product).tolist() == [-4, 1, 1]
