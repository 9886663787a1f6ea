"""What follows from the code and is kept: the pages of commands, primitives and functions of programs, their pictures,
and the methods of a schedule. `python -m docs.generate` writes them.

They are kept so that they can be read without building anything; tests compare them with what this file makes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import click
from docs.manual import MANUAL, manual_page
from docs.pictures import PICTURES
from docs.primitives import MODULE, PAGE, ROOT, cell, primitives_module, primitives_page

from layoutproof.cli.main import cli
from layoutproof.ir.functions.definitions import DEFINITIONS
from layoutproof.ir.intrinsics import MATH_FUNCTIONS, OPAQUE_CALLS
from layoutproof.ir.script.functions import FUNCTIONS

_WIDTH = 110

_COMMANDS = """\
# Commands

This page has the text of each command's `--help`. [Exit codes](../explanation/verdicts.md): 0 all proved; 1 something
refuted; 2 the input or the usage is wrong; 3 something unknown or vacuous.

Results go to standard output, or with `-o` into a file that is written whole or not at all. Messages go to standard
error. There is no colour where standard output is not a terminal, and no progress bar where standard error is
not one."""

_FUNCTIONS = """\
# Functions of programs

Expressions in [a program](programs.md) may call these functions of `T`. Any other call is an error, with a suggestion.

## Types

As a function, a type makes a constant or converts: `T.float32(0)`, `T.int64(i)`, `T.float32("-inf")`. With the number
of lanes (2, 3, 4, 8, 16, 32 or 64) it is a vector type: `T.float32x4`.

{types}

## Arithmetic, selection, predicates

Most can be written with Python's operators too. `T.if_then_else` evaluates only the branch that it takes,
`T.Select` both.

{arithmetic}

## Math functions

These are exact, or rounded once, everywhere:

{exact}

These are correctly rounded on float16, bfloat16 and float32, and kernels give the interpreter's bits ([how](math.md)).
Proofs use that equal arguments give equal results, and a few exact points:

{library}

`pow`, and all of these on float64, are the C library's on float64, rounded to the type.

## Opaque calls

They are read, printed and kept unchanged. No program with one is proved free of faults. (`reinterpret` of an
integer as a float, or as another integer of its width, is no such call; nor are `call_llvm_pure_intrin` and
`call_pure_extern` of a function of the tables above, as `llvm.sqrt` or `expf`, and of `llvm.lround`.)

{opaque}
"""


def commands_page() -> str:
    """Every command with its options, as `--help` has them."""
    lines = [_COMMANDS]
    root = click.Context(cli, info_name="layoutproof")
    for name in cli.list_commands(root):
        command = cli.get_command(root, name)
        assert command is not None
        lines += ["", *_command(name, command, root)]
    return "\n".join(lines) + "\n"


def _command(name: str, command: click.Command, root: click.Context) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=root, max_content_width=_WIDTH)
    level = "#" * (2 + name.count(" "))
    yield from (
        f"{level} layoutproof {name}",
        "",
        "```text",
        " ".join(["layoutproof", name, *command.collect_usage_pieces(context)]),
        "```",
    )
    yield from ("", _prose(inspect.cleandoc(command.help or "")))
    commands = command.list_commands(context) if isinstance(command, click.Group) else ()
    records = (param.get_help_record(context) for param in command.get_params(context) if "--help" not in param.opts)
    options = [record for record in records if record is not None and record[1]]
    if options:
        yield from ("", "| option | |", "|---|---|")
        yield from (f"| `{cell(opts)}` | {cell(_prose(text))} |" for opts, text in options)
    for each in commands:
        below = command.get_command(context, each) if isinstance(command, click.Group) else None
        assert below is not None
        yield from ("", *_command(f"{name} {each}", below, root))


def functions_page() -> str:
    """What an expression of a program may call."""
    types = [name for name in FUNCTIONS if _is_type(name)]
    plain = [name for name in types if "x" not in name]
    math = sorted(MATH_FUNCTIONS)
    opaque = sorted(set(OPAQUE_CALLS) & set(FUNCTIONS))
    rest = sorted(set(FUNCTIONS) - set(types) - set(math) - set(opaque))
    return _FUNCTIONS.format(
        types=_names(sorted(plain, key=lambda n: (re.sub(r"\d", "", n), int(re.sub(r"\D", "", n) or 0)))),
        arithmetic=_names(rest),
        exact=_names(sorted(set(math) - set(DEFINITIONS) - {"pow"})),
        library=_names(sorted(DEFINITIONS)),
        opaque=_names(opaque),
    )


def _is_type(name: str) -> bool:
    return re.fullmatch(r"(bool|bfloat16|(u?int|float)\d+)(x\d+)?", name) is not None


def _names(names: Iterable[str]) -> str:
    lines: list[str] = []
    line = ""
    for name in names:
        if len(line) + len(name) > 130:
            lines, line = [*lines, line], ""
        line += f"`{name}` "
    return "\n".join(text.rstrip() for text in (*lines, line))


def _prose(text: str) -> str:
    """Help text as Markdown: what looks like code becomes code, brackets that say defaults and ranges become
    parentheses.
    """
    parts = re.split(r"(`[^`]*`)", text.replace("\b\n", "").replace("\f", ""))
    return "".join(part if part.startswith("`") else _marked(part) for part in parts)


def _marked(text: str) -> str:
    text = re.sub(r"\[(default: [^\]]*|required|[^\]]*[<>]=[^\]]*)\]", r"(\1)", text)
    text = re.sub(r"(?<!\w)'([^'\n]+)'", r"`\1`", text)
    return re.sub(r"(?<![`\w-])(--[a-z][a-z-]*)", r"`\1`", text).replace("*", "\\*")


PAGES: Mapping[str, Callable[[], str]] = {
    # First, because commands need it.
    MODULE: primitives_module,
    PAGE: primitives_page,
    "docs/reference/cli.md": commands_page,
    MANUAL: manual_page,
    "docs/reference/functions.md": functions_page,
    **PICTURES,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
