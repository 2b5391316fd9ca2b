"""Objects, trees, types and programs describe themselves as those of jax 0.10.2 do."""

from __future__ import annotations

import json

import pytest

from tests.as_jax.surface.objects.expressions import ANSWERS, answers


@pytest.mark.filterwarnings("ignore")
def test_objects_describe_themselves_as_those_of_jax_do():
    # By json, as a number in the place of a key is a text there.
    assert json.loads(json.dumps(answers())) == json.loads(ANSWERS.read_text())
