"""The long run of random programs: a law that fails is found, and its seed replays it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fuzz import LAWS, ROOT, main

PLANTED = str(Path(__file__).parent / "support" / "planted_law.py")


def test_a_law_that_fails_is_found_and_its_seed_fails_in_the_same_example(
    capfd: pytest.CaptureFixture[str],
):
    assert main(["--seed", "3", "--", PLANTED]) == 1

    first = capfd.readouterr().out
    command = re.findall(r"^replay: \./scripts/fuzz (.*)$", first, re.MULTILINE)
    assert main(command[0].split()) == 1
    again = capfd.readouterr().out
    assert _example(first) == _example(again)


def _example(output: str) -> str:
    found = re.search(r"number=(\d+)", output)
    assert found is not None
    return found.group()


def test_the_laws_that_are_tried_are_there():
    assert all((ROOT / path).is_file() for path in LAWS)
