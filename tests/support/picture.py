"""Pictures of notebook views: HTML is laid out and drawn, then compared with a stored PNG.

The fonts are matplotlib's own, so that a picture looks alike on every machine. Two pictures agree
if their brightness, averaged over small blocks, agrees in all but a few blocks: this tolerates
other rounding of edges and letters, but no visible change. `--accept` stores the new picture.
"""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from PIL import Image

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
FACES = "\n".join(
    f"@font-face {{ font-family: {family}; font-weight: {weight}; src: url('file://{FONTS}/{file}.ttf') }}"
    for family, weight, file in (
        ("Sans", "normal", "DejaVuSans"),
        ("Sans", "bold", "DejaVuSans-Bold"),
        ("Mono", "normal", "DejaVuSansMono"),
        ("Mono", "bold", "DejaVuSansMono-Bold"),
    )
)
PAGE = f"""{FACES}
body {{ margin: 12px; background: white; color: black; font-family: Sans; font-size: 13px; }}
div, span, b, summary, li, i, h4 {{ font-family: Sans !important; }}
svg, svg text, pre, code, table, td, th {{ font-family: Mono !important; }}
"""
BLOCK = 4  # side of a block in pixels
DIFFERENCE = 0.15  # a visible difference of a block's brightness
COLOURS = 64  # of a stored picture, to keep it small
SHARE = 1.5e-4  # of the blocks, that may differ


def draw(html: str, path: Path, width: int = 900) -> np.ndarray:
    """The page as a PNG at `path`, and its brightness, 0 to 1, as [height, width]."""
    plutoprint = pytest.importorskip("plutoprint", reason="plutoprint has no wheel for this platform")
    pixel = plutoprint.UNITS_PX
    size = plutoprint.PageSize(width * pixel, 100 * pixel)
    book = plutoprint.Book(size, plutoprint.PAGE_MARGINS_NONE, plutoprint.MEDIA_TYPE_SCREEN)
    book.load_html(html, user_style=PAGE)
    extent = (math.ceil(book.get_document_width()), math.ceil(book.get_document_height()))
    with plutoprint.ImageCanvas(*extent) as canvas:
        canvas.clear_surface(1, 1, 1)
        book.render_document(canvas)
        canvas.write_to_png(str(path))
    return brightness(path)


def brightness(path: Path) -> np.ndarray:
    """A PNG in grey, 0 to 1."""
    return np.asarray(Image.open(path).convert("L")) / 255


def differing(a: np.ndarray, b: np.ndarray) -> float:
    """The share of blocks whose brightness differs; 1 for pictures of another size."""
    if a.shape != b.shape:
        return 1.0
    height, width = (n // BLOCK * BLOCK for n in a.shape)
    blocks = (a - b)[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK)
    return float((abs(blocks.mean(axis=(1, 3))) > DIFFERENCE).mean())


def expect_picture(config: pytest.Config, golden: Path, html: str, tmp_path: Path) -> None:
    """Compare the drawn page with a stored picture, or with --accept store it."""
    screenshot = tmp_path / golden.name
    picture = draw(html, screenshot)
    if config.getoption("--accept"):
        Image.open(screenshot).quantize(COLOURS).save(golden, optimize=True)
    share = differing(brightness(golden), picture)
    assert share <= SHARE, f"{share:.2%} of {golden.name} differ from {screenshot}; look at both"
