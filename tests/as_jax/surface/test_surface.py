"""Every public name of jax 0.10.2 exists under rune.as_jax, or is in one table with the reason."""

from __future__ import annotations

import textwrap
from collections import Counter
from fnmatch import fnmatchcase
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from rune.absent.of_as_jax import NAMES
from rune.absent.of_as_jax_parameters import PARAMETERS
from tests.as_jax.surface.compare import differences, missing_names, of_rune, stored
from tests.support.absent import chapter, expect_chapter


@cache
def absent() -> list[tuple[str, str]]:
    return [*missing_names(of_rune())]


def listed() -> list[tuple[str, str]]:
    """The sections and names of the table."""
    return [(title, name) for title, table in NAMES.items() for names in table.values() for name in names.split()]


def test_a_name_exists_or_is_in_the_table():
    assert [line for line in absent() if line not in set(listed())] == []


def test_no_name_in_the_table_exists():
    assert [line for line in listed() if line not in set(absent())] == []


def test_a_name_has_one_reason():
    assert [line for line, count in Counter(listed()).items() if count > 1] == []


def test_the_list_is_that_of_a_whole_library():
    assert len(stored()["jax.numpy"]) > 400
    assert sum(map(len, stored().values())) > 2900


@cache
def unlike() -> list[str]:
    """How parameters differ: `jax.numpy.add: out`."""
    return [f"{title}.{name}: {how}" for title, name, how in differences(of_rune())]


def test_a_parameter_is_accepted_or_in_the_table():
    patterns = [p for group in PARAMETERS.values() for p in group]

    assert [line for line in unlike() if not any(fnmatchcase(line, p) for p in patterns)] == []


def test_every_parameter_in_the_table_is_refused():
    lines = unlike()

    assert [p for group in PARAMETERS.values() for p in group if not any(fnmatchcase(n, p) for n in lines)] == []


MODULES = (Path(__file__).parent / "modules_0_10_2.txt").read_text().split()


def import_error(module: str) -> str:
    """The error for importing a missing module; empty for one that exists."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        return str(error)
    return ""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_a_module_exists_or_its_import_says_why_not(name: str):
    assert import_error(name) == "" or "\nhint: " in import_error(name)


HINTS = {
    "jax.gard": "did you mean jax.grad?",
    "jax.numpy.softmax": "use jax.nn.softmax",
    "jax.numpy.float8_e3m4": "Number types that no executor here has",
    "jax.numpy.putmask": "x.at[...] gives a changed copy",
    "jax.lax.rng_uniform": "use jax.random.uniform, which takes a key",
    "jax.scipy.special.logsumxp": "did you mean jax.scipy.special.logsumexp?",
}


@pytest.mark.parametrize("path", HINTS)
def test_a_missing_name_raises_an_error_that_names_its_replacement(path: str):
    module, _, name = path.rpartition(".")

    with pytest.raises(AttributeError) as error:
        getattr(import_module(module), name)

    assert str(error.value).startswith(f"module {module!r} has no attribute {name!r}")
    assert HINTS[path] in str(error.value)


INTRODUCTION = """\
What jax 0.10.2 has and `import rune.as_jax` does not provide, module by module and object by object,
name by name. What `import rune as jax` lacks as well is in [the chapter on JAX](#jax)."""


def shown_parameters() -> str:
    items = (f"- *{reason}* {', '.join(f'`{p}`' for p in group)}" for reason, group in PARAMETERS.items())
    paragraphs = (textwrap.fill(i, 100, subsequent_indent="  ", break_on_hyphens=False) for i in items)
    return "### Parameters\n\n" + "\n".join(paragraphs)


def test_the_page_lists_the_table(request: pytest.FixtureRequest):
    text = chapter("rune.as_jax", INTRODUCTION, {f"`{t}`": names for t, names in NAMES.items()})

    expect_chapter(request.config, f"{text}\n\n{shown_parameters()}")
