"""The command `layoutproof`: its group, its exit codes, how errors are reported, and how the process ends.

Exit codes: 0 all proved; 1 something refuted; 2 wrong input or usage; 3 something unknown or vacuous; 130 and 141 as
a shell reports an interrupt and a closed pipe.
"""

from __future__ import annotations

import atexit
import io
import os
import sys
import threading
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from layoutproof import __version__
from layoutproof.cli import codes
from layoutproof.cli.output import readable
from layoutproof.ir.diagnostic import LayoutproofError
from layoutproof.verify.workers.collector import collect_seldom

_GATES = "layoutproof_gates_"  # what modules of gate files are called: see `gate.loading`


def leave_with(code: int) -> None:
    """From now on the process ends with this exit code; at once if a thread would keep it alive."""
    if not any(name.startswith(_GATES) for name in sys.modules):
        return
    process, end = os.getpid(), os._exit

    def told(status: int = 0) -> NoReturn:
        end(code if os.getpid() == process else status)

    os._exit = told
    if _others_run():
        _end(code)


def _others_run() -> bool:
    """Whether a thread would keep the process alive."""
    return any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread())


def _end(code: int) -> None:
    """End the process now, after its exit handlers."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def leave_quickly(code: int) -> None:
    """End the process without taking its modules apart, which takes a tenth of a small command's time. Threads that run
    are waited for, and who traces or profiles the process has its results: then it ends as usual.
    """
    if not _others_run() and sys.gettrace() is None and sys.getprofile() is None:
        _end(code)


EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


# A command's file is loaded when the command is called or asked for help; its own imports stand inside its function. So
# help loads no solver, and `map` no compiler's driver.
_COMMANDS = {
    "build": "Prove and lower a program, and write it as C or OpenCL.",
    "cache": "What the proof cache holds: look, clear, check again.",
    "check": "Prove schedules, gates and rewrites, one or thousands.",
    "compare": "Prove that one program does what another one does.",
    "conflicts": "Count bank conflicts of accesses, or find a layout without.",
    "cute": "CuTe's algebra of layouts, its conditions decided.",
    "demo": "A proof, a refusal and a run, in seconds.",
    "devices": "List the OpenCL devices and what they can do.",
    "draw": "Draw a layout: cells, what they hold, padding.",
    "explain": "What a message's code means, with an example.",
    "layout": "Are two layouts the same? One in every notation.",
    "lsp": "The language server, for editors.",
    "map": "Is an index map injective? Its shape, padding, inverse.",
    "pad-values": "Which pad values would make guards unnecessary.",
    "plan": "Lay a graph's operators out with the fewest layout rewrites.",
    "recheck": "Check certificates again, with other solvers.",
    "run": "Prove, lower, compile and run a program, and compare.",
    "study": "Tables of padding policies: each cell proved or refuted.",
    "suggest": "A schedule that stores all that a block touches in one layout.",
    "tv": "Prove what mlir-opt did to a function, pass by pass.",
}


class _Commands(click.Group):
    """The commands by name, loaded on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, None if there is none."""
        if cmd_name not in _COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"layoutproof.cli.commands.{module}"), f"{module}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the arguments. Raises click.UsageError, with a similar name, for an unknown one."""
        name = args[0]
        if name in _COMMANDS or name.startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from difflib import get_close_matches

        near = "".join(f" Did you mean '{other}'?" for other in get_close_matches(name, _COMMANDS, n=1))
        raise click.UsageError(f"No such command '{name}'.{near}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, "-V", "--version", prog_name="layoutproof")
def cli() -> None:
    """Prove tensor layout transforms, then apply them, lower them and run them.

    Exit codes: 0 all proved; 1 something refuted; 2 the input or usage is wrong; 3 something unknown or vacuous.
    """


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with `arguments` (the process's own when None) and return its exit code."""
    _prepare_streams()
    if arguments is None:
        collect_seldom()
    try:
        code = _run(arguments)
        sys.stdout.flush()
        if arguments is None:
            leave_with(code)
            leave_quickly(code)
        return code
    except BrokenPipeError:
        _abandon(sys.stdout)
        return EXIT_BROKEN_PIPE
    except MemoryError:
        print(f"error[{codes.MEMORY}]: there is not enough memory for this; smaller shapes take less", file=sys.stderr)
        return EXIT_USAGE
    except OSError as problem:
        # Everything that reads or writes files tells its own story; what is left is standard output, which has no name
        # here.
        _abandon(sys.stdout)
        what = "standard output cannot be written" if problem.filename is None else f"{problem.filename} cannot be used"
        print(f"error[{codes.FILE_ACCESS}]: {readable(what)}: {problem.strerror}", file=sys.stderr)
        return EXIT_USAGE


_COMPLETE = "_LAYOUTPROOF_COMPLETE"  # what a shell sets to ask for completions, and a user for the script


def _run(arguments: Sequence[str] | None) -> int:
    asked = os.environ.get(_COMPLETE)
    if asked:
        return _complete(asked)
    try:
        # Not `cli.main`: that one turns a closed pipe into exit code 1, which means `refuted` here.
        with cli.make_context("layoutproof", list(sys.argv[1:] if arguments is None else arguments)) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except LayoutproofError as problem:
        for diagnostic in problem.diagnostics:
            click.echo(readable(diagnostic.render()), err=True)
        return EXIT_USAGE
    except click.ClickException as problem:
        click.UsageError(readable(problem.format_message()), getattr(problem, "ctx", None)).show()
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return EXIT_INTERRUPTED
    return result if isinstance(result, int) else 0


def _complete(asked: str) -> int:
    """Completions of a command line that the shell gives in the environment, or the script that makes it ask."""
    from click.shell_completion import shell_complete

    try:
        return shell_complete(cli, {}, "layoutproof", _COMPLETE, asked)
    except (click.ClickException, LayoutproofError):
        return EXIT_USAGE  # of a line that is not finished; a message would stand in the middle of it


def _prepare_streams() -> None:
    """Replace closed streams by ones that lead nowhere; write characters that a stream cannot encode as escapes.

    The stream's number is taken as well, since the next opened file of a child process would get it and be written to.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free, so this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # for as long as the process runs
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # for as long as the process runs
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _abandon(stream: object) -> None:
    """Drop what is buffered: Python would report an error when it flushes at exit."""
    if isinstance(stream, io.TextIOWrapper):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
