"""The cost of a step of loops that change one element of a large carry: ns of processor time.

    python benchmarks/loops_in_place.py           # rune
    python benchmarks/loops_in_place.py --jax     # an installed jax, in an environment of its own

The figures of a row should not grow with the size of the carry, else it is copied in each step.
The last row is Equinox's test of the speed of its own loop with buffers, and wants Equinox.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import time
from collections.abc import Callable
from typing import Any

SIZES = (2_000, 10_000, 50_000, 100_000)


def seconds(function: Callable[..., Any], *args: Any) -> float:
    """Processor time of the best of three calls, after one that compiles."""
    jax.block_until_ready(function(*args))
    times = []
    for _ in range(3):
        start = time.process_time()
        jax.block_until_ready(function(*args))
        times.append(time.process_time() - start)
    return min(times)


def set_element(i: Any, x: Any) -> Any:
    return x.at[i].set(1)


def update_slice(i: Any, x: Any) -> Any:
    return jax.lax.dynamic_update_index_in_dim(x, 1.0, i, 0)


def set_in_a_branch(i: Any, x: Any) -> Any:
    return jax.lax.cond(i[()] % 8 == 3, lambda x: x.at[i].set(1), lambda x: x, x)


def vmapped_while(change: Callable[[Any, Any], Any], lanes: int, size: int) -> float:
    """Seconds of a loop of `size` steps in every lane."""

    def loop(start: Any, x: Any) -> Any:
        return jax.lax.while_loop(lambda c: c[0] < size, lambda c: (c[0] + 1, change(*c)), (start, x))

    return seconds(jax.jit(jax.vmap(loop)), jnp.zeros(lanes, "i4"), jnp.zeros((lanes, size)))


def scan_in_a_branch(size: int) -> float:
    """Seconds of a scan of `size` steps, of which an eighth change the carry."""
    scan = jax.jit(lambda x: jax.lax.fori_loop(0, size, set_in_a_branch, x))
    return seconds(scan, jnp.zeros(size))


def checkpointed(size: int) -> float:
    """Seconds of Equinox's loop with a buffer and half as many checkpoints as steps, linearized."""
    equinox = importlib.import_module("equinox.internal")

    def loop(start: Any, x: Any) -> Any:
        def run(x: Any) -> Any:
            return equinox.while_loop(
                lambda c: c[0] < size,
                lambda c: (c[0] + 1, set_element(*c)),
                (start, x),
                buffers=lambda c: c[1],
                kind="checkpointed",
                checkpoints=size // 2,
            )

        return jax.linearize(run, x)

    return seconds(jax.jit(jax.vmap(loop)), jnp.array([0, 1]), jnp.zeros((2, size)))


def main() -> None:
    """Print a row for each loop."""
    rows: dict[str, Callable[[int], float]] = {
        "vmap of 1, .at[i].set": lambda size: vmapped_while(set_element, 1, size),
        "vmap of 3, .at[i].set": lambda size: vmapped_while(set_element, 3, size),
        "vmap of 3, dynamic_update_index": lambda size: vmapped_while(update_slice, 3, size),
        "cond that passes the carry on": scan_in_a_branch,
    }
    if importlib.util.find_spec("equinox"):
        rows["Equinox, with a buffer"] = checkpointed
    print(f"{'carry of elements':32}", *(f"{size:>9,}" for size in SIZES))
    for name, run in rows.items():
        print(f"{name:32}", *(f"{run(size) / size * 1e9:9.1f}" for size in SIZES), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", action="store_true", help="on jax instead of rune")
    if not parser.parse_args().jax:
        import rune.as_jax  # noqa: F401
    import jax
    import jax.numpy as jnp

    main()
