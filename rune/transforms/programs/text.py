"""The primitives of this folder, which hold programs or Python functions, and their records.

A Python function in a parameter, such as a custom rule, prints as its name in angle brackets.
"""

from __future__ import annotations

from rune.transforms.callback import callback_primitive
from rune.transforms.checkpoint.checkpoint import apart, checkpoint_primitive
from rune.transforms.checkpoint.policies import ByName, Either, Simple, name_primitive
from rune.transforms.checks.failures import last_failure
from rune.transforms.compile.jit_primitive import jit_primitive
from rune.transforms.compile.transfer import to_device
from rune.transforms.custom.jvp import custom_jvp_call
from rune.transforms.custom.linear_call import linear_call_primitive
from rune.transforms.custom.vjp import custom_lin, custom_vjp_call
from rune.transforms.custom.vmap import custom_vmap_call
from rune.transforms.eval_shape import ShapeDtypeStruct
from rune.transforms.inspect.layouts import inspect_sharding
from rune.transforms.sharding.constraint import CONSTRAINTS
from rune.transforms.sharding.primitive import shard_map_primitive

_CUSTOM = (custom_jvp_call, custom_vjp_call, custom_lin, custom_vmap_call, linear_call_primitive)
_DEVICES = (callback_primitive, to_device, shard_map_primitive, inspect_sharding, *CONSTRAINTS)
PRIMITIVES = (jit_primitive, checkpoint_primitive, apart, name_primitive, last_failure, *_CUSTOM, *_DEVICES)
RECORDS = (ShapeDtypeStruct, Simple, ByName, Either)  # dataclasses among the parameters
