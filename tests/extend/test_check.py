"""The conformance test of operations: correct ones pass, and each kind of fault is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune.numpy as rnp
from rune import extend
from tests.extend import test_operations as operations

SAMPLES = [(operations.X,), (np.float32(1.5),), (np.zeros((0,), np.float32),), (np.arange(4, dtype=np.float64) + 1,)]
EVERYTHING = {"types", "meaning", "jit", "jvp", "transpose", "batch"}


@pytest.mark.parametrize("operation", [operations.cube, operations.both], ids=str)
def test_a_right_operation_passes_whole(operation: extend.Operation):
    report = extend.check(operation, SAMPLES)

    assert report.tried.keys() == EVERYTHING
    assert report.missing == ()


def test_operands_and_parameters_are_tried_together():
    pairs = [(operations.X, 2 * operations.X), [np.float32(2), np.float32(-3)]]  # a tuple or a list

    assert extend.check(operations.fused, pairs).missing == ()
    assert extend.check(operations.scale, [(operations.X, {"factor": 3.0})]).tried.keys() == EVERYTHING


def test_complex_and_half_types_and_integers_are_tried():
    square = extend.primitive(
        "square", types=lambda x: x, meaning=np.square, jvp=[lambda t, x, y: 2 * x * t], batch=extend.leading
    )
    integers = extend.primitive("next", types=lambda x: x, meaning=lambda x: x + 1, batch=extend.leading)

    z = np.array([1 + 2j, -0.5j], np.complex64)
    assert extend.check(square, [(z,), (operations.X.astype(np.float16),)]).tried.keys() == EVERYTHING
    assert "jvp" not in extend.check(integers, [np.arange(3, dtype=np.int32)]).tried


def _operation(**changes: Any) -> extend.Operation:
    rules = {
        "types": lambda x: x,
        "meaning": lambda x: x[..., ::-1] * 2,
        "jvp": [lambda t, x, y: flipped(t)],
        "transpose": lambda ct, is_linear, x: [flipped(ct)],
        "batch": extend.leading,
    }
    return extend.primitive("flipped", **{**rules, **changes})


flipped = _operation()
FAULTS = {
    "types": {"types": lambda x: x.with_dtype(np.dtype(np.int32))},
    "jit": {"expand": lambda x: x[..., ::-1] * 2.001},
    "jvp": {"jvp": [lambda t, x, y: 2 * flipped(t)]},
    "batch": {"batch": lambda is_batched, size, x: (rnp.flip(flipped(x), 0), True)},
}


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_named_with_its_sample(rule: str):
    wrong = _operation(**FAULTS[rule])

    with pytest.raises(extend.Disagreement, match=rf"the rule '{rule}' of flipped \(sample 1: f32\[3\]"):
        extend.check(wrong, [(np.zeros((0,), np.int32),), (operations.X,)])


def test_a_wrong_transpose_is_named():
    wrong = extend.primitive(
        "wrong",
        types=lambda x: x,
        meaning=lambda x: x[..., ::-1] * 2,
        jvp=[lambda t, x, y: wrong(t)],
        transpose=lambda ct, is_linear, x: [2 * ct],
        batch=extend.leading,
    )

    with pytest.raises(AssertionError, match="the rule 'transpose' of wrong"):
        extend.check(wrong, [(operations.X,)])


def test_a_wrong_function_of_c_is_named():
    wrong = extend.primitive(
        "halved",
        types=lambda x: x,
        meaning=lambda x: x / 2,
        native=extend.Native(operations.scaled, sizes=lambda x: (x.shape[0], 0.25)),
    )

    with pytest.raises(extend.Disagreement, match="the rule 'meaning' of halved"):
        extend.check(wrong, [(operations.X,)])


def test_the_report_names_the_missing_rules():
    bare = extend.primitive("bare", types=lambda x: x, meaning=lambda x: x + 1)

    assert extend.check(bare, [(operations.X,)]).missing == ("batch", "jvp", "transpose")
