"""The manual page `layoutproof(1)`, of the same commands and options as `--help`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from layoutproof.cli.main import cli

MANUAL = "docs/man/layoutproof.1"
_ENVIRONMENT = {
    "CC": "The C compiler for kernels.",
    "LAYOUTPROOF_CACHE": "The folder for built kernels.",
    "LAYOUTPROOF_PROOF_CACHE": "The proof cache, unless --cache names one.",
    "LAYOUTPROOF_CACHE_OWNERS": "Users and groups (@) who may write to the caches besides this user and root.",
}
_CODES = {
    "0": "All proved.",
    "1": "Something is refuted.",
    "2": "The input or the usage is wrong.",
    "3": "Something is unknown or vacuous.",
}


def manual_page() -> str:
    """The page as roff, for `man`."""
    root = click.Context(cli, info_name="layoutproof")
    lines = [
        ".TH LAYOUTPROOF 1",
        ".SH NAME",
        r"layoutproof \- proofs and counterexamples for tensor layout transforms",
        ".SH SYNOPSIS",
        r".B layoutproof",
        r"\fICOMMAND\fR [\fIOPTIONS\fR] [\fIARGUMENTS\fR]",
        ".SH DESCRIPTION",
        *_prose(cli.help or ""),
        *_entry("-V, --version", "Show the version and exit."),
        *_entry("-h, --help", "Show the help of a command and exit."),
        ".SH COMMANDS",
    ]
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        assert command is not None
        lines += _command(name, command, root)
    lines += [".SH CONFIGURATION", *_prose("The table [tool.layoutproof] of pyproject.toml has defaults of `check`.")]
    for title, entries in (("ENVIRONMENT", _ENVIRONMENT), ("EXIT STATUS", _CODES)):
        lines += [f".SH {title}", *(line for key, text in entries.items() for line in _entry(key, text))]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, root: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=root, max_content_width=200)
    pieces = " ".join(command.collect_usage_pieces(context))
    yield from (f".SS {_text(f'layoutproof {name} {pieces}')}", *_prose(command.help or ""))
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1] and "--help" not in parameter.opts:
            yield from _entry(*record)
    if isinstance(command, click.Group):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert below is not None
            yield from _command(f"{name} {each}", below, root)


def _entry(term: str, text: str) -> Iterator[str]:
    yield from (".TP", rf"\fB{_text(term)}\fR", _text(" ".join(text.split())))


def _prose(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        yield from (".PP", _text(" ".join(paragraph.split())))


def _text(text: str) -> str:
    """Text that roff takes as it is: no line of it is a request, and hyphens can be searched and copied."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", plain)
