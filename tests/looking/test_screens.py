"""Notebooks in a real browser: what their readers see, on light and dark pages and on a phone.

The notebooks are those in the repository, as nbconvert writes them for the web; test_notebooks.py
runs them. Screenshots are left in the folder that RUNE_TEST_SCREENS names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

from tests.support.browser import CHROMIUM, DARK, LIGHT, PHONE, WHY_NOT, Browser, Shot, View, browser
from tests.support.sampling import IS_WHOLE

nbconvert = pytest.importorskip("nbconvert", reason="nbconvert makes pages of notebooks")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
OUTPUTS = ".jp-OutputArea-output"
READABLE = (Path(__file__).parent / "readable.js").read_text()
# A phone is light too.
VIEWS = {"phone": PHONE, "dark": DARK} | ({"light": LIGHT} if IS_WHOLE else {})
# Scripts that nbconvert takes from the web: formulas, widgets.
NO_SCRIPTS = {"mathjax_url": "", "require_js_url": "", "jquery_url": ""}

pytestmark = pytest.mark.skipif(not CHROMIUM, reason=WHY_NOT)


def page(notebook: Any, theme: str) -> str:
    return nbconvert.HTMLExporter(theme=theme, **NO_SCRIPTS).from_notebook_node(notebook)[0]


def head(theme: str) -> str:
    """The head of a page before its cells, which depends only on the theme."""
    return page(nbformat.v4.new_notebook(), theme).partition("<main>")[0]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def heads() -> Mapping[str, str]:
    return {theme: head(theme) for theme in ("light", "dark")}


@pytest.fixture(scope="module", params=NOTEBOOKS, ids=lambda f: f.stem)
def shots(request: Any, chromium: Browser, heads: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shot]:
    """A screenshot of a notebook and the report of `readable.js`, for each view."""
    folder = Path(os.environ.get("RUNE_TEST_SCREENS") or tmp_path_factory.mktemp("screens"))
    cells = page(nbformat.read(request.param, 4), "light").partition("<main>")[2]
    views: dict[str, Shot] = {}
    for theme in ("light", "dark"):
        names = [name for name, view in VIEWS.items() if view.dark == (theme == "dark")]
        file = folder / f"{request.param.stem}-{theme}.html"
        file.write_text(f"{heads[theme]}<main>{cells}")
        looks = chromium.look(file.as_uri(), [VIEWS[n] for n in names], f"({READABLE})({OUTPUTS!r})")
        views |= dict(zip(names, looks, strict=True))
    for name, shot in views.items():
        (folder / f"{request.param.stem}-{name}.png").write_bytes(shot.png)
    return views


def answers(shots: Mapping[str, Shot], question: str) -> dict[str, Any]:
    return {name: shot.answer[question] for name, shot in shots.items()}


def nothing(value: object) -> dict[str, object]:
    return dict.fromkeys(VIEWS, value)


def test_no_cell_has_failed(shots: dict[str, Shot]):
    assert answers(shots, "errors") == nothing(0)


def test_every_picture_is_loaded_and_none_is_empty(shots: dict[str, Shot]):
    assert min(answers(shots, "pictures").values()) >= 4
    assert answers(shots, "broken") == nothing([])
    assert answers(shots, "empty") == nothing(0)


def test_a_page_is_as_wide_as_its_window(shots: dict[str, Shot]):
    assert answers(shots, "overflow") == nothing(0)


def test_words_of_outputs_contrast_with_their_background(shots: dict[str, Shot]):
    assert min(answers(shots, "texts").values()) >= 10
    assert answers(shots, "faint") == nothing([])


def test_photographs_are_light_and_dark_and_not_empty(shots: dict[str, Shot]):
    for name, shot in shots.items():
        photograph = Image.open(BytesIO(shot.png))
        assert photograph.width == VIEWS[name].width
        grey = np.asarray(photograph.convert("L").reduce(2)) / 255
        assert grey.std() > 0.05
        assert (np.median(grey) < 0.5) == VIEWS[name].dark


# --- the eye itself -------------------------------------------------------------------------------

FAULTS = """<body style="background: white; color: black"><main>
<p style="color: #bbb">pale</p><p style="opacity: 0.3">faded</p><p>good</p>
<p style="display: none; color: #eee">hidden</p>
<p style="background: black"><span style="color: #222">dark</span> <span style="color: white">good</span></p>
<img src="nowhere.png" width="40" height="40"><svg width="3" height="3"></svg><svg width="900" height="20"></svg>
</main>"""


def test_faults_of_a_page_are_detected(chromium: Browser, tmp_path: Path):
    file = tmp_path / "page.html"
    file.write_text(FAULTS)

    (shot,) = chromium.look(file.as_uri(), [View(width=390)], f"({READABLE})('main')")

    assert [words for _, words in shot.answer["faint"]] == ["pale", "faded", "dark"]
    assert len(shot.answer["broken"]) == shot.answer["empty"] == 1
    assert shot.answer["overflow"] > 400
