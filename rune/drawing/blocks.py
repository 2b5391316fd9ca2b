"""Blocks of an array as a grid of cells, each with the name and colour of its holder."""

from __future__ import annotations

from collections.abc import Sequence

from rune.drawing.svg import COLOURS, LETTER, Picture, picture, text

CELL, LEAST = 38, 70  # height and least width of a cell [px]


def blocks(rows: Sequence[str], columns: Sequence[str], holders: Sequence[Sequence[str]], title: str) -> Picture:
    """The picture of a grid, from the names of its rows and columns, and of each cell's holder."""
    margin = 10 + LETTER * max(map(len, rows), default=0)
    width = max(LEAST, 16 + LETTER * max(len(h) for row in (*holders, columns) for h in row))
    names = dict.fromkeys(h for row in holders for h in row)
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}
    shapes = [text(margin, 12, title, 'font-weight="bold"')]
    for k, column in enumerate(columns):
        shapes.append(text(margin + (k + 0.5) * width, 30, column, 'text-anchor="middle" opacity="0.75"'))
    for j, row in enumerate(rows):
        y = 36 + j * CELL
        shapes.append(text(margin - 8, y + CELL / 2 + 4, row, 'text-anchor="end" opacity="0.75"'))
        for k, holder in enumerate(holders[j]):
            shapes.append(_cell(margin + k * width, y, width, holder, colours[holder]))
    size = (max(margin + width * len(columns), margin + LETTER * len(title)) + 4, 40 + CELL * len(rows))
    return picture(size, title, shapes)


def _cell(x: float, y: float, width: float, name: str, colour: str) -> str:
    label = text(x + width / 2, y + CELL / 2 + 4, name, 'text-anchor="middle"')
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{CELL}" fill="{colour}" fill-opacity="0.3" '
        f'stroke="{colour}"/>{label}'
    )
