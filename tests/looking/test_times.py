"""explain shows the times that a profile measured next to the predicted ones."""

from __future__ import annotations

from typing import Any

import rune
import rune.numpy as rnp

X = rnp.ones((64, 64))


def chain(x: Any) -> Any:
    return rnp.cumsum(rnp.sin(x @ x), axis=0)


def test_each_step_that_ran_has_a_measured_time_and_each_kernel_a_predicted_one():
    f = rune.jit(chain)
    with rune.debug.profile() as p:
        f(X)
    e = rune.explain(f)(X).measured(p)
    times = {t.name: t for t in e.times()}
    assert set(times) == {s.name for s in e.lowered.steps()}
    assert all(t.measured is not None and t.measured > 0 for t in times.values())
    assert {n for n, t in times.items() if t.predicted is not None} == set(e.plan.kernels)


def test_a_measured_time_is_that_of_one_call():
    f = rune.jit(chain)
    with rune.debug.profile() as p:
        for _ in range(4):
            f(X)
    (plan,) = p.plans
    by_name = {s.name: s.seconds / 4 for s in plan.steps}
    assert {t.name: t.measured for t in rune.explain(f)(X).measured(p).times()} == by_name


def test_within_the_block_explain_takes_the_profile_that_gathers():
    f = rune.jit(chain)
    with rune.debug.profile():
        f(X)
        e = rune.explain(f)(X)
    assert any(t.measured is not None for t in e.times())
    assert "Times of one run" in e._repr_html_()


def test_without_a_profile_there_are_only_predicted_times():
    e = rune.explain(chain)(X)
    assert all(t.measured is None for t in e.times())
    assert "Times of one run" not in e._repr_html_()
    assert e["times"].splitlines()[0].split() == ["step", "predicted", "measured", "ratio"]


def test_another_program_of_the_same_name_is_not_taken_for_it():
    f, g = (rune.jit(function) for function in (lambda x: rnp.sin(x), lambda x: rnp.cumsum(x, axis=0)))
    with rune.debug.profile() as p:
        f(X)
        g(X)
    for function in (f, g):
        assert all(t.measured is not None for t in rune.explain(function)(X).measured(p).times())
