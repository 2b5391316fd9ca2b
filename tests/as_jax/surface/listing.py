"""The names of the modules and objects of a library called jax, with parameters.

These functions read both JAX and its stand-in, so that the two texts can be compared. A module
or an object is a section of the text, a name is a line; a function's line ends with its parameters.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

MODULES = """
jax jax.numpy jax.numpy.linalg jax.numpy.fft jax.lax jax.lax.linalg jax.nn jax.nn.initializers
jax.random jax.scipy jax.scipy.cluster.vq jax.scipy.fft jax.scipy.integrate jax.scipy.interpolate
jax.scipy.linalg jax.scipy.ndimage jax.scipy.optimize jax.scipy.signal jax.scipy.sparse.linalg
jax.scipy.spatial.transform jax.scipy.special jax.scipy.stats jax.scipy.stats.bernoulli
jax.scipy.stats.beta jax.scipy.stats.betabinom jax.scipy.stats.binom jax.scipy.stats.cauchy
jax.scipy.stats.chi2 jax.scipy.stats.dirichlet jax.scipy.stats.expon jax.scipy.stats.gamma
jax.scipy.stats.gennorm jax.scipy.stats.geom jax.scipy.stats.gumbel_l jax.scipy.stats.gumbel_r
jax.scipy.stats.laplace jax.scipy.stats.logistic jax.scipy.stats.multinomial
jax.scipy.stats.multivariate_normal jax.scipy.stats.nbinom jax.scipy.stats.norm
jax.scipy.stats.pareto jax.scipy.stats.poisson jax.scipy.stats.t jax.scipy.stats.truncnorm
jax.scipy.stats.uniform jax.scipy.stats.vonmises jax.scipy.stats.wrapcauchy
jax.tree jax.tree_util jax.sharding jax.stages jax.debug jax.dtypes jax.errors jax.typing jax.ops
jax.image jax.custom_batching jax.custom_derivatives jax.flatten_util jax.ad_checkpoint jax.dlpack
jax.profiler jax.export jax.ffi jax.monitoring jax.distributed jax.core jax.api_util jax.test_util
jax.ref jax.interpreters.ad jax.interpreters.batching jax.interpreters.mlir
jax.interpreters.partial_eval jax.interpreters.pxla jax.interpreters.xla jax.extend.backend
jax.extend.core jax.extend.core.primitives jax.extend.ifrt_programs jax.extend.linear_util
jax.extend.lowering jax.extend.mlir jax.extend.pallas jax.extend.random jax.extend.sharding
jax.extend.source_info_util jax.extend.xla
jax.example_libraries.optimizers jax.example_libraries.stax
jax.experimental jax.experimental.array_serialization jax.experimental.buffer_callback
jax.experimental.checkify jax.experimental.colocated_python jax.experimental.compilation_cache
jax.experimental.compute_on jax.experimental.custom_partitioning jax.experimental.fused
jax.experimental.hijax jax.experimental.jet jax.experimental.key_reuse
jax.experimental.layout jax.experimental.mesh_utils jax.experimental.mosaic
jax.experimental.multihost_utils jax.experimental.ode jax.experimental.pallas
jax.experimental.pjit jax.experimental.profiler jax.experimental.random jax.experimental.rnn
jax.experimental.serialize_executable jax.experimental.shard_alike
jax.experimental.shard_map jax.experimental.sparse jax.experimental.sparse.linalg
jax.experimental.topologies jax.experimental.transfer jax.experimental.xla_metadata
""".split()
# Modules that do not list their public names: all that they define.
_WRITTEN_HERE = {
    *(f"jax.experimental.{n}" for n in "fused jet multihost_utils ode rnn topologies transfer".split()),
    *(f"jax.experimental.{n}" for n in "sparse.linalg shard_map serialize_executable".split()),
    "jax.example_libraries.optimizers",
    "jax.example_libraries.stax",
}


def module_names(*packages: str) -> list[str]:
    """The modules of public packages, except tests."""
    names = []
    for package in packages:
        folder = Path(import_module(package).__file__ or "").parent
        parts = (path.relative_to(folder.parent).with_suffix("").parts for path in folder.rglob("*.py"))
        names += [".".join(p for p in path if p != "__init__") for path in parts]
    public = {name for name in names if "._" not in name and not name.endswith("test_util")}
    return sorted(public)


def _traced(jax: Any) -> Any:
    """A traced value, whose methods can be listed after its trace has ended."""
    values = []
    jax.jit(lambda x: values.append(x) or x)(jax.numpy.arange(3.0))
    return values[0]


def _doubled(jax: Any) -> Any:
    return jax.jit(lambda x: 2 * x)


OBJECTS: dict[str, Callable[[Any], Any]] = {
    "x: array": lambda jax: jax.numpy.arange(3.0),
    "x: traced": _traced,
    "x.at": lambda jax: jax.numpy.arange(3.0).at,
    "x.at[i]": lambda jax: jax.numpy.arange(3.0).at[0],
    "x.sharding": lambda jax: jax.numpy.arange(3.0).sharding,
    "x.addressable_shards[0]": lambda jax: jax.numpy.arange(3.0).addressable_shards[0],
    "key": lambda jax: jax.random.key(0),
    "jit(f)": _doubled,
    "jit(f).trace(x)": lambda jax: _doubled(jax).trace(1.0),
    "jit(f).lower(x)": lambda jax: _doubled(jax).lower(1.0),
    "jit(f).lower(x).compile()": lambda jax: _doubled(jax).lower(1.0).compile(),
    "custom_jvp(f)": lambda jax: jax.custom_jvp(lambda x: 2 * x),
    "custom_vjp(f)": lambda jax: jax.custom_vjp(lambda x: 2 * x),
    "make_jaxpr(f)(x)": lambda jax: jax.make_jaxpr(lambda x: 2 * x)(1.0),
    "make_jaxpr(f)(x).jaxpr": lambda jax: jax.make_jaxpr(lambda x: 2 * x)(1.0).jaxpr,
    "make_jaxpr(f)(x).eqns[0]": lambda jax: jax.make_jaxpr(lambda x: 2 * x)(1.0).eqns[0],
    "typeof(x)": lambda jax: jax.typeof(jax.numpy.arange(3.0)),
    "ShapeDtypeStruct": lambda jax: jax.ShapeDtypeStruct((3,), jax.numpy.float32),
    "tree.structure": lambda jax: jax.tree.structure([1, 2]),
    "NamedSharding": lambda jax: jax.sharding.NamedSharding(_mesh(jax), jax.sharding.PartitionSpec("i")),
    "Mesh": lambda jax: _mesh(jax),
    "PartitionSpec": lambda jax: jax.sharding.PartitionSpec("i"),
    "devices()[0]": lambda jax: jax.devices()[0],
    "config": lambda jax: jax.config,
    "Partial": lambda jax: jax.tree_util.Partial(max, 1),
    "numpy.ufunc": lambda jax: jax.numpy.frompyfunc(lambda x, y: x, 2, 1),
    "numpy.add": lambda jax: jax.numpy.add,
    "numpy.finfo": lambda jax: jax.numpy.finfo("float32"),
    "numpy.float32": lambda jax: jax.numpy.float32,
    "scipy.Rotation": lambda jax: _rotation(jax),
}


def _mesh(jax: Any) -> Any:
    return jax.make_mesh((1,), ("i",))


def _rotation(jax: Any) -> Any:
    transform = import_module("jax.scipy.spatial.transform")
    return transform.Rotation.from_quat(jax.numpy.asarray([0.0, 0.0, 0.0, 1.0]))


def sections(jax: Any) -> Iterator[tuple[str, dict[str, str]]]:
    """Each module and object, and its names, with the parameters of those that are called.

    A missing module, and an object that cannot be made, have no section.
    """
    for name in MODULES:
        try:
            module = import_module(name)
        except ImportError:
            continue
        yield name, dict(_names_of_module(name, module))
    for name, make in OBJECTS.items():
        try:
            thing = make(jax)
        except Exception:
            continue
        yield name, dict(_members(thing))


def _names_of_module(title: str, module: Any) -> Iterator[tuple[str, str]]:
    is_list = hasattr(module, "__all__")
    for name in getattr(module, "__all__", dir(module)):
        value = getattr(module, name, None)
        if not name.startswith("_") and not (_is_imported(title, value) and not (is_list and title in _WRITTEN_HERE)):
            yield name, parameters(value)


def _is_imported(title: str, value: Any) -> bool:
    """Whether a module without `__all__` has imported the value for its own use."""
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] not in ("jax", "rune") or title in _WRITTEN_HERE
    return _is_of_python(value) or (title in _WRITTEN_HERE and _home(value) != title)


def _home(value: Any) -> str:
    return getattr(value, "__module__", None) or type(value).__module__


def _is_of_python(value: Any) -> bool:
    """Whether a module imports it for its own use: `annotations`, `Callable`, a type variable."""
    return _home(value) in ("__future__", "typing", "collections.abc", "functools", "dataclasses", "itertools")


def _members(thing: Any) -> Iterator[tuple[str, str]]:
    for name in dir(thing):
        if name.startswith("_"):
            continue
        try:
            value = inspect.getattr_static(thing, name)
            value = getattr(thing, name) if callable(value) or isinstance(value, classmethod | staticmethod) else None
        except Exception:
            value = None
        yield name, parameters(value)


def parameters(value: Any) -> str:
    """The parameters in parentheses, without annotations; empty if they are unknown."""
    if not callable(value):
        return ""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty, default=_plain(p.default)) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


_SHOWN = (bool, int, float, str)


class _Word:
    """A default that is shown by a word: texts of enumerations and functions have addresses."""

    def __init__(self, text: str):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _plain(default: Any) -> Any:
    if default is inspect.Parameter.empty or default is None or type(default) in _SHOWN:
        return default
    if type(default) is tuple and all(type(x) in _SHOWN for x in default):
        return default
    return _Word("...")
