"""Every public function of rune.numpy and rune.scipy is called by some case of the tables.

The cases are run on a module that records the names they use, and whose functions compute nothing;
those that fail without a result are run again with it. Names that a table cannot cover (files,
printing, dtypes) are tested elsewhere, and are listed here with the place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import pytest

import rune.numpy as rnp
import rune.scipy as rsp
from tests.numpy.cases import CASES as NUMPY_CASES
from tests.numpy.spelling import Case
from tests.scipy.cases import CASES as SCIPY_CASES
from tests.support.surface_laws import drawn, silently, single

ELSEWHERE: dict[str, str] = {
    "put put_along_axis": "tests/numpy/test_indexing.py",
    "place fill_diagonal": "tests/numpy/test_text_and_files.py",
    "array2string array_repr array_str base_repr binary_repr format_float_positional "
    "format_float_scientific get_printoptions printoptions set_printoptions frombuffer fromfile "
    "fromiter fromstring load loadtxt save savetxt savez savez_compressed": """
        tests/numpy/test_text_and_files.py and doctests
        """,
    "from_dlpack": "tests/numpy/test_interchange.py",
    "mutable": "tests/numpy/test_dispatch.py",
    "special.bessel_jn": "tests/scipy/test_special_domain.py",
    "sparse.linalg.bicgstab sparse.linalg.cg sparse.linalg.gmres": "tests/scipy/test_krylov.py",
    "integrate.odeint integrate.quad integrate.solve_ivp optimize.bisect optimize.brentq "
    "optimize.golden optimize.least_squares optimize.minimize optimize.newton optimize.root": """
        tests/scipy/test_functions_of_functions.py
        """,
    "can_cast dtype finfo iinfo isdtype issubdtype promote_types result_type": """
        tests/numpy/test_promotion.py and doctests
        """,
    "empty empty_like asarray array": "tests/numpy/test_conventions.py and doctests",
}


class Recorder:
    """A module that records every name that is read from it.

    answer: what it has in place of each function
    """

    def __init__(self, module: ModuleType, names: set[str], answer: Callable[[Any], Any], prefix: str = ""):
        self._module, self._names, self._answer, self._prefix = module, names, answer, prefix

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._module, name)
        if isinstance(member, ModuleType):
            return Recorder(member, self._names, self._answer, f"{self._prefix}{name}.")
        self._names.add(self._prefix + name)
        return self._answer(member)


def names_of(cases: list[Case]) -> set[str]:
    """The names that the cases use.

    A case whose name an earlier case has used is not run.
    """
    names: set[str] = set()
    for case in cases:
        if case.name not in names:
            _ask(case, names)
    return names


def _ask(case: Case, names: set[str]) -> None:
    """Call a case. Other tests check that the call is right."""
    arguments = single(drawn(case))
    for answer in (lambda function: MagicMock(), lambda function: function):
        with suppress(Exception):  # of what it does with a result
            silently(case, Recorder(case.ours, names, answer), arguments)
            return


def is_room(module: Any) -> bool:
    """Whether a module is one that users import: a name of NumPy's or SciPy's."""
    return isinstance(module, ModuleType) and module.__name__.split(".")[-1] in {
        "linalg",
        "fft",
        "special",
        "stats",
        "signal",
        "ndimage",
        "optimize",
        "integrate",
        "interpolate",
        "cluster",
        "sparse",
        "spatial",
    }


def functions(module: ModuleType, prefix: str = "") -> Iterator[str]:
    """The public functions of a module and of the rooms in it, without those of other libraries
    that it re-exports."""
    library = ".".join(module.__name__.split(".")[:2])
    exports = getattr(module, "__all__", None)
    for name, member in vars(module).items():
        if is_room(member):
            yield from functions(member, f"{prefix}{name}.")
        elif not name.startswith("_") and is_function(member):
            home = getattr(member, "__module__", "")
            if home.startswith(module.__name__ if exports is None else library):
                if exports is None or name in exports:
                    yield prefix + name


def is_function(member: Any) -> bool:
    """Whether an object is called to compute: no class, no dtype."""
    return callable(member) and not isinstance(member, type | ModuleType)


@pytest.mark.parametrize(("module", "cases"), [(rnp, NUMPY_CASES), (rsp, SCIPY_CASES)], ids=["numpy", "scipy"])
def test_every_public_function_is_called_by_a_case(module: ModuleType, cases: list[Case]):
    elsewhere = {name for names in ELSEWHERE for name in names.split()}
    public = set(functions(module))

    assert not sorted(public - names_of(cases) - elsewhere)


def test_every_name_listed_as_tested_elsewhere_is_public():
    elsewhere = {name for names in ELSEWHERE for name in names.split()}

    assert not elsewhere - set(functions(rnp)) - set(functions(rsp)), "names that are not there"
