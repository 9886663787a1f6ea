"""The manual page names every command and option, and is roff that holds no request by accident."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from docs.manual import manual_page

from layoutproof.cli.main import cli

_REQUESTS = re.compile(r"\.(TH|SH|SS|PP|TP|B)( |$)")


def options(command: click.Command) -> Iterator[str]:
    """The long options of a command and of those below it."""
    context = click.Context(command)
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            yield from (name for name in parameter.opts if name.startswith("--"))
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield name
            yield from options(below)


def test_it_names_everything() -> None:
    """Each option of each command stands there, searchable, and so does each command."""
    plain = manual_page().replace(r"\-", "-")
    assert [name for name in set(options(cli)) if name not in plain] == []


def test_its_lines_are_text_or_known_requests() -> None:
    """No line of a help text begins a request, and no backslash is left that roff would read."""
    for line in manual_page().splitlines():
        assert _REQUESTS.match(line) or line[0] not in ".'", line
        assert re.sub(r"\\(-|e|&|fB|fI|fR)", "", line).count("\\") == 0, line
