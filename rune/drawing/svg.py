"""A picture as SVG text, which a notebook shows and a file holds, and the shapes to compose it."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from pathlib import Path

from rune.records import dataclass

LETTER, SMALL = 6.7, 6.05  # width of a letter at font sizes 11 and 10 [px]
# Distinct on white and on black, even for colour-blind readers (after Okabe and Ito, 2008).
COLOURS = (
    *("#4292c6", "#e6912c", "#35a374", "#cc6fa5", "#b8a21f", "#8d7be0"),
    *("#d4594c", "#6fa8a8", "#8c8c8c", "#a5673f", "#c9b8a0", "#6b8e4e"),
)
# A file inherits no colours from a page, so it has to set those of its text and background.
_ALONE = (
    "<style>svg { color: #1c1c1c; background: #ffffff } "
    "@media (prefers-color-scheme: dark) { svg { color: #e6e6e6; background: #181818 } }</style>"
)


@dataclass(frozen=True, slots=True)
class Picture:
    """SVG shapes, the size in pixels, and a title that says what the picture shows.

    >>> picture((100, 40), "a line", [line(0, 20, 100, 20)])
    Picture(a line, 100 x 40; shown in a notebook, or by .save("picture.svg"))
    """

    title: str
    width: float
    height: float
    body: str

    @property
    def svg(self) -> str:
        """The SVG text for embedding in a page."""
        return self._with("")

    def _with(self, style: str) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width:.0f}" height="{self.height:.0f}" '
            f'viewBox="0 0 {self.width:.0f} {self.height:.0f}" font-family="monospace" font-size="11" '
            f'fill="currentColor" role="img" style="max-width: none">'
            f"<title>{html.escape(self.title)}</title>{style}{self.body}</svg>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as an SVG file, which follows the viewer's light or dark mode.

        Errors: ValueError for a name that does not end in `.svg`; OSError if writing fails.
        """
        file = Path(path)
        if file.suffix != ".svg":
            raise ValueError(f"save: cannot write a picture as {file.name!r} (a name that ends in .svg required)")
        file.write_text(self._with(_ALONE), encoding="utf-8")
        return file

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'

    def __repr__(self) -> str:
        size = f"{self.width:.0f} x {self.height:.0f}"
        return f'Picture({self.title}, {size}; shown in a notebook, or by .save("picture.svg"))'


def picture(size: tuple[float, float], title: str, shapes: Iterable[str]) -> Picture:
    """The picture of these shapes; `size` is its width and height [px]."""
    return Picture(title, *size, "".join(shapes))


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Text with its baseline at a point; `more` holds further attributes."""
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{html.escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, more: str = 'opacity="0.35"') -> str:
    """A line in the colour of the text."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="currentColor" {more}/>'


def path(points: Iterable[tuple[float, float]], colour: str, more: str = 'stroke-width="1.6"') -> str:
    """Straight lines from point to point."""
    steps = " ".join(f"{'L' if n else 'M'}{x:.1f} {y:.1f}" for n, (x, y) in enumerate(points))
    return f'<path d="{steps}" fill="none" stroke="{colour}" {more}/>'


def legend(names: Iterable[tuple[str, str]], x: float, y: float) -> list[str]:
    """A coloured square and the name for each (name, colour), in one line from a point."""
    shapes = []
    for name, colour in names:
        shapes += [f'<rect x="{x:.1f}" y="{y - 8:.1f}" width="9" height="9" fill="{colour}"/>', text(x + 13, y, name)]
        x += 13 + LETTER * (len(name) + 2)
    return shapes


def shortened(words: str, width: float) -> str:
    """As much of the words as fits; empty if that would be less than three letters."""
    room = int(width / SMALL)
    if len(words) <= room:
        return words
    return f"{words[: room - 1]}…" if room > 3 else ""
