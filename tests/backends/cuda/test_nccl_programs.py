"""Programs on a mesh of eight CUDA devices that do not exist, against JAX: NCCL's calls add up.

The programs and the stored results are those of tests/sharding; the machine and the NCCL are
stand-ins (fake_machine.py, fake_nccl.py); the latter checks every call. A sixth of the programs run
here; on CPU devices all of them do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.sharding import P, make_mesh
from tests.backends.cuda.fake_machine import machine_of
from tests.backends.cuda.fake_nccl import FakeNccl, installed
from tests.sharding.programs import PROGRAMS, TRANSFORMATIONS
from tests.support.sampling import one_in

STORED = np.load(Path(__file__).parents[2] / "sharding" / "jax_programs_0_10_2.npz")


@pytest.fixture(scope="module")
def parts() -> Iterator[tuple[FakeNccl, Any]]:
    """The stand-in, and rune on its devices."""
    with machine_of(8) as (machine, devices), pytest.MonkeyPatch.context() as patch:
        yield (
            installed(patch, machine),
            SimpleNamespace(
                np=rnp,
                lax=lax,
                P=P,
                mesh=lambda sizes, names: make_mesh(sizes, tuple(names), devices=devices[: int(np.prod(sizes))]),
                shard_map=functools.partial(rune.shard_map, check_vma=False),
                **{name: getattr(rune, name) for name in TRANSFORMATIONS},
            ),
        )


@pytest.mark.parametrize("name", one_in(12, list(PROGRAMS)))
def test_a_program_on_cuda_devices_computes_what_jax_computes(parts: tuple[FakeNccl, Any], name: str):
    nccl, library = parts

    for number, ours in enumerate(PROGRAMS[name](library)):
        np.testing.assert_allclose(np.asarray(ours), STORED[f"{name} {number}"], rtol=2e-5, atol=2e-5)
    assert nccl.problems == []


def test_devices_along_two_axes_of_a_mesh_are_one_group(parts: tuple[FakeNccl, Any]):
    nccl, library = parts
    mesh, x = library.mesh((4, 2), "ab"), np.arange(16, dtype="f").reshape(8, 2)
    ring = [(n, (n + 3) % 8) for n in range(8)]

    for names in (("a", "b"), ("b", "a")):
        body = functools.partial(lax.ppermute, axis_name=names, perm=ring)
        function = library.shard_map(body, mesh=mesh, in_specs=P(names), out_specs=P(names))
        np.testing.assert_array_equal(np.asarray(rune.jit(function)(x)), np.roll(x, 3, axis=0))
        u = rune.device_put(x, rune.NamedSharding(mesh, P(names)))
        change = rune.jit(lambda u: rnp.pad(u[1:] - u[:-1], ((0, 1), (0, 0))) + u[::-1])(u)
        np.testing.assert_array_equal(np.asarray(change), np.pad(np.diff(x, axis=0), ((0, 1), (0, 0))) + x[::-1])
    assert nccl.problems == []
