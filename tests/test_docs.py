"""The site: a page for every room with every public name, and the written pages; docstrings."""

from __future__ import annotations

import functools
import html
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docs.docstrings import Entry, Example, Paragraph, Table, markdown, parts
from docs.rooms import ROOMS, public_names, room

pytest.importorskip("material", reason="the site is drawn by mkdocs-material")

from docs.site import FOLDER, HERE, configuration, pages, program_files
from tests.support.browser import CHROMIUM, DARK, PHONE, WHY_NOT, Shot, browser

SITE = HERE / "site.py"
READABLE = (Path(__file__).parent / "looking" / "readable.js").read_text()
SHOWN = ("", "tutorial/6-training", "guide/from-jax", "reference/rune.optim")  # of each kind
SHOWN += ("examples/gaussian-process", "programs/language-model", "notebooks/language_model")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, written by the command that users run."""
    folder = tmp_path_factory.mktemp("site")
    process = subprocess.run([sys.executable, str(SITE), str(folder)], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stderr == ""
    return folder


def test_mkdocs_takes_the_folder_of_the_command():
    assert Path(configuration(FOLDER)["site_dir"]) == FOLDER


@pytest.mark.parametrize("place", ROOMS)
def test_every_room_has_a_page_with_all_its_names(site: Path, place: str):
    page = (site / "reference" / place / "index.html").read_text()

    assert [n for n in public_names(room(place)) if f'id="{place}.{n}"' not in page] == []


@functools.cache
def _links(page: Path) -> frozenset[Path]:
    """The files of the site to which a page links."""
    targets = set(re.findall(r'href="(?!https?:)([^"#?:$]+)(?:[#?][^"]*)?"', page.read_text()))
    return frozenset(_file_at(os.path.normpath(page.parent / target)) for target in targets)


@functools.cache
def _file_at(place: str) -> Path:
    """The file that a browser gets: that of a folder is its index."""
    return Path(place, "index.html") if os.path.isdir(place) else Path(place)


def _pages(site: Path) -> set[Path]:
    """All pages but the one for lost readers, whose links begin at the site's address."""
    return {p.resolve() for p in site.rglob("*.html")} - {(site / "404.html").resolve()}


def test_every_link_leads_to_a_page(site: Path):
    broken = {(p.name, q.name) for p in _pages(site) for q in _links(p) if not q.exists()}

    assert broken == set()


def test_every_page_is_reached_from_the_first(site: Path):
    pages, pending = set(), [(site / "index.html").resolve()]
    while pending:
        page = pending.pop()
        if page not in pages and page.suffix == ".html":
            pages.add(page)
            pending += _links(page)

    assert _pages(site) - pages == set()


def test_every_page_of_the_guide_exists(site: Path):
    for page in pages():
        place = page.relative_to(HERE).with_suffix("")
        folder = place.parent if place.name in ("README", "index") else place
        assert (site / folder / "index.html").exists(), place


@pytest.mark.parametrize("page", sorted((HERE / "programs").glob("*.md")), ids=lambda p: p.stem)
def test_the_page_of_a_program_ends_with_its_whole_code(site: Path, page: Path):
    files = program_files(page.relative_to(HERE))
    text = html.unescape(re.sub(r"<[^>]+>", "", (site / "programs" / page.stem / "index.html").read_text()))

    assert files
    assert [f.name for f in files if f.read_text().strip() not in text] == []


def test_a_link_to_a_file_leads_to_the_page_about_it(site: Path):
    guide = (site / "guide" / "many-devices" / "index.html").read_text()

    assert 'href="../../programs/heat/"' in guide
    assert 'href="../../notebooks/devices/"' in guide


def test_the_search_finds_the_text_of_pages(site: Path):
    index = (site / "search" / "search_index.json").read_text()

    assert "guide/random/" in index
    assert "examples/kalman-filter/" in index
    assert "programs/heat/" in index
    assert "notebooks/signals/" in index
    assert "reference/rune.nn/#rune.nn.softmax" in index


def test_every_picture_is_on_its_page(site: Path):
    files_of_pages = {p: re.findall(r'<img [^>]*src="([^"]+)"', p.read_text()) for p in _pages(site)}
    count = sum(len(re.findall(r"!\[", p.read_text())) for p in pages())

    assert sum(map(len, files_of_pages.values())) >= count > 0
    assert [s for p, files in files_of_pages.items() for s in files if not (p.parent / s).exists()] == []


def _is_dark(shot: Shot) -> bool:
    return bool(np.median(np.asarray(Image.open(io.BytesIO(shot.png)).convert("L").reduce(2))) < 128)


@pytest.mark.skipif(not CHROMIUM, reason=WHY_NOT)
def test_pages_are_read_in_a_browser_dark_and_on_a_phone(site: Path, tmp_path: Path):
    question = f"({READABLE})('.md-content')"
    with browser(tmp_path / "profile") as chromium:
        for place in SHOWN:
            phone, dark = chromium.look((site / place / "index.html").as_uri(), [PHONE, DARK], question)
            assert phone.answer["overflow"] <= 0, place
            for shot in (phone, dark):
                assert shot.answer["texts"] > 20
                assert (shot.answer["faint"], shot.answer["broken"]) == ([], []), place
            assert [_is_dark(shot) for shot in (phone, dark)] == [False, True]


# --- docstrings -----------------------------------------------------------------------------------


def test_a_docstring_is_paragraphs_entries_tables_and_examples():
    docstring = "Sum.\n\nx:   numbers,\n     any shape.\nMore.\n\nsums   add\nmeans  mean\n\n>>> f(1)\n2"

    assert parts(docstring) == [
        Paragraph("Sum."),
        Entry("x", "numbers, any shape."),
        Paragraph("More."),
        Table(("sums   add", "means  mean")),
        Example((">>> f(1)", "2")),
    ]


def test_lines_that_are_indented_stay_lines():
    assert parts("Adam.\n\n    state = init(x)\n    y = step(state)") == [
        Paragraph("Adam."),
        Table(("    state = init(x)", "    y = step(state)")),
    ]


def test_the_first_paragraph_is_not_an_entry():
    assert parts("rune.nn: networks.") == [Paragraph("rune.nn: networks.")]


def test_stars_brackets_and_code_are_shown_literally():
    assert markdown("Of [*B, N], as `x[*i]` is.") == r"Of \[\*B, N\], as `x[*i]` is."


def test_code_stands_without_prompts_and_apart_from_what_it_prints():
    assert markdown("One.\n\n>>> x = 1\n>>> x\n1") == "One.\n\n```python\nx = 1\nx\n```\n```text\n1\n```"
