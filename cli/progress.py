"""A progress bar on terminals; nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

Advance = Callable[[str], None]


@contextmanager
def stages(count: int) -> Iterator[Advance]:
    """Give a function to call with the name of each of `count` stages when it begins.

    The bar is on standard error, if that is a terminal, whatever standard output is, and is removed at the end.
    """
    if not sys.stderr.isatty():
        yield _silent
        return
    # Rich takes long to load.
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=count, completed=-1)

        def advance(name: str) -> None:
            progress.update(task, description=name, advance=1)

        yield advance


@contextmanager
def timed(advance: Advance, seconds: dict[str, float]) -> Iterator[Advance]:
    """Give a function to call like `advance`; at the end, `seconds` has the duration of each stage by name."""
    begun: list[tuple[str, float]] = []

    def end() -> None:
        if begun:
            name, start = begun.pop()
            seconds[name] = perf_counter() - start

    def told(name: str) -> None:
        end()
        advance(name)
        begun.append((name, perf_counter()))

    yield told
    end()


def _silent(name: str) -> None:
    """No bar."""
