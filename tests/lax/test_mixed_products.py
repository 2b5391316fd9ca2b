"""dot_general of operands of two dtypes: the result has that of the operand which holds more."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax

CONTRACTED = (((1,), (0,)), ((), ()))
X, Y = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
# The dtypes of lhs and rhs, and of the result, by jax 0.10.2.
KINDS = [
    ("bfloat16", "float32", "float32"),
    ("float32", "float16", "float32"),
    ("bfloat16", "float16", "bfloat16"),
    ("int8", "int32", "int32"),
    ("uint8", "int8", "int8"),
    ("bool", "uint8", "uint8"),
    ("int32", "float16", "float16"),
    ("complex64", "float64", "complex64"),
    (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
    (ml_dtypes.float8_e5m2, "bfloat16", "bfloat16"),
]


@pytest.mark.parametrize(("lhs", "rhs", "result"), KINDS)
def test_the_result_has_the_dtype_that_holds_more(lhs: object, rhs: object, result: object):
    x, y = rnp.asarray(X, lhs), rnp.asarray(Y, rhs)  # type: ignore[arg-type]

    for product in (lax.dot_general, rune.jit(lax.dot_general, static_argnums=2)):
        z = product(x, y, CONTRACTED)

        assert z.dtype == rnp.zeros(0, result).dtype  # type: ignore[arg-type]
        a, b = (np.asarray(v).astype(z.dtype).astype(complex if z.dtype.kind == "c" else float) for v in (x, y))
        np.testing.assert_array_equal(np.asarray(z), (a @ b).astype(z.dtype))


@pytest.mark.parametrize(("lhs", "rhs"), [kinds[:2] for kinds in KINDS if not {"complex64", "bool"} & {*kinds}])
def test_sums_are_in_the_dtype_that_is_preferred(lhs: object, rhs: object):
    x, y = rnp.asarray(X, lhs), rnp.asarray(Y, rhs)  # type: ignore[arg-type]

    np.testing.assert_array_equal(lax.dot_general(x, y, CONTRACTED, preferred_element_type="float32"), X @ Y)


def test_each_operand_has_a_gradient_of_its_own_dtype():
    x, y = rnp.asarray(X, "bfloat16"), rnp.asarray(Y, "float32")

    dx, dy = rune.grad(lambda a, b: lax.dot_general(a, b, CONTRACTED).sum(), argnums=(0, 1))(x, y)

    assert (dx.dtype, dy.dtype) == (rnp.bfloat16, rnp.float32)
    np.testing.assert_array_equal(dx.astype("float32"), np.broadcast_to(Y.sum(1), (2, 3)))
    np.testing.assert_array_equal(dy, np.broadcast_to(X.sum(0)[:, None], (3, 4)))
