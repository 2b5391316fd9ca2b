"""Pictures of the blocks of an array: boxes for a terminal, a table for a notebook.

A vector is a row of blocks, a matrix a grid of them. Devices that hold the same block share a box.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from rune.backends import Device
from rune.dims import Size
from rune.errors import ArgumentError
from rune.records import dataclass
from rune.sharding.shardings import Block, Sharding


@dataclass(frozen=True, slots=True)
class Grid:
    """The blocks of an array as a grid.

    rows, columns: the part of the axis of each, as `0:4`; a vector has one row, without a name
    holders:       the devices of each block, row by row
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    holders: tuple[tuple[tuple[Device, ...], ...], ...]


def can_draw(shape: Sequence[Size]) -> bool:
    """Whether an array is a vector or a matrix."""
    return len(shape) in (1, 2)


def require_drawable(operation: str, shape: Sequence[Size]) -> None:
    """Errors: ArgumentError unless there are one or two axes."""
    if not can_draw(shape):
        raise ArgumentError(
            f"{operation}: cannot draw the blocks of {list(shape)} (1 or 2 axes required)",
            hint="pass a slice, x[0], or x.reshape(-1, x.shape[-1])",
        )


def grid_of(operation: str, shape: Sequence[int], sharding: Sharding) -> Grid:
    """The blocks of a vector or a matrix.

    Errors: ArgumentError for another rank; those of the sharding.
    """
    require_drawable(operation, shape)
    holders: dict[tuple[str, ...], list[Device]] = {}
    for device, block in sharding.devices_indices_map(shape).items():
        holders.setdefault(_parts(block, shape), []).append(device)
    rows, columns = (tuple(dict.fromkeys(part[axis] for part in holders)) for axis in (-2, -1))
    rows, columns = (tuple(sorted(parts, key=_start)) for parts in (rows, columns))
    by_place = tuple(tuple(tuple(holders[row, column]) for column in columns) for row in rows)
    return Grid(rows, columns, by_place)


def _parts(block: Block, shape: Sequence[int]) -> tuple[str, str]:
    """The row and the column of a block; the row of a vector has no name."""
    names = ["{}:{}".format(*part.indices(size)) for part, size in zip(block, shape, strict=True)]
    return ("", *names)[-2:]  # type: ignore[return-value]


def _start(part: str) -> int:
    return int(part.split(":")[0] or 0)


def label(devices: Iterable[Device]) -> str:
    """The names of devices, `cpu:0,1 vulkan:0`."""
    numbers: dict[str, list[str]] = {}
    for device in devices:
        kind, _, number = device.name.partition(":")
        numbers.setdefault(kind, []).append(number)
    return " ".join(f"{kind}:{','.join(of_kind)}" for kind, of_kind in numbers.items())


def text(grid: Grid) -> str:
    """The grid in boxes, with the parts of the axes above and to its left."""
    labels = [[label(devices) for devices in row] for row in grid.holders]
    width = 2 + max(len(name) for name in (*grid.columns, *(name for row in labels for name in row)))
    margin = max(map(len, grid.rows))
    indent = " " * (margin + 1 if margin else 0)

    def rule(first: str, between: str, last: str) -> str:
        return indent + first + between.join(["─" * width] * len(grid.columns)) + last

    lines = [
        f"{row.rjust(margin) + ' ' if margin else ''}│{'│'.join(name.center(width) for name in names)}│"
        for row, names in zip(grid.rows, labels, strict=True)
    ]
    body = f"\n{rule('├', '┼', '┤')}\n".join(lines)
    head = f"{indent} {' '.join(column.center(width) for column in grid.columns)}".rstrip()
    return "\n".join([head, rule("┌", "┬", "┐"), body, rule("└", "┴", "┘")])


# The cells of a notebook share their styles, so each element has its own.
_CELL = "padding: 6px 14px; text-align: center; font: 12px monospace"


def html_table(grid: Grid) -> str:
    """The grid as an HTML table, a colour for each block, in the notebook's own text colour."""
    columns = "".join(f'<th style="{_CELL}">{column}</th>' for column in grid.columns)
    rows = (
        f'<tr><th style="{_CELL}">{row}</th>'
        + "".join(_cell(devices, number * len(holders) + n, grid) for n, devices in enumerate(holders))
        + "</tr>"
        for number, (row, holders) in enumerate(zip(grid.rows, grid.holders, strict=True))
    )
    return f'<table style="border-collapse: collapse"><tr><td></td>{columns}</tr>{"".join(rows)}</table>'


def _cell(devices: Iterable[Device], number: int, grid: Grid) -> str:
    hue = 360 * number // (len(grid.rows) * len(grid.columns))
    colour = f"background: hsla({hue}, 70%, 50%, 0.3); border: 1px solid #8888"
    return f'<td style="{_CELL}; {colour}">{html.escape(label(devices))}</td>'


def array_html(shape: Sequence[int], sharding: Sharding, contents: str) -> str:
    """The view of a sharded array in a notebook: its blocks, and its text below."""
    title = f'<div style="font: 12px monospace">{html.escape(f"{sharding!r}")}</div>'
    text = f'<pre style="font-family: monospace">{html.escape(contents)}</pre>'
    return f"<div>{title}{html_table(grid_of('array', shape, sharding))}{text}</div>"
