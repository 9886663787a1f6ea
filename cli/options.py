"""Options that several commands share. What becomes of their texts stands in `values`: this file loads fast."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from layoutproof.verify.values.licences import Licences


def file_path(text: str | Path) -> Path:
    """A path, not looked at yet: whether it can be read or written is said by who does that, with what is wrong.

    Raises click.BadParameter for text that no file can be called by.
    """
    if "\0" in str(text):
        raise click.BadParameter("a path has no null byte")
    return Path(text)


output_option = click.option("-o", "--output", type=file_path, metavar="FILE", help="Write there instead of printing.")


def format_option(*formats: str) -> Callable[[Any], Any]:
    """`--format`, the first being the default."""
    return click.option(
        "--format", "output_format", type=click.Choice(formats), default=formats[0], show_default=True, help="Form of the output."
    )


size_option = click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="The value of a symbolic extent; may be repeated.")


def strictness_option(help: str) -> Callable[[Any], Any]:
    """`--strictness`: which float licences proofs may use."""
    return click.option(
        "--strictness", "allowed", callback=_read_strictness, default="reals", show_default=True, metavar="LICENCES", help=help
    )


def _read_strictness(context: click.Context, parameter: click.Parameter, text: str) -> Licences:
    """A preset, or licences by name. Raises click.BadParameter for other words."""
    from layoutproof.verify.values.licences import parse_licences

    try:
        return parse_licences(text)
    except ValueError as problem:
        raise click.BadParameter(str(problem)) from problem
