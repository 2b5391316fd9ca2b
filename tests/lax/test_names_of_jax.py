"""Names of JAX's own namespace that rune lacks: a table with the reasons, and its page.

The chapter of docs/guide/missing.md is made from the table (pytest --accept). The names are those
of jax 0.10.2; those of jax.lax are in docs/guide/from-jax.md, of jax.numpy in NumPy's chapter.
"""

from __future__ import annotations

import inspect
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path

import pytest

import rune
from rune.absent.of_jax import MISSING
from tests.support.absent import chapter, expect_chapter, listed

HERE = Path(__file__).parent
NAMES = HERE.joinpath("jax_0_10_2.txt").read_text().split()
SIGNATURES = HERE / "jax_arguments_0_10_2.txt"  # a function in each line, and what it takes by name
INTRODUCTION = """\
What the namespace `jax` (0.10.2) has and `rune` lacks. [From JAX](from-jax.md) has the same for
`jax.lax`, [the chapter on NumPy](#numpy) for `jax.numpy`. All of `jax.nn` and `jax.scipy` is here."""

ARGUMENTS: dict[str, tuple[str, str]] = {
    "checkpoint": ("static_argnames", "say `static_argnums`"),
    "devices, process_count, process_index": ("backend", "`rune.devices()` lists all"),
    "debug.visualize_sharding": (
        "use_color scale min_width max_width color_map",
        "none: boxes are as wide as their text",
    ),
    "explain_cache_misses": ("new_val", "it is a context manager, and gives a list"),
    "*": ("fun", "give the function by position"),
    "block_until_ready, copy_to_host_async, device_get, device_put": ("x", "give it by position"),
    "check_tracer_leaks, debug_infs, debug_nans, default_device, enable_x64, log_compiles, "
    "numpy_dtype_promotion, numpy_rank_promotion": ("new_val", "give it by position"),
    "lax.mul": ("out_dtype", "convert the operands"),
    "lax.linalg.qr": ("use_magma", "none: it names a GPU library"),
    "lax.linalg.tridiagonal_solve": ("perturb_singular", "change the diagonal"),
    "scipy.special.log_ndtr": ("series_order", "none: it is exact without it"),
    "scipy.linalg.eigh_tridiagonal": ("key", "none: nothing is drawn"),
    "scipy.linalg.solve, scipy.linalg.solve_triangular": ("debug", "leave it out"),
    "scipy.signal.detrend": ("overwrite_data", "arrays are values"),
}
HEADING = """\
### Arguments

Arguments that functions take by name in JAX but not here; the tests compare this table with JAX's
signatures, so it is complete. An argument that is not taken is an error; none is silently ignored.

| of | not taken | instead |
|---|---|---|
"""


def listed_arguments() -> str:
    """The rows of arguments that JAX's functions take and rune's do not."""
    rows = [
        f"| {code_spans(names)} | {code_spans(argument_names.replace(' ', ', '))} | {instead} |"
        for names, (argument_names, instead) in ARGUMENTS.items()
    ]
    return HEADING + "\n".join(rows)


def code_spans(names: str) -> str:
    """Names with commas between them, as code."""
    return ", ".join(f"`{n}`" for n in names.split(", "))


def parameters(name: str) -> set[str] | None:
    """The arguments that rune's function takes by name; None if it is absent or has no
    signature."""
    room, _, last = f"rune.{name}".rpartition(".")
    try:
        parameters = inspect.signature(getattr(import_module(room), last)).parameters.values()
    except (AttributeError, ImportError, TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    return {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def not_taken() -> list[tuple[str, str]]:
    """Functions of both libraries, and the arguments that JAX's alone takes."""
    lines = (line.split() for line in SIGNATURES.read_text().splitlines())
    both = [(name, jaxs, parameters(name)) for name, *jaxs in lines]
    return [(n, a) for n, jaxs, ours in both if ours is not None for a in jaxs if a not in ours]


def is_listed(name: str, argument: str) -> bool:
    return any(
        argument in argument_names.split() and any(fnmatchcase(name, p) for p in names.split(", "))
        for names, (argument_names, _) in ARGUMENTS.items()
    )


def test_every_name_of_jax_exists_or_is_in_the_table():
    assert [n for n in NAMES if not hasattr(rune, n) and n not in listed(MISSING)] == []


def test_no_name_in_the_table_exists():
    assert [n for n in sorted(listed(MISSING)) if hasattr(rune, n) or n not in NAMES] == []


def test_every_argument_of_jax_is_taken_or_in_the_table():
    assert [(name, a) for name, a in not_taken() if not is_listed(name, a)] == []


@pytest.mark.parametrize("names", ARGUMENTS)
def test_a_listed_argument_is_not_taken(names: str):
    absent = {a for n, a in not_taken() if any(fnmatchcase(n, p) for p in names.split(", "))}

    assert set(ARGUMENTS[names][0].split()) <= absent


def test_the_page_lists_the_table(request: pytest.FixtureRequest):
    text = chapter("JAX", INTRODUCTION, {"Names": MISSING})

    expect_chapter(request.config, f"{text}\n\n{listed_arguments()}")
