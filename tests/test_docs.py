"""The site: a page for every room with every public name, and the guide."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from docs.site import HERE, ROOMS, pages, public_names, room

SITE = HERE / "site.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, written by the command that users run."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, str(SITE), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.mark.parametrize("place", ROOMS)
def test_every_room_has_a_page_with_all_its_names(site: Path, place: str):
    page = (site / f"{place.replace('.', '/')}.html").read_text()

    assert [n for n in public_names(room(place)) if f'id="{n}"' not in page] == []


def test_every_page_of_the_guide_is_there(site: Path):
    for page in pages():
        found = site / page.relative_to(HERE).with_suffix(".html")

        assert "<h1>" in found.read_text() or "<h1 " in found.read_text(), page
