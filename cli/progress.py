"""A bar for whoever waits at a terminal; nothing at all for anybody else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[str], None]


@contextmanager
def stages(count: int) -> Iterator[Advance]:
    """Give a function to call at the beginning of each of `count` stages, with its name.

    The bar stands on standard error, and only when both streams are terminals; it is gone at the end.
    """
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        yield _silent
        return
    # Rich takes long to load, and only who watches needs it.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=count, completed=-1)

        def advance(name: str) -> None:
            progress.update(task, description=name, advance=1)

        yield advance


def _silent(name: str) -> None:
    """Nobody is watching."""
