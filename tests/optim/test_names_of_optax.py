"""What Optax has and rune.optim and rune.nn have not: a table with the reasons, and its page.

The page docs/guide/missing-optax.md is made from the table (pytest --accept). The names are those
of Optax 0.2.8; what Optax's own namespace does not repeat of a module stands as `module.name`.
"""

from __future__ import annotations

import inspect
from fnmatch import fnmatch
from pathlib import Path

import pytest

import rune.nn
import rune.optim
from rune.absent import Table
from rune.absent.of_optax import MISSING
from tests.support.absent import listed, page
from tests.support.expect import expect_file

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "guide" / "missing-optax.md"
NAMES = HERE.joinpath("optax_0_2_8.txt").read_text().split()
SIGNATURES = HERE / "optax_arguments_0_2_8.txt"  # a function a line, and what it takes by name
INTRODUCTION = """\
What Optax 0.2.8 has and `rune.optim` has not, with the reasons; the tests compare this page with a
list of Optax's names. Losses are in `rune.nn`: `softmax_cross_entropy`, `huber_loss`, `ctc_loss`, …

`mu_dtype`, which is not taken, stands before `weight_decay` and `mask` in Optax: say those two by
name, here and there. `rprop` takes a step by the gradient that it is given, as torch's does;
Optax's is a step behind."""

ARGUMENTS: Table = {
    "A state has the dtype of its parameters.": """
        *(mu_dtype) *(accumulator_dtype) adafactor(dtype_momentum)
        inject_hyperparams(hyperparam_dtype)
        """,
    "Draws are given a key.": "*(seed)",
    "Other names for what is given by position.": """
        multi_transform(param_labels) partition(param_labels) stateless(f)
        with_extra_args_support(tx)
        """,
    "There is one way: moments are corrected as in the papers, and `nadam` is the one with Nesterov's step.": """
        *(bias_correction*) nadam(nesterov) nadamw(nesterov) *(variant) scale_by_lion(mode)
        scale_by_lion(smooth_beta) scale_by_factored_rms(decay_rate_fn)
        """,
    "What is handed on besides gradients always is, to whoever takes it.": """
        *(mask_compatible_extra_args) *(forward_extra_args)
        """,
    "Compiled programs print nothing.": "*(verbose)",
    "Not written; the rest of the function is here.": """
        adaptive_grad_clip(axis) scale_by_learning_rate(flip_sign) scale_by_zoom_linesearch(*)
        """,
}
HAVE = (rune.optim, rune.nn)


def is_there(name: str) -> bool:
    return any(hasattr(room, name) for room in HAVE)


def test_every_name_of_optax_is_there_or_in_the_table():
    patterns = listed(MISSING)
    absent = [n for n in NAMES if not is_there(n)]

    assert [n for n in absent if not any(fnmatch(n, p) for p in patterns)] == []


def test_nothing_in_the_table_is_there():
    assert [p for p in sorted(listed(MISSING)) if is_there(p)] == []


def test_every_line_of_the_table_speaks_of_a_name_of_optax():
    assert [p for p in sorted(listed(MISSING)) if not any(fnmatch(n, p) for n in NAMES)] == []


def not_taken() -> list[str]:
    """The arguments that functions of Optax take by name and those of rune.optim do not."""
    lines = (line.split() for line in SIGNATURES.read_text().splitlines())
    here = [(n, theirs) for n, *theirs in lines if hasattr(rune.optim, n)]
    parameters_here = {n: inspect.signature(getattr(rune.optim, n)).parameters for n, _ in here}
    return [f"{n}({a})" for n, theirs in here for a in theirs if a not in parameters_here[n]]


def test_every_argument_of_optax_is_taken_or_in_the_table():
    patterns = listed(ARGUMENTS)

    assert [a for a in not_taken() if not any(fnmatch(a, p) for p in patterns)] == []


def test_no_argument_in_the_table_is_taken():
    absent = not_taken()

    assert [p for p in sorted(listed(ARGUMENTS)) if not any(fnmatch(a, p) for a in absent)] == []


def test_the_page_tells_the_table(request: pytest.FixtureRequest):
    sections = {"Names": MISSING, "Arguments": ARGUMENTS}
    text = page("What Optax has and rune.optim has not", INTRODUCTION, sections)

    expect_file(request.config, PAGE, text)
