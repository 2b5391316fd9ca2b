"""Modules under JAX's names that need no file: private modules whose names are public elsewhere,
and modules that can be imported but refuse every call.

Libraries import public functions from the private module where JAX happens to define them, and
import Pallas at the top of a file that seldom calls it. A finder at the end of `sys.meta_path`,
which Python asks only for modules that no other finder knows, loads both kinds; it also answers
`importlib.metadata.version("jax")`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from rune import absent
from rune.errors import ArgumentError

VERSION = "0.10.2"  # of JAX, and of jaxlib
PACKAGES = ("jax", "jaxlib")

# Public modules that jax 0.10.2 has under the same names in jax._src.
SAME_NAMES = """
    ad_checkpoint custom_batching custom_derivatives dlpack errors interpreters.ad interpreters.mlir
    interpreters.partial_eval interpreters.pxla lax.linalg monitoring nn.initializers numpy.fft numpy.linalg profiler
    ref scipy scipy.fft scipy.integrate scipy.linalg scipy.ndimage scipy.signal scipy.special scipy.stats.bernoulli
    scipy.stats.beta scipy.stats.gamma scipy.stats.multivariate_normal scipy.stats.norm scipy.stats.truncnorm stages
    test_util tree typing
    """
# Each public module, and the private modules of jax 0.10.2 (under jax._src) whose names it exports.
PRIVATE: Mapping[str, str] = {
    **{f"jax.{name}": name for name in SAME_NAMES.split()},
    "jax": "api basearray callback shard_map stateful pmap",
    "jax.debug": "debugging debugger",
    "jax.experimental.layout": "layout",
    "jax.experimental.mesh_utils": "mesh_utils",
    "jax.extend.linear_util": "linear_util",
    "jax.extend.source_info_util": "source_info_util",
    "jax.image": "image image.scale",
    "jax.lax": """
        lax lax.lax lax.ann lax.convolution lax.fft lax.other lax.parallel lax.slicing lax.special lax.utils
        lax.windowed_reductions lax.control_flow lax.control_flow.common lax.control_flow.conditionals
        lax.control_flow.loops lax.control_flow.solves
        """,
    "jax.nn": "nn nn.functions",
    "jax.numpy": """
        numpy.array_constructors numpy.array_creation numpy.array_methods numpy.einsum numpy.index_tricks
        numpy.indexing numpy.lax_numpy numpy.polynomial numpy.reductions numpy.scalar_types numpy.setops numpy.sorting
        numpy.tensor_contractions numpy.ufunc_api numpy.ufuncs numpy.vectorize numpy.window_functions
        """,
    "jax.ops": "ops ops.scatter",
    "jax.random": "prng random random.core random.prng",
    "jax.scipy.optimize": "scipy.optimize scipy.optimize.bfgs scipy.optimize.minimize",
    "jax.scipy.sparse.linalg": "scipy.sparse scipy.sparse.linalg",
    "jax.scipy.spatial.transform": "scipy.spatial scipy.spatial.transform",
    "jax.scipy.stats": "scipy.stats scipy.stats.kde",
    "jax.sharding": "mesh named_sharding partition_spec sharding",
}
# Modules of a public package whose names the package exports, too.
WITHIN: Mapping[str, str] = {"jax.experimental.sparse": "ad api bcoo bcsr coo csr random transform util"}

# Modules that import wherever JAX is installed, but have no use on a CPU.
REFUSED = (
    "jax.experimental.array_serialization*",
    "jax.experimental.colocated_python*",
    "jax.experimental.pallas.*",
    "jax.extend.ifrt_programs",
)

_PUBLIC = {f"jax._src.{private}": public for public, names in PRIVATE.items() for private in names.split()}
_PUBLIC |= {f"{package}.{name}": package for package, names in WITHIN.items() for name in names.split()}


def names_of(private: str, public: str) -> Callable[[str], object]:
    """The `__getattr__` of a module with the names of a public one, and its own modules."""
    submodule = submodules_of(private)

    def attribute(name: str) -> object:
        try:
            return getattr(import_module(public), name)
        except AttributeError:
            return submodule(name)

    return attribute


def submodules_of(package: str) -> Callable[[str], object]:
    """The `__getattr__` of a package that loads its modules on first use."""
    missing = absent.of(package)

    def attribute(name: str) -> object:
        if name.startswith("__"):  # Python asks any module for its __path__
            return missing(name)
        try:
            return import_module(f"{package}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{package}.{name}":
                raise
        return missing(name)

    return attribute


class RefusedName:
    """A name in a refused module: it may appear in an annotation, but calling it raises an error.

    Its attributes behave alike, since the name may be that of a module as well as of a function.
    """

    def __init__(self, module: str, name: str):
        self._module, self._name = module, name

    def __getattr__(self, name: str) -> RefusedName:
        if name.startswith("__"):
            raise AttributeError(name)
        return RefusedName(self._module, f"{self._name}.{name}")

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Errors: ArgumentError, always."""
        raise ArgumentError(
            f"{self._module}.{self._name}: cannot be called under rune.as_jax", hint=absent.of_module(self._module)
        )

    def __repr__(self) -> str:
        return f"<{self._module}.{self._name}, which rune.as_jax refuses>"


def refused(module: str) -> Callable[[str], object]:
    """The `__getattr__` of a module whose names raise an error when they are called."""
    missing = absent.of(module)

    def attribute(name: str) -> object:
        return missing(name) if name.startswith("__") else RefusedName(module, name)

    return attribute


class StandIn(Loader):
    """Loads a module that forwards to another, or refuses all calls."""

    def __init__(self, attribute: Callable[[str], object]):
        self.attribute = attribute

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its `__getattr__`, and a `__dir__` that lists no names."""
        names: dict[str, object] = {"__getattr__": self.attribute, "__dir__": list}
        module.__dict__.update(names)


class Metadata(Distribution):
    """What `importlib.metadata` knows of a package: its name and version, and nothing else."""

    def __init__(self, name: str):
        self.text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n"

    def read_text(self, filename: str) -> str | None:
        """The text of METADATA; None for every other file."""
        return self.text if filename == "METADATA" else None

    def locate_file(self, path: str | PathLike[str]) -> Path:
        """Errors: FileNotFoundError, as the package has no files of its own."""
        raise FileNotFoundError(f"{path}: rune.as_jax stands in for the package, which has no files")


class StandIns(MetaPathFinder):
    """Finds the modules in the tables above, and the versions of the packages."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for modules that are in no table."""
        if fullname in _PUBLIC:
            return ModuleSpec(fullname, StandIn(names_of(fullname, _PUBLIC[fullname])), is_package=True)
        if any(fnmatchcase(fullname, pattern) for pattern in REFUSED):
            return ModuleSpec(fullname, StandIn(refused(fullname)), is_package=True)
        return None

    def find_distributions(self, context: DistributionFinder.Context) -> Iterator[Metadata]:
        """The packages with the requested name; without one, all."""
        return (Metadata(name) for name in PACKAGES if context.name in (None, name))


def install() -> None:
    """Install the finder after all others. A second call does nothing."""
    if not any(isinstance(finder, StandIns) for finder in sys.meta_path):
        sys.meta_path.append(StandIns())
