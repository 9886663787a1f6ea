"""The page of a study: tables that can be sorted, figures, and behind each cell its proof or counterexample."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from layoutproof.studies.report.facts import facts_of
from layoutproof.studies.report.results import Results
from layoutproof.studies.report.tables import Entry, Table, key_of


def study_page(results: Results) -> str:
    """The page, which needs nothing from elsewhere."""
    title, about = escape(results.study.title), escape(results.study.about.strip())
    facts = "".join(f"<li>{_sentence(f.sentence)} {_links(f.keys)}</li>" for f in facts_of(results.records))
    tables = "".join(map(_table, results.tables))
    figures = "".join(f"<h2>{escape(name)}</h2>{svg}" for name, svg in results.figures.items())
    data = json.dumps({key_of(r): _shown(r) for r in results.records}, ensure_ascii=False).replace("<", "\\u003c")
    style, script = _asset("study.css"), _asset("study.js")
    said = f"<h2>What the tables say</h2><ul>{facts}</ul>" if facts else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{style}</style></head><body>'
        f"<h1>{title}</h1><p>{about}</p>{tables}{figures}{said}"
        f'<div id="cell" role="dialog" hidden></div><script type="application/json" id="cells">{data}</script>'
        f"<script>{script}</script></body></html>\n"
    )


def _asset(name: str) -> str:
    return (files("layoutproof.cli.study") / "assets" / name).read_text(encoding="utf-8")


def _shown(record: Mapping[str, Any]) -> dict[str, Any]:
    wanted = ("verdict", "licences", "breaks", "reason", "claims", "costs", "certificate", "counterexample")
    return {name: record.get(name) for name in wanted}


def _table(table: Table) -> str:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (*table.corner, *table.columns))
    rows = "".join(
        "<tr>" + "".join(f'<th scope="row">{escape(word)}</th>' for word in heads_) + _entries(entries) + "</tr>"
        for heads_, entries in table.rows
    )
    return (
        f'<h2 id="{escape(table.name)}">{escape(table.title)}</h2><p class="note">{_sentence(table.note)}</p>'
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _entries(entries: Sequence[Entry]) -> str:
    return "".join(_entry(entry) for entry in entries)


def _entry(entry: Entry) -> str:
    kind = entry.verdict.replace(" ", "-")
    if entry.key is None:
        return f"<td>{escape(entry.text)}</td>"
    return (
        f'<td class="{kind}" title="{escape(entry.tip)}"><a href="#{escape(entry.key)}">{escape(entry.text)}</a></td>'
    )


def _links(keys: Sequence[str]) -> str:
    return "(" + ", ".join(f'<a href="#{escape(key)}"><code>{escape(key)}</code></a>' for key in keys) + ")"


def _sentence(text: str) -> str:
    """Text whose words in backticks are code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts))
