"""What JAX's own namespace has and rune's has not: a table with the reasons, and its page.

The page docs/guide/missing-jax.md is made from the table (pytest --accept). The names are those of
jax 0.10.2; those of jax.lax are in docs/guide/from-jax.md, those of jax.numpy in missing.md.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

import rune
import rune.lax
from tests.support.absent import Table, listed, page
from tests.support.expect import expect_file

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "guide" / "missing-jax.md"
NAMES = HERE.joinpath("jax_0_10_2.txt").read_text().split()
INTRODUCTION = """\
What the namespace `jax` (0.10.2) has and `rune` has not, with the reasons; the tests compare this
page with a list of JAX's names. What `jax.lax` has besides stands in [From JAX](from-jax.md), what
`jax.numpy` has in [missing.md](missing.md). All of `jax.nn` is here, and of `jax.scipy` all but
`sparse`."""

MISSING: Table = {
    "Sharding: meshes, named shardings, and processes that share arrays.":
        "NamedSharding P Shard auto_pcast distributed host_count host_id host_ids "
        "make_array_from_callback make_array_from_process_local_data "
        "make_array_from_single_device_arrays make_mesh process_count process_index "
        "process_indices remove_size_one_mesh_axis_from_type reshard set_mesh shard_map sharding "
        "smap",
    "References, which are written to; carry the array, or use `x.at[...]`.":
        "Ref empty_ref free_ref freeze new_ref ref",
    "Devices have names: `rune.devices()`, and `with rune.device(\"cpu\"):`.":
        "Device default_backend default_device device_count local_device_count local_devices "
        "memory",
    "Global flags. `rune.configure` and contexts (`rune.device`, `rune.enable_x64`, "
    "`rune.numpy_dtype_promotion`) set what there is to set; `rune.config` has no `update`.":
        "allow_f16_reductions array_garbage_collection_guard debug_key_reuse "
        "default_matmul_precision default_prng_impl enable_checks enable_custom_prng "
        "jax2tf_associative_scan_reductions legacy_prng_key make_user_context no_execution "
        "no_tracing numpy_rank_promotion softmax_custom_jvp thread_guard threefry_partitionable "
        "transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host "
        "transfer_guard_host_to_device",
    "Debugging: `with rune.debug.checks():` finds NaN, infinities and indices out of bounds, with "
    "your line. A tracer that has left its trace says so.":
        "check_tracer_leaks checking_leaks debug_infs debug_nans",
    "Nothing is compiled without `jit`: to see values, take `jit` away or use `rune.debug.print`.":
        "disable_jit ensure_compile_time_eval",
    "Names of parts of a program: each operation carries your line instead.":
        "named_call named_scope",
    "What the process did: `rune.counting`, `rune.profiling`, `rune.explain_cache_misses`, "
    "`rune.memory_stats`.":
        "live_arrays log_compiles monitoring print_environment_info profiler version",
    "Calls that do not wait are XLA's; `rune.block_until_ready` and `device_get` are here.":
        "copy_to_host_async effects_barrier",
    "What exports XLA's programs, calls into them, or speaks of their stages.":
        "export ffi interpreters lib stages",
    "Modules of JAX's inside, of types, and of what has not found its way out of experiments.":
        "ad api_util experimental typing",
    "Written otherwise: with `custom_vjp` and `vjp`; with `x.dtype`, `x.shape` and "
    "`rune.eval_shape`; as a slice.":
        "custom_batching custom_derivatives custom_gradient ds fwd_and_bwd typeof",
    "Not written: resizing of images. `rnp.from_dlpack` is what `jax.dlpack` is for.":
        "dlpack image",
}  # fmt: skip
ARGUMENTS: dict[str, tuple[str, str]] = {
    "jit": (
        "in_shardings out_shardings keep_unused backend inline compiler_options",
        "say `device=`; the others are XLA's",
    ),
    "make_jaxpr": (
        "static_argnums axis_env return_shape",
        "close over what is static; `rune.eval_shape` gives the shapes",
    ),
    "grad": ("reduce_axes", "sum with `lax.psum`"),
    "vmap": ("spmd_axis_name sum_match", "none: they are for sharding"),
    "pmap": ("devices backend", "jit with `device=`"),
    "checkpoint": ("concrete static_argnames", "say `static_argnums`"),
    "device_put": ("src donate may_alias", "a value that nobody else holds gives its memory"),
    "pure_callback": ("sharding", "none: it is for sharding"),
    "lax.psum": ("axis_index_groups", "reshape the axis, and map twice"),
}


def listed_arguments() -> str:
    """The rows of arguments that JAX's functions take and rune's do not."""
    rows = [
        f"| `{name}` | {', '.join(f'`{a}`' for a in taken.split())} | {instead} |"
        for name, (taken, instead) in ARGUMENTS.items()
    ]
    return "\n".join(["## Arguments", "", "| of | not taken | instead |", "|---|---|---|", *rows])


def parameters(name: str) -> set[str]:
    """What a function of rune takes."""
    room = rune.lax if name.startswith("lax.") else rune
    return set(inspect.signature(getattr(room, name.removeprefix("lax."))).parameters)


def test_every_name_of_jax_is_there_or_in_the_table():
    assert [n for n in NAMES if not hasattr(rune, n) and n not in listed(MISSING)] == []


def test_nothing_in_the_table_is_there():
    assert [n for n in sorted(listed(MISSING)) if hasattr(rune, n) or n not in NAMES] == []


@pytest.mark.parametrize("name", ARGUMENTS)
def test_no_listed_argument_is_taken(name: str):
    taken, _ = ARGUMENTS[name]

    assert not set(taken.split()) & parameters(name)


def test_the_page_tells_the_table(request: pytest.FixtureRequest):
    text = page("What JAX has and rune has not", INTRODUCTION, {"Names": MISSING})

    expect_file(request.config, PAGE, f"{text}\n\n{listed_arguments()}")
