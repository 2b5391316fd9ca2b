"""Objects, trees, types and programs tell of themselves what those of jax 0.10.2 told."""

from __future__ import annotations

import json

import pytest

from tests.as_jax.surface.objects.said import ANSWERS, lines, told, value


@pytest.mark.filterwarnings("ignore")
def test_what_objects_tell_is_what_those_of_jax_told():
    stored = json.loads(ANSWERS.read_text())

    assert {*stored} == {*lines()}
    # By json, as a number in the place of a key is a text there.
    assert {line: told(value(line)) for line in lines()} == stored
