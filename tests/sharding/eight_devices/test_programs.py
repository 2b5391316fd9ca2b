"""Programs on meshes against JAX: results and derivatives, eager and jitted.

jax_programs_0_10_2.npz was made by make_jax_programs.py.
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
from tests.sharding.programs import PROGRAMS

STORED = np.load(Path(__file__).parents[1] / "jax_programs_0_10_2.npz")
LIBRARY = SimpleNamespace(
    np=rnp,
    lax=lax,
    P=P,
    mesh=lambda sizes, names: make_mesh(sizes, tuple(names)),
    shard_map=functools.partial(rune.shard_map, check_vma=False),
    **{name: getattr(rune, name) for name in ("jit", "grad", "jvp", "vmap", "pmap", "checkpoint", "custom_vjp")},
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_on_a_mesh_computes_what_jax_computes(name: str):
    results: list[Any] = PROGRAMS[name](LIBRARY)

    for number, ours in enumerate(results):
        theirs = STORED[f"{name} {number}"]
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=2e-5, atol=2e-5, err_msg=f"result {number}")
        assert np.asarray(ours).dtype == theirs.dtype
