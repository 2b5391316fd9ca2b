"""`jax.extend.core.primitives`: the records of rune's operations under JAX's names.

Code that reads programs compares the primitives of equations with them. A primitive of JAX that
rune composes of other operations appears in no equation; binding it binds those operations.
"""

from __future__ import annotations

from rune import absent, ops
from rune.as_jax.primitive import Primitive
from rune.as_jax.written_out import WRITTEN_OUT, WrittenOut
from rune.control.branch.primitive import cond
from rune.control.implicit.linear_solve import linear_solve
from rune.control.scan.primitive import scan
from rune.control.while_loop.primitive import while_
from rune.core import primitive as core
from rune.transforms.checkpoint.checkpoint import checkpoint_primitive
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.compile.transfer import to_device
from rune.transforms.custom.jvp import custom_jvp_call
from rune.transforms.custom.vjp import custom_lin, custom_vjp_call
from rune.transforms.sharding.constraint import sharding_constraint

# Records whose names differ from JAX's, by JAX's names without `_p`.
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
# Primitives of JAX that rune does not need: libraries may compare with them, but not bind them.
_WITHOUT_NEED = """
    after_all call closed_call create_token empty2 get ragged_all_to_all reduce rng_uniform
    select_and_gather_add select_and_scatter select_and_scatter_add swap threefry2x32 xla_pmap
    """.split()
RECORDS: dict[str, core.Primitive] = {
    **{f"{name}_p": record for name, record in (ops.BY_NAME | _OTHERWISE).items()},
    **{f"{name}_p": WrittenOut(name, function) for name, function in WRITTEN_OUT.items()},
    **{f"{name}_p": Primitive(name) for name in _WITHOUT_NEED},
}
_missing = absent.of(__name__)


def __getattr__(name: str) -> core.Primitive:
    return RECORDS[name] if name in RECORDS else _missing(name)


__all__ = list(RECORDS)  # pyright: ignore[reportUnsupportedDunderAll]
