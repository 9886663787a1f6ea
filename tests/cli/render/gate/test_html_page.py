"""The HTML report as text: complete in itself, safe whatever it is told, equal for equal runs, and readable without its
script.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.cli.gate.scheduled import HOSTILE, samples
from tests.cli.render.gate.made import finding, many, outcome, summary_of
from tests.shares import one_in

from layoutproof.cli.catalogue import all_codes
from layoutproof.cli.gate.outcomes import Fate, Outcome
from layoutproof.cli.render.gate import html as page
from layoutproof.cli.render.gate import html_rows as pieces
from layoutproof.cli.render.gate.html import Glance, blocks, explained, headline, render_html, words

MESSAGE = HOSTILE.translate({0xD800: "\N{REPLACEMENT CHARACTER}", 0: "\N{REPLACEMENT CHARACTER}"})


@dataclass
class Read(HTMLParser):
    """A page taken apart: every tag with its attributes, the text of scripts and styles, all other text."""

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    raw: list[tuple[dict[str, str | None], str]] = field(default_factory=list)
    text: str = ""
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else ""
        if self.inside:
            self.raw.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside:
            attributes, text = self.raw[-1]
            self.raw[-1] = (attributes, text + data)
        else:
            self.text += data

    @property
    def data(self) -> dict[str, Any]:
        """What the page's data elements hold, by their ids."""
        return {str(a["id"]): json.loads(text) for a, text in self.raw if a.get("type") == "application/json"}


def rendered(outcomes: Iterable[Outcome]) -> str:
    """The report of a run."""
    kept = list(outcomes)
    out = io.StringIO()
    render_html(iter(kept), summary_of(kept), out)
    return out.getvalue()


def read(text: str) -> Read:
    """A page taken apart."""
    parser = Read()
    parser.feed(text)
    parser.close()
    return parser


def entries(data: dict[str, Any], name: str) -> Iterator[Any]:
    """A list that was written in pieces; each piece begins where the index says."""
    found: list[Any] = []
    for number, start in enumerate(data["index"][{"body": "bodies"}.get(name, name)]):
        assert start == len(found)
        found += data[f"{name}{number}"]
    yield from found


@one_in(4)
def test_the_page_asks_nobody_for_anything() -> None:
    """No element names another address, and the policy allows the page's own script and style only, by their hashes."""
    parsed = read(rendered(samples()))
    for tag, attributes in parsed.tags:
        assert tag not in ("iframe", "object", "embed", "img", "base")
        assert attributes.get("src") is None
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    (policy,) = (
        a["content"] or "" for t, a in parsed.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy and "http" not in policy
    own = [text for attributes, text in parsed.raw if attributes.get("type") is None]
    assert len(own) == 2
    assert all(f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in policy for text in own)


def test_hostile_texts_stay_texts() -> None:
    """Whatever names, messages and source lines hold, no element comes of it, and the data reads back as it was."""
    text = rendered(samples())
    parsed = read(text)
    assert not any("onerror" in attributes for _, attributes in parsed.tags)
    assert [t for t, _ in parsed.tags].count("script") == len(parsed.data) + 1
    assert MESSAGE in parsed.text
    text.encode()
    bodies = list(entries(parsed.data, "body"))
    assert bodies[5]["findings"][0]["message"] == HOSTILE.replace("\ud800", "\N{REPLACEMENT CHARACTER}")
    assert "alert(1)</script>" not in text


def test_equal_runs_give_equal_bytes() -> None:
    """Two reports of the same outcomes are the same, whether these come from a list or one by one."""
    outcomes = samples()
    out = io.StringIO()
    render_html(outcomes, summary_of(outcomes), out)
    assert out.getvalue() == rendered(outcomes)


def test_the_essentials_need_no_script() -> None:
    """The verdict, the counts, each failure with its message, place and drawing, and every item's name stand in the
    page as text.
    """
    bad = finding(message="a store computes\nanother value", drawing=("old: 1", "new: 2"), help="use 0")
    parsed = read(rendered([outcome(bad), outcome(name="gates.py::fine")]))
    for words_ in (
        "1 of 2 items fails",
        "1 refuted",
        "1 proved",
        "LP221",
        "a store computes",
        "another value",
        "old: 1\nnew: 2",
        "use 0",
    ):
        assert words_ in re.sub(r"[ ]+", " ", parsed.text)
    assert "gates.py:12:5" in parsed.text and "def wrong_pad():" in parsed.text and "gates.py::fine" in parsed.text


def test_codes_are_explained_in_the_page() -> None:
    """The code of a finding leads to its explanation, which is in the page; of other codes there is none."""
    parsed = read(rendered([outcome(finding("LP314"))]))
    assert ("a", {"class": "code", "href": "#code-LP314"}) in parsed.tags
    assert [a["id"] for t, a in parsed.tags if t == "article" and a.get("id")] == ["code-LP314"]


def test_every_code_can_be_explained() -> None:
    """The Markdown of every code there is comes apart into blocks that hold text, and a code that there is not is left
    out.
    """
    found = explained([*all_codes(), "LP999"])
    assert set(found) == set(all_codes())
    assert all(meaning["what"] for meaning in found.values())
    assert all(content for meaning in found.values() for _, parts in meaning["parts"] for _, content in parts)


def test_markdown() -> None:
    """Paragraphs, lists and fenced code are told apart, and code within a line from words."""
    text = "One `a < b`\nmore.\n\n* first\n  still\n* [second](x.md)\n\n```console\n$ x\n\ny\n```\nend"
    assert list(blocks(text)) == [
        ("text", [(False, "One "), (True, "a < b"), (False, " more.")]),
        ("list", [[(False, "first still")], [(False, "second")]]),
        ("code", "$ x\n\ny"),
        ("text", [(False, "end")]),
    ]
    assert words("**bold** `x**y`") == [(False, "bold "), (True, "x**y")]


@one_in(4)
def test_what_items_share_is_written_once() -> None:
    """A thousand schedules of the same programs make a page hardly larger than one."""
    first = samples()[0]
    alone, together = (len(rendered(replace(first, name=f"line {k}") for k in range(count))) for count in (1, 1_000))
    assert together - alone < 1_000 * 1_500


def test_data_in_small_pieces_reads_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the pieces are, the index says where each begins, and every program can be put together."""
    whole = read(rendered(samples())).data
    monkeypatch.setattr(pieces, "_PIECE", 200)
    small = read(rendered(samples())).data
    assert len(small) > len(whole)
    for name in ("body", "shared", "lines"):
        assert list(entries(small, name)) == list(entries(whole, name))
    lines, shared = list(entries(small, "lines")), list(entries(small, "shared"))
    stage = next(entries(small, "body"))["parts"][0]["stages"][0]
    assert lines[shared[stage][1]].startswith("def row_sum(A: T.Buffer")


def test_a_large_page_leaves_programs_of_passing_items_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past a limit, items that pass keep their steps but lose programs and layouts, which is said; those that fail keep
    theirs.
    """
    monkeypatch.setattr(page, "_FOR_PASSING", 0)
    bodies = list(entries(read(rendered(samples())).data, "body"))
    assert bodies[0]["left_out"] and bodies[0]["parts"] is None and bodies[0]["steps"]
    assert not bodies[1]["left_out"] and bodies[1]["parts"]


def test_items_beyond_the_list_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are more items than a list holds, those that fail stay in it longer, and the others are counted by
    what they came to.
    """
    monkeypatch.setattr(page, "_MOST_ROWS", 10)
    outcomes = list(many(100))
    index = read(rendered(outcomes)).data["index"]
    failing = sum(not one.passes for one in outcomes)
    assert sum(row[3] for row in index["rows"]) == failing
    assert index["left_out"] == [100 - len(index["rows"]), 0]
    monkeypatch.setattr(page, "_MOST_FAILING_ROWS", 20)
    index = read(rendered(outcomes)).data["index"]
    assert len(index["rows"]) == 20 and sum(index["left_out"]) == 80


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([], "Nothing was checked"),
        ([outcome()], "The item passes"),
        ([outcome(), outcome(finding(fate=Fate.KNOWN))], "All 2 items pass"),
        ([outcome(finding()), outcome()], "1 of 2 items fails"),
        (list(many(8)), "6 of 8 items fail"),
    ],
)
def test_headline(outcomes: list[Outcome], told: str) -> None:
    """The first line says how many items fail, and what was allowed or known does not."""
    assert headline(summary_of(outcomes)) == told
    assert told in read(rendered(outcomes)).text


def test_the_template_engine_loads_late() -> None:
    """Importing the renderer loads no template engine, no numpy and no solver."""
    heavy = ("jinja2", "numpy", "z3", "islpy", "rich")
    code = f"import sys, layoutproof.cli.render.gate.html; print([m for m in {heavy!r} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout == "[]\n"


def test_the_figures_at_the_top() -> None:
    """The start page counts verdicts, files, preconditions and the slowest items, and says what an earlier run took."""
    fast, slow = outcome(name="a.py::fast", path="a.py"), outcome(name="b.py::slow", path="b.py")
    kept = [
        replace(fast, seconds=0.25, notes=("precondition: m fits int32",)),
        replace(slow, seconds=12.5, cached=True, notes=("precondition: m fits int32", "remark")),
        replace(samples()[2], seconds=0.0),
    ]
    values = Glance()
    for each in kept:
        values.add(each)
    shown = values.values(summary_of(kept))
    assert [(word, count) for word, count, _, _ in shown["bar"]] == [(kept[2].word, 1), ("proved", 2)]
    assert shown["slowest"] == [("12.5 s", "b.py::slow", True), ("250 ms", "a.py::fast", False)]
    assert shown["notes"] == [(2, "precondition: m fits int32"), (1, "remark")]
    assert sum(count for _, counts in shown["files"] for _, count in counts) == 3
    text = rendered(kept)
    assert "12.5 s (in an earlier run)" in text and "By file" in text
    assert "By file" not in rendered(kept[:1])


def test_a_refuted_item_was_not_proved_earlier() -> None:
    """Of an item that is not proved the page says that it was judged in an earlier run, not that it was proved."""
    bad = next(each for each in samples() if each.word == "refuted")
    text = rendered([replace(bad, cached=True), outcome(name="a.py::fine")])
    assert "1 judged in an earlier run" in read(text).text and "proved in an earlier run" not in read(text).text
