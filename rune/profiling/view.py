"""A profile's view in a notebook: figures, the timeline with memory below it, and tables.

The view is one string without scripts, and takes the notebook's own text colour, light or dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rune.drawing.svg import COLOURS, Picture
from rune.drawing.timeline import Area, Bar, timeline
from rune.profiling import trace_file
from rune.profiling.events import Event, Kind, row_names
from rune.profiling.texts import bytes_text, time_text

if TYPE_CHECKING:
    from rune.profiling.profile import Profile

Rows = Sequence[tuple[str, ...]]

# Every rule is scoped by one class, because all cells of a notebook share their styles.
STYLE = """<style>
.rune-profile { font-family: sans-serif; font-size: 13px; }
.rune-profile h4 { font-size: 14px; margin: 14px 0 6px; }
.rune-profile .picture { overflow-x: auto; }
.rune-profile .wide { overflow: auto; max-height: 480px; }
.rune-profile table { border-collapse: collapse; font-family: monospace; font-size: 12px; }
.rune-profile th, .rune-profile td { padding: 2px 12px; text-align: right; white-space: nowrap; }
.rune-profile th { border-bottom: 1px solid #8888; }
.rune-profile .name { text-align: left; }
</style>"""


def picture(profile: Profile) -> Picture:
    """The timeline: a band for each device and thread, and below it the memory of each device."""
    events = [*profile.events, *profile.between]
    names = row_names(trace_file.rows(events))
    bars = [_bar(names[e.row], e) for e in events]
    bars.sort(key=lambda b: [*names.values()].index(b.row))
    present = {b.kind for b in bars}
    colours = {kind.value: colour for kind, colour in zip(Kind, COLOURS, strict=True) if kind.value in present}
    title = f"timeline of {', '.join(names.values()) or 'nothing'}"
    return timeline(bars, _areas(profile), colours, (profile.start, profile.start + profile.seconds), title)


def _bar(row: str, event: Event) -> Bar:
    """A bar, whose note gives the line and how long the thread was on a processor."""
    is_known = event.seconds > 0 and not math.isnan(event.processor)
    processor = f"{time_text(event.processor)} on a processor" if is_known else ""
    share = min(1.0, event.processor / event.seconds) if is_known else 0.0
    note = ", ".join(filter(None, (event.line, processor)))
    return Bar(row, event.kind.value, event.title, event.start, event.end, note, share)


def _areas(profile: Profile) -> list[Area]:
    points: dict[str, list[tuple[float, float]]] = {}
    for moment, device, nbytes in profile.levels:
        points.setdefault(device, []).append((moment, float(nbytes)))
    return [
        Area(f"memory {device}", amounts, f"most {bytes_text(int(max(n for _, n in amounts)))}")
        for device, amounts in points.items()
    ]


def html_of(profile: Profile, head: str, tables: Sequence[tuple[str, Rows]]) -> str:
    """The view: a head, the picture, and tables with titles; it omits empty tables."""
    parts = [f"<div>{html.escape(head)}</div>", f'<div class="picture">{picture(profile).svg}</div>']
    parts += [f'<h4>{html.escape(title)}</h4><div class="wide">{table(rows)}</div>' for title, rows in tables if rows]
    return f'{STYLE}<div class="rune-profile">{"".join(parts)}</div>'


def table(rows: Rows) -> str:
    """Rows as a table: the first row is its header; the first and last columns align left."""
    head, *body = rows
    lines = (f"<tr>{_cells(row, 'td')}</tr>" for row in body)
    return f"<table><tr>{_cells(head, 'th')}</tr>{''.join(lines)}</table>"


def _cells(row: Sequence[str], tag: str) -> str:
    last = len(row) - 1
    return "".join(
        f"<{tag}{' class=name' if n in (0, last) else ''}>{html.escape(cell)}</{tag}>" for n, cell in enumerate(row)
    )
