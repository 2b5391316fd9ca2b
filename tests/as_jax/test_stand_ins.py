"""Private modules of JAX have the names of public ones; a table finds those without a file."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, metadata

import jax
import jax._src.util
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import distributed, sharding_impls
from jax._src.numpy import util
from jax.extend import linear_util

from rune.as_jax.stand_ins import PRIVATE

NAMES = [(private, public) for public, names in PRIVATE.items() for private in names.split()]


@pytest.mark.parametrize(("private", "public"), NAMES, ids=[private for private, _ in NAMES])
def test_a_private_module_gives_the_names_of_its_public_one(private: str, public: str):
    module, source = import_module(f"jax._src.{private}"), import_module(public)
    name = next(n for n in dir(source) if not n.startswith("_"))

    assert getattr(module, name) == getattr(source, name)


def test_a_private_module_has_no_name_that_its_public_one_lacks():
    with pytest.raises(ImportError, match="cannot import name 'gammalm'"):
        exec("from jax._src.scipy.special import gammalm")


def test_a_private_module_that_jax_lacks_is_missing():
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'jax\._src\.nothing'$"):
        import_module("jax._src.nothing")
    with pytest.raises(AttributeError, match="nothing"):
        _ = jax._src.nothing  # type: ignore[attr-defined]


def test_a_refused_module_lists_no_names_after_one_beneath_it_was_imported():
    import_module("jax.experimental.colocated_python.serialization")

    assert dir(import_module("jax.experimental.colocated_python")) == []


def test_private_modules_exist_only_as_attributes():
    code = "import jax; print(jax._src.pjit.jit_p, jax._src.core.Var.__name__)"
    process = subprocess.run(
        [sys.executable, "-c", f"import rune.as_jax; {code}"], capture_output=True, text=True, timeout=120, check=True
    )

    assert process.stdout.split() == ["jit", "Var"]


def test_private_modules_have_their_modules_as_attributes():
    code = "import jax; print(jax._src.numpy.util.promote_dtypes.__name__, jax._src.lax.control_flow.loops.while_p)"
    process = subprocess.run(
        [sys.executable, "-c", f"import rune.as_jax; {code}"], capture_output=True, text=True, timeout=120, check=True
    )

    assert process.stdout.split() == ["promote_dtypes", "while"]


@pytest.mark.parametrize("package", ["jax", "jaxlib"])
def test_importlib_reports_the_version_of_the_library_it_imitates(package: str):
    assert metadata.version(package) == "0.10.2"
    assert metadata.metadata(package)["Name"] == package
    assert jax.__version__ == ".".join(map(str, jax.__version_info__)) == "0.10.2"
    assert package in {d.metadata["Name"] for d in metadata.distributions()}


def test_a_package_that_is_not_installed_has_no_version():
    with pytest.raises(metadata.PackageNotFoundError):
        metadata.version("jaxx")


@pytest.mark.parametrize(
    ("promote", "kinds"),
    [
        (util.promote_dtypes, ["int32", "float16", "float32", "complex64"]),
        (util.promote_dtypes_numeric, ["int32", "float16", "float32", "complex64"]),
        (util.promote_dtypes_inexact, ["float32", "float16", "float32", "complex64"]),
        (util.promote_dtypes_complex, ["complex64"] * 4),
    ],
)
def test_operands_are_converted_to_their_common_dtype_and_keep_their_shapes(promote, kinds):
    others = [2, jnp.float16(2), 2.5, 1j]
    results = [promote(jnp.arange(3), other) for other in others]

    assert [r.dtype.name for r, _ in results] == kinds
    assert [(r.shape, o.shape) for r, o in results] == [((3,), ())] * 4
    for (_, operand), other in zip(results, others, strict=True):
        np.testing.assert_array_equal(operand, np.asarray(other))


def test_bools_meet_as_jax_says():
    kinds = [f(jnp.array([True]), True)[1].dtype.name for f in (util.promote_dtypes, util.promote_dtypes_numeric)]

    assert kinds == ["bool", "int32"]


def test_python_numbers_alone_stay_weak():
    assert util.promote_dtypes_inexact(1)[0].weak_type
    assert not util.promote_dtypes_inexact(1, jnp.arange(2))[0].weak_type


def test_operands_are_expanded_to_their_common_rank():
    shapes = [x.shape for x in util.promote_shapes("f", jnp.ones(3), 2.0, jnp.ones((5, 3)))]

    assert shapes == [(1, 3), (1, 1), (5, 3)]


def test_a_list_is_refused_as_an_operand():
    with pytest.raises(TypeError, match="wave"):
        util.check_arraylike("wave", [1, 2])  # type: ignore[arg-type]
    assert np.shape(util.ensure_arraylike("wave", 3.0)) == ()


def test_lists_are_split_and_merged_by_marks():
    u = jax._src.util
    marks = [True, False, True]

    assert u.split_list([1, 2, 3, 4, 5], [2, 0]) == [[1, 2], [], [3, 4, 5]]
    assert u.partition_list(marks, "abc") == (["b"], ["a", "c"])
    assert u.merge_lists(marks, ["b"], ["a", "c"]) == ["a", "b", "c"]
    assert u.unzip2([]) == ((), ())
    assert u.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    with pytest.raises(ValueError, match="1 and 1 by 3 marks, 2 true"):
        u.merge_lists(marks, ["b"], ["a"])


def test_partial_applications_of_one_function_are_equal():
    u = jax._src.util

    assert u.HashablePartial(max, 3) == u.HashablePartial(max, 3)
    assert len({u.HashablePartial(max, 3), u.HashablePartial(max, 3), u.HashablePartial(max, 4)}) == 2
    assert u.HashablePartial(max, 3)(1, 5) == 5


def test_wraps_formats_the_name_and_the_docstring():
    def area(r):
        """The area of a disc."""

    @jax._src.util.wraps(area, namestr="{fun}_of", docstr="{doc} Times {k}.", k=2)
    def twice(r): ...

    assert (twice.__name__, twice.__doc__) == ("area_of", "The area of a disc. Times 2.")


def test_a_function_of_some_arguments_holds_the_others():
    function = linear_util.wrap_init(lambda *xs, scale: [scale * x for x in xs], {"scale": 10})
    partial, arguments = jax.api_util.argnums_partial(function, (2, -3), (1, "two", 3))

    assert arguments == (3, 1)
    assert partial.call_wrapped(30, 10) == [100, "two" * 10, 300]


def test_an_argument_without_a_hash_is_held_if_that_is_allowed():
    function = linear_util.wrap_init(lambda x, y: (x, y))

    with pytest.raises(ValueError, match=r"argument 1 \(list has no hash\)"):
        jax.api_util.argnums_partial(function, 0, (1, []))
    partial, _ = jax.api_util.argnums_partial(function, 0, (1, []), require_static_args_hashable=False)
    assert partial.call_wrapped(2) == (2, [])


def test_a_spec_is_read_on_the_mesh_in_force():
    mesh = jax.make_mesh((1,), ("x",))
    spec = jax.sharding.PartitionSpec("x")

    with jax.set_mesh(mesh):
        sharding = sharding_impls.canonicalize_sharding(spec, "f")
    assert sharding is not None
    assert sharding.spec == spec
    assert sharding_impls.canonicalize_sharding(None, "f") is None
    with pytest.raises(ValueError, match="no mesh is set"):
        sharding_impls.canonicalize_sharding(spec, "f")
    with pytest.raises(TypeError, match="f: cannot use str"):
        sharding_impls.canonicalize_sharding("x", "f")  # type: ignore[arg-type]


def test_a_process_alone_has_the_number_0_and_no_client():
    state = distributed.global_state

    assert (state.process_id, state.num_processes, state.client) == (0, 1, None)


def test_classes_of_jaxlib_tell_jitted_functions_and_devices():
    from_jaxlib, client = import_module("jaxlib._jax"), import_module("jaxlib.xla_client")

    assert isinstance(jax.jit(lambda x: x), from_jaxlib.PjitFunction)
    assert isinstance(jax.devices()[0], client.Device)
    assert isinstance(jnp.ones(2), import_module("jax._src.array").ArrayImpl)


def test_the_debug_info_of_a_function_has_the_fields_of_jax():
    info = jax.api_util.debug_info("jit", max, (), {})

    assert isinstance(info, import_module("jax.extend.core").DebugInfo)
    assert info._fields == ("traced_for", "func_src_info", "arg_names", "result_paths")
