"""References: what is read is what was written last, in every body and under every transformation.

The meaning of a function with references is the same function on NumPy arrays, which are written
in place, with loops of Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rune
import rune.numpy as rnp
from rune import lax
from rune.errors import ArgumentError, AxisError, BoundsError, DtypeError, ShapeError, TransformError
from rune.ref import Ref, empty_ref, freeze, new_ref
from rune.test_util import check_grads
from tests.support.close import near, same

TWO = np.float32(2.0)


def with_loop(x: Any) -> Any:
    total = new_ref(0.0 * x)

    def step(i: Any, carry: Any) -> Any:
        total[...] += x * i
        return carry

    lax.fori_loop(0, 4, step, 0)
    return total[...]


def with_scan(x: Any) -> Any:
    row = new_ref(rnp.zeros(3))

    def step(carry: Any, i: Any) -> Any:
        row[i] = x * carry
        return carry + 1.0, row[0]

    _, ys = lax.scan(step, 1.0, rnp.arange(3))
    return row[...], ys


def with_branches(x: Any) -> Any:
    a, b = new_ref(x), new_ref(1.0)

    def positive() -> Any:
        a[...] = a[...] * 3.0
        return 1.0

    def negative() -> Any:
        b.addupdate(a[...])
        return 2.0

    y = lax.cond(x > 0, positive, negative)
    lax.switch(2, [lambda: None, lambda: a.set(100.0), lambda: b.set(b[...] * 5.0)])
    return a[...], b[...], y


def with_while(x: Any) -> Any:
    ref = new_ref(x)

    def step(i: Any) -> Any:
        ref[...] *= 2.0
        return i + 1

    count = lax.while_loop(lambda i: ref[...] < 15.0, step, 0)
    return ref[...], count


def nested(x: Any) -> Any:
    r, q = new_ref(rnp.zeros(())), new_ref(rnp.ones(()))

    def outer(i: Any, c: Any) -> Any:
        s = new_ref(0.0)

        def inner(j: Any, c: Any) -> Any:
            r[...] += x * i * j
            s[...] += 1.0
            lax.cond(j > 1, lambda: q.set(q[...] * 2.0), lambda: None)
            return c + s[...]

        return lax.fori_loop(0, 3, inner, c)

    c = lax.fori_loop(0, 3, outer, 0.0)
    return r[...], q[...], c


def in_a_map(x: Any) -> Any:
    ref = new_ref(rnp.zeros(2))

    def step(v: Any) -> Any:
        ref[0] += v
        return ref[0]

    return lax.map(step, x * rnp.arange(4.0)), ref[...]


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a loop": (with_loop, 12.0),
    "a scan": (with_scan, ([2, 4, 6], [2, 2, 2])),
    "branches": (with_branches, (6, 5, 1)),
    "a while loop": (with_while, (16, 3)),
    "nested": (nested, (18, 8, 18)),
    "a map": (in_a_map, ([0, 2, 6, 12], [12, 0])),
}


def flat(result: Any) -> Any:
    return rnp.concatenate([rnp.ravel(v).astype(rnp.float32) for v in rune.tree.leaves(result)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_last_value_is_read(name: str):
    function, expected = FUNCTIONS[name]

    same(np.concatenate([np.ravel(v) for v in rune.tree.leaves(expected)]).astype("f4"), flat(function(TWO)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_gives_the_same(name: str):
    function, _ = FUNCTIONS[name]

    same(flat(function(TWO)), flat(rune.jit(function)(TWO)))
    same(flat(function(-TWO)), flat(rune.jit(function)(-TWO))) if name != "a while loop" else None


@pytest.mark.parametrize("name", FUNCTIONS)
def test_vmap_gives_the_same_for_every_lane(name: str):
    function, _ = FUNCTIONS[name]
    xs = np.float32(3.0) * np.arange(1, 4, dtype=np.float32)

    lanes = rune.vmap(lambda x: flat(function(x)))(xs)

    near(np.stack([flat(function(x)) for x in xs]), lanes, relative=1e-6, why="selected or not")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_those_of_the_values(name: str):
    function, _ = FUNCTIONS[name]

    check_grads(lambda x: flat(function(x))[:2], (rnp.asarray(1.7),), order=2, eps=1e-2, rtol=1e-2, atol=1e-2)


def test_a_checkpointed_function_may_have_references():
    near(np.float32(6.0), rune.grad(rune.checkpoint(with_loop))(2.0), relative=1e-6, why="sums")


def test_eager_code_writes_from_within_loops():
    ref = new_ref(rnp.zeros(2))

    lax.fori_loop(0, 3, lambda i, c: ref.set(rnp.float32(9) + i, 0) or c, 0)

    same(np.array([11, 0], "f4"), ref[...])


def test_arrays_that_were_read_do_not_change():
    x = rnp.zeros(2)
    ref = new_ref(x)
    before = ref[...]

    ref[0] = 1.0

    same((np.zeros(2, "f4"), np.zeros(2, "f4"), np.array([1, 0], "f4")), (x, before, freeze(ref)))


def test_parts_are_read_written_swapped_and_added_to():
    ref = new_ref(rnp.arange(4.0))

    ref[1:3] = rnp.array([7.0, 8.0])
    ref[rnp.array([0, 3])] += rnp.array([1.0, 1.0])
    before = ref.swap(5.0, 0)
    ref.addupdate(rnp.ones(2), rnp.array([1, 1]))

    same((np.float32(1), np.array([5, 9, 8, 4], "f4")), (before, ref.get()))
    assert (ref.shape, ref.ndim, ref.size, len(ref), ref.dtype) == ((4,), 1, 4, 4, rnp.float32)
    assert repr(ref) == "Ref([5., 9., 8., 4.], f32[4], cpu:0)"


def test_an_error_in_a_body_leaves_references_as_they_were():
    ref = new_ref(1.0)

    def step(i: Any, c: Any) -> Any:
        ref[...] = 2.0
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        lax.fori_loop(0, 3, step, 0)

    assert float(ref[...]) == 1.0


def test_a_function_may_write_to_outer_references_in_eager_code():
    ref = new_ref(1.0)

    gradient = rune.grad(lambda x: ref.set(4.0) or x**2)(3.0)

    assert (float(gradient), float(ref[...])) == (6.0, 4.0)


def test_messages_about_a_carry_do_not_mention_references():
    ref = new_ref(0.0)

    def step(i: Any, c: Any) -> Any:
        ref[...] += 1.0
        return {"h": rnp.ones(3)}

    with pytest.raises(TransformError, match=r"carry\['h'\]"):
        lax.fori_loop(0, 3, step, {"h": rnp.ones(2)})


def test_an_empty_reference_has_zeros():
    same(np.zeros((2, 3), "i4"), empty_ref(rune.ShapeDtypeStruct((2, 3), "int32"))[...])


OUTSIDE = rnp.zeros(3)


def add(ref: Ref, x: Any) -> Any:
    ref[...] += x
    return ref[0] * 2


def test_a_jitted_function_takes_references_and_changes_them():
    ref, other = new_ref(rnp.zeros(3)), new_ref(rnp.ones(3))
    program = rune.jit(add)

    results = [float(program(r, x)) for r, x in ((ref, 1.0), (ref, 2.0), (other, 4.0))]

    assert results == [2.0, 6.0, 10.0]
    same((np.full(3, 3, "f4"), np.full(3, 5, "f4")), (ref[...], other[...]))


def test_a_jitted_function_reads_what_it_closes_over_in_each_call():
    ref, count = new_ref(rnp.zeros(3)), new_ref(0)

    @rune.jit
    def f(x: Any) -> Any:
        count[...] += 1
        return ref[...] + x

    same(np.ones(3, "f4"), f(1.0))
    ref[...] = rnp.full(3, 5.0)
    same(np.full(3, 6, "f4"), f(1.0))
    assert int(count[...]) == 2


def test_references_work_in_trees_and_pass_through_nested_functions():
    state = {"a": new_ref(rnp.zeros(3)), "n": new_ref(1)}
    inner = rune.jit(lambda r, x: r.set(x, 0))

    @rune.jit
    def f(state: Any, x: Any) -> Any:
        inner(state["a"], x)
        inner(state["a"], state["a"][0] * 2)
        state["n"][...] += 1

    f(state, 2.0)
    same((np.array([4, 0, 0], "f4"), np.int32(2)), (state["a"][...], state["n"][...]))


def test_options_of_jit_hold_for_a_function_of_references():
    ref = new_ref(rnp.ones(3))
    f = rune.jit(lambda n, r, x: r.set(r[...] * n + x), static_argnums=0, donate_argnums=2)

    for n in (2, 3):
        f(n, ref, rnp.ones(3))
    same(np.full(3, 10, "f4"), ref[...])


def test_rows_of_a_reference_are_references_of_a_step():
    ref = new_ref(rnp.zeros((4, 3)))

    def step(carry: Any, row: Any) -> Any:
        row[...] += carry
        return carry + 1.0, row[0]

    last, firsts = lax.scan(step, 0.0, ref)

    assert float(last) == 4.0
    same((np.arange(4, dtype="f4"), np.arange(4, dtype="f4")[:, None] + np.zeros((1, 3), "f4")), (firsts, ref[...]))


def test_lanes_and_branches_take_references():
    ref = new_ref(rnp.zeros((2, 3)))

    rune.vmap(lambda r, x: r.set(x * 2), in_axes=(1, 0))(ref, rnp.arange(6.0).reshape(3, 2))
    same(np.array([[0, 4, 8], [2, 6, 10]], "f4"), ref[...])
    lax.cond(True, lambda r, x: r.set(x, 0), lambda r, x: None, ref, rnp.ones(3))
    lax.switch(1, [lambda r: None, lambda r: r.set(7.0, (1, 1))], ref)
    same(np.array([[1, 1, 1], [2, 7, 10]], "f4"), ref[...])


@pytest.mark.parametrize("way", [lambda f: f, rune.jit], ids=["eager", "jit"])
def test_a_condition_may_write(way: Any):
    tests, steps = new_ref(0), new_ref(0)

    def goes_on(i: Any) -> Any:
        tests[...] += 1
        return i < 3

    def step(i: Any) -> Any:
        steps[...] += 1
        return i + 1

    assert int(way(lambda: lax.while_loop(goes_on, step, 0))()) == 3
    assert (int(tests[...]), int(steps[...])) == (4, 3)


def test_a_condition_and_its_body_may_write_one_reference():
    ref = new_ref(0)

    def goes_on(i: Any) -> Any:
        ref[...] += 1
        return i < 3

    def step(i: Any) -> Any:
        ref[...] *= 10
        return i + 1

    assert int(lax.while_loop(goes_on, step, 0)) == 3
    assert int(ref[...]) == 1111


def test_a_numpy_array_that_was_written_may_change():
    ref, x = new_ref(rnp.zeros(2)), np.ones(2, np.float32)

    ref[...] = x
    x[0] = 5.0
    ref[1] = 3.0
    same(np.array([1, 3], "f4"), ref[...])


REFUSALS: dict[str, tuple[type[Exception], Callable[[Ref], Any], str]] = {
    "a lane": (TransformError, lambda r: rune.vmap(lambda x: r.set(x, 0))(rnp.ones(2)), "inner transformation"),
    "a tangent": (TransformError, lambda r: rune.grad(lambda x: r.set(x, 0) or x)(1.0), "inner transformation"),
    "a trace": (TransformError, lambda r: rune.make_program(lambda x: r.set(x, 0))(1.0), "inner transformation"),
    "one twice": (ArgumentError, lambda r: rune.jit(lambda a, b: a[0])(r, r), "cannot take one reference twice"),
    "an argument closed over": (
        ArgumentError,
        lambda r: rune.jit(lambda a: a.set(1.0, 0) or r[0])(r),
        "that the function closes over",
    ),
    "a result that was an argument": (ArgumentError, lambda r: rune.jit(lambda a: a)(r), "cannot return a reference"),
    "one for all lanes": (
        AxisError,
        lambda r: rune.vmap(lambda a, x: a.set(x, 0), in_axes=(None, 0))(r, rnp.ones(2)),
        "vmap",
    ),
    "a carry of while_loop": (
        ArgumentError,
        lambda r: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, r)),
        "cannot take Ref",
    ),
    "a result": (ArgumentError, lambda r: rune.jit(lambda: new_ref(1.0))(), "cannot take Ref"),
    "a carry": (ArgumentError, lambda r: lax.scan(lambda c, x: (c, x), r, rnp.ones(3)), "cannot take Ref"),
    "another shape": (ShapeError, lambda r: r.set(rnp.ones(4)), "cannot write"),
    "a number for an array": (ShapeError, lambda r: r.set(1.0), "cannot write"),
    "another dtype": (DtypeError, lambda r: r.set(rnp.ones(3, rnp.int32)), "cannot write"),
    "a complex number": (DtypeError, lambda r: r.set(1j, 0), "cannot write"),
    "an index out of bounds": (BoundsError, lambda r: r[3], "index 3"),
    "a reference in it": (ArgumentError, lambda r: r.set(r), "cannot hold"),
    "a reference to it": (ArgumentError, lambda r: new_ref(r), "cannot hold"),  # type: ignore[arg-type]
    "arithmetic": (
        ArgumentError,
        lambda r: rnp.sin(r),  # type: ignore[arg-type]
        "cannot compute with a reference",
    ),
    "a text": (ArgumentError, lambda r: new_ref("text"), "new_ref"),  # type: ignore[arg-type]
    "a kind": (ArgumentError, lambda r: new_ref(1.0, kind="no_grad_no_remat"), "kind="),
    "a memory space": (ArgumentError, lambda r: new_ref(1.0, memory_space="vmem"), "memory_space="),
    "no reference": (ArgumentError, lambda r: freeze(1.0), "a reference required"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", REFUSALS)
def test_meaningless_uses_of_a_reference_are_refused(case: str):
    error, call, text = REFUSALS[case]

    with pytest.raises(error, match=text):
        call(new_ref(OUTSIDE))
