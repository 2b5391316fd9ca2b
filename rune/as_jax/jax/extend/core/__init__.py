"""`jax.extend.core`."""

from __future__ import annotations

from jax.extend.core import primitives

from rune import absent, jaxpr_as_fun
from rune.array import Array
from rune.as_jax.avals import mapped_aval, unmapped_aval
from rune.as_jax.jaxprs import (
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    check_jaxpr,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    new_jaxpr_eqn,
    no_effects,
    subjaxprs,
    valid_jaxtype,
)
from rune.as_jax.primitive import Primitive
from rune.as_jax.traces import TraceTag, find_top_trace, set_current_trace, take_current_trace
from rune.core.jax_names import Effects
from rune.core.primitive import Effect
from rune.core.program import Literal, Var
from rune.errors import CheckError as JaxprTypeError
from rune.errors import DimensionError as InconclusiveDimensionOperation

array_types = frozenset({Array})
__getattr__ = absent.of("jax.extend.core")
