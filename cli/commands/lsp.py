"""`layoutproof lsp`: the language server, which editors start."""

from __future__ import annotations

from dataclasses import dataclass

import click

from layoutproof.cli.options import Number, takes

SECONDS = 600.0  # as `check` has it


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """How long one item may take."""

    timeout: float
    stdio: bool


@click.command("lsp")
@click.option(
    "--timeout",
    type=Number(0, 1_000_000),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="End an item that takes longer; 0: never.",
)
@click.option("--stdio", is_flag=True, help="Standard input and output are used in any case; some clients pass it.")
@takes(ServerRequest)
def lsp_command(request: ServerRequest) -> int:
    """Serve an editor: what `check` finds in gates, schedules, programs and index maps, while they are typed.

    Hovers show a map's padding and its picture; code actions put a remedy into a schedule. The server speaks the
    Language Server Protocol on standard input and output, and needs the extra layoutproof[lsp].
    """
    from layoutproof.cli import codes
    from layoutproof.cli.commands.check import check_command
    from layoutproof.ir.diagnostic import error

    try:
        from layoutproof.cli.editor.server import serve
    except ModuleNotFoundError as problem:
        if problem.name is None or problem.name.partition(".")[0] not in ("lsprotocol", "pygls"):
            raise
        raise error(codes.NO_SERVER, "the language server needs pygls", help="pip install 'layoutproof[lsp]'") from None
    serve(request.timeout or None, check_command)
    return 0
