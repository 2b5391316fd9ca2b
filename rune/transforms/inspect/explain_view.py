"""The notebook view of an explanation, as HTML: figures, the memory plan, each step's cost, why
kernels were not fused, and the text of every stage, folded.

It is one string without scripts, in the notebook's own text colour, light or dark.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from rune.dims import Size
from rune.lowering.explain import Costs, Lowered
from rune.lowering.kernelize.cost import estimate
from rune.lowering.kernels import NotFused
from rune.lowering.plan import Plan
from rune.lowering.steps import StepCost, numbered
from rune.profiling import bytes_text, time_text
from rune.transforms.inspect.plan_picture import KERNEL, ROUTINE, plan_svg, typical_sizes
from rune.transforms.inspect.times import StepTime, times_rows

# Every rule is scoped by one class, because the cells of a notebook share their styles.
STYLE = """<style>
.rune-explain { font-family: sans-serif; font-size: 13px; }
.rune-explain h4 { font-size: 14px; margin: 14px 0 6px; }
.rune-explain .figures span { display: inline-block; margin: 0 20px 4px 0; }
.rune-explain .figures b { font-size: 16px; }
.rune-explain .picture { overflow-x: auto; }
.rune-explain .steps { overflow: auto; max-height: 480px; }
.rune-explain table { border-collapse: collapse; font-family: monospace; font-size: 12px; }
.rune-explain th, .rune-explain td { padding: 2px 12px; text-align: right; white-space: nowrap; }
.rune-explain th { border-bottom: 1px solid #8888; }
.rune-explain .name { text-align: left; }
.rune-explain .share { width: 90px; padding: 2px 6px; text-align: left; }
.rune-explain i { font: 12px sans-serif; padding-left: 14px; opacity: 0.75; }
.rune-explain .share div { height: 8px; }
.rune-explain ul { margin: 0; padding-left: 20px; }
.rune-explain code { font-size: 12px; }
.rune-explain pre { font-size: 12px; overflow-x: auto; }
</style>"""
KEY = (
    f'<i><span style="color:{KERNEL}">■</span> kernel</i>'
    f'<i><span style="color:{ROUTINE}">■</span> routine, copy, loop or branch</i>'
)


def view(
    title: str,
    lowering: Lowered,
    seconds: Mapping[str, float],
    times: Sequence[StepTime],
    sections: Iterable[tuple[str, str]],
) -> str:
    """The complete view; `sections` are titles and folded texts."""
    parts = [
        f"<h4>{html.escape(title)}</h4>",
        _figures(lowering.costs(), seconds),
        _memory(lowering.plan),
        f'<h4>Steps{KEY}</h4><div class="steps">{_table(lowering.steps())}</div>',
        _step_times(times),
        _reasons(lowering.kernels.not_fused),
        "<h4>Stages</h4>",
        *(_fold(*section) for section in sections),
    ]
    return f'{STYLE}<div class="rune-explain">{"".join(parts)}</div>'


def _memory(plan: Plan) -> str:
    # Symbolic sizes are drawn at typical values, which the note names.
    picture, sizes = plan_svg(plan), typical_sizes(plan)
    note = f"<i>drawn for {html.escape(sizes)}</i>" if sizes else ""
    head = f"<h4>Memory of intermediate values{note}</h4>"
    return f'{head}<div class="picture">{picture}</div>' if picture else ""


def count_text(number: int) -> str:
    """A number for people.

    >>> count_text(1280), count_text(1352449)
    ('1.28 k', '1.35 M')
    """
    for unit, power in (("T", 12), ("G", 9), ("M", 6), ("k", 3)):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {unit}"
    return str(number)


def _bytes(size: Size) -> str:
    return bytes_text(size) if isinstance(size, int) else f"{html.escape(str(size))} B"


def _count(size: Size) -> str:
    return count_text(size) if isinstance(size, int) else html.escape(str(size))


def _figures(costs: Costs, seconds: Mapping[str, float]) -> str:
    stage_times = ", ".join(f"{stage} {1e3 * t:.1f} ms" for stage, t in seconds.items())
    figures = [
        (_count(costs.launches), "kernel" if costs.launches == 1 else "kernels", "started in one run"),
        (_count(costs.calls + costs.copies), "calls and copies", "of routines, of values"),
        (_bytes(costs.bytes_moved), "read and written", f"{costs.bytes_moved} bytes"),
        (_count(costs.flops), "operations", f"{costs.flops}"),
        (_bytes(costs.arena_bytes), "arena", f"{costs.live_peak_bytes} bytes alive at once"),
        (f"{1e3 * sum(seconds.values()):.0f} ms", "to compile", stage_times),
    ]
    spans = (f'<span title="{html.escape(t)}"><b>{n}</b> {unit}</span>' for n, unit, t in figures)
    return f'<div class="figures">{"".join(spans)}</div>'


def _table(steps: Sequence[StepCost]) -> str:
    """A row for each step; a step inside a loop counts once."""
    head = '<th></th><th class="name">step</th><th>read</th><th>written</th>'
    head += '<th class="share">both</th><th>operations</th><th class="share"></th><th>per byte</th>'
    # Bars compare steps within one column, so each column has its own scale.
    most_bytes = max((estimate(s.bytes_moved) for s in steps), default=0)
    most_flops = max((estimate(s.flops) for s in steps), default=0)
    rows = (
        f'<td class="name">{number}</td><td class="name">{html.escape(s.name)}</td>'
        f"<td>{_bytes(s.bytes_read)}</td><td>{_bytes(s.bytes_written)}</td>"
        f"{_share(s.bytes_moved, most_bytes, s)}<td>{_count(s.flops)}</td>"
        f"{_share(s.flops, most_flops, s)}<td>{_ratio(s.flops, s.bytes_moved)}</td>"
        for number, s in numbered(steps)
    )
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{r}</tr>' for r in rows)}</table>"


def _step_times(times: Sequence[StepTime]) -> str:
    """Predicted and measured times side by side, where something was measured."""
    if all(t.measured is None for t in times):
        return ""
    (first, *names), *rows = times_rows(times)
    head = f'<th class="name">{first}</th>' + "".join(f"<th>{name}</th>" for name in names)
    cells = (f'<td class="name">{html.escape(n)}</td>' + "".join(f"<td>{t}</td>" for t in ts) for n, *ts in rows)
    lines = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<h4>Times of one run of each step</h4><table><tr>{head}</tr>{lines}</table>"


def _share(part: Size, most: int, step: StepCost) -> str:
    """A bar, full for the largest step."""
    # A plan that moves nothing would divide by 0.
    width = 100 * estimate(part) / max(most, 1)
    color = KERNEL if step.is_kernel else ROUTINE
    bar = f'<div style="width:{width:.0f}%;background:{color}"></div>'
    return f'<td class="share">{bar}</td>'


def _ratio(flops: Size, size: Size) -> str:
    bytes_moved = estimate(size)
    return f"{estimate(flops) / bytes_moved:.2g}" if bytes_moved else ""


def _reasons(not_fused: Sequence[NotFused]) -> str:
    """Why neighbours were not fused: the pairs by reason, and how often each occurs."""
    values: dict[str, dict[str, list[str]]] = {}
    for n in not_fused:
        pairs = values.setdefault(n.why, {})
        pairs.setdefault(f"{n.producer} → {n.consumer}", []).append(f"{n.value}: {n.value.type}")
    items = (
        f"<li>{html.escape(why)}: <code>{html.escape(', '.join(map(_pair, *zip(*pairs.items()))))}</code></li>"
        for why, pairs in values.items()
    )
    return f"<h4>Why not one kernel</h4><ul>{''.join(items)}</ul>" if values else ""


def _pair(names: str, values: Sequence[str]) -> str:
    """`a → b (%5: f32[3])`, or the number of values."""
    distinct_values = dict.fromkeys(values)
    count = len(distinct_values)
    return f"{names} ({count} values)" if count > 1 else f"{names} ({values[0]})"


def _fold(title: str, text: str) -> str:
    body = f"<pre>{html.escape(text)}</pre>"
    return f"<details><summary>{html.escape(title)}</summary>{body}</details>"


# --- of a mesh --------------------------------------------------------------------------------


def mesh_view(title: str, summary: str, parts: Sequence[tuple[str, float]], sections: Iterable[tuple[str, str]]) -> str:
    """The view of a call on a mesh: the parts of its time, and folded texts.

    parts: the parts of the time, with their seconds; none where nothing was measured.
    """
    head = f"<h4>{html.escape(title)}</h4><div>{html.escape(summary.partition(chr(10))[0])}</div>"
    folds = "".join(_fold(*section) for section in sections)
    return f'{STYLE}<div class="rune-explain">{head}{_times(parts)}{folds}</div>'


def _times(parts: Sequence[tuple[str, float]]) -> str:
    """A row for each part that takes time, with a bar: full for the longest."""
    longest = max((seconds for _, seconds in parts), default=0)
    rows = (
        f'<tr><td class="name">{html.escape(name)}</td><td>{time_text(seconds)}</td><td class="share">'
        f'<div style="width:{100 * seconds / longest:.0f}%;background:{KERNEL}"></div></td></tr>'
        for name, seconds in parts
        if seconds > 0
    )
    return f"<table>{''.join(rows)}</table>" if parts else ""
