"""The page of each notebook in `docs/notebooks`, made by running it when the site is built (`make docs`); pages are not
kept. A cell that fails fails the build.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

_SECONDS = 300
_FENCE = "````"


def write_pages(folder: Path) -> None:
    """Run every notebook of a folder and write its page beside it."""
    for path in sorted(folder.glob("*.ipynb")):
        text = "\n\n".join(_page(executed(path))) + "\n"
        page = path.with_suffix(".md")
        # Sphinx reads again what is newer.
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def executed(path: Path) -> Any:
    """The notebook with the outputs of a run in its folder. Raises CellExecutionError where a cell fails."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]  # nbformat has no types
    place = {"metadata": {"path": str(path.parent)}}
    NotebookClient(notebook, timeout=_SECONDS, startup_timeout=_SECONDS, resources=place).execute()
    return notebook


def _page(notebook: Any) -> Iterator[str]:
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
        else:
            yield f"{_FENCE}python\n{cell.source}\n{_FENCE}"
            for output in cell.outputs:
                yield from _shown(output)


def _shown(output: Any) -> Iterator[str]:
    """An output: HTML and pictures as they are, else its text."""
    data = output.get("data", {})
    html = data.get("text/html") or data.get("image/svg+xml")
    if html is not None:
        yield f"{_FENCE}{{raw}} html\n{html}\n{_FENCE}"
    else:
        text = output.get("text") or data.get("text/plain", "")
        yield f"{_FENCE}text\n{text.rstrip()}\n{_FENCE}"
