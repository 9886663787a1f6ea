"""How public objects appear where they are evaluated: a short text everywhere, HTML in notebooks.

The HTML is made by `layoutproof.cli.render.notebook`, the uppermost folder. It is named here, and loaded only by a
notebook, so that nothing below depends on it.
"""

from __future__ import annotations

from importlib import import_module

_MAKER = "layoutproof.cli.render.notebook"


class Shown:
    """An object with an HTML form for notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The object as HTML, for notebooks, which ask for it by this name."""
        html: str = import_module(_MAKER).html_of(self)
        return html


class ShownText(str, Shown):
    """A text that is shown as it is, not quoted."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ProgramText(ShownText):
    """The text of a program, highlighted in notebooks."""

    __slots__ = ()


class ProgramDiff(ShownText):
    """The lines of a program that changed, coloured in notebooks."""

    __slots__ = ()
