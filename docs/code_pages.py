"""The pages of `docs/codes`, made from the documentation of each code when the site is built (`make docs`); they are
not kept.

One page for each layer, with a heading for each code, so that `lp3.md#lp314` is the place of one; and a page that lists
them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from layoutproof.cli.catalogue import LAYERS, Meaning, meaning_of, sentence_of, sentences

INDEX = "index.md"
_INTRODUCTION = """# Codes of messages

Every message of layoutproof has a code, `LP` and three digits; the first of them says what the message is about.
`layoutproof explain LP314` prints what stands here about one of them. Every example on these pages is run by the tests.
"""


def page_of(code: str) -> str:
    """Where a code is explained, below the folder of these pages."""
    return f"{_page(code[2])}#{code.lower()}"


def pages() -> Mapping[str, str]:
    """By file name: the text of every page."""
    return {INDEX: "\n".join(_index()), **{_page(layer): "\n\n".join(_layer(layer)) + "\n" for layer in LAYERS}}


def _page(layer: str) -> str:
    return f"lp{layer}.md"


def _index() -> Iterator[str]:
    yield _INTRODUCTION
    for layer, title in LAYERS.items():
        yield f"## LP{layer}nn: {title}\n"
        for code in sentences(layer):
            yield f"* [{code}]({page_of(code)}) {sentence_of(code)}"
        yield ""
    yield "\n".join(["```{toctree}", ":hidden:", "", *(f"lp{layer}" for layer in LAYERS), "```\n"])


def _layer(layer: str) -> Iterator[str]:
    yield f"# LP{layer}nn: {LAYERS[layer]}"
    for code in sentences(layer):
        yield from _section(meaning_of(code))


def _section(meaning: Meaning) -> Iterator[str]:
    yield f"## {meaning.code}"
    yield meaning.what
    if meaning.why:
        yield from (meaning.why, "### Example", meaning.example, "### What to do", meaning.remedy)


def write_pages(folder: Path) -> None:
    """Write every page into a folder, and remove pages that there is no layer for."""
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for old in set(folder.glob("*.md")) - {folder / name for name in made}:
        old.unlink()
    for name, text in made.items():
        path = folder / name
        # A page that is as it was keeps its time, so that it is not read again.
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
