"""The site: a page for every room with every public name, and the guide."""

from __future__ import annotations

import re
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
    done = subprocess.run([sys.executable, str(SITE), str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.mark.parametrize("place", ROOMS)
def test_every_room_has_a_page_with_all_its_names(site: Path, place: str):
    page = (site / f"{place.replace('.', '/')}.html").read_text()

    assert [n for n in public_names(room(place)) if f'id="{n}"' not in page] == []


def _links(page: Path) -> list[Path]:
    """The files of the site to which a page links."""
    targets = re.findall(r'href="([^"#?:$]+)(?:[#?][^"]*)?"', page.read_text())
    return [(page.parent / target).resolve() for target in targets]


def test_every_link_leads_to_a_page(site: Path):
    broken = {(p.name, q.name) for p in site.rglob("*.html") for q in _links(p) if not q.exists()}

    assert broken == set()


def test_every_page_is_reached_from_the_first(site: Path):
    reached, ahead = set(), [(site / "index.html").resolve()]
    while ahead:
        page = ahead.pop()
        if page not in reached and page.suffix == ".html":
            reached.add(page)
            ahead += _links(page)

    assert {p.resolve() for p in site.rglob("*.html")} - reached == set()


def test_every_page_of_the_guide_is_there(site: Path):
    for page in pages():
        file = site / page.relative_to(HERE).with_suffix(".html")

        assert "<h1>" in file.read_text() or "<h1 " in file.read_text(), page
