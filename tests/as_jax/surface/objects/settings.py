"""Results of programs under JAX's settings: within a block, by `jax.config`, and afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

X = np.array([1.0, -2.0, 3.0], np.float32)


def defaults(jax: Any) -> dict[str, Any]:
    """The value of every option whose default does not depend on the machine."""
    c = jax.config
    options = [
        *(c.jax_allow_f16_reductions, c.jax_auto_pcast, c.jax_captured_constants_report_frames),
        *(c.jax_captured_constants_warn_bytes, c.jax_check_static_indices, c.jax_check_tracer_leaks),
        *(c.jax_compilation_cache_check_contents, c.jax_compilation_cache_dir),
        *(c.jax_compilation_cache_include_metadata_in_key, c.jax_compilation_cache_max_size),
        *(c.jax_compiler_enable_remat_pass, c.jax_cpu_collectives_implementation, c.jax_debug_infs),
        *(c.jax_debug_key_reuse, c.jax_debug_nans, c.jax_default_device, c.jax_default_matmul_precision),
        *(
            c.jax_default_prng_impl,
            c.jax_disable_jit,
            c.jax_enable_checks in (False, True),
            c.jax_enable_compilation_cache,
        ),
        *(c.jax_enable_custom_prng, c.jax_enable_pgle, c.jax_enable_x64, c.jax_error_checking_behavior_divide),
        *(c.jax_error_checking_behavior_nan, c.jax_error_checking_behavior_oob, c.jax_exec_time_optimization_effort),
        *(c.jax_explain_cache_misses, c.jax_explicit_x64_dtypes in (1, "warn"), c.jax_high_dynamic_range_gumbel),
        *(c.jax_hlo_source_file_canonicalization_regex, c.jax_include_full_tracebacks_in_locations),
        *(c.jax_legacy_prng_key, c.jax_log_checkpoint_residuals, c.jax_log_compiles, c.jax_logging_level),
        *(c.jax_memory_fitting_effort, c.jax_memory_fitting_level, c.jax_no_execution, c.jax_no_tracing),
        *(c.jax_num_cpu_devices in (-1, 1), c.jax_numpy_dtype_promotion, c.jax_numpy_rank_promotion),
        *(c.jax_optimization_level, c.jax_persistent_cache_enable_xla_caches),
        *(c.jax_persistent_cache_min_compile_time_secs, c.jax_persistent_cache_min_entry_size_bytes),
        *(c.jax_pprint_use_color, c.jax_raise_persistent_cache_errors, c.jax_random_seed_offset),
        *(c.jax_remove_size_one_mesh_axis_from_type, c.jax_softmax_custom_jvp, c.jax_thread_guard),
        *(c.jax_threefry_partitionable, c.jax_traceback_filtering, c.jax_traceback_in_locations_limit),
        *(c.jax_transfer_guard, c.jax_transfer_guard_device_to_device, c.jax_transfer_guard_device_to_host),
        *(c.jax_transfer_guard_host_to_device, c.jax_use_direct_linearize, c.jax_use_magma),
        *(c.jax_use_shardy_partitioner, c.jax_use_simplified_jaxpr_constants, c.jax_xla_profile_version),
        *(c.jax_array_garbage_collection_guard, c.jax2tf_associative_scan_reductions, c.x64_enabled),
        *(c.jax_platforms, c.read("jax_enable_x64")),
    ]
    return {str(k): str(value) for k, value in enumerate(options)}


def _block(jax: Any, block: Any, option: str, f: Callable[[], Any]) -> list[Any]:
    """The option and a program's result: before the block, in it, and after it."""
    outcomes = [getattr(jax.config, option), _outcome(f)]
    with block:
        outcomes += [getattr(jax.config, option), _outcome(f)]
    return [*outcomes, getattr(jax.config, option), _outcome(f)]


def _outcome(f: Callable[[], Any]) -> Any:
    """The result, or the Python class of the error: the first of these that fits."""
    try:
        return f()
    except Exception as error:
        classes = (FloatingPointError, ValueError, TypeError, Exception)
        return next(c.__name__ for c in classes if isinstance(error, c))


def acting(jax: Any) -> list[Any]:
    """Blocks that change a program's result."""
    jnp = jax.numpy
    operands = jnp.ones(2), jnp.ones(2, int)
    return [
        _block(jax, jax.debug_nans(True), "jax_debug_nans", lambda: jnp.log(-X)),
        _block(jax, jax.debug_infs(True), "jax_debug_infs", lambda: jnp.log(0.0 * X)),
        _block(jax, jax.enable_x64(True), "jax_enable_x64", lambda: str(jnp.ones(2).dtype)),
        _block(
            jax, jax.numpy_dtype_promotion("strict"), "jax_numpy_dtype_promotion", lambda: operands[0] + operands[1]
        ),
        _block(jax, jax.numpy_rank_promotion("raise"), "jax_numpy_rank_promotion", lambda: X[None] + jnp.ones(3)),
        _block(jax, jax.disable_jit(True), "jax_disable_jit", lambda: jax.jit(lambda x: bool(x > 0))(1.0)),
        _block(jax, jax.enable_custom_prng(True), "jax_enable_custom_prng", lambda: jax.random.PRNGKey(0).shape),
        _block(jax, jax.debug_key_reuse(True), "jax_debug_key_reuse", lambda: _is_refused(lambda: _twice(jax))),
        _block(jax, jax.check_tracer_leaks(True), "jax_check_tracer_leaks", lambda: _is_refused(lambda: _leaked(jax))),
        _block(jax, jax.softmax_custom_jvp(True), "jax_softmax_custom_jvp", lambda: jax.jacobian(jax.nn.softmax)(X)),
    ]


def _twice(jax: Any) -> Any:
    key = jax.random.key(3)
    return jax.random.bits(key, (2,)), jax.random.bits(key, (2,))


def _is_refused(f: Callable[[], Any]) -> bool:
    try:
        f()
    except Exception:
        return True
    return False


def _leaked(jax: Any) -> None:
    """A traced value that outlives its trace."""
    leaks = []
    jax.jit(lambda x: leaks.append(x) or x)(1.0)


def other_blocks(jax: Any) -> list[Any]:
    """Blocks whose values leave results unchanged: the option in the block, and a draw."""
    blocks = {
        "jax_allow_f16_reductions": jax.allow_f16_reductions(True),
        "jax_array_garbage_collection_guard": jax.array_garbage_collection_guard("allow"),
        "jax_auto_pcast": jax.auto_pcast(True),
        "jax_default_prng_impl": jax.default_prng_impl("threefry2x32"),
        "jax_enable_checks": jax.enable_checks(True),
        "jax_explain_cache_misses": jax.explain_cache_misses(False),
        "jax2tf_associative_scan_reductions": jax.jax2tf_associative_scan_reductions(True),
        "jax_legacy_prng_key": jax.legacy_prng_key("allow"),
        "jax_log_compiles": jax.log_compiles(False),
        "jax_no_execution": jax.no_execution(False),
        "jax_no_tracing": jax.no_tracing(False),
        "jax_remove_size_one_mesh_axis_from_type": jax.remove_size_one_mesh_axis_from_type(False),
        "jax_thread_guard": jax.thread_guard(False),
        "jax_threefry_partitionable": jax.threefry_partitionable(True),
        "jax_transfer_guard": jax.transfer_guard("allow"),
        "jax_transfer_guard_device_to_device": jax.transfer_guard_device_to_device("allow"),
        "jax_transfer_guard_device_to_host": jax.transfer_guard_device_to_host("allow"),
        "jax_transfer_guard_host_to_device": jax.transfer_guard_host_to_device("allow"),
    }
    draw = jax.random.key(1)
    return [_block(jax, block, name, lambda: jax.random.uniform(draw, (2,)))[2:4] for name, block in blocks.items()]


def default_device(jax: Any) -> Any:
    """A device set for a block, as seen from arrays and from the configuration."""
    with jax.default_device(jax.devices("cpu")[0]):
        x = jax.numpy.ones(2)
        return x.devices() == {jax.devices("cpu")[0]}, jax.config.jax_default_device == jax.devices("cpu")[0]
