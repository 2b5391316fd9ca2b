"""Store what jax 0.10.2 says of the programs on Explicit axes, on eight virtual devices.

    XLA_FLAGS=--xla_force_host_platform_device_count=8 python -m tests.sharding.make_jax_explicit

Runs in an environment with JAX, from the root of the repository. For each program and way there is
the layout of the result, the mesh axes of each of its axes, or null where JAX refuses.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax  # pyright: ignore[reportMissingImports]
from jax._src.core import ShardingTypeError  # pyright: ignore[reportMissingImports]
from jax.sharding import NamedSharding, PartitionSpec  # pyright: ignore[reportMissingImports]

from tests.sharding.explicit_operations import FUNCTIONS, OPERATIONS, Operation
from tests.sharding.explicit_programs import MESH, PROGRAMS, RESHAPES, array_on, library

TARGET = Path(__file__).parent / "jax_explicit_0_10_2.json"
LIBRARY = library(jax)


def layout(function: Callable[..., Any], operands: list[Any]) -> Any:
    """The mesh axes of each axis of the result; None if it is refused."""
    try:
        out = function(*operands)
    except (ShardingTypeError, AssertionError, TypeError, ValueError) as error:
        print(f"refused: {type(error).__name__} {str(error)[:100]!r}")
        return None
    parts = (*out.sharding.spec, *(None,) * out.ndim)[: out.ndim]
    return [list(p) if isinstance(p, tuple) else [] if p is None else [p] for p in parts]


def reshape(mesh: Any, shape: tuple[int, ...], spec: tuple[Any, ...], target: tuple[int, ...]) -> Any:
    """The layout of a reshaped array; None if it is refused."""
    x = jax.ShapeDtypeStruct(shape, "float32", sharding=NamedSharding(mesh, PartitionSpec(*spec)))
    return layout(lambda: jax.eval_shape(lambda v: jax.lax.reshape(v, target), x), [])


def operation(mesh: Any, one: Operation) -> Any:
    """The layout of the result of an operation; None if it is refused."""
    structs = [
        jax.ShapeDtypeStruct(s, "float32", sharding=NamedSharding(mesh, PartitionSpec(*p))) for s, p in one.operands
    ]
    function = functools.partial(FUNCTIONS[one.name], LIBRARY, one.params)
    return layout(lambda: jax.eval_shape(function, *structs), [])


if __name__ == "__main__":
    assert jax.__version__ == "0.10.2", jax.__version__
    mesh = jax.make_mesh(tuple(MESH.values()), tuple(MESH))
    answers = {}
    with jax.set_mesh(mesh):
        for name, program in PROGRAMS.items():
            operands = [array_on(jax, mesh, x) for x in program.operands]
            print(name)
            run = functools.partial(program.run, LIBRARY)
            answers[name] = [layout(run, operands), layout(jax.jit(run), operands)]
            print(answers[name])
        reshapes = [reshape(mesh, *triple) for triple in RESHAPES]
        operations = [operation(mesh, one) for one in OPERATIONS]
    (TARGET.parent / "jax_reshapes_0_10_2.json").write_text(json.dumps(reshapes) + "\n")
    (TARGET.parent / "jax_operations_0_10_2.json").write_text(json.dumps(operations) + "\n")
    lines = (f"{json.dumps(name)}: {json.dumps(answer)}" for name, answer in answers.items())
    TARGET.write_text("{\n" + ",\n".join(lines) + "\n}\n")
