"""An exported function is called, differentiated, batched and compiled as the function is."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
import typing
from collections import OrderedDict, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune.exporting import Exported, weights
from tests.support.close import close, same

X, Y = rnp.arange(1.0, 8.0), rnp.linspace(-1.0, 1.0, 7)
W = rnp.sin(rnp.arange(49.0)).reshape(7, 7)


def function(x: Any, y: Any) -> dict[str, Any]:
    return {"sum": rnp.sum(rnp.sin(x) * (W @ y)), "row": rune.nn.relu(x * y)}


def total(f: Any) -> Any:
    return lambda x, y: f(x, y)["sum"] * 2 + rnp.sum(f(x, y)["row"] ** 3)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    path = tmp_path_factory.mktemp("exported") / "f.rune"
    rune.export(function)(X, Y).save(path, vjp_order=2)
    return rune.export.load(path)


def test_a_loaded_function_gives_the_results_of_jit(loaded: Exported):
    results, expected = loaded.call(X, Y), rune.jit(function)(X, Y)

    assert rune.tree.structure(results) == rune.tree.structure(expected)
    same(expected["row"], results["row"])
    same(expected["sum"], results["sum"])


@pytest.mark.parametrize("wrap", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_its_gradient_is_that_of_the_function(loaded: Exported, wrap: Any):
    results = wrap(rune.grad(total(loaded.call), (0, 1)))(X, Y)

    for expected, actual in zip(rune.grad(total(function), (0, 1))(X, Y), results, strict=True):
        close(expected, actual, ulps=64, why="sums in another order")


def test_its_second_derivative_is_that_of_the_function(loaded: Exported):
    def slope(f: Any) -> Any:
        return rune.grad(lambda x: rnp.sum(rune.grad(total(f))(x, Y) ** 2))(X)

    close(slope(function), slope(loaded.call), ulps=256, why="sums in another order")


def test_a_stored_function_can_be_differentiated_at_most_vjp_order_times(loaded: Exported):
    assert [loaded.has_vjp(), loaded.vjp().has_vjp(), loaded.vjp().vjp().has_vjp()] == [True, True, False]
    with pytest.raises(TypeError, match=r"vjp: cannot differentiate vjp_vjp_function .the file holds no derivative"):
        loaded.vjp().vjp().vjp()
    once = rune.export.load(rune.export(function)(X, Y).serialize())
    with pytest.raises(TypeError, match="the file holds no derivative of it"):
        rune.grad(total(once.call))(X, Y)


def test_forward_mode_is_refused_by_the_name_of_the_function(loaded: Exported):
    with pytest.raises(TypeError, match=r"forward-mode .*<bwd of function> is a rule for cotangents") as error:
        rune.jvp(loaded.call, (X, Y), (X, Y))

    assert "jacrev" in str(error.value)


def test_its_vjp_takes_arguments_and_cotangents_one_by_one(loaded: Exported):
    row, ct = rnp.cos(X), rnp.float32(0.5)

    results = loaded.vjp().call(X, Y, row, ct)

    _, pull = rune.vjp(function, X, Y)
    for expected, actual in zip(pull({"row": row, "sum": ct}), results, strict=True):
        close(expected, actual, ulps=64, why="sums in another order")


def test_rules_of_the_function_are_in_its_derivatives():
    @rune.custom_vjp
    def clipped(x: Any) -> Any:
        return x * 3

    clipped.defvjp(lambda x: (x * 3, None), lambda _, ct: (rnp.clip(ct, -1, 1) + 40,))
    copy = rune.export.load(rune.export(lambda x: clipped(x))(X).serialize(vjp_order=1))

    same(rune.vjp(clipped, X)[1](X)[0], rune.vjp(copy.call, X)[1](X)[0])


def test_integers_have_no_cotangents():
    copy = rune.export.load(rune.export(lambda i, x: (x[i] * 2, i + 1))(1, X).serialize(vjp_order=1))

    assert [str(t) for t in copy.vjp().in_avals] == ["i32*[]", "f32[7]", "f32[]"]
    same(rune.grad(lambda x: X[2] * x[2] * 2)(X), rune.grad(lambda x: copy.call(2, x)[0] * 3)(X))


def test_it_is_batched(loaded: Exported):
    rows = rnp.stack([X, Y, X * Y])

    results = rune.vmap(loaded.call, in_axes=(0, None))(rows, Y)

    for k in range(3):
        close(loaded.call(rows[k], Y)["row"], results["row"][k], ulps=0, why="the same operations")


@pytest.mark.parametrize("device", [d.name for d in rune.devices() if d.target.backend not in ("null", "cpu")])
def test_it_is_compiled_for_another_executor(loaded: Exported, device: str):
    results = rune.jit(loaded.call, device=device)(X, Y)

    close(function(X, Y)["row"], results["row"], ulps=4, why="another executor")


def test_it_is_exported_again(loaded: Exported):
    second = rune.export(lambda x: loaded.call(x, x)["row"])(X)

    same(loaded.call(X, X)["row"], rune.export.load(second.serialize(vjp_order=1)).call(X))


def test_another_process_needs_no_source_and_no_registration(loaded: Exported, tmp_path: Path):
    path = tmp_path / "f.rune"
    loaded.save(path, vjp_order=1)
    program = (
        "import sys, rune, rune.numpy as rnp; f = rune.export.load(sys.argv[1])\n"
        "x = rnp.arange(1.0, 8.0); y = rnp.linspace(-1.0, 1.0, 7)\n"
        "print(f.call(x, y)['row'].tolist(), rune.grad(lambda x: f.call(x, y)['sum'])(x).tolist())"
    )

    run = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, timeout=300)

    expected = loaded.call(X, Y)["row"].tolist(), rune.grad(lambda x: loaded.call(x, Y)["sum"])(X).tolist()
    assert run.stdout.strip() == f"{expected[0]} {expected[1]}", run.stderr


# --- calls that do not fit ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X,), r"call: cannot call function .argument\[0\]\[1\] is missing"),
        ((X, Y, Y), "it takes no argument"),
        ((X, rnp.ones(8)), r"call: cannot call function with f32\[8\] .argument\[0\]\[1\]"),
        (
            (X, rnp.ones(7, int)),
            r"call: cannot call function with i32\[7\] .argument\[0\]\[1\] was exported as f32\[7\]",
        ),
        ((X, rnp.ones((7, 1))), r"with f32\[7,1\]"),
        ((X, "y"), "call: cannot take str as an array"),
    ],
)
def test_calls_that_do_not_fit_are_refused(loaded: Exported, args: tuple, message: str):
    with pytest.raises((TypeError, ValueError), match=message):
        loaded.call(*args)


# --- what can be exported -----------------------------------------------------------------------


def test_a_jitted_function_keeps_its_static_arguments_and_sizes():
    with_static = rune.export(rune.jit(lambda x, n: x * n, static_argnums=1))(X, 3)
    with_sizes = rune.export(rune.jit(lambda x: x * 2, dims={"n": (1, 9)}))(X)

    same(X * 3, with_static.call(X))
    same(rnp.ones(2) * 2, with_sizes.call(rnp.ones(2)))
    with pytest.raises(TypeError, match="export: cannot give sizes to a jitted function"):
        rune.export(rune.jit(lambda x: x))(X, dims={"n": (1, 9)})


def test_named_arguments_and_types_are_enough():
    struct = rune.ShapeDtypeStruct((7,), "f32")

    program = rune.export(lambda x, *, scale: x * scale)(struct, scale=struct)

    same(X * Y, program.call(X, scale=Y))


class Point(typing.NamedTuple):
    """A class of trees."""

    x: Any
    y: Any


def test_trees_are_restored():
    argument = ({"k": [X]}, Y)
    program = rune.export(lambda tree: OrderedDict(b=tree[0]["k"][0], a=[tree[1], None, ()]))(argument)
    copy = rune.export.load(program.serialize())

    assert (copy.in_tree, copy.out_tree) == (program.in_tree, program.out_tree)
    assert list(copy.call(argument)) == ["b", "a"]


def test_a_class_of_trees_needs_a_name():
    with pytest.raises(TypeError, match=r"export: cannot store a tree with namedtuple.Point"):
        rune.export(lambda p: p.x)(Point(X, Y)).serialize()
    with pytest.raises(TypeError, match="export: cannot store a tree with defaultdict"):
        rune.export(lambda d: d["a"])(defaultdict(list, a=X)).serialize()

    rune.export.register_node(Point, name="tests.Point")
    copy = rune.export.load(rune.export(lambda p: Point(p.y, p.x))(Point(X, Y)).serialize())

    assert isinstance(copy.call(Point(X, Y)), Point)
    with pytest.raises(TypeError, match=r"register_node: cannot register Point as 'other' .tests.Point is in use"):
        rune.export.register_node(Point, name="other")


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: rune.pure_callback(np.sin, x, x), "export: cannot store callback .it calls Python"),
        (lambda x: rune.device_put(x, rune.devices()[0]), "export: cannot store to_device"),
        (lambda x: rune.debug.print("{}", x) or x, "export: cannot store callback"),
        (3, "export: cannot transform int"),
    ],
)
def test_a_function_that_no_file_can_hold_is_refused_by_name(f: Any, message: str):
    with pytest.raises(TypeError, match=message):
        rune.export(f)(X)


def test_random_numbers_need_a_key_among_the_arguments():
    with rune.random.seed(0), pytest.raises(TypeError, match=r"export: cannot store lambda .it reads a random key"):
        rune.export(lambda x: x + rune.random.normal(shape=(7,)))(X)


def test_an_error_names_the_line_of_the_refused_operation():
    def bad(x: Any) -> Any:
        y = rnp.sin(x)
        return rune.pure_callback(np.cos, y, y)  # this line

    with pytest.raises(TypeError, match="this line"):
        rune.export(bad)(X)


# --- operations of users ------------------------------------------------------------------------

DOUBLED = rnp.arange(7.0)
twice = rune.extend.primitive("twice", expand=lambda x: x + x, jvp=[lambda t, x, y: 7 * t])
both = rune.extend.primitive("both", expand=lambda x: (x + 1, x * 2), multiple_results=True)


def test_an_operation_of_a_user_is_stored_as_what_it_expands_to():
    program = rune.export(lambda x: twice(x) + both(x)[1])(X, dims={"n": (1, 9)})
    copy = rune.export.load(program.serialize())

    np.testing.assert_allclose(copy.call(DOUBLED), 4 * np.arange(7))
    np.testing.assert_allclose(copy.call(DOUBLED[:2]), [0, 4])


def test_its_derivative_in_the_file_is_that_of_its_rule():
    copy = rune.export.load(rune.export(twice)(X).serialize(vjp_order=1))

    np.testing.assert_allclose(rune.grad(lambda x: copy.call(x).sum())(DOUBLED), np.full(7, 7.0))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"types": lambda x: x, "meaning": np.sin},
            "no Python or C code.\nhint: define it by rune's operations with expand=",
        ),
        ({"expand": lambda x: x + DOUBLED}, "reads arrays that are not its operands.\nhint: make them operands"),
    ],
)
def test_an_operation_without_such_an_expansion_is_refused_with_advice(rules: Any, message: str):
    operation = rune.extend.primitive("mine", **rules)

    with pytest.raises(TypeError, match=f"export: cannot store mine .*{message}"):
        rune.export(operation)(X)


# --- files --------------------------------------------------------------------------------------


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, program = tmp_path / "f.rune", rune.export(function)(X, Y)
    program.save(path)
    before = path.read_bytes()

    def fails(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fails)
    with pytest.raises(OSError, match="disk full"):
        program.save(path, vjp_order=1)

    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_weights_stay_in_the_file_until_they_are_read(tmp_path: Path):
    big = rnp.cos(rnp.arange(1 << 20, dtype="f32"))
    rune.export(lambda x: x * big[3] + big[-1])(1.0).save(tmp_path / "big.rune")

    tracemalloc.start()
    copy = rune.export.load(tmp_path / "big.rune")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < big.nbytes / 8
    assert float(copy.call(2.0)) == float(big[3] * 2.0 + big[-1])


def test_rewriting_a_file_does_not_change_what_was_loaded_from_it(tmp_path: Path):
    path, copies = tmp_path / "f.rune", []
    for scale in (2.0, 3.0):
        weights_of = rnp.full(999, scale)
        rune.export(lambda x, w=weights_of: x * w)(1.0).save(path)
        copies.append(rune.export.load(path))

    assert [float(copy.call(1.0)[7]) for copy in copies] == [2.0, 3.0]


def test_a_file_of_another_version_is_refused_by_its_number():
    content = weights.decode(np.frombuffer(rune.export(function)(X, Y).serialize(), np.uint8))
    newer = weights.encode(weights.Content(content.arrays, {**content.texts, "version": "2"}))

    with pytest.raises(rune.errors.CheckError, match="version '2'; this rune reads version 1"):
        rune.export.load(newer)


def test_orders_are_whole_numbers():
    with pytest.raises(TypeError, match="serialize: cannot store vjp_order=-1"):
        rune.export(function)(X, Y).serialize(vjp_order=-1)
