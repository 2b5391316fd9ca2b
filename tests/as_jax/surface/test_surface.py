"""Every public name of jax 0.10.2 is there under rune.as_jax, or in one table with the reason."""

from __future__ import annotations

import textwrap
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module

import pytest

from rune.absent.of_as_jax import NAMES
from rune.absent.of_as_jax_parameters import PARAMETERS
from tests.as_jax.surface.compare import differences, missing_names, of_rune, stored
from tests.support.absent import chapter, expect_chapter


@cache
def absent() -> list[tuple[str, str]]:
    return [*missing_names(of_rune())]


def patterns() -> list[tuple[str, str]]:
    """The sections and patterns of the table."""
    return [(title, p) for title, table in NAMES.items() for names in table.values() for p in names.split()]


def test_a_name_is_there_or_in_the_table():
    listed = patterns()

    assert [(t, n) for t, n in absent() if not any(t == title and fnmatchcase(n, p) for title, p in listed)] == []


def test_nothing_in_the_table_is_there():
    gone = absent()

    assert [(title, p) for title, p in patterns() if not any(t == title and fnmatchcase(n, p) for t, n in gone)] == []


def test_the_list_is_that_of_a_whole_library():
    assert len(stored()["jax.numpy"]) > 400
    assert sum(map(len, stored().values())) > 2900


@cache
def unlike() -> list[str]:
    """How parameters differ: `jax.numpy.add: out`."""
    return [f"{title}.{name}: {how}" for title, name, how in differences(of_rune())]


def test_a_parameter_is_taken_or_in_the_table():
    listed = [p for group in PARAMETERS.values() for p in group]

    assert [line for line in unlike() if not any(fnmatchcase(line, p) for p in listed)] == []


def test_every_parameter_in_the_table_is_not_taken():
    lines = unlike()

    assert [p for group in PARAMETERS.values() for p in group if not any(fnmatchcase(n, p) for n in lines)] == []


HINTS = {
    "jax.ds": "use jax.lax.dynamic_slice",
    "jax.gard": "did you mean jax.grad?",
    "jax.numpy.softmax": "use jax.nn.softmax",
    "jax.numpy.float8_e3m4": "Number types that no executor here has",
    "jax.numpy.putmask": "x.at[...] gives a changed copy",
    "jax.lax.rng_uniform": "It names XLA",
    "jax.scipy.special.logsumxp": "did you mean jax.scipy.special.logsumexp?",
}


@pytest.mark.parametrize("dotted", HINTS)
def test_a_missing_name_says_what_to_use(dotted: str):
    module, _, name = dotted.rpartition(".")

    with pytest.raises(AttributeError) as raised:
        getattr(import_module(module), name)

    assert str(raised.value).startswith(f"module {module!r} has no attribute {name!r}")
    assert HINTS[dotted] in str(raised.value)


INTRODUCTION = """\
What jax 0.10.2 has and `import rune.as_jax` does not give, module by module and object by object;
`*` stands for all that is missing of a module. What `import rune as jax` lacks besides stands in
[the chapter on JAX](#jax)."""


def shown_parameters() -> str:
    items = (f"- *{reason}* {', '.join(f'`{p}`' for p in group)}" for reason, group in PARAMETERS.items())
    wrapped = (textwrap.fill(i, 100, subsequent_indent="  ", break_on_hyphens=False) for i in items)
    return "### Parameters\n\n" + "\n".join(wrapped)


def test_the_page_tells_the_table(request: pytest.FixtureRequest):
    text = chapter("rune.as_jax", INTRODUCTION, {f"`{t}`": names for t, names in NAMES.items()})

    expect_chapter(request.config, f"{text}\n\n{shown_parameters()}")
