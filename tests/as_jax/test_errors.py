"""A call for each place where JAX's names raise; errors.txt is the golden text.

Errors under rune's own names are in tests/architecture, and names that only JAX has are in
test_refusals.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax._src import compiler
from jax._src.util import canonicalize_axis
from jax.example_libraries import optimizers, stax
from jax.experimental import hijax, layout, multihost_utils
from jax.extend import core, linear_util
from jax.interpreters import ad

from rune import as_jax
from rune.as_jax import stand_ins
from tests.architecture.provocations import golden_text, has_the_form_of_the_grammar, provoke
from tests.support.expect import expect_file


def function_with_store() -> tuple[Any, Callable[[], Any]]:
    """A function that stores its results, and one that reads them."""

    @linear_util.transformation_with_aux
    def around(x: float) -> Any:
        result = yield (x,), {}
        yield result, result

    return around(linear_util.wrap_init(lambda x: x, debug_info=None))


def stored() -> Callable[[], Any]:
    """A function that reads what another one has stored."""
    function, read = function_with_store()
    function.call_wrapped(1.0)
    return read


NAMES: dict[str, Any] = {
    "jax": jax,
    "ad": ad,
    "compiler": compiler,
    "core": core,
    "hijax": hijax,
    "layout": layout,
    "linear_util": linear_util,
    "optimizers": optimizers,
    "primitive": core.Primitive("halve"),
    "stax": stax,
    "state": optimizers.sgd(0.1)[0]({"w": np.ones(2, np.float32)}),
    "stored": stored,
    "function": lambda: function_with_store()[0],
    "mesh": jax.sharding.SingleDeviceSharding(jax.devices()[0]),
    "Point": type("Point", (), {}),
}

CALLS: list[tuple[str, str]] = [
    ("a type with a sharding", "jax.core.ShapedArray((2,), 'float32', sharding=mesh)"),
    ("lanes along an axis of another size", "core.mapped_aval(3, 0, jax.core.ShapedArray((2, 5), 'float32'))"),
    ("the devices of a process that is not there", "jax.local_devices(7)"),
    ("the function that compiles for XLA", "compiler.backend_compile_and_load"),
    ("whether arrays of no dtype can be handed over", "jax.dlpack.is_supported_dtype(None)"),
    ("a gradient of another structure", "optimizers.sgd(0.1)[1](0, [x], state)"),
    ("as many values as boundaries", "optimizers.piecewise_constant([10, 20], [1.0, 0.5])"),
    ("a schedule that is an array", "optimizers.make_schedule(np.ones(2))"),
    ("a state without its marks", "optimizers.pack_optimizer_state({'w': x})"),
    ("dropout without a key", "stax.Dropout(0.5)[1]((), x)"),
    ("a primitive over types of one's own", "hijax.HiPrimitive('halve').bind(x)"),
    ("an array stored column by column", "layout.Format(layout.Layout((1, 0)))"),
    ("rules of XLA's for one export", "jax.export.export(jax.jit(lambda v: v), _override_lowering_rules=())"),
    (
        "a rule from children for files",
        "jax.export.register_pytree_node_serialization(Point, serialized_name='Point', "
        "serialize_auxdata=bytes, deserialize_auxdata=bytes, from_children=tuple)",
    ),
    ("a function whose store is full", "[*map(function().call_wrapped, (1.0, 2.0))]"),
    ("two functions that both ran", "linear_util.merge_linear_aux(stored(), stored())"),
    ("the transpose of a primitive without a rule", "ad.get_primitive_transpose(primitive)"),
    ("a function for another platform alone", "jax.lax.platform_dependent(x, tpu=lambda v: v)"),
]


def test_every_message_is_the_one_in_the_golden_text(request: pytest.FixtureRequest):
    expect_file(request.config, Path(__file__).with_name("errors.txt"), golden_text(CALLS, NAMES))


@pytest.mark.parametrize("code", [c for _, c in CALLS], ids=[t for t, _ in CALLS])
def test_every_message_has_the_form_of_the_grammar(code: str):
    has_the_form_of_the_grammar(str(provoke(code, NAMES)))


def test_an_axis_out_of_bounds_is_a_value_error_as_in_jax():
    with pytest.raises(ValueError, match=r"^axis -3 is out of bounds for array of dimension 2$"):
        canonicalize_axis(-3, 2)


def test_processes_with_other_trees_fail_with_both(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(multihost_utils, "broadcast_one_to_all", lambda tree: {"step": 3})

    with pytest.raises(AssertionError, match=r"^steps differ Expected: \[3\]; got: \{'step': 4\}\.$"):
        multihost_utils.assert_equal({"step": 4}, "steps differ")


def test_the_tables_of_rules_hold_only_primitives_of_jax():
    no_primitive: Any = len

    assert no_primitive not in ad.primitive_transposes
    with pytest.raises(KeyError):
        ad.primitive_transposes[no_primitive]


def test_a_refused_name_has_no_special_attribute():
    with pytest.raises(AttributeError, match="__wrapped__"):
        _ = import_module("jax.experimental.pallas.tpu").make.__wrapped__


def test_a_module_that_lacks_what_it_imports_is_not_taken_for_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "room_of_jax").mkdir()
    (tmp_path / "room_of_jax" / "part.py").write_text("import nothing_of_this_name")
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'nothing_of_this_name'$"):
        stand_ins.submodules_of("room_of_jax")("part")


def test_the_packages_that_are_stood_in_for_have_no_files():
    with pytest.raises(FileNotFoundError, match=r"jax/version\.py: rune\.as_jax stands in for the package"):
        metadata.distribution("jax").locate_file("jax/version.py")


def test_a_package_that_fails_to_load_is_removed_from_sys_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "jaxbroken").mkdir()
    (tmp_path / "jaxbroken" / "__init__.py").write_text("1 / 0")
    monkeypatch.setattr(as_jax, "_HERE", tmp_path)

    with pytest.raises(ZeroDivisionError):
        as_jax._load("jaxbroken")
    assert "jaxbroken" not in sys.modules
