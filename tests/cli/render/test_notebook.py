"""What notebooks show of public objects: well-formed HTML with what the object says, everything escaped."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from tests.shares import one_in
from tests.tree import ROOT

import layoutproof as lp
from layoutproof.cli.render.notebook import html_of
from layoutproof.ir.shown import ProgramText, Shown

EXAMPLES = ROOT / "examples" / "programs"
VOID = {"br", "hr", "img", "meta"}


class _Checker(HTMLParser):
    """Collects the text, and sees that every element is closed in its place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def text_of(html: str) -> str:
    """The text of a piece of HTML, which must be well-formed."""
    checker = _Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return "".join(checker.text)


def scheduled(pad_value: float = 0.0) -> lp.Schedule:
    """The row sum, its rows in padded blocks of four."""
    schedule = lp.Schedule(lp.load(EXAMPLES / "row_sum.py"))
    schedule.transform_layout("sum", "A", "lambda i, j: [i, j//4, j%4]", pad_value=pad_value)
    schedule.sequential_buffer_access("sum", "A")
    return schedule


def refusal() -> lp.IllegalTransform:
    """The branch cannot go while the padding holds 1."""
    with pytest.raises(lp.IllegalTransform) as caught:
        scheduled(1.0).remove_branching_through_overcompute("sum")
    return caught.value


SHOWN: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "map": (lambda: lp.IndexMap.from_func(lambda i, j: [j, i]), ("lambda i, j: [j, i]",)),
    "report": (
        lambda: lp.check_map("lambda i: [i//4, i%4]", (14,)),
        ("proved", "p0 == 3 and p1 >= 2", "stored as [4, 4]", "12.5%"),
    ),
    "symbolic report": (lambda: lp.check_map("lambda i: [i//4, i%4]", "n"), ("proved", "no picture")),
    "refuted report": (lambda: lp.check_map("lambda i: [i//4]", (8,)), ("refuted", "(0) and (1) both go to (0)")),
    "verdict": (lambda: lp.check_map("lambda i: [i//4]", (8,)).injective, ("refuted", "are both stored in [0]")),
    "function": (lambda: lp.load(EXAMPLES / "row_sum.py"), ("T.grid(16, m)", "B[vi] + A[vi, vj]")),
    "module": (lambda: scheduled().mod, ("T.grid(16, (m + 3) // 4, 4)",)),
    "step": (lambda: scheduled().steps[0], ("proved", "transform_layout(", "claims", "+    for p0, p1, p2")),
    "schedule": (scheduled, ("0. transform_layout(", "1. sequential_buffer_access(", "changed by the last step")),
    "refusal": (refusal, ("LP373", "expected", "after reads padding", "and padding that is read")),
    "comparison": (
        lambda: lp.compare(lp.load(EXAMPLES / "relu.py"), lp.load(EXAMPLES / "relu_packed.py")),
        ("proved", "is stored as y by lambda n, h, w, c: [n, c//4, h, w, c%4]"),
    ),
    "plan": (
        lambda: lp.plan(EXAMPLES / "network.py", {"conv": "NCHW4c"}),
        ("2 layout rewrites, unplanned 4", "layout rewrite", "naive: 4 rewrites", "planned: 2 rewrites"),
    ),
    "graph": (lambda: lp.plan(EXAMPLES / "network.py", {"conv": "NCHW4c"}).graph, ("def network", "max_pool2d")),
    "explanation": (lambda: lp.explain("LP373"), ("LP373", "What to do")),
    "difference": (lambda: scheduled().diff(), ("-", "+", "T.grid(16, (m + 3) // 4, 4)")),
}


@one_in(18)
@pytest.mark.parametrize("name", SHOWN)
def test_html(name: str) -> None:
    """Each object is well-formed HTML that says what it is, and its own text is one short line or the text itself."""
    make, said = SHOWN[name]
    found = make()
    html = html_of(found)
    assert isinstance(found, Shown) and found._repr_html_() == html
    text = text_of(html)
    assert [part for part in said if part not in text] == []
    assert isinstance(found, str) or len(repr(found)) < 200 or isinstance(found, lp.LayoutproofError)


def test_everything_is_escaped() -> None:
    """What stands in a program is text, and no markup of the page."""
    html = html_of(ProgramText('x = "<script>alert(1)</script>"  # <b>'))
    assert "<script>" not in html and "<b>" not in html
    assert text_of(html) == 'x = "<script>alert(1)</script>"  # <b>'


def test_ids_of_pictures() -> None:
    """Pictures of one page have no identifiers that mean different things."""
    pages = [html_of(lp.check_map("lambda i: [i//4, i%4]", (extent,))) for extent in (13, 14)]
    found: dict[str, str] = {}
    for page in pages:
        for name, body in re.findall(r'<pattern id="([^"]+)"(.*?)</pattern>', page, re.DOTALL):
            assert found.setdefault(name, body) == body
    assert len(found) == 1


def test_what_has_no_form_is_named() -> None:
    """An object of another kind is an error of the caller."""
    with pytest.raises(TypeError, match="int has no HTML form"):
        html_of(3)
