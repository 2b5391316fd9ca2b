"""`jax.extend.core.primitives`: the records of rune's operations under JAX's names.

Programs that are read compare equations with them. What JAX has as one operation and rune writes in
others is here an operation that no equation of rune's has.
"""

from __future__ import annotations

from collections.abc import Callable

import rune.numpy as rnp
from rune import absent, lax, ops
from rune.as_jax.primitive import Primitive, WrittenOut
from rune.control.branch.primitive import cond
from rune.control.implicit.linear_solve import linear_solve
from rune.control.scan.primitive import scan
from rune.control.while_loop.primitive import while_
from rune.core import primitive as core
from rune.transforms.checkpoint.checkpoint import checkpoint_name, checkpoint_primitive
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.compile.transfer import to_device
from rune.transforms.custom.jvp import custom_jvp_call
from rune.transforms.custom.vjp import custom_lin, custom_vjp_call
from rune.transforms.sharding.constraint import sharding_constraint

# Records whose names in JAX, without `_p`, are not the names here.
_OTHERWISE: dict[str, core.Primitive] = {
    "add_jaxvals": ops.add,
    "all_gather": ops.all_gather,
    "all_to_all": ops.all_to_all,
    "axis_index": ops.axis_index,
    "bitcast_convert_type": ops.bitcast,
    "broadcast_in_dim": ops.broadcast,
    "cond": cond,
    "convert_element_type": ops.convert,
    "custom_jvp_call": custom_jvp_call,
    "custom_lin": custom_lin,
    "custom_vjp_call": custom_vjp_call,
    "device_put": to_device,
    "jit": jit_primitive,
    "linear_solve": linear_solve,
    "pmax": ops.pmax,
    "pmin": ops.pmin,
    "population_count": ops.popcount,
    "ppermute": ops.ppermute,
    "psum": ops.psum,
    "remat": checkpoint_primitive,
    "rev": ops.reverse,
    "scan": scan,
    "select_n": ops.select,
    "sharding_constraint": sharding_constraint,
    "shift_left": ops.shl,
    "shift_right_arithmetic": ops.shr,
    "while": while_,
}
# What rune writes in other operations, or has no need of.
_WRITTEN_OUT = """
    after_all approx_top_k bessel_i0e bessel_i1e call clamp closed_call copy create_token cumlogsumexp digamma
    empty2 eq_to get igamma igamma_grad_a igammac le_to lgamma lt_to name polygamma ragged_all_to_all
    random_gamma reduce reduce_window_max reduce_window_min reduce_window_sum reduce_xor
    regularized_incomplete_beta rng_bit_generator rng_uniform select_and_gather_add select_and_scatter
    select_and_scatter_add shift_right_logical squeeze swap threefry2x32 xla_pmap zeta
    """.split()
# The operations that write it, where they take the parameters of JAX's.
_FUNCTIONS: dict[str, Callable[..., object]] = {
    "bessel_i0e": lax.bessel_i0e,
    "bessel_i1e": lax.bessel_i1e,
    "clamp": lax.clamp,
    "copy": rnp.array,
    "cumlogsumexp": lax.cumlogsumexp,
    "digamma": lax.digamma,
    "igamma": lax.igamma,
    "igammac": lax.igammac,
    "lgamma": lax.lgamma,
    "name": checkpoint_name,
    "polygamma": lax.polygamma,
    "regularized_incomplete_beta": lax.betainc,
    "shift_right_logical": lax.shift_right_logical,
    "squeeze": lax.squeeze,
    "zeta": lax.zeta,
}
RECORDS: dict[str, core.Primitive] = {
    **{f"{name}_p": record for name, record in (ops.BY_NAME | _OTHERWISE).items()},
    **{f"{name}_p": Primitive(name) for name in _WRITTEN_OUT},
    **{f"{name}_p": WrittenOut(name, function) for name, function in _FUNCTIONS.items()},
}
_missing = absent.of(__name__)


def __getattr__(name: str) -> core.Primitive:
    return RECORDS[name] if name in RECORDS else _missing(name)


__all__ = list(RECORDS)  # pyright: ignore[reportUnsupportedDunderAll]
