"""Bar charts: one or more adjacent bars for each row."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence

from rune.drawing.svg import COLOURS, LETTER, Picture, legend, picture, text

WIDTH, BAR, GAP, TOP = 420, 13, 7, 40  # [px]


def bars(
    amounts: Mapping[str, Sequence[float | None]], names: Sequence[str], title: str, label_of: Callable[[float], str]
) -> Picture:
    """A bar chart of amounts; each row has one for each name, and None leaves a gap.

    label_of: formats an amount as the text beside its bar
    """
    margin = 14 + LETTER * max(map(len, amounts), default=0)
    most = max((a for row in amounts.values() for a in row if a is not None), default=0.0) or 1.0
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}
    shapes = [text(margin, 12, title, 'font-weight="bold"'), *legend(colours.items(), margin, 28)]
    y = float(TOP)
    for label, row in amounts.items():
        shapes.append(text(margin - 8, y + BAR * len(row) / 2 + 4, label, 'text-anchor="end"'))
        for amount, colour in zip(row, colours.values(), strict=True):
            if amount is not None:
                shapes.append(
                    _bar(margin, y, WIDTH * amount / most, colour, f"{label}: {label_of(amount)}", label_of(amount))
                )
            y += BAR
        y += GAP
    return picture((margin + WIDTH + 90, y + 4), title, shapes)


def _bar(x: float, y: float, width: float, colour: str, note: str, words: str) -> str:
    label = text(x + max(width, 1) + 6, y + 9, words, 'font-size="10"')
    return (
        f"<g><title>{html.escape(note)}</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{BAR - 2}" fill="{colour}" '
        f'fill-opacity="0.6"/>{label}</g>'
    )
