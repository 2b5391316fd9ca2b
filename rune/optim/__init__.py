"""rune.optim: the usual optimizers, as pairs of pure functions on trees, in the form of Optax.

    optimizer = optim.chain(optim.clip_by_global_norm(1.0), optim.adam(1e-3))
    state = optimizer.init(params)
    updates, state = optimizer.update(grads, state, params)
    params = optim.apply_updates(params, updates)

    transforms   GradientTransformation, chain      optimizers  sgd, momentum, adam, adamw, …
    clipping     gradients within bounds            schedules   rates as functions of the step
    parts        the links of those chains          deprecated  names removed in 0.2.0

A state is a tree of arrays, step count included, so the whole step can be jitted, donated and
saved; it keeps the dtypes of the parameters, whatever those of the gradients are. Updates point
against the conjugate of `rune.grad`. Optax has many more optimizers, and runs on rune: `pip install
optax`, and `import rune.as_jax` before it.
"""

# isort: off
import typing as _typing
import warnings as _warnings

from rune.listing import names as _names
from rune.absent import MissingName as _MissingName
from rune.optim import deprecated as _deprecated
from rune.optim.clipping import clip as clip, clip_by_global_norm as clip_by_global_norm
from rune.optim.optimizers import adagrad as adagrad, adam as adam, adamw as adamw, lion as lion
from rune.optim.optimizers import momentum as momentum, rmsprop as rmsprop, sgd as sgd
from rune.optim.schedules import constant_schedule as constant_schedule, cosine_decay_schedule as cosine_decay_schedule
from rune.optim.schedules import exponential_decay as exponential_decay, join_schedules as join_schedules
from rune.optim.schedules import linear_schedule as linear_schedule
from rune.optim.schedules import warmup_cosine_decay_schedule as warmup_cosine_decay_schedule
from rune.optim.transforms import GradientTransformation as GradientTransformation
from rune.optim.transforms import apply_updates as apply_updates, chain as chain

if not _typing.TYPE_CHECKING:

    def __getattr__(name):
        if name not in _deprecated.MODULES:
            raise _MissingName(__name__, name)
        _warnings.warn(_deprecated.note(name), DeprecationWarning, stacklevel=2)
        return getattr(_deprecated, name)


__dir__ = _names(globals())
