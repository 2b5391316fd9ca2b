"""Libraries written for JAX run on rune: quick starts of some give the answers of jax 0.10.2.

One of each of these libraries, and those listed with RUNE_TEST_WHOLE=1. All examples, and the
libraries' own tests, run by ./scripts/libraries.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.as_jax.libraries import catalogue, own_tests, run
from tests.support.sampling import IS_WHOLE
from tests.test_readme import JAX_LIBRARIES, require_true

SAMPLE = (
    ("diffrax", "quick_start_of_the_readme"),
    ("diffrax", "stochastic_equation_of_the_readme"),
    ("equinox", "all_of_equinox_in_one_model"),
    ("equinox", "custom_derivatives_with_filters"),
    ("equinox", "quick_start_linear_regression"),
    ("flax_linen", "linear_regression_by_gradient_descent"),
    ("flax_nnx", "state_is_updated_in_place"),
    ("lineax", "quick_start_solve_of_a_matrix"),
    ("numpyro", "handlers_trace_seed_condition_substitute"),
    ("numpyro", "potential_energy_and_its_gradient"),
    ("optax", "first_page_adam_on_a_quadratic"),
    ("optax", "optimizers_of_running_squares"),
    ("optimistix", "quick_start_an_implicit_euler_step"),
    ("tinygp", "kernels_of_several_inputs"),
)
TRIED = SAMPLE if IS_WHOLE else tuple({library: (library, example) for library, example in SAMPLE}.values())
REPORT = """<testsuites><testsuite>
<testcase classname="a.A" name="one"/>
<testcase classname="a.A" name="two"><failure/></testcase>
<testcase classname="a.A" name="three"><error/></testcase>
<testcase classname="a.A" name="four"><skipped/></testcase>
<testcase classname="a.A" name="five"><failure/></testcase>
<testcase classname="a.A" name="five"/>
</testsuite></testsuites>"""


@pytest.mark.filterwarnings("default")  # those of the libraries are their own affair
@pytest.mark.parametrize(("library", "example"), TRIED)
def test_an_example_answers_as_jax_does(library, example):
    pytest.importorskip(catalogue.LIBRARIES[library].package, reason="scripts/environment.sh installs it")
    expected = run.stored(library)[example]

    actual = run.leaves(run.examples(library)[example]())

    assert run.difference(actual, expected, run.rtol_of(library, example)) == ""


def test_an_answer_that_differs_in_value_shape_dtype_or_tree_is_detected():
    expected = {"x": np.ones(3, np.float32), "n": np.array(2)}

    assert run.difference(expected, expected, 1e-6) == ""
    assert "x is [1. 1. 2.]" in run.difference(expected | {"x": np.array([1, 1, 2], np.float32)}, expected, 1e-6)
    assert "float32[2]" in run.difference(expected | {"x": np.ones(2, np.float32)}, expected, 1e-6)
    assert "float64[3]" in run.difference(expected | {"x": np.ones(3)}, expected, 1e-6)
    assert "n is 3" in run.difference(expected | {"n": np.array(3)}, expected, 1e-6)
    assert "results ['x']" in run.difference({"x": expected["x"]}, expected, 1e-6)


def test_the_requirements_of_the_libraries_do_not_include_jax():
    names = {requirement.partition("==")[0] for requirement in catalogue.requirements(catalogue.LIBRARIES)}

    assert names.isdisjoint({"jax", "jaxlib"})


def test_every_version_is_of_a_library_or_of_what_one_needs():
    names = {requirement.partition("==")[0] for requirement in catalogue.requirements(catalogue.LIBRARIES)}

    assert names == set(catalogue.VERSIONS)


def test_every_library_with_examples_has_answers_to_them():
    files = {path.name.removesuffix("_examples.py") for path in run.HERE.glob("*_examples.py")}

    assert files == {path.stem for path in (run.HERE / "stored").glob("*.npz")}
    assert files <= set(catalogue.LIBRARIES)


def test_results_of_a_librarys_own_tests_are_read_by_name(tmp_path):
    (tmp_path / "report.xml").write_text(REPORT)

    results = own_tests.merged([own_tests.read(tmp_path / "report.xml"), {"b::ends": "failed"}])

    failures = ("a.A::two", "a.A::three", "a.A::five", "b::ends")
    assert results == own_tests.Results(("a.A::one",), failures, ("a.A::four",))
    assert results.unknown({"a.A::tw*": "why", "b::ends": "why"}) == ["a.A::three", "a.A::five"]


def test_files_with_tests_are_those_of_pytest(tmp_path):
    (tmp_path / "inner").mkdir()
    for name in ("a_test.py", "test_b.py", "helper.py", "inner/c_test.py", "other_test.txt"):
        (tmp_path / name).touch()

    names = [path.relative_to(tmp_path).as_posix() for path in own_tests.files(tmp_path, ("inner", "test_b.py"))]

    assert names == ["inner/c_test.py", "test_b.py"]


def test_a_file_that_does_not_end_within_its_limit_is_a_failure(tmp_path):
    (tmp_path / "sdist").mkdir()
    (tmp_path / "sdist" / "test_a.py").write_text("import time; time.sleep(100)")

    results = own_tests.run(tmp_path / "sdist", ("test_a.py",), {}, limit_s=0.1)

    assert results == own_tests.Results((), ("test_a::ends",), ())


def test_every_snippet_of_the_page_on_libraries_prints_what_it_shows():
    require_true(JAX_LIBRARIES)
