"""`jax.core`."""

from rune import ensure_compile_time_eval, eval_jaxpr
from rune.as_jax.array_classes import pytype_aval_mappings
from rune.as_jax.avals import AbstractValue, ShapedArray
from rune.as_jax.jaxprs import (
    DebugInfo,
    DropVar,
    Effect,
    check_jaxpr,
    concrete_or_error,
    eval_context,
    gensym,
    get_opaque_trace_state,
    jaxprs_in_params,
    new_jaxpr_eqn,
    no_effects,
    valid_jaxtype,
)
from rune.as_jax.reference_types import typeof
from rune.as_jax.traces import Trace
from rune.core.interpreter import Tracer
from rune.core.program import Atom
from rune.core.values import Value
from rune.dims import maximum as max_dim
from rune.dims import minimum as min_dim
from rune.errors import CheckError as JaxprTypeError
from rune.errors import DimensionError as InconclusiveDimensionOperation

get_aval = typeof
ParamDict = dict[str, object]
Effects = frozenset[Effect]
