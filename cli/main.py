"""The command `layoutproof`: its group, its exit codes, and what becomes of errors.

Exit codes: 0 all proved; 1 something refuted; 2 the input or usage is wrong; 3 something unknown or vacuous. Whoever interrupts it, or
closes the pipe it writes to, gets what a shell reports for that signal: 130 or 141.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from layoutproof import __version__
from layoutproof.cli import codes
from layoutproof.ir.diagnostic import LayoutproofError

EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


# Name: module and attribute. A command is loaded when it is called: `map` needs no compiler's driver, `run` no drawing.
_COMMANDS = {
    "build": ("layoutproof.cli.build", "build_command"),
    "check": ("layoutproof.cli.check", "check_command"),
    "demo": ("layoutproof.cli.demo", "demo"),
    "devices": ("layoutproof.cli.devices", "devices_command"),
    "draw": ("layoutproof.cli.draw", "draw"),
    "map": ("layoutproof.cli.map", "map_command"),
    "pad-values": ("layoutproof.cli.pad_values", "pad_values"),
    "recheck": ("layoutproof.cli.recheck", "recheck_command"),
    "run": ("layoutproof.cli.run", "run"),
}


class _Commands(click.Group):
    """The commands by name, loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None where there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="layoutproof")
def cli() -> None:
    """Prove tensor layout transforms, then apply them, lower them and run them.

    Exit codes: 0 all proved; 1 something refuted; 2 the input or usage is wrong; 3 something unknown or vacuous.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (the process's own when None) and return its exit code."""
    _prepare_streams()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        _abandon(sys.stdout)
        return EXIT_BROKEN_PIPE
    except MemoryError:
        print(f"error[{codes.MEMORY}]: there is not enough memory for this; smaller shapes take less", file=sys.stderr)
        return EXIT_USAGE
    except OSError as problem:
        # Everything that reads or writes files tells its own story; what is left is standard output, which has no name here.
        _abandon(sys.stdout)
        what = "standard output cannot be written" if problem.filename is None else f"{problem.filename} cannot be used"
        print(f"error[{codes.FILE_ACCESS}]: {what}: {problem.strerror}", file=sys.stderr)
        return EXIT_USAGE


def _run(arguments: Sequence[str] | None) -> int:
    try:
        # Not `cli.main`: that one turns a closed pipe into exit code 1, which means `refuted` here.
        with cli.make_context("layoutproof", list(sys.argv[1:] if arguments is None else arguments)) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except LayoutproofError as problem:
        for diagnostic in problem.diagnostics:
            click.echo(diagnostic.render(), err=True)
        return EXIT_USAGE
    except click.ClickException as problem:
        problem.show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    return result if isinstance(result, int) else 0


def _prepare_streams() -> None:
    """A closed stream becomes one that leads nowhere; a character that a stream cannot encode is written as an escape."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # for as long as the process runs
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # for as long as the process runs
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon(stream: object) -> None:
    """Let what is still buffered go nowhere: Python would complain once more when it flushes at exit."""
    if isinstance(stream, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
