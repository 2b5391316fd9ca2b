"""Names of scopes are printed with the lines of the operations in them."""

from __future__ import annotations

from typing import Any

import pytest

import rune
import rune.numpy as rnp


@rune.named_scope("net")
def network(x: Any) -> Any:
    with rune.named_scope("layer"):
        x = rnp.sin(x)
    return rnp.cos(x)


def scopes(function: Any) -> list[str]:
    return [e.source_info.name_stack for e in rune.make_jaxpr(function)(1.0).eqns]


def test_scopes_nest_and_end():
    assert scopes(network) == ["net/layer", "net"]
    assert scopes(rnp.sin) == [""]


def test_a_derivative_is_in_the_scope_of_what_it_is_of():
    assert set(scopes(rune.grad(network))) == {"net/layer", "net"}


def test_a_called_function_names_its_scope():
    assert scopes(rune.named_call(network)) == ["network/net/layer", "network/net"]
    assert scopes(rune.named_call(network, name="f")) == ["f/net/layer", "f/net"]


def test_a_function_in_a_scope_may_call_itself():
    @rune.named_scope("f")
    def function(x: Any, depth: int = 2) -> Any:
        return rnp.sin(function(x, depth - 1)) if depth else rnp.cos(x)

    assert scopes(function) == ["f/f/f", "f/f", "f"]


def test_errors_and_texts_name_the_scope():
    def function(x: Any) -> Any:
        with rune.named_scope("layer"):
            return x + rnp.ones(4)

    with pytest.raises(rune.errors.ShapeError, match=r"in function \(layer\)"):
        rune.jit(function)(rnp.ones(3))
    assert "(net/layer)" in rune.make_program(network)(1.0).text(frames=True)


def test_a_profile_names_the_scopes_of_its_steps():
    program = rune.jit(lambda x: network(x))

    with rune.debug.profile() as profile:
        program(rnp.ones((7, 7)))

    assert "(net" in str(profile)


def test_a_jitted_part_is_compiled_in_the_scope_of_each_call():
    part = rune.jit(network)

    @rune.jit
    def function(x: Any) -> Any:
        with rune.named_scope("first"):
            y = part(x)
        with rune.named_scope("second"):
            return part(y)

    text = function.lower(rnp.ones(7)).as_text(debug_info=True)

    assert [line.split("(")[-1] for line in text.splitlines()[1:5]] == [
        "first/net/layer)",
        "first/net)",
        "second/net/layer)",
        "second/net)",
    ]


def test_a_trace_does_not_depend_on_the_scope_of_its_call():
    part = rune.jit(network)

    with rune.named_scope("outer"):
        part(1.0)

    assert [e.source_info.name_stack for e in part.trace(1.0).jaxpr.eqns] == ["net/layer", "net"]


def test_a_name_is_a_string():
    with pytest.raises(TypeError, match="named_scope: cannot use 3"):
        rune.named_scope(3)  # type: ignore[arg-type]
