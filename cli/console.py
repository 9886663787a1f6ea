"""Rich's console as this command line needs it; in a file of its own, since rich takes long to load."""

from __future__ import annotations

from rich.console import Console


class PipeConsole(Console):
    """A console that leaves it to the command to say what a closed pipe means: rich would exit with 1, which is
    `refuted` here.
    """

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError."""
        raise BrokenPipeError
