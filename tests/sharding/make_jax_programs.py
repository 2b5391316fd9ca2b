"""Store what jax 0.10.2 computes for the programs of two files, on eight virtual devices.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.sharding.make_jax_programs

Runs in an environment with JAX, from the root of the repository. The programs of programs.py run
with check_vma=False, and with True where JAX takes them; those of checked_programs.py with True.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
import numpy as np
from jax.sharding import Mesh, PartitionSpec  # pyright: ignore[reportMissingImports]

from tests.sharding.checked_programs import CHECKED
from tests.sharding.programs import PROGRAMS, TRANSFORMATIONS, Program

HERE = Path(__file__).parent


def mesh(sizes: tuple[int, ...], names: str) -> Any:
    """A mesh of the first devices."""
    return Mesh(np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes), tuple(names))


def library(is_checked: bool) -> Any:
    """JAX as programs use it."""
    return SimpleNamespace(
        np=jax.numpy,
        lax=jax.lax,
        P=PartitionSpec,
        mesh=mesh,
        shard_map=functools.partial(jax.shard_map, check_vma=is_checked),
        **{name: getattr(jax, name) for name in TRANSFORMATIONS},
    )


def store(name: str, programs: Mapping[str, Program], is_checked: bool, *, may_refuse: bool = False) -> None:
    """Write the results of programs; those that JAX refuses are printed, if it may."""
    results = {}
    for title, program in programs.items():
        try:
            for number, array in enumerate(program(library(is_checked))):
                results[f"{title} {number}"] = np.asarray(array)
        except (AssertionError, TypeError, ValueError, NotImplementedError) as error:
            if not may_refuse:
                raise
            print(f"refused: {title} ({error!r:.200})")
    np.savez_compressed(HERE / name, **results)


if __name__ == "__main__":
    assert jax.__version__ == "0.10.2", jax.__version__
    store("jax_programs_0_10_2.npz", PROGRAMS, False)
    store("jax_programs_with_check_0_10_2.npz", PROGRAMS, True, may_refuse=True)
    store("jax_checked_programs_0_10_2.npz", CHECKED, True)
