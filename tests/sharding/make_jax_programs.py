"""Store what jax 0.10.2 computes for every program of programs.py, on eight virtual devices.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.sharding.make_jax_programs

Runs in an environment with JAX, from the root of the repository.
"""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np
from jax.sharding import Mesh, PartitionSpec  # pyright: ignore[reportMissingImports]

from tests.sharding.programs import PROGRAMS

TARGET = Path(__file__).parent / "jax_programs_0_10_2.npz"


def mesh(sizes: tuple[int, ...], names: str) -> Any:
    """A mesh of the first devices."""
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), tuple(names))


LIBRARY = SimpleNamespace(
    np=jax.numpy,
    lax=jax.lax,
    P=PartitionSpec,
    mesh=mesh,
    shard_map=functools.partial(jax.shard_map, check_vma=False),
    **{name: getattr(jax, name) for name in ("jit", "grad", "jvp", "vmap", "pmap", "checkpoint", "custom_vjp")},
)


if __name__ == "__main__":
    assert jax.__version__ == "0.10.2", jax.__version__
    results = {}
    for name, program in PROGRAMS.items():
        for number, array in enumerate(program(LIBRARY)):
            results[f"{name} {number}"] = np.asarray(array)
    np.savez_compressed(TARGET, **results)
