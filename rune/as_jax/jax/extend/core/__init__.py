"""`jax.extend.core`."""

from __future__ import annotations

from jax.extend.core import primitives

from rune import absent, jaxpr_as_fun
from rune.as_jax.avals import mapped_aval, unmapped_aval
from rune.as_jax.jaxprs import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Effect,
    Jaxpr,
    JaxprEqn,
    array_types,
    call_impl,
    check_jaxpr,
    concrete_or_error,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    new_jaxpr_eqn,
    no_effects,
    nonempty_axis_env_DO_NOT_USE,
    primal_dtype_to_tangent_dtype,
    subjaxprs,
    unsafe_am_i_under_a_jit_DO_NOT_USE,
    unsafe_am_i_under_a_vmap_DO_NOT_USE,
    unsafe_get_axis_names_DO_NOT_USE,
    valid_jaxtype,
)
from rune.as_jax.primitive import Primitive
from rune.as_jax.traces import TraceTag, find_top_trace, set_current_trace, take_current_trace
from rune.core.program import Literal, Var
from rune.errors import CheckError as JaxprTypeError
from rune.errors import DimensionError as InconclusiveDimensionOperation

Effects = frozenset[Effect]

__getattr__ = absent.of(__name__)
