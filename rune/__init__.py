"""rune: the JAX programming model on every GPU and on any CPU.

Pure Python functions over `rune.numpy` arrays are traced into a typed IR; grad, jvp, vmap and jit
rewrite it and compose freely. `jit` compiles for the CPU, or for a device by OpenCL, Vulkan, WebGPU
or CUDA.

>>> import rune, rune.numpy as rnp
>>> rune.jit(rune.grad(lambda x: rnp.sum(x**3)))(rnp.arange(3.0))
Array([ 0.,  3., 12.], f32[3], cpu:0)
"""

from typing import TYPE_CHECKING

from rune import array_methods as _array_methods
from rune import debug, errors, tree, tree_util, typing
from rune import locks as _locks
from rune import tracebacks as _tracebacks
from rune import tree_files as _tree_files
from rune.absent import MissingName as _MissingName
from rune.array import Array
from rune.backends import Device, devices, effects_barrier, memory_stats, missing, work_stats
from rune.control import (
    Checkpoints,
    GrowingResiduals,
    associative_scan,
    cond,
    fori_loop,
    map,
    scan,
    sequential_vmap,
    switch,
    while_loop,
)
from rune.control.caches import clear_caches
from rune.core.interpreter import install_outermost as _install_outermost
from rune.core.types import ArrayType
from rune.counts import counters, counting
from rune.dtypes import float0
from rune.errors import RuneError as _RuneError
from rune.listing import names as _names
from rune.ops.sized_slices import ds
from rune.scopes import named_call, named_scope
from rune.settings import (
    check_tracer_leaks,
    checking_leaks,
    configure,
    debug_infs,
    debug_nans,
    default_device,
    device,
    disable_jit,
    enable_x64,
    log_compiles,
    numpy_dtype_promotion,
    numpy_rank_promotion,
)
from rune.transforms import eager_views as _eager_views
from rune.transforms.batching.pmap import pmap
from rune.transforms.batching.vmap import vmap
from rune.transforms.callback import io_callback, pure_callback
from rune.transforms.checkpoint import policies as checkpoint_policies
from rune.transforms.checkpoint.checkpoint import checkpoint, checkpoint_name
from rune.transforms.compile import operators as _operators
from rune.transforms.compile import stages
from rune.transforms.compile.jit import jit
from rune.transforms.compile.placement import block_until_ready, copy_to_host_async, device_get, device_put
from rune.transforms.custom.closure_convert import closure_convert
from rune.transforms.custom.gradient import custom_gradient
from rune.transforms.custom.jvp import custom_jvp
from rune.transforms.custom.linear_call import linear_call
from rune.transforms.custom.rules import SymbolicZero, zero_from_primal
from rune.transforms.custom.vjp import custom_vjp
from rune.transforms.custom.vmap import custom_vmap
from rune.transforms.derivatives.directional import jvp, linearize
from rune.transforms.derivatives.grad import grad, value_and_grad
from rune.transforms.derivatives.jacobian import hessian, hvp, jacfwd, jacobian, jacrev
from rune.transforms.derivatives.linear_transpose import linear_transpose
from rune.transforms.derivatives.no_grad import no_grad
from rune.transforms.derivatives.two_passes import fwd_and_bwd
from rune.transforms.derivatives.vjp import vjp
from rune.transforms.eager import EVALUATE as _EVALUATE
from rune.transforms.eval_shape import ShapeDtypeStruct, eval_shape, typeof
from rune.transforms.inspect.cache_misses import explain_cache_misses
from rune.transforms.inspect.live_arrays import live_arrays
from rune.transforms.known_values import ensure_compile_time_eval
from rune.transforms.programs.evaluation import eval_jaxpr, jaxpr_as_fun
from rune.transforms.programs.make_program import make_program
from rune.transforms.sharding.assemble import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from rune.transforms.sharding.shard_map import shard_map
from rune.version import __version__

if TYPE_CHECKING:
    from rune import (
        checkify,
        checkpoints,
        data,
        distributed,
        extend,
        files,
        flatten_util,
        image,
        lax,
        nn,
        numpy,
        optim,
        profiler,
        random,
        ref,
        scipy,
        sharding,
        sparse,
        test_util,
        viz,
    )
    from rune.backends.doctor import doctor, print_environment_info
    from rune.distributed import process_count, process_index
    from rune.exporting import export
    from rune.quantized import Quantized, dequantize, quantize
    from rune.ref import Ref, freeze, new_ref
    from rune.sharding import NamedSharding, P, Shard, make_mesh
    from rune.transforms.derivatives.taylor import jet
    from rune.transforms.inspect.explain import explain
    from rune.transforms.placement.measure import measure_devices
    from rune.transforms.placement.plans import plan_sharding
    from rune.transforms.tuning.tune import tune

_install_outermost(_EVALUATE)
_tracebacks.install((_RuneError, _MissingName))
_array_methods.attach()
_operators.attach()
_eager_views.attach()
_tree_files.attach()
make_jaxpr = make_program
remat = checkpoint


_ROOMS = frozenset(
    """
    checkify checkpoints data distributed extend files flatten_util image lax nn numpy optim profiler random ref scipy
    sharding sparse test_util viz
    """.split()
)
_LATE = {
    **dict.fromkeys(("doctor", "print_environment_info"), "rune.backends.doctor"),
    "export": "rune.exporting",
    "jet": "rune.transforms.derivatives.taylor",
    "explain": "rune.transforms.inspect.explain",
    "measure_devices": "rune.transforms.placement.measure",
    "plan_sharding": "rune.transforms.placement.plans",
    "tune": "rune.transforms.tuning.tune",
    **dict.fromkeys(("Quantized", "dequantize", "quantize"), "rune.quantized"),
    **dict.fromkeys(("Ref", "freeze", "new_ref"), "rune.ref"),
    **dict.fromkeys(("process_count", "process_index"), "rune.distributed"),
    **dict.fromkeys(("NamedSharding", "P", "Shard", "make_mesh"), "rune.sharding"),
}


def __getattr__(name: str):
    # Loads on first use what `import rune` omits: packages that few scripts use, and the compiler.
    if name in _ROOMS:
        return _locks.load(f"rune.{name}")
    if name in _LATE:
        return getattr(_locks.load(_LATE[name]), name)
    raise _MissingName("rune", name)


__all__ = ["Array", "ArrayType", "Checkpoints", "Device", "GrowingResiduals", "NamedSharding", "P", "Quantized"]
__all__ += ["Ref", "ShapeDtypeStruct", "Shard", "SymbolicZero", "associative_scan", "block_until_ready"]
__all__ += ["check_tracer_leaks", "checkify", "checking_leaks", "checkpoint", "checkpoint_name"]
__all__ += ["checkpoint_policies", "checkpoints", "clear_caches", "closure_convert", "cond", "configure"]
__all__ += ["copy_to_host_async", "counters", "counting", "custom_gradient", "custom_jvp", "custom_vjp"]
__all__ += ["custom_vmap", "data", "debug", "debug_infs", "debug_nans", "default_device", "dequantize", "device"]
__all__ += ["device_get", "device_put", "devices", "disable_jit", "distributed", "doctor", "ds", "effects_barrier"]
__all__ += ["enable_x64", "ensure_compile_time_eval", "errors", "eval_jaxpr", "eval_shape", "explain"]
__all__ += ["explain_cache_misses", "export", "extend", "files", "flatten_util", "float0", "fori_loop", "freeze"]
__all__ += ["fwd_and_bwd", "grad", "hessian", "hvp", "image", "io_callback", "jacfwd", "jacobian", "jacrev"]
__all__ += ["jaxpr_as_fun", "jet", "jit", "jvp", "lax", "linear_call", "linear_transpose", "linearize"]
__all__ += ["live_arrays", "log_compiles", "make_array_from_callback", "make_array_from_process_local_data"]
__all__ += ["make_array_from_single_device_arrays", "make_jaxpr", "make_mesh", "make_program", "map"]
__all__ += ["measure_devices", "memory_stats", "missing", "named_call", "named_scope", "new_ref", "nn", "no_grad"]
__all__ += ["numpy", "numpy_dtype_promotion", "numpy_rank_promotion", "optim", "plan_sharding", "pmap"]
__all__ += ["print_environment_info", "process_count", "process_index", "profiler", "pure_callback", "quantize"]
__all__ += ["random", "ref", "remat", "scan", "scipy", "sequential_vmap", "shard_map", "sharding", "sparse"]
__all__ += ["stages", "switch", "test_util", "tree", "tree_util", "tune", "typeof", "typing", "value_and_grad"]
__all__ += ["viz", "vjp", "vmap", "while_loop", "work_stats", "zero_from_primal"]

__dir__ = _names(globals())
