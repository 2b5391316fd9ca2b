"""Tests of the house load every module, and none of them may change the settings of the others."""

from __future__ import annotations

from rune.as_jax import SETTINGS

with SETTINGS:  # from here on it is no statement for the process
    pass
