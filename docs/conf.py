"""How the pages in this folder become a site: `make docs`. Nothing is fetched, and every warning is an error.

Pages are Markdown, readable as they are; the reference of the Python API is read from the docstrings.
"""

import re
import sys
from pathlib import Path

from sphinx.application import Sphinx

from layoutproof import __version__

project = "layoutproof"
author = "the authors of layoutproof"
release = version = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
# Types in signatures: most have no place on a page.
nitpick_ignore_regex = [("py:.*", ".*")]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"layoutproof {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["pages.css"]
pygments_style = "friendly"
pygments_dark_style = "monokai"


def _as_literals(app: Sphinx, what: str, name: str, documented: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain prose: what stands in backticks is code, and no other character means anything.

    The design that something stems from is named at the end of a docstring, for those who read the code.
    """
    text = re.sub(r"\s*\bSources?: (?:TVM's RFCs?|Relax's issue) [^\n]*(\n[^\n]+)*", "", "\n".join(lines))
    lines[:] = [*text.split("\n"), ""]
    for number, line in enumerate(lines):
        parts = re.split(r"(`[^`]+`)", line)
        lines[number] = "".join(
            f"`{part}`" if part.startswith("`") else re.sub(r"([*|_\\])", r"\\\1", part) for part in parts
        )


def _signature(app: Sphinx, what: str, name: str, *_: object) -> tuple[str | None, str | None] | None:
    """Of objects that the package makes and users only take, how they are made is left out."""
    taken = name.startswith("layoutproof.te.") or name.endswith((".Kernel", ".Status"))
    return ("", None) if what == "exception" or (what == "class" and taken) else None


def setup(app: Sphinx) -> None:
    """Make the pages of codes and of notebooks before Sphinx looks which pages there are."""
    sys.path.insert(0, str(Path(app.srcdir).parent))
    from docs import notebook_pages
    from docs.code_pages import write_pages

    write_pages(Path(app.srcdir) / "codes")
    notebook_pages.write_pages(Path(app.srcdir) / "notebooks")
    app.connect("autodoc-process-docstring", _as_literals)
    app.connect("autodoc-process-signature", _signature)
