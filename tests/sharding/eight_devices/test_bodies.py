"""What the body of a shard_map must not do, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rune
from rune import lax
from rune import numpy as rnp
from rune.errors import ArgumentError, BoundsError, CollectiveError, NaNError, ShapeError
from rune.sharding import NamedSharding, P, make_mesh

X = np.sin(np.arange(16.0, dtype="f"))


def on_eight(body: Any, out_specs: Any = None, **options: Any) -> Any:
    out_specs = P("a") if out_specs is None else out_specs
    return rune.shard_map(body, mesh=make_mesh((8,), ("a",)), in_specs=P("a"), out_specs=out_specs, **options)


def test_a_result_that_differs_between_devices_is_not_treated_as_equal():
    with pytest.raises(ArgumentError, match=r"cannot return result\['y'\] by P\(\) .*devices of 'a'\)") as error:
        on_eight(lambda x: {"y": x.sum()}, P())(X)

    assert "x.sum()" in str(error.value)


def test_a_result_that_differs_within_a_jitted_part_is_not_treated_as_equal_either():
    with pytest.raises(ArgumentError, match="differs between the devices of 'a'"):
        on_eight(rune.jit(lambda x: rnp.sin(x).sum() + lax.axis_index("a")), P())(X)


def test_a_result_summed_over_the_devices_is_the_same_on_all():
    np.testing.assert_allclose(on_eight(lambda x: lax.psum(x.sum(), "a"), P())(X), X.sum(), rtol=1e-5)
    assert on_eight(lambda x: lax.pmax(x.max(), "a"), P())(X) == X.max()


def test_without_the_check_the_first_device_decides_for_all():
    assert on_eight(lambda x: x[0], P(), check_vma=False)(X) == X[0]


def test_gradients_of_rows_are_those_of_the_device_that_has_them():
    body = rune.grad(lambda x: (x**2).sum())

    for is_checked in (True, False):
        np.testing.assert_allclose(on_eight(body, check_vma=is_checked)(X), 2 * X, rtol=1e-6)
    np.testing.assert_allclose(rune.grad(lambda x: on_eight(lambda v: v**2)(x).sum())(X), 2 * X, rtol=1e-6)


def test_devices_that_call_different_collectives_get_an_error():
    def body(x: Any) -> Any:
        return lax.cond(lax.axis_index("a") == 3, lambda v: lax.psum(v, "a"), lambda v: lax.pmax(v, "a"), x)

    with pytest.raises(CollectiveError, match=r"cpu:\d cannot meet cpu:\d, which is in p(sum|max) over 'a'"):
        on_eight(body, check_vma=False)(X)


def test_a_device_that_calls_no_collective_ends_the_wait_of_the_others():
    def body(x: Any) -> Any:
        return lax.cond(lax.axis_index("a") == 3, lambda v: v, lambda v: lax.psum(v, "a"), x)

    with pytest.raises(CollectiveError, match=r"wait for others in vain \(cpu:0, .* in psum over 'a' for cpu:3\)"):
        on_eight(body, check_vma=False)(X)


def test_an_error_on_one_device_is_the_error_of_the_call():
    def refuse(place: Any) -> Any:
        if place == 5:
            raise KeyError("the fifth")
        return np.float32(place)

    def body(x: Any) -> Any:
        place = rune.pure_callback(refuse, rune.ShapeDtypeStruct((), "f32"), lax.axis_index("a"))
        return lax.psum(x * place, "a")

    for _ in range(20):
        with pytest.raises(KeyError, match="the fifth"):
            on_eight(body, check_vma=False)(X)
    np.testing.assert_allclose(on_eight(lambda x: lax.psum(x, "a"), P())(X), X.reshape(8, 2).sum(axis=0), rtol=1e-5)


def test_a_sharded_call_within_a_sharded_program_is_refused():
    inner = on_eight(lambda x: lax.psum(x, "a"), P())

    def body(x: Any) -> Any:
        return rune.pure_callback(lambda v: inner(np.asarray(X)), rune.ShapeDtypeStruct((2,), "f32"), x)

    with pytest.raises(rune.errors.DeviceError, match="from a callback of a sharded program"):
        on_eight(body, check_vma=False)(X)


def test_a_mesh_that_does_not_divide_an_axis_is_an_error_with_advice():
    words = r"cannot cut axis 0 of f32\[15\] at argument\[0\] into 8 equal parts[^\n]*\nhint: pad the axis to 16"
    with pytest.raises(ShapeError, match=words):
        on_eight(lambda x: x)(X[:15])


def test_an_invalid_spec_is_refused_with_a_reason():
    with pytest.raises(ArgumentError, match="cannot use None in out_specs"):
        rune.shard_map(lambda x: x, mesh=make_mesh((8,), ("a",)), in_specs=P("a"), out_specs=None)(X)


def test_two_meshes_in_one_program_are_refused():
    other = rune.shard_map(lambda x: x, mesh=make_mesh((4,), ("b",)), in_specs=P("b"), out_specs=P("b"))

    with pytest.raises(ArgumentError, match="cannot run on two meshes in one program"):
        rune.jit(lambda x: other(on_eight(lambda v: v)(x)))(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"mesh": "cpu"}, "cannot use str as a mesh"),
        ({"mesh": None}, "cannot find a mesh"),
        ({"axis_names": {"z"}}, r"cannot cut along 'z' \(Mesh\('a': 8\) has no such axis\)"),
        ({"in_specs": P("z")}, r"cannot cut f32\[8,2\] at argument\[0\] along 'z' \(Mesh\('a': 8\) has no such axis\)"),
        ({"in_specs": P("a", "a")}, "along 'a' twice"),
        ({"out_specs": P("z")}, "at result along 'z'"),
    ],
    ids=str,
)
def test_a_mesh_or_an_axis_that_does_not_exist_is_refused_in_words(options: dict[str, Any], words: str):
    usual = {"mesh": make_mesh((8,), ("a",)), "in_specs": P("a"), "out_specs": P("a")}

    with pytest.raises(ArgumentError, match=words):
        rune.shard_map(lambda x: x, **{**usual, **options})(X.reshape(8, 2))


def test_a_spec_of_more_axes_than_the_array_has_is_refused():
    words = r"cannot cut f32\[16\] at argument\[0\] as P\(None, 'a'\) says \(2 axes required\)"
    with pytest.raises(ShapeError, match=words):
        rune.shard_map(lambda x: x, mesh=make_mesh((8,), ("a",)), in_specs=P(None, "a"), out_specs=P("a"))(X)


# --- bad input ----------------------------------------------------------------------------------


def test_a_size_that_the_mesh_does_not_divide_names_the_argument_and_the_axis():
    with pytest.raises(ShapeError) as error:
        on_eight(lambda d: d["w"])({"b": X, "w": X[:12]})

    assert "cannot cut axis 0 of f32[12] at argument[0]['w'] into 8 equal parts" in str(error.value)
    assert "'a' has 8 devices" in str(error.value)
    assert "pad the axis to 16" in str(error.value)


def test_the_error_about_specs_that_do_not_match_names_in_specs():
    f = rune.shard_map(lambda x: x, mesh=make_mesh((8,), ("a",)), in_specs=(P("a"), P()), out_specs=P("a"))

    with pytest.raises(ArgumentError, match="shard_map: cannot match in_specs with the values"):
        f(X)


@pytest.mark.parametrize("where", [P("a"), make_mesh((8,), ("a",))])
def test_an_array_cannot_be_laid_out_by_a_spec_or_a_mesh_alone(where: Any):
    with pytest.raises(ArgumentError, match=r"device_put: cannot lay out .*alone[\s\S]*NamedSharding\(mesh, spec\)"):
        rune.device_put(X, where)


# --- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transformation", [rune.jit, lambda f: f])
def test_a_nan_on_one_device_is_found_with_the_line_and_the_device(transformation: Any):
    def body(x: Any) -> Any:
        y = rnp.log(x + 0.8)
        return lax.psum(y, "a")

    f = transformation(on_eight(body, P()))
    with rune.debug.checks(nans=True), pytest.raises(NaNError) as error:
        f(X)

    assert "log: found NaN" in str(error.value)
    assert f"on cpu:{int(np.flatnonzero(X + 0.8 < 0)[0]) // 2}" in str(error.value)
    assert "rnp.log(x + 0.8)" in str(error.value)


def test_a_program_without_faults_is_checked_and_gives_what_it_gave():
    f = rune.jit(on_eight(lambda x: lax.psum(rnp.sin(x), "a") * x))

    with rune.debug.checks(nans=True, bounds=True):
        np.testing.assert_array_equal(f(X), f(X))


def test_an_index_out_of_bounds_in_an_operation_on_sharded_arrays_is_found():
    x = rune.device_put(X, NamedSharding(make_mesh((8,), ("a",)), P("a")))

    with rune.debug.checks(bounds=True), pytest.raises(BoundsError, match="found index 99 out of bounds"):
        rune.jit(lambda x, n: x[n])(x, 99)


@pytest.mark.parametrize("groups", [None, [[0, 2], [3, 1]]], ids=["all", "in groups"])
def test_the_largest_and_the_smallest_bool_over_devices_are_bools(groups: Any):
    mesh, x = make_mesh((4,), ("a",)), np.array([[True, False, False], [False, False, True]] * 2)

    def body(row: Any) -> Any:
        return [f(row, "a", axis_index_groups=groups) for f in (lax.pmax, lax.pmin)]

    largest, smallest = rune.shard_map(body, mesh=mesh, in_specs=P("a"), out_specs=P("a"))(x)

    assert largest.dtype == smallest.dtype == np.bool_
    for members in groups or [[0, 1, 2, 3]]:
        for member in members:
            np.testing.assert_array_equal(largest[member], x[members].max(0))
            np.testing.assert_array_equal(smallest[member], x[members].min(0))
