"""Every public name says what it does, what it takes and refuses, and shows it by an example.

All examples of the package run here, including those of functions that are made from tables, which
doctest does not find in their modules. The errors that a docstring promises are tried: the function
is called with a text.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import doctest
import enum
import functools
import inspect
import linecache
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from docs.rooms import ROOMS, members
from rune import errors
from rune.array import Array
from tests.architecture.sources import Source, sources

# Names without a docstring: numbers, and names for other libraries' types.
VALUES = (float, type(None))
CATEGORIES = "ErrorCategory all_checks automatic_checks div_checks float_checks index_checks nan_checks user_checks"
FOREIGN = {"rune.float0", "rune.tree.KeyPath", "rune.tree_util.KeyEntry", "rune.tree_util.KeyPath"}
FOREIGN |= {f"rune.checkify.{name}" for name in (*CATEGORIES.split(), "init_error")}
EVERY = [
    (f"{place}.{name}", member)
    for place, name, member in members()
    if not isinstance(member, VALUES) and f"{place}.{name}" not in FOREIGN
]
# Rooms of algorithms: each name cites its source, unless the name is its own definition.
ALGORITHMS = (
    "rune.numpy.linalg",
    "rune.numpy.fft",
    "rune.lax.linalg",
    "rune.scipy.fft",
    "rune.scipy.integrate",
    "rune.scipy.interpolate",
    "rune.scipy.linalg",
    "rune.scipy.optimize",
    "rune.scipy.signal.windows",
    "rune.scipy.sparse.linalg",
    "rune.scipy.special",
    "rune.random",
)
DEFINITIONS = frozenset(
    """
    cross diagonal matmul matrix_transpose outer tensordot trace vecdot symmetric_product
    fftfreq fftshift ifftshift rfftfreq next_fast_len prev_fast_len
    BSpline CubicHermiteSpline PPoly RegularGridInterpolator interp1d get_window
    OdeResult OdeSolution OptimizeResults LeastSquaresResults RootResults
    bandwidth block_diag circulant companion convolution_matrix dft diagsvd fiedler hadamard hankel
    helmert hilbert invpascal ishermitian issymmetric khatri_rao kron leslie norm pascal toeplitz
    tri tril triu SvdAlgorithm
    boxcox1p cosm1 entr expit expm1 exprel inv_boxcox inv_boxcox1p kl_div log1p log_expit
    log_softmax logit logsumexp rel_entr softmax xlog1py xlogy
    Key KeyDtype PRNGKey clone draw key_data key_dtype key_impl seed wrap_key_data
    """.split()
)
# Rooms whose names take functions and trees of anything, and names that neither take arrays nor
# give any: numbers, names, dtypes and shapes.
OF_TREES = (
    "rune",
    "rune.data",
    "rune.tree",
    "rune.tree_util",
    "rune.debug",
    "rune.checkpoint_policies",
    "rune.sharding",
    "rune.test_util",
    "rune.profiler",
    "rune.ref",
    "rune.checkify",
    "rune.checkpoints",
)
NO_ARRAYS = frozenset(
    """
    broadcast_shapes can_cast dtype get_printoptions isdtype issubdtype printoptions promote_types
    set_printoptions axis_size conv_dimension_numbers conv_general_permutations
    conv_general_shape_tuple conv_shape_tuple conv_transpose_shape_tuple padtype_to_pads
    reduce_window_shape_tuple s_ index_exp next_fast_len prev_fast_len key_dtype
    memory timeline times
    """.split()
)
PROMISES = "ArgumentError if an argument is not an array"


def description(obj: Any) -> str:
    """The docstring."""
    return (inspect.getdoc(obj) or "").strip()


def is_record(obj: Any) -> bool:
    """A class that only holds its arguments: an error, an enumeration, a protocol, fields."""
    fields = dataclasses.is_dataclass(obj) or hasattr(obj, "_fields")
    kinds = (BaseException, enum.Enum, rnp.ndarray)
    if not inspect.isclass(obj):
        return False
    return fields or issubclass(obj, kinds) or obj in HANDLES


# Classes whose instances rune makes; users do not call them.
HANDLES = (rune.debug.Profile, rune.tree.Partial)


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_docstring_begins_with_a_summary(place: str):
    summaries = [(n, description(f).split("\n\n")[0]) for n, f in EVERY if n.rpartition(".")[0] == place]

    assert [name for name, first in summaries if not first or len(first) > 400 or ">>>" in first] == []


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_name_shows_an_example(place: str):
    functions = [(n, f) for n, f in EVERY if n.rpartition(".")[0] == place]

    assert [name for name, obj in functions if ">>>" not in description(obj)] == []


@pytest.mark.parametrize("place", ROOMS)
def test_every_public_callable_documents_its_errors(place: str):
    functions = [(n, f) for n, f in EVERY if n.rpartition(".")[0] == place and not is_record(f)]

    assert [name for name, obj in functions if not re.search(r"[Ee]rrors?\b", description(obj))] == []


@pytest.mark.parametrize("place", [room for room in ROOMS if room not in OF_TREES])
def test_every_public_name_that_takes_or_returns_arrays_documents_their_shapes_or_types(place: str):
    functions = [(n, f) for n, f in EVERY if n.rpartition(".")[0] == place and not is_record(f)]
    silent = [n for n, f in functions if not re.search(r"\b(Shapes?|Types?):", description(f))]

    assert [n for n in silent if n.rpartition(".")[2] not in NO_ARRAYS] == []


@pytest.mark.parametrize("place", ALGORITHMS)
def test_every_public_algorithm_cites_its_source(place: str):
    functions = [(n, f) for n, f in EVERY if n.rpartition(".")[0] == place]
    algorithms = [(n, f) for n, f in functions if n.rpartition(".")[2] not in DEFINITIONS]

    assert [name for name, obj in algorithms if not re.search(r"Sources?:", description(obj))] == []


def test_every_error_that_a_docstring_names_is_one():
    mentions = {(n, e) for n, f in EVERY for e in re.findall(r"\b[A-Z]\w*Error\b", description(f))}
    known = {*vars(errors), *vars(builtins), *vars(rune.checkify), "LinAlgError", "ComplexWarning"}

    assert sorted((n, e) for n, e in mentions if e not in known) == []


def of_text(function: Any) -> BaseException | None:
    """The error of calling a function with a text for each required argument, if it raises one."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.default is p.empty and p.kind in (0, 1)]
    try:
        function(*["text"] * max(len(positional), 1))
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("place", ROOMS)
def test_docstrings_that_promise_an_error_for_a_text_keep_their_promise(place: str):
    functions = [(n, f) for n, f in EVERY if n.rpartition(".")[0] == place and PROMISES in description(f)]
    answers = {n: of_text(f) for n, f in functions if callable(f)}

    promised = errors.RuneError | TypeError | ValueError
    assert {n: repr(answer) for n, answer in answers.items() if not isinstance(answer, promised)} == {}


# --- methods of arrays ----------------------------------------------------------------------------

METHODS = [n for n in dir(Array) if not n.startswith("_")]
UPDATES = [n for n in dir(rnp.zeros(1).at[0]) if not n.startswith("_")]
# Fields of an array, which pdoc and `help` list by themselves.
FIELDS = {"place", "type"}


def test_every_method_and_attribute_of_an_array_says_what_it_is():
    assert [n for n in METHODS if n not in FIELDS and not description(getattr(Array, n))] == []


def test_every_array_method_that_forwards_to_rune_numpy_names_an_existing_function():
    references = {n: re.findall(r"`rune\.numpy\.(\w+)`", description(getattr(Array, n))) for n in METHODS}

    assert [(n, f) for n, obj in references.items() for f in obj if not hasattr(rnp, f)] == []


def test_every_update_by_at_shows_an_example():
    bare = [n for n in UPDATES if ">>>" not in description(getattr(type(rnp.zeros(1).at[0]), n))]

    assert bare == []


# --- examples run ---------------------------------------------------------------------------------


# A float as Python or NumPy prints it: `0.` or `1e-07`, but not `3`, nor the 2 of `f32[2]`.
FLOAT = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?|-?\d+e[+-]?\d+")


def holder(obj: Any) -> Any:
    """The object that holds the docstring of a public object: itself, its wrapped function, or its
    class."""
    if inspect.isfunction(obj) or inspect.isclass(obj):
        return obj
    return inspect.unwrap(obj) if hasattr(obj, "__wrapped__") else type(obj)


def of_public_names() -> Iterator[doctest.DocTest]:
    """The examples of public names: functions made from tables are in no module for doctest."""
    finder = doctest.DocTestFinder(recurse=False)
    for name, public in EVERY:
        obj = holder(public)
        yield from finder.find(obj, name, globs=dict(vars(sys.modules[obj.__module__])))


def of_modules() -> Iterator[doctest.DocTest]:
    """The examples of every module, its private functions and the methods of its classes."""
    for source in sources():
        if not source.name.endswith("__main__"):
            yield from doctest.DocTestFinder().find(import_module(source.name))


PARTS = frozenset(".".join(name.split(".")[:2]) for name in (*ROOMS, *(source.name for source in sources())))


def part_of(name: str) -> str:
    """The part of the package: `rune.numpy` of `rune.numpy.linalg.solve`, `rune` of `rune.jit`."""
    prefix = ".".join(name.split(".")[:2])
    return prefix if prefix in PARTS else "rune"


@functools.cache
def examples() -> list[doctest.DocTest]:
    """Every example once, under its public name if it has one."""
    by_text: dict[str | None, doctest.DocTest] = {}
    for test in (*of_public_names(), *of_modules()):
        if test.examples:
            by_text.setdefault(test.docstring, test)
    return list(by_text.values())


class OutputChecker(doctest.OutputChecker):
    """Takes floats as equal to 6 digits: NumPy's own functions round otherwise by processor."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Whether the output is the one that the example shows."""
        if super().check_output(want, got, optionflags):
            return True
        texts = [FLOAT.sub("#", "".join(text.split())) for text in (want, got)]
        digits = [np.array(FLOAT.findall(text), float) for text in (want, got)]
        return texts[0] == texts[1] and np.allclose(*digits, rtol=1e-6, atol=1e-7)


LABEL = re.compile(r"^(?: {4}| {8})([a-z_]\w*(?:, [a-z_]\w*)*): +\w", re.MULTILINE)
SIGNATURE = re.compile(r"^ *def \w+[(\[](?:(?!^ *(?:def|class) ).)*:\n *\Z", re.MULTILINE | re.DOTALL)


def labels_without_a_parameter(source: Source) -> Iterator[str]:
    """Labels such as `axis: the axis to sum` in docstrings of functions without that parameter.

    Functions that write machine code (`rows_function`) describe its parameters, and a function of
    arbitrary options (`**changes`) those that it knows.
    """
    parts = source.text.split('"""')
    for before, docstring in zip(parts[::2], parts[1::2], strict=False):
        labels = [name for names in LABEL.findall(docstring.partition(">>>")[0]) for name in names.split(", ")]
        if not labels or not (signature := SIGNATURE.search(before)):
            continue
        function = ast.parse(textwrap.dedent(f"{signature[0].rstrip()} pass")).body[0]
        assert isinstance(function, ast.FunctionDef)
        parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
        if not function.name.endswith("_function") and not function.args.kwarg:
            yield from (f"{source}: {function.name}: {name}" for name in labels if name not in parameters)


def test_a_label_in_the_docstring_of_a_function_is_one_of_its_parameters():
    assert [offence for source in sources() for offence in labels_without_a_parameter(source)] == []


@pytest.fixture(scope="module")
def _few_files_in_linecache() -> None:
    """Before each example, `doctest` asks the system for the state of every file in this cache,
    which collecting the examples has filled."""
    linecache.clearcache()


def differences(example: doctest.DocTest) -> str:
    """What an example prints otherwise than it shows."""
    lines: list[str] = []
    failures, _ = doctest.DocTestRunner(OutputChecker()).run(example, out=lines.append)
    return "".join(lines) if failures else ""


# One test for each part of the package: most of the 1,700 examples take less time than a test.
@pytest.mark.usefixtures("_few_files_in_linecache")
@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_example_prints_what_it_shows(part: str):
    wrong = {e.name: differences(e) for e in examples() if part_of(e.name) == part}

    assert {name: text for name, text in wrong.items() if text} == {}


def test_every_example_is_in_a_part():
    assert len(examples()) > 1_600
    assert {part_of(e.name) for e in examples()} <= PARTS


def test_rune_itself_shows_an_example():
    assert ">>>" in (rune.__doc__ or "")
