"""Names of precisions: the texts that jax 0.10.2 reads, and what its members print."""

from __future__ import annotations

import pytest

from rune import lax

# What `jax.lax.Precision(text).name` of jax 0.10.2 answers.
TEXTS = {
    "default": "DEFAULT",
    "fastest": "DEFAULT",
    "bfloat16": "DEFAULT",
    "high": "HIGH",
    "bfloat16_3x": "HIGH",
    "tensorfloat32": "HIGH",
    "highest": "HIGHEST",
    "float32": "HIGHEST",
    None: "DEFAULT",
    0: "DEFAULT",
    1: "HIGH",
    2: "HIGHEST",
}
REFUSED = ("HIGH", "HIGHEST", "nope", "", b"high", 3, -1)


@pytest.mark.parametrize(("text", "name"), TEXTS.items())
def test_a_precision_is_read_from_each_text_that_jax_reads(text: object, name: str):
    assert lax.Precision(text) is lax.Precision[name]


@pytest.mark.parametrize("text", REFUSED)
def test_another_text_is_not_a_precision(text: object):
    with pytest.raises(ValueError, match="is not a valid Precision"):
        lax.Precision(text)


def test_members_print_by_their_names():
    assert (str(lax.Precision.HIGH), repr(lax.Precision.HIGH)) == ("HIGH", "Precision.HIGH")
    assert f"{lax.DotAlgorithmPreset.F32_F32_F32}" == "F32_F32_F32"
    assert [preset.value for preset in lax.DotAlgorithmPreset] == [*range(1, 17)]
