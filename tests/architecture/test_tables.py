"""Reviewed lists of what exists: the primitive × rule matrix, and the public names.

A lost rule and an added or removed name each change a line of a golden file.
"""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from docs.rooms import members
from rune import ops
from rune.core.primitive import ZERO, Joint, Primitive
from rune.ops.__main__ import EVERY_PRIMITIVE
from rune.ops.table import rule_matrix
from tests.architecture.sources import HERE, ROOT, sources
from tests.support.expect import expect_file


def test_the_rule_matrix_is_the_reviewed_one(request: pytest.FixtureRequest):
    expect_file(request.config, HERE / "rule_matrix.txt", rule_matrix(EVERY_PRIMITIVE))


def test_the_rule_matrix_has_every_primitive_of_the_package():
    kinds = ("Primitive", "Direct", "HigherOrder", "dense(")
    modules = [importlib.import_module(s.name) for s in sources() if any(k in s.text for k in kinds)]
    primitives = {value for module in modules for value in vars(module).values() if isinstance(value, Primitive)}

    assert primitives == set(EVERY_PRIMITIVE)


def test_the_rule_matrix_is_printed_by_running_the_room():
    process = subprocess.run([sys.executable, "-m", "rune.ops"], capture_output=True, text=True, check=True, cwd=ROOT)

    assert process.stdout == (HERE / "rule_matrix.txt").read_text()


def test_every_derivative_of_a_linear_primitive_can_be_transposed():
    # Tangents flow through the operations of a derivative rule; these are the primitives whose rule
    # calls the primitive itself on the tangent.
    linear = {
        "add",
        "sub",
        "neg",
        "mul",
        "div",
        "select",
        "convert",
        "broadcast",
        "reshape",
        "transpose",
        "slice",
        "pad",
        "reverse",
        "concatenate",
        "reduce_sum",
        "cumsum",
        "dot_general",
        "shear",
        "conv_general_dilated",
        "reduce_window",
        "gather",
        "scatter",
        "scatter_add",
        "scatter_mul",
        "dynamic_slice",
        "dynamic_update_slice",
        "real",
        "imag",
        "complex",
        "conj",
        "reduce_precision",
    }

    assert {p.name for p in ops.PRIMITIVES if p.transpose is not None} == linear


def test_a_derivative_rule_exists_for_every_operand():
    for primitive in ops.PRIMITIVES:
        assert isinstance(primitive.jvp, tuple | Joint), primitive
        if isinstance(primitive.jvp, tuple):
            assert all(r is ZERO or r is not None for r in primitive.jvp), primitive


def test_the_public_names_are_the_reviewed_ones(request: pytest.FixtureRequest):
    lines = [f"{room}.{name}" for room, name, _ in members()]

    expect_file(request.config, HERE / "public_names.txt", "\n".join(lines))
