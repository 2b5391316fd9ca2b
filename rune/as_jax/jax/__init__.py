"""`jax`."""

from jax import (
    ad_checkpoint,
    api_util,
    core,
    custom_batching,
    custom_derivatives,
    debug,
    distributed,
    dlpack,
    dtypes,
    errors,
    experimental,
    extend,
    flatten_util,
    image,
    interpreters,
    lax,
    monitoring,
    nn,
    numpy,
    ops,
    profiler,
    random,
    ref,
    scipy,
    sharding,
    stages,
    tree,
    tree_util,
    typing,
)
from jax import export as _export
from jax.sharding import make_mesh as _make_mesh
from jax.sharding import reshard, set_mesh
from jax.version import __version__, __version_info__

from rune import *
from rune import absent
from rune.as_jax.devices import (
    default_backend,
    device_count,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
    process_indices,
)
from rune.as_jax.flags import Configuration, State, disable_jit, explain_cache_misses
from rune.as_jax.jaxprs import make_jaxpr
from rune.as_jax.platforms import copy_to_host_async, print_environment_info, smap
from rune.as_jax.reference_types import typeof
from rune.backends import Device
from rune.ref import empty_ref, free_ref

config = Configuration()
export = _export  # the module, in place of rune's object
make_mesh = _make_mesh  # of JAX's kind of axes
host_count, host_id, host_ids = process_count, process_index, process_indices

# Options as blocks: `with jax.debug_nans(True):`.
allow_f16_reductions = State("jax_allow_f16_reductions")
array_garbage_collection_guard = State("jax_array_garbage_collection_guard")
auto_pcast = State("jax_auto_pcast")
check_tracer_leaks = State("jax_check_tracer_leaks")
checking_leaks = State("jax_check_tracer_leaks")
debug_infs = State("jax_debug_infs")
debug_key_reuse = State("jax_debug_key_reuse")
debug_nans = State("jax_debug_nans")
default_device = State("jax_default_device")
default_matmul_precision = State("jax_default_matmul_precision")
default_prng_impl = State("jax_default_prng_impl")
enable_checks = State("jax_enable_checks")
enable_custom_prng = State("jax_enable_custom_prng")
enable_x64 = State("jax_enable_x64")
jax2tf_associative_scan_reductions = State("jax2tf_associative_scan_reductions")
legacy_prng_key = State("jax_legacy_prng_key")
log_compiles = State("jax_log_compiles")
no_execution = State("jax_no_execution")
no_tracing = State("jax_no_tracing")
numpy_dtype_promotion = State("jax_numpy_dtype_promotion")
numpy_rank_promotion = State("jax_numpy_rank_promotion")
remove_size_one_mesh_axis_from_type = State("jax_remove_size_one_mesh_axis_from_type")
softmax_custom_jvp = State("jax_softmax_custom_jvp")
thread_guard = State("jax_thread_guard")
threefry_partitionable = State("jax_threefry_partitionable")
transfer_guard = State("jax_transfer_guard")
transfer_guard_device_to_device = State("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = State("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = State("jax_transfer_guard_host_to_device")

__getattr__ = absent.of(__name__)
