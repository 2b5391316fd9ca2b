"""Programs on meshes against JAX: results and derivatives, eager and jitted.

A run tries one in two, and of those that run with the check a twelfth without it, too.

The files of results were made by make_jax_programs.py.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import P, make_mesh
from tests.sharding.checked_programs import CHECKED
from tests.sharding.programs import PROGRAMS, TRANSFORMATIONS, Program
from tests.support.sampling import one_in


def library(is_checked: bool) -> Any:
    return SimpleNamespace(
        np=rnp,
        lax=lax,
        P=P,
        mesh=lambda sizes, names: make_mesh(sizes, tuple(names)),
        shard_map=functools.partial(rune.shard_map, check_vma=is_checked),
        **{name: getattr(rune, name) for name in TRANSFORMATIONS},
    )


def stored(name: str) -> Any:
    return np.load(Path(__file__).parents[1] / f"{name}_0_10_2.npz")


UNCHECKED, WITH_CHECK, IN_BODIES = map(stored, ("jax_programs", "jax_programs_with_check", "jax_checked_programs"))


def require_same(program: Program, is_checked: bool, name: str, vectors: Any) -> None:
    for number, ours in enumerate(program(library(is_checked))):
        expected = vectors[f"{name} {number}"]
        np.testing.assert_allclose(np.asarray(ours), expected, rtol=2e-5, atol=2e-5, err_msg=f"result {number}")
        assert np.asarray(ours).dtype == expected.dtype


TRIED = one_in(2, list(PROGRAMS))
# Most programs run with the check too, by the same code: a twelfth of those does without it.
SAMPLE = {*one_in(12, [n for n in PROGRAMS if f"{n} 0" in WITH_CHECK])}


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n in SAMPLE or (n in TRIED and f"{n} 0" not in WITH_CHECK)])
def test_a_program_on_a_mesh_computes_what_jax_computes(name: str):
    require_same(PROGRAMS[name], False, name, UNCHECKED)


@pytest.mark.parametrize("name", [n for n in TRIED if f"{n} 0" in WITH_CHECK])
def test_a_program_with_varying_types_gives_the_results_of_jax(name: str):
    require_same(PROGRAMS[name], True, name, WITH_CHECK)


@pytest.mark.parametrize("name", one_in(2, list(CHECKED)))
def test_a_derivative_in_a_body_is_that_of_jax(name: str):
    require_same(CHECKED[name], True, name, IN_BODIES)
