"""What jax and jax.lax 0.10.2 have, and rune and rune.lax lack."""

from __future__ import annotations

from rune.absent import Table

MISSING: Table = {
    "Sharded arrays, and processes that share them.": """
        auto_pcast host_count host_id host_ids process_indices
        remove_size_one_mesh_axis_from_type reshard set_mesh smap
        """,
    "Use `rune.ref`, which holds everything for references.": "empty_ref free_ref",
    "Use `rune.devices()`, which lists them by name; the first is the default.": """
        default_backend device_count local_device_count local_devices memory
        """,
    "Use `rune.configure(check_keys=True)`.": "debug_key_reuse",
    "Global flags. `rune.configure` and its short forms (`rune.device`, `rune.enable_x64`, "
    "`rune.numpy_dtype_promotion`) set everything that can be set.": """
        allow_f16_reductions array_garbage_collection_guard default_matmul_precision
        default_prng_impl enable_checks enable_custom_prng jax2tf_associative_scan_reductions
        legacy_prng_key make_user_context no_execution no_tracing
        softmax_custom_jvp thread_guard threefry_partitionable transfer_guard
        transfer_guard_device_to_device transfer_guard_device_to_host transfer_guard_host_to_device
        """,
    "What the process has done: `rune.counting`, `rune.memory_stats`, `rune.work_stats`.": "monitoring",
    "Calls into XLA programs, and descriptions of their stages.": "ffi interpreters lib",
    "JAX's internal modules, and features that it still calls experimental.": "ad api_util experimental",
    "Use `rune.custom_vmap` and `rune.sequential_vmap`.": "custom_batching",
    "Use `rune.custom_jvp`, `rune.custom_vjp` and the like.": "custom_derivatives",
    "Use `rnp.from_dlpack`.": "dlpack",
}
LAX: Table = {
    "Collectives that are not written; `ppermute` and `all_to_all` are here.": """
        psend precv ragged_all_to_all
        """,
    "It names XLA, its compiler or its devices.": """
        composite after_all create_token platform_dependent dce_sink stage rng_uniform Tolerance DotAlgorithm
        """,
}
CONFIG: Table = {
    "Use `rune.configure(check_nans=True)`, or another of its settings; "
    "`import rune.as_jax` brings `jax.config`.": "update read jax_*"
}
