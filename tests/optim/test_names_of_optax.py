"""Names of Optax that rune.optim and rune.nn lack, or will lack soon: tables, and their page.

The chapter of docs/guide/missing.md is made from the table (pytest --accept). The names are those
of Optax 0.2.8; a name that only a module of Optax has, and not its top namespace, is written
`module.name`.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import rune.nn
import rune.optim
from rune.absent import Table
from rune.absent.of_optax import MISSING
from rune.optim import deprecated
from tests.support.absent import chapter, expect_chapter, listed

HERE = Path(__file__).parent
NAMES = HERE.joinpath("optax_0_2_8.txt").read_text().split()
SIGNATURES = HERE / "optax_arguments_0_2_8.txt"  # a function a line, and what it takes by name
INTRODUCTION = """\
Optax runs on rune: `pip install optax`, and `import rune.as_jax` before it. `rune.optim` has the parts
that most programs need, under the same names, so that such a program needs no Optax. The rest of
Optax 0.2.8 is listed here. Losses are in `rune.nn`: `softmax_cross_entropy`, `huber_loss`,
`ctc_loss`, …

`mu_dtype`, which is not taken, comes before `weight_decay` and `mask` in Optax: give those two by
name, in both libraries."""
LEAVING = f"""\
Optax has them; `rune.optim` has them until release {deprecated.RELEASE}, and warns by a DeprecationWarning.
`multi_steps` is `MultiSteps` there, `Optimizer` is `GradientTransformation`. `rprop` steps by the
current gradient, as torch's does; Optax's is one step behind."""

ARGUMENTS: Table = {
    "A state has the dtype of its parameters.": "*(mu_dtype) sgd(accumulator_dtype)",
    "There is no choice: moments are corrected as in the papers.": "*(bias_correction*)",
}
HAVE = (rune.optim, rune.nn)


def is_there(name: str) -> bool:
    return any(name in vars(room) for room in HAVE)


def test_every_name_of_optax_exists_or_is_deprecated_or_is_in_the_table():
    patterns = {*listed(MISSING), *deprecated.MODULES}
    absent = [n for n in NAMES if not is_there(n)]

    assert [n for n in absent if not any(fnmatch(n, p) for p in patterns)] == []


def test_no_name_in_the_table_exists():
    assert [p for p in sorted(listed(MISSING)) if is_there(p)] == []


def test_every_line_of_the_table_is_about_a_name_of_optax():
    assert [p for p in sorted(listed(MISSING)) if not any(fnmatch(n, p) for n in NAMES)] == []


def test_every_deprecated_name_is_in_optax_and_no_longer_in_rune_optim():
    names_in_optax = {deprecated.IN_OPTAX.get(name, name) for name in deprecated.MODULES}

    assert names_in_optax <= set(NAMES)
    assert not set(vars(rune.optim)) & set(deprecated.MODULES)


@pytest.mark.parametrize("name", deprecated.MODULES)
def test_a_deprecated_name_warns_and_names_what_to_install(name: str):
    with pytest.warns(DeprecationWarning, match=rf"rune.optim.{name} leaves .*\n.*pip install optax") as records:
        value = getattr(rune.optim, name)

    assert value is getattr(deprecated, name)
    assert [w.filename for w in records] == [__file__]


def test_a_deprecated_module_is_loaded_when_one_of_its_names_is_used():
    code = (
        "import sys, warnings, rune.optim\n"
        "loaded = lambda: sorted(m for m in sys.modules if m.startswith('rune.optim.deprecated.'))\n"
        "print(loaded())\n"
        "with warnings.catch_warnings(record=True): rune.optim.inject_hyperparams\n"
        "print('rune.optim.deprecated.hyperparameters' in loaded(), 'rune.optim.deprecated.signs' in loaded())\n"
    )

    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert process.stdout.splitlines() == ["[]", "True False"]


def not_taken() -> list[str]:
    """The arguments that functions of Optax take by name and those of rune.optim do not."""
    lines = (line.split() for line in SIGNATURES.read_text().splitlines())
    functions = [(n, arguments_of_optax) for n, *arguments_of_optax in lines if n in vars(rune.optim)]
    parameters_here = {n: inspect.signature(getattr(rune.optim, n)).parameters for n, _ in functions}
    return [
        f"{n}({a})" for n, arguments_of_optax in functions for a in arguments_of_optax if a not in parameters_here[n]
    ]


def test_every_argument_of_optax_is_accepted_or_in_the_table():
    patterns = listed(ARGUMENTS)

    assert [a for a in not_taken() if not any(fnmatch(a, p) for p in patterns)] == []


def test_no_argument_in_the_table_is_accepted():
    absent = not_taken()

    assert [p for p in sorted(listed(ARGUMENTS)) if not any(fnmatch(a, p) for a in absent)] == []


def test_the_page_shows_the_table(request: pytest.FixtureRequest):
    sections = {"Names": MISSING, "Names that leave": {" ".join(LEAVING.split()): " ".join(deprecated.MODULES)}}
    text = chapter("Optax", INTRODUCTION, {**sections, "Arguments": ARGUMENTS})

    expect_chapter(request.config, text)
