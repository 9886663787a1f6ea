"""Public objects as HTML, for notebooks: verdicts in colour, programs highlighted, what a step changed, pictures.

Styles stand at the elements, since a notebook has many outputs on one page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial, singledispatch
from html import escape

from layoutproof.graph.graph_files import print_graph
from layoutproof.graph.model.graph import Graph
from layoutproof.graph.planning.planner import Plan
from layoutproof.ir.diagnostic import LayoutproofError, counted
from layoutproof.ir.index_map import IndexMap, index_map_text
from layoutproof.ir.primfunc import IRModule, PrimFunc
from layoutproof.ir.script.printer import print_func
from layoutproof.ir.script.program_texts import program_diff, without_records
from layoutproof.ir.shown import ProgramDiff, ProgramText, ShownText
from layoutproof.lowering.compare.comparison import Comparison
from layoutproof.lowering.passes.illegal import IllegalTransform
from layoutproof.lowering.passes.steps import Step
from layoutproof.lowering.schedule.schedule import Schedule
from layoutproof.lowering.suggest.suggestion import Suggestion
from layoutproof.verify.maps.map_report import MapReport
from layoutproof.verify.verdict.verdict import Status, Verdict

_COLOURS = {"proved": "#1a7f37", "refuted": "#c62828", "unknown": "#9a6700", "vacuous": "#9a6700"}
_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)|(?P<string>\"[^\"\n]*\"|'[^'\n]*')|(?P<word>\b(?:def|for|in|if|else|with|not|and|or|lambda"
    r"|True|False|None|while|return)\b)|(?P<name>\bT\.\w+(?:\.\w+)*)|(?P<number>\b\d[\w.]*)"
)
_TOKENS = {"comment": "#6a737d", "string": "#0a6640", "word": "#8250df", "name": "#0550ae", "number": "#b35900"}
_MOST_CELLS = 96


@singledispatch
def html_of(shown: object) -> str:
    """The HTML of a public object. Raises TypeError for one that has none."""
    raise TypeError(f"{type(shown).__name__} has no HTML form")


def _div(*parts: str) -> str:
    return f'<div style="font-size:13px;line-height:1.45">{"".join(parts)}</div>'


def _pre(inner: str) -> str:
    return (
        '<pre style="margin:4px 0;padding:6px 8px;background:#f6f8fa;color:#16212b;overflow-x:auto;line-height:1.35">'
        f"{inner}</pre>"
    )


def _word(status: Status | str) -> str:
    name = str(status)
    return f'<b style="color:{_COLOURS[name]}">{name}</b>'


def _details(summary: str, *inner: str, shown: bool = False) -> str:
    return f"<details{' open' if shown else ''}><summary>{summary}</summary>{''.join(inner)}</details>"


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>"


def highlighted(text: str) -> str:
    """A program's text with coloured words."""
    parts, end = [], 0
    for found in _TOKEN.finditer(text):
        parts.append(escape(text[end : found.start()]))
        parts.append(f'<span style="color:{_TOKENS[str(found.lastgroup)]}">{escape(found[0])}</span>')
        end = found.end()
    return "".join([*parts, escape(text[end:])])


@html_of.register
def _text(shown: ShownText) -> str:
    return _pre(escape(shown))


@html_of.register
def _program_text(shown: ProgramText) -> str:
    return _pre(highlighted(shown))


@html_of.register
def _program_diff(shown: ProgramDiff) -> str:
    colours = {"+": "#d6f5de", "-": "#fde1e0"}
    lines = (
        f'<span style="background:{colours.get(line[:1], "transparent")}">{escape(line)}</span>'
        for line in shown.splitlines()
    )
    return _pre("\n".join(lines)) if shown else _div("the program is unchanged")


@html_of.register
def _function(shown: PrimFunc) -> str:
    return html_of(without_records(print_func(shown).strip()))


@html_of.register
def _module(shown: IRModule) -> str:
    return "".join(html_of(function) for function in shown.functions)


@html_of.register
def _map(shown: IndexMap) -> str:
    return _div(_code(index_map_text(shown)))


@html_of.register
def _verdict(shown: Verdict) -> str:
    needs = f", needs {escape(' '.join(shown.strictness))}" if shown.strictness else ""
    line = f"{_word(shown.status)} {escape(str(shown.claim))}{needs}"
    reason = "" if shown.reason is None else _pre(escape(shown.reason))
    return _div(line, reason, _picture(lambda: _drawn_counterexample(shown)))


@html_of.register
def _report(shown: MapReport) -> str:
    from layoutproof.cli.render.map_report import render_map

    facts = [line for line in render_map(shown).splitlines() if line.strip()]
    rows = "".join(
        f'<tr><td style="text-align:left;padding:1px 12px 1px 0;color:#57606a">{escape(line[:16].strip())}</td>'
        f'<td style="text-align:left;padding:1px 0">{_coloured(line[16:].strip())}</td></tr>'
        for line in facts
    )
    table = f'<table style="border-collapse:collapse">{rows}</table>'
    return _div(table, _picture(lambda: _drawn_map(shown)))


def _coloured(text: str) -> str:
    first, _, rest = text.partition(" ")
    return f"{_word(first)} {escape(rest)}" if first in _COLOURS else escape(text)


def _picture(draw: Callable[[], str]) -> str:
    """A picture, or why there is none: of symbolic shapes there is no box."""
    try:
        return f"<div>{draw()}</div>"
    except LayoutproofError as problem:
        return f'<div style="color:#57606a">no picture: {escape(problem.diagnostics[0].message)}</div>'


def _drawn_map(shown: MapReport) -> str:
    from layoutproof.cli.plot.map_picture import PictureOptions, scene_of_map

    return scene_of_map(shown, PictureOptions(cells=_MOST_CELLS)).svg()


def _drawn_counterexample(shown: Verdict) -> str:
    from layoutproof.cli.plot.counterexample_figure import scene_of_counterexample

    scene = None if shown.counterexample is None else scene_of_counterexample(shown.counterexample)
    return "" if scene is None else scene.svg()


def _claims(verdicts: Iterable[Verdict]) -> str:
    items = "".join(f"<li>{_word(v.status)} {escape(str(v.claim))}</li>" for v in verdicts)
    return f'<ul style="margin:2px 0 6px 0">{items}</ul>'


@html_of.register
def _step(shown: Step) -> str:
    claims = _details(counted(len(shown.verdicts), "claim", "claims"), _claims(shown.verdicts))
    difference = program_diff(print_func(shown.rewrite.old), print_func(shown.rewrite.new))
    return _div(f"{_word(shown.status)} {_code(str(shown))}", html_of(difference), claims)


@html_of.register
def _schedule(shown: Schedule) -> str:
    steps = [
        _details(f"{_word(step.status)} {number}. {_code(str(step))}", html_of(step))
        for number, step in enumerate(shown.steps)
    ]
    last = shown.steps[-1] if shown.steps else None
    difference = "" if last is None else _details("changed by the last step", html_of(shown.diff()), shown=True)
    return _div(*steps, difference, _details("the program", html_of(shown.func), shown=last is None))


@html_of.register
def _suggestion(shown: Suggestion) -> str:
    left = [
        _div(f"{_word(each.status)} {escape(each.what)}", _pre(escape(each.reason or "")), escape(each.remedy or ""))
        for each in shown.obstacles
    ]
    return _div(escape(repr(shown)[1:-1]), html_of(shown.schedule), *left)


@html_of.register
def _comparison(shown: Comparison) -> str:
    layouts = [
        f"{_code(layout.buffer)} is stored as {_code(layout.stored_as)} by {_code(layout.index_map)}"
        for layout in shown.layouts
    ]
    first = shown.verdicts[0]
    items = "".join(f"<li>{layout}</li>" for layout in layouts)
    rest = _details(counted(len(shown.verdicts), "claim", "claims"), _claims(shown.verdicts))
    return _div(html_of(first), f"<ul>{items}</ul>" if items else "", rest)


@html_of.register
def _graph(shown: Graph) -> str:
    return html_of(ProgramText(print_graph(shown)))


@html_of.register
def _plan(shown: Plan) -> str:
    from layoutproof.cli.plot.graph_figure import scene_of_choices

    kept = "no choice costs less" if shown.optimal else f"no choice costs less than {shown.least:,}"
    what = f"{escape(repr(shown)[1:-1])}; cost {shown.cost:,}, {kept}"
    return _div(what, _picture(lambda: scene_of_choices(shown).svg()))


@html_of.register
def _error(shown: LayoutproofError) -> str:
    verdicts: Sequence[Verdict] = shown.verdicts if isinstance(shown, IllegalTransform) else ()
    pictures = [_picture(partial(_drawn_counterexample, verdict)) for verdict in verdicts[:1]]
    return _div(_pre(escape(str(shown))), *pictures)
